"""What the scorers say of statements, of triples, or of texts given outright, and by which words:
load > verbalise > score."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import relations, targets
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.label_cache import LabelStore
from mitigate.load.files import LoadedStatements
from mitigate.measure.agreement import CLASSES, fold_other
from mitigate.recipes.job import Job, build, perform, plain, say
from mitigate.recipes.scorers import build_scorers
from mitigate.score import labels as labelling
from mitigate.score import words
from mitigate.score.words import driving_words
from mitigate.store import as_parquet, digest_of
from mitigate.triples import OTHER, LabelCache, Labels, Scorer, label_columns
from mitigate.verbalise import MASK, Masking, mask_column, verbalise

STAGES = ("labels", "metrics")
WORDING = (relations, targets, verbalising, labelling, words)  # the sources that decide what is labelled


def run(config: DictConfig) -> None:
    """Label what `data` names, into the run folder and data.output; or given texts, onto the terminal alone."""
    masking = config.measure.masking
    verbalising.check(masking)
    output = _output(config.data.output)
    scorers = build_scorers(config.score)
    cache = LabelStore(Path(config.paths.cache) / "labels")
    if config.texts:
        texts = pl.DataFrame({"statement": plain(config.texts)})
        show(label(texts, "token", scorers, cache))
        return
    loaded = build(config.data.load)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    table = loaded.statements if isinstance(loaded, LoadedStatements) else loaded.triples
    name = f"{config.recipe.name}-{config.data.name}-{config.score.regard}"

    def pipeline(job: Job) -> dict[str, Any]:
        labels = job.old_stage(
            "labels",
            lambda _: label(table, masking, scorers, cache),
            needs=[digest_of(as_parquet(table))],
            settings={"masking": masking, "scorers": [scorer.fingerprint for scorer in scorers]},
            code=WORDING,
        )
        metrics = job.old_stage("metrics", lambda _: count(labels.table()), needs=[labels.digest])
        job.tracking.summarise(metrics.facts())
        if output is not None and not config.dry_run:
            write(output, labels.path.read_bytes())
            say(f"  written     {output}")
        return metrics.facts()

    if metrics := perform(config, name, digest_of(as_parquet(table)), STAGES, pipeline):
        say(summary(metrics))


def label(table: pl.DataFrame, masking: Masking, scorers: list[Scorer], cache: LabelCache) -> pl.DataFrame:
    """The rows in their order with their masked text, and from each scorer label, strength and the words that drove
    it. Triples are labelled with both of their relation's wordings; of a plain statement nobody knows which of
    its words are a relation's, so that it has no neutral wording, and no columns for it."""
    if "relation" in table.columns:
        statements = verbalise(table, masking)
    else:
        statements = table.with_columns(mask_column("statement", masking).alias("masked"))
    for scorer in scorers:
        statements = labelled(statements, scorer, cache)
    return statements


def labelled(statements: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The statements with one scorer's columns."""
    label, strength = label_columns(scorer.name, "paper")
    if "masked_neutral" in statements.columns:
        statements = labelling.with_labels(statements, scorer, cache)
        labels = Labels(statements[label].to_numpy(), statements[strength].to_numpy())
    else:
        labels = labelling.label_column(statements["masked"], scorer, cache)
        statements = statements.with_columns(pl.Series(label, labels.label), pl.Series(strength, labels.strength))
    drove = driving_words(statements["masked"], labels, scorer, cache, passed_over=MASK.split())
    return statements.with_columns(drove.alias(f"{label}_words"))


def count(table: pl.DataFrame) -> dict[str, int]:
    """How many rows have which label, by label column, with "other" counted as neutral."""
    counts = {"rows": table.height, "distinct": table["masked"].n_unique()}
    for column in [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]:
        labels = fold_other(table[column].to_numpy())
        counts |= {f"{column}/{name}": int((labels == label).sum()) for label, name in CLASSES.items()}
    return counts


def summary(metrics: dict[str, int]) -> str:
    """The counts as a table."""
    columns = dict.fromkeys(key.partition("/")[0] for key in metrics if "/" in key)
    lines = [" " * 20 + "".join(f"{name:>20}" for name in CLASSES.values())]
    for column in columns:
        cells = [metrics[f"{column}/{name}"] for name in CLASSES.values()]
        lines.append(f"  {column:<18}" + "".join(f"{n:>11,} ({n / metrics['rows']:>5.1%})" for n in cells))
    return "\n".join([*lines, f"  {metrics['rows']:,} rows, {metrics['distinct']:,} distinct texts once masked"])


def show(table: pl.DataFrame) -> None:
    """Each text with what every scorer says of it."""
    columns = [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]
    named = {**CLASSES, OTHER: "other"}
    for row in table.rows(named=True):
        said = row["statement"] if row["masked"] == row["statement"] else f"{row['statement']}  ({row['masked']})"
        say(said)
        for column in columns:
            drove = row[f"{column}_words"] or ""
            say(f"  {column:<10}{named[row[column]]:<12} {row[f'{column}_strength']:+.2f}  {drove}".rstrip())


def _output(path: str | None) -> Path | None:
    if path is not None and not path.endswith(".parquet"):
        raise MitigateError(f"data.output={path}: labels are written as Parquet; give a name that ends in .parquet")
    return None if path is None else Path(path)
