"""recipe=agreement: scorers beside people, on the statements that the crowd of the harms paper rated (its Tables 2 and
3, and its statements of COMeT and of the filtered COMeT): kappa and F1 of each class; and false alarms on the group
that a sentence names.

    python -m mitigate recipe=agreement data.root=DIR [score.extra=[judge]]"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.files import digest_of, write
from mitigate.load.ratings import FILTERED, RESOURCES, rated_sets, read_rated
from mitigate.load.statements import root_with
from mitigate.measure import agreement
from mitigate.measure.agreement import ABSTAINED, ALWAYS_NEUTRAL, BY_MAJORITY, LABEL_FIGURES, PEOPLE, PER_RATING
from mitigate.measure.base import ENDS, bounds
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed, of_study
from mitigate.recipes.config import Config, Scorers
from mitigate.recipes.job import open_job, say
from mitigate.report.sections import scorers_beside_people
from mitigate.report.table import Table, as_markdown, as_text, figures, text
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.stages import as_parquet
from mitigate.triples import PREJUDICE, ROLES, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import identity_texts

BESIDE = ("keyword", "ngram", "crowd2")  # scorers that are compared too
RATINGS = "ratings"
"""The source of labels that a scorer is compared with, in `learnt_from` of its configuration."""
SHOWN = {"kappa": "kappa", "macro_f1": "macro-F1", "polarised": "polarised", ABSTAINED: "abstained"}
"""Figures of scorers against the majority of raters, and their headings."""
FALSE_POSITIVES = "false_positives"
ERRORS = FALSE_POSITIVES, "false_negatives"
IDENTITY = {
    **dict.fromkeys(("scorer", "error"), pl.String),
    **dict.fromkeys((*(f"mean{end}" for end in ENDS), "equality_difference"), pl.Float64),
    "term": pl.String,  # the one whose share is farthest from the mean
    **dict.fromkeys(("largest", "masked"), pl.Float64),  # its share, and that of frames about “this person”
}


def run(config: Config) -> None:
    """Label the statements that people rated, whole demographic words masked, and compare."""
    rated = read(config.data.root, config.recipe.statements, config.seed)
    scorers = Scorers(config.score)
    compared = scorers.rated(dict.fromkeys([*BESIDE, *config.score.extra]))
    names = [one.name for one in compared]
    configured = {name: getattr(config.score, name) if name in ROLES else name for name in names}
    learnt_from = {name: sources(config.score.scorers[node]) for name, node in configured.items()}
    texts = term_texts(config.recipe.statements, config.seed)
    intervals, cache = Bootstrap(resamples=config.measure.resamples, seed=config.seed), config.label_cache()
    source = digest_of(as_parquet(rated.with_columns(pl.col("votes").cast(pl.List(pl.String)).list.join(" "))))
    with open_job(config, f"{config.recipe.name}-{config.score.regard}", source) as job:
        using = {"cache": cache}
        labels = job.stage("labels", agreement.label_rated, rated, compared, using=using)
        labelled_terms = job.stage("identity_labels", label_identity_terms, compared, texts, using=using)
        errors = job.stage("identity", identity_errors, labelled_terms, names, intervals)
        measured = job.stage("metrics", measure, labels, errors, names, intervals)
        job.stage("results", of_study, measured)
        metrics, resources = measured.facts(), rated["resource"].unique(maintain_order=True).to_list()
        tables = {
            "agreement": agreement.agreement_table(metrics, resources, names),
            "measured": measured_table(metrics, configured),
            "identity": errors.table(),
        }
        compared_table = classifiers(metrics, resources, learnt_from)
        if job.is_new():
            for name, table in tables.items():
                write(job.folder / f"{name}.csv", table.write_csv())
            write(job.folder / "classifiers.md", as_markdown(compared_table))
            job.tracking.summarise(metrics)
        shown = (scorers_beside_people(tables["agreement"]), compared_table, identity(tables["identity"]))
        say("\n\n".join(map(as_text, shown)))


def read(root: str | None, size: int | None, seed: int) -> pl.DataFrame:
    """Read the crowd's statements (load.ratings.read_rated), or so many of each source, drawn by the seed. Those of the
    filtered COMeT, which were published later than the other sets, are left out where the folder lacks them."""
    folder = root_with(root, ["humans"])
    rated = read_rated(folder, [*RESOURCES, *([FILTERED] if FILTERED in rated_sets(folder / "humans") else [])])
    if size is None:
        return rated
    parts = rated.partition_by("resource", maintain_order=True)
    return pl.concat(part.sample(min(size, part.height), seed=seed, shuffle=False) for part in parts)


def sources(configured: Mapping[str, Any]) -> str:
    """The sources of a scorer's labels in words, by `learnt_from` and `cross_fitted` of its configuration; a scorer
    that has learnt from the ratings it is compared with is marked."""
    if not (named := configured.get("learnt_from")):
        return "not stated"
    left_out = configured.get("cross_fitted")
    how = f"cross-fitted by {left_out}" if left_out else "the same ones: its figures are too good"
    return ", ".join(f"{source} ({how})" if source == RATINGS else str(source) for source in named)


def measure(labels: pl.DataFrame, errors: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> dict[str, Any]:
    """measure_agreement, and {scorer}/identity/{error}/{column of identity_errors}."""
    identity_figures = keyed("{scorer}/identity/{error}", errors.rows(named=True))
    return agreement.measure_agreement(labels, scorers, intervals) | identity_figures


def measured_table(metrics: Mapping[str, Any], names: Mapping[str, str]) -> pl.DataFrame:
    """The table of data/agreement_measured.csv (resource, scorer, measure, value): figures rating by rating, and kappa
    with the majority. names: of the scorers in metrics, with their names in the configuration."""
    of_scorer = {f"{PER_RATING}/{name}": name for name in ("accuracy", *LABEL_FIGURES)}
    of_scorer |= {f"{BY_MAJORITY}/kappa{end}": f"{BY_MAJORITY}/kappa{end}" for end in ENDS}
    wanted = [(name, called, of_scorer) for name, called in names.items()]
    wanted += [(ALWAYS_NEUTRAL, ALWAYS_NEUTRAL, {f"{PER_RATING}/accuracy": "accuracy"})]
    wanted += [(PEOPLE, PEOPLE, {f"fleiss{end}": f"fleiss{end}" for end in ENDS})]
    rows = [
        (resource, called, measure, metrics[f"{resource}/{name}/{key}"])
        for resource in RESOURCES
        for name, called, keys in wanted
        for key, measure in keys.items()
    ]
    schema = {**dict.fromkeys(("resource", "scorer", "measure"), pl.String), "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("value").round(3))


# Identity terms: the same frames (data/identity), filled with one term after another (Dixon et al. 2018); terms and
# frames that no classifier here has learnt from. A false positive is a neutral or kind frame that is labelled
# prejudice, a false negative an unkind frame that is not. A negated frame counts by its meaning: "is not a thief" is
# neutral, "is not honest" unkind. Every term has the same frames, so the mean over terms is the rate over all texts.


def term_texts(terms: int | None = None, seed: int = 0) -> pl.DataFrame:
    """Read the unseen texts of words.identity_terms.identity_texts, and those about "this person". terms: the number of
    terms, drawn by seed; None: all."""
    texts = identity_texts(MASK).filter(pl.col("term_split").fill_null("test") == "test", frame_split="test")
    named = texts.drop_nulls("term_split")["term"].unique(maintain_order=True)
    drawn = named if terms is None else named.sample(min(terms, len(named)), seed=seed)
    return texts.filter(pl.col("term").is_in(drawn.to_list()) | pl.col("term_split").is_null())


def label_identity_terms(
    scorers: Sequence[Scorer], texts: pl.DataFrame | None = None, *, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Label texts of term_texts, all of them by default, by each scorer: its label and strength. Unlike statements,
    texts are labelled as they are: no demographic word is masked, except in the frames about "this person"."""
    texts = term_texts() if texts is None else texts
    for scorer in scorers:
        label, strength = label_columns(scorer.name, "paper")
        labels = label_column(texts["text"], scorer, cache)
        texts = texts.with_columns(pl.Series(label, labels.label), pl.Series(strength, labels.strength))
    return texts


def identity_errors(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """A row of IDENTITY for each scorer and error in what label_identity_terms returns: the mean over terms with its
    interval over frames, drawn by pairs of singular and plural; equality_difference, the sum over terms of the distance
    between a term's share and the mean, 0 where all are the same (Dixon et al. 2018, Section 4.3)."""
    rows = []
    for name in scorers:
        for error in ERRORS:
            is_unkind, is_prejudice = pl.col("polarity") == "unkind", pl.col(name) == PREJUDICE
            of, wrong = (~is_unkind, is_prejudice) if error == FALSE_POSITIVES else (is_unkind, ~is_prejudice)
            rated = labels.filter(of).with_columns(wrong=100.0 * wrong)
            named, masked = rated.drop_nulls("term_split"), rated.filter(pl.col("term_split").is_null())
            frames = named.group_by("frame", "pair", maintain_order=True).agg(pl.col("wrong").mean())
            pairs = np.unique(frames["pair"].to_numpy(), return_inverse=True)[1]
            low, high = intervals.mean(frames["wrong"].to_numpy(), pairs)
            terms = named.group_by("term", maintain_order=True).agg(pl.col("wrong").mean())
            mean = float(terms["wrong"].to_numpy().mean())
            distances = np.abs(terms["wrong"].to_numpy() - mean)
            row = {"scorer": name, "error": error, "mean": mean, "mean_low": low, "mean_high": high}
            row |= {"equality_difference": float(distances.sum()), "masked": masked["wrong"].mean()}
            rows.append(row | dict(zip(("term", "largest"), terms.row(int(distances.argmax())), strict=True)))
    return pl.DataFrame(rows, schema=IDENTITY)


# Tables as they are shown


def classifiers(metrics: Mapping[str, Any], resources: Iterable[str], learnt_from: Mapping[str, str]) -> Table:
    """Scorers beside the majority of raters, and the raters among themselves (Fleiss' kappa), with 95 % intervals over
    targets and texts; shares from 0 to 1, false positives on unseen identity terms in percent. learnt_from: the sources
    of labels by scorer, of all scorers that stand in the table."""

    def named(**places: str) -> dict[str, float | None]:
        ends = {name: zip((name, *bounds(name)), ENDS, strict=True) for name in places}
        return {key: metrics.get(places[name] + end) for name in places for key, end in ends[name]}

    rows: list[dict[str, Any]] = []
    for resource in resources:
        for scorer, sources in learnt_from.items():
            errors = f"{scorer}/identity/{FALSE_POSITIVES}/mean"
            row = named(errors=errors, **{name: f"{resource}/{scorer}/{BY_MAJORITY}/{name}" for name in SHOWN})
            rows.append({"resource": resource, "scorer": scorer, "learnt": sources, **row})
        row = named(kappa=f"{resource}/{PEOPLE}/fleiss", polarised=f"{resource}/{PEOPLE}/polarised")
        rows.append({"resource": resource, "scorer": PEOPLE, "learnt": "", **row})
    columns = [text("against the majority of raters", "resource"), text("scorer"), *figures(3, **SHOWN)]
    columns += figures(1, errors="identity false positives, %")
    return Table("", [*columns, text("learnt from", "learnt")], rows)


def identity(errors: pl.DataFrame) -> Table:
    """Errors on unseen identity terms in unseen sentences: the mean over terms with its interval over sentences, the
    term that is farthest from it, and the share where the phrase is masked."""
    columns = [text("% of unseen identity terms", "scorer"), text("", lambda row: row["error"].replace("_", " "))]
    columns += [*figures(1, mean="mean"), text("farthest term", "term"), *figures(1, largest="of it", masked="masked")]
    return Table("", columns, errors)
