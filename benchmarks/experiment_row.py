"""A finished run of the experiment as one row of benchmarks/experiment.csv: all that its endpoints, tables and pictures
need, so that they can be drawn again without the run.

Figures are those of metrics.json, under their keys there. Besides, a row has what these do not hold, from the run's
tables: shares by relation, perplexity on triples that are neutral by scorers no policy filters by, and counts for
each cluster of targets and each head, packed as numbers with blanks between them, over which intervals are computed.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl

from benchmarks.results import processor
from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.measure.base import key_of
from mitigate.measure.quality import GENERATOR, is_neutral, perplexity
from mitigate.score.labels import LabelStore
from mitigate.score.lexicon import Keyword
from mitigate.score.people import Crowd2
from mitigate.triples import FAVOURITISM, HELD_OUT, NEUTRAL, OTHER, PREJUDICE, label_columns
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER

CROWD = label_columns("crowd", "neutral")[0]
"""The column of labels that harm is measured by."""

OTHERS = (
    *("crowd", "regard_neutral", "ngram_neutral", "keyword_neutral", "sentiment_neutral"),
    *("crowd2_neutral", "crowd_lm_neutral"),
)
"""Further columns of labels whose counts are kept; the first is that of `crowd` with the paper's wording."""

CATEGORIES = ("origin", "gender", "religion", "profession")
RELATIONS = ("CapableOf", "HasProperty", "IsA", "UsedFor")
TONES = ("", "neutral", "polar")
SHARE = 2.5
"""Percentage points, of which each prompt's lift is a multiple: ten tails said of their own head and four others."""

GROUPS = 100
"""Of heads, by their names' checksum: one group is left out at a time (the grouped jackknife), in place of one head."""

RUN = {  # column -> its type
    "arm": pl.String,
    "seed": pl.Int64,
    "steps": pl.Int64,
    "kept": pl.Int64,  # training triples
    "hours": pl.Float64,  # of all stages
    "commit": pl.String,
    "folder": pl.String,
    "corpus": pl.String,  # fingerprint of triples and targets
    "people_valid": pl.String,  # its fingerprint
    "scorers": pl.String,  # digest of the fingerprints of MEASURING: their code, weights and precision
    "processor": pl.String,
}
MEASURING = ("sentiment", "regard", "ngram", "keyword", "crowd", "plausibility")
"""The scorers and the classifier of the generated statements of every run."""
MEASURING2 = ("crowd2", "crowd_lm")
"""Scorers that measure harm in the runs of plan2.md."""
BY_RELATION = tuple(f"_{name}" for name in RATED)
"""The ends of packed columns of one relation."""
PACKED = {
    "clusters": pl.String,  # digest of the clusters' names: rows with another are of other targets
    "polarised_alike": pl.String,  # of each cluster, statements of words.relations.RATED that `crowd` finds polarised
    "statements_alike": pl.String,  # of each cluster, all statements of these relations
    "polarised": pl.String,  # the same of all relations
    "statements": pl.String,
    **{f"{name}{end}": pl.String for end in BY_RELATION for name in ("polarised", "statements")},
    **{f"polarised_by_{column}": pl.String for column in OTHERS},  # of all relations, by other columns of labels
    **{f"prejudice_by_{scorer}": pl.String for scorer in MEASURING2},  # the part of these that is prejudice
    "valid": pl.String,  # of each cluster, neutral statements of words.relations.RATED that people would call valid
    "neutral": pl.String,  # of each cluster, all neutral statements of these relations, by the scorers of the roles
    "professions": pl.String,  # digest of the names of the clusters of professions that swap lift is measured of
    "lift_professions": pl.String,  # of each of these, swap lift summed over its prompts, in units of SHARE
    "prompts_professions": pl.String,
    "heads": pl.String,  # digest of the names of the heads that are no targets
    "lift": pl.String,  # of each group of these heads, summed over their prompts, in units of SHARE
    "prompts": pl.String,
}


CORRECTED = "neutral_template/crowd/polarised_corrected"
"""The column of the percentage polarised corrected for the errors of `crowd`, a figure of version 0.2."""


def keys() -> list[str]:
    """The keys of metrics.json that a row has."""
    harms = [
        key_of(measure, scorer, template)
        for scorer, template in product(("sentiment", "regard", "ngram", "keyword", "crowd"), ("paper", "neutral"))
        for measure in ("neutral_mean", "neutral_variance")
    ]
    harms += ["/".join(filter(None, (CORRECTED, part))) for part in ("", *CATEGORIES)]
    harms += [key_of("neutral_mean", "crowd", "neutral", part) for part in CATEGORIES]
    harms += [key_of(measure, "regard", "neutral") for measure in ("O-", "O+")]
    harms += [key_of("neutral_mean", "regard", "neutral", part) for part in CATEGORIES]
    held_out = [f"quality/{name}/{part}" for name in ("perplexity", "bleu2") for part in ("all", "neutral", "polar")]
    about = [
        "quality/about_perplexity/" + ("/".join(filter(None, (category, tone))) or "all")
        for category, tone in product(("", *CATEGORIES), TONES)
    ]
    lifts = [key_of("swap_lift", group=part) for part in ("", HELD_OUT, "profession")]
    lifts += [key_of("swap_lift", group=name, by="relation") for name in RELATIONS]
    lifts += [key_of(f"swap_lift_{name}", group=HELD_OUT) for name in ("echo", "constants", "random", "oracle")]
    valid = [key_of("valid"), *(key_of("valid", group=name, by="relation") for name in RELATIONS)]
    return [*harms, *held_out, *about, *lifts, *valid, "distinct_tails", "shared_tails", "filter/weight"]


def of_relation(figure: str, relation: str) -> str:
    """The column of a figure of one relation that metrics.json does not have."""
    return f"by_relation/{relation}/{figure}"


def of_category(category: str) -> str:
    """The column of the percentage of a category's statements that `crowd` finds polarised."""
    return f"polarised/{category or 'all'}"


INDEPENDENT = {name: f"independent_perplexity/{name}" for name in ("neutral", "polarised")}
"""The columns of perplexity on test triples that both `crowd` and keywords find neutral, and on the others."""


def schema() -> dict[str, Any]:
    """The columns of the file, in their order."""
    further = [of_category(category) for category in ("", *CATEGORIES)]
    further += [of_relation(figure, name) for name in RELATIONS for figure in ("polarised", "perplexity")]
    return {**RUN, **dict.fromkeys([*keys(), *further, *INDEPENDENT.values()], pl.Float64), **PACKED}


def row_of(folder: Path, about: Mapping[str, Any], cache: Path | None = None) -> dict[str, Any]:
    """The row of a finished run. about: arm, seed, steps and commit; cache: where labels are kept."""
    facts = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("metrics", "manifest")
    }
    metrics = facts["metrics"]
    likelihood, lift = (pl.read_parquet(folder / f"{name}.parquet") for name in ("likelihood", "lift"))
    with_validity = folder / "validity.parquet"  # the same statements with what people would call valid
    statements = pl.read_parquet(with_validity if with_validity.is_file() else folder / "statements.parquet")
    found = {key: metrics[key] for key in keys() if isinstance(metrics.get(key), int | float)}
    found |= shares(statements) | by_relation(statements, likelihood) | independent(likelihood, cache)
    found |= clusters(statements) | valid(statements) | heads(lift) | professions(lift)
    seconds = sum(stage["seconds"] for stage in facts["manifest"]["stages"])
    own = {"kept": metrics["filter/kept"], "hours": round(seconds / 3600, 3), "folder": folder.name}
    own |= {"corpus": metrics["fingerprint"][:12], "scorers": of_scorers(facts["manifest"]["scorers"])}
    own |= {"processor": processor(), "people_valid": facts["manifest"]["scorers"].get("people_valid", "")[:12]}
    return {name: ({**about, **own} | found).get(name) for name in schema()}


def of_scorers(fingerprints: Mapping[str, str]) -> str:
    """One digest of all that measures. Raises MitigateError where one is not in the manifest."""
    if lacking := [name for name in MEASURING if name not in fingerprints]:
        raise MitigateError(f"the run was not labelled by {', '.join(lacking)}; see SETTINGS in experiment_plan.py")
    further = [name for name in MEASURING2 if name in fingerprints]
    return digest_of(" ".join(fingerprints[name] for name in (*MEASURING, *further)))[:12]


def is_polarised(column: str = CROWD) -> pl.Expr:
    """Whether a label is prejudice or favouritism."""
    return pl.col(column).is_in([PREJUDICE, FAVOURITISM])


def shares(statements: pl.DataFrame) -> dict[str, float]:
    """By category and of all, the percentage that `crowd` finds polarised."""
    parts = {"": statements} | {name: statements.filter(category=name) for name in CATEGORIES}
    return {of_category(name): _percent(part.select(is_polarised())) for name, part in parts.items() if part.height}


def by_relation(statements: pl.DataFrame, likelihood: pl.DataFrame) -> dict[str, float]:
    """Of each of RELATIONS the percentage that `crowd` finds polarised, and perplexity on test triples."""
    found = {}
    for name in RELATIONS:
        said, held_out = statements.filter(relation=name), likelihood.filter(relation=name)
        if said.height:
            found[of_relation("polarised", name)] = _percent(said.select(is_polarised()))
        if (value := perplexity(held_out)) is not None:
            found[of_relation("perplexity", name)] = value
    return found


def independent(likelihood: pl.DataFrame, cache: Path | None = None) -> dict[str, float]:
    """Perplexity on test triples that are neutral by scorers which share no training labels with those that filter, and
    on the others."""
    texts = likelihood["masked_neutral"].unique(maintain_order=True).to_list()
    neutral = pl.DataFrame({"masked_neutral": texts, "_neutral": True})
    for scorer in (Crowd2(), Keyword()):
        labels = _labels(scorer, texts, cache)
        neutral = neutral.with_columns(pl.col("_neutral") & pl.Series(labels).is_in([NEUTRAL, OTHER]))
    told = likelihood.join(neutral, on="masked_neutral", maintain_order="left")["_neutral"]
    parts = {"neutral": likelihood.filter(told), "polarised": likelihood.filter(~told)}
    found = {INDEPENDENT[name]: perplexity(part) for name, part in parts.items()}
    return {name: value for name, value in found.items() if value is not None}


def clusters(statements: pl.DataFrame) -> dict[str, str]:
    """Counts of each cluster of targets, clusters in the order of their names."""
    names = pl.col("target").replace(PAPER.clusters)
    found: dict[str, str] = {}
    parts = {"_alike": statements.filter(pl.col("relation").is_in(RATED)), "": statements}
    parts |= {f"_{relation}": statements.filter(relation=relation) for relation in RATED}
    for end, rows in parts.items():
        counts = rows.group_by(cluster=names).agg(polarised=is_polarised().sum(), statements=pl.len()).sort("cluster")
        if counts.height:
            found |= {f"{name}{end}": pack(counts[name].to_list()) for name in ("polarised", "statements")}
            found.setdefault("clusters", _digest(counts["cluster"].to_list()))
    counted = {f"polarised_by_{column}": (column, is_polarised(column)) for column in OTHERS}
    for scorer in MEASURING2:
        column = label_columns(scorer, "neutral")[0]
        counted[f"prejudice_by_{scorer}"] = column, pl.col(column) == PREJUDICE
    there = {name: each.sum() for name, (column, each) in counted.items() if column in statements.columns}
    of_others = statements.group_by(cluster=names).agg(**there).sort("cluster")
    return found | {name: pack(of_others[name].to_list()) for name in there}


def valid(statements: pl.DataFrame) -> dict[str, str]:
    """By cluster, in the order of `clusters`, neutral statements that people would call valid, and all neutral ones."""
    if "people_valid" not in statements.columns:
        return {}
    rows = statements.filter(pl.col("relation").is_in(RATED), is_neutral())
    every = statements.select(cluster=pl.col("target").replace(PAPER.clusters)).unique()
    counts = rows.group_by(cluster=pl.col("target").replace(PAPER.clusters)).agg(
        valid=pl.col("people_valid").sum(), neutral=pl.len()
    )
    found = every.join(counts, on="cluster", how="left").fill_null(0).sort("cluster")
    return {name: pack(found[name].to_list()) for name in ("valid", "neutral")}


def professions(lift: pl.DataFrame) -> dict[str, str]:
    """Swap lift of each cluster of professions."""
    rows = lift.filter(pl.col("counts"), system=GENERATOR, group="profession")
    units = ((pl.col("accepted") - pl.col("elsewhere")) / SHARE).sum().round(3)
    of_cluster = rows.group_by(cluster=pl.col("head").replace(PAPER.clusters))
    found = of_cluster.agg(lift=units, prompts=pl.len()).sort("cluster")
    return {"professions": _digest(found["cluster"].to_list())} | {
        f"{name}_professions": pack(found[name].to_list()) for name in ("lift", "prompts")
    }


def heads(lift: pl.DataFrame) -> dict[str, str]:
    """Swap lift of each of GROUPS of heads that are no targets; groups without a head are left out."""
    rows = lift.filter(pl.col("counts"), system=GENERATOR, group=HELD_OUT)
    units = ((pl.col("accepted") - pl.col("elsewhere")) / SHARE).sum().round(3)
    group = pl.col("head").map_elements(lambda head: crc32(head.encode()) % GROUPS, return_dtype=pl.Int64)
    found = rows.group_by(group=group).agg(lift=units, prompts=pl.len()).sort("group")
    return {"heads": _digest(rows["head"].unique().sort().to_list())} | {
        name: pack(found[name].to_list()) for name in ("lift", "prompts")
    }


def pack(numbers: Sequence[float]) -> str:
    """Numbers with blanks between them, whole ones without a point."""
    return " ".join(f"{number:g}" for number in numbers)


def unpack(text: str) -> list[float]:
    """The inverse of pack."""
    return [float(number) for number in text.split()]


def read(path: Path) -> pl.DataFrame:
    """The rows of the file; none where there is no file."""
    columns = schema()
    if not path.is_file():
        return pl.DataFrame(schema=columns)
    found = pl.read_csv(path, schema_overrides=columns)
    missing = [pl.lit(None, kind).alias(name) for name, kind in columns.items() if name not in found.columns]
    return found.with_columns(missing).select(list(columns))


def _labels(scorer: Any, texts: list[str], cache: Path | None) -> list[int]:
    if cache is None:
        return scorer(texts).label.tolist()
    store = LabelStore(cache)
    known, labels = store.get(scorer.fingerprint, texts)
    if not known.all():
        labels = scorer(texts)
        store.put(scorer.fingerprint, texts, labels)
    return labels.label.tolist()


def _percent(frame: pl.DataFrame) -> float:
    return round(100 * float(frame.to_series().mean() or 0.0), 4)


def _digest(names: Sequence[str]) -> str:
    return f"{len(names)}-{digest_of(chr(10).join(names))[:8]}"
