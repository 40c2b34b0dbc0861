"""The columns of benchmarks/experiment.csv and plan2.csv, whose rows are the runs of the first two plans: all that
endpoints, tables and pictures need, so that they can be drawn again without the runs.

Figures are those of metrics.json, under their keys there. Besides, a row has what these do not hold: shares by
relation, perplexity on triples that are neutral by scorers no policy filters by, and counts for each cluster of
targets and each head, packed as numbers separated by blanks, over which intervals are computed."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl

from mitigate.files import digest_of
from mitigate.measure.base import key_of
from mitigate.measure.quality import GENERATOR
from mitigate.triples import HELD_OUT
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER

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


def _digest(names: Sequence[str]) -> str:
    return f"{len(names)}-{digest_of(chr(10).join(names))[:8]}"
