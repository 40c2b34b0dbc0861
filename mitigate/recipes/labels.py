"""recipe=labels: what the scorers find in statements, in triples, or in texts given outright, and the words with the
largest influence. load > verbalise > score."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.label_cache import LabelStore
from mitigate.load.files import LoadedStatements
from mitigate.measure.agreement import CLASSES
from mitigate.recipes.job import Job, build, perform, plain, say
from mitigate.recipes.scorers import build_scorers
from mitigate.store import as_parquet, digest_of
from mitigate.tasks.counts import count_labels, label_names
from mitigate.tasks.label import label_statements
from mitigate.triples import OTHER

STAGES = ("labels", "metrics")


def run(config: DictConfig) -> None:
    """Label what `data` names, into the run folder and data.output; or given texts, onto the terminal alone."""
    output = _output(config.data.output)
    scorers = build_scorers(config.score)
    cache = LabelStore(Path(config.paths.cache) / "labels")
    if config.texts:
        show(label_statements(pl.DataFrame({"statement": plain(config.texts)}), scorers, explain=True, cache=cache))
        return
    loaded = build(config.data.load)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    table = loaded.statements if isinstance(loaded, LoadedStatements) else loaded.triples
    name = f"{config.recipe.name}-{config.data.name}-{config.score.regard}"

    def pipeline(job: Job) -> dict[str, Any]:
        masking = config.measure.masking
        labels = job.stage(
            "labels", label_statements, table, scorers, masking=masking, explain=True, using={"cache": cache}
        )
        metrics = job.stage("metrics", count_labels, labels)
        job.tracking.summarise(metrics.facts())
        if output is not None and not config.dry_run:
            write(output, labels.path.read_bytes())
            say(f"  written     {output}")
        return metrics.facts()

    if metrics := perform(config, name, digest_of(as_parquet(table)), STAGES, pipeline):
        say(summary(metrics))


def summary(metrics: dict[str, int]) -> str:
    """The counts as a table."""
    columns = dict.fromkeys(key.partition("/")[0] for key in metrics if "/" in key)
    lines = [" " * 20 + "".join(f"{name:>20}" for name in CLASSES.values())]
    for column in columns:
        cells = [metrics[f"{column}/{name}"] for name in CLASSES.values()]
        lines.append(f"  {column:<18}" + "".join(f"{n:>11,} ({n / metrics['rows']:>5.1%})" for n in cells))
    return "\n".join([*lines, f"  {metrics['rows']:,} rows, {metrics['distinct']:,} distinct texts once masked"])


def show(table: pl.DataFrame) -> None:
    """Each text with every scorer's label, strength and words."""
    named = {**CLASSES, OTHER: "other"}
    for row in table.rows(named=True):
        is_masked = row["masked"] != row["statement"]
        say(f"{row['statement']}  ({row['masked']})" if is_masked else row["statement"])
        for column in label_names(table):
            drove = row[f"{column}_words"] or ""
            say(f"  {column:<10}{named[row[column]]:<12} {row[f'{column}_strength']:+.2f}  {drove}".rstrip())


def _output(path: str | None) -> Path | None:
    if path is not None and not path.endswith(".parquet"):
        raise MitigateError(f"data.output={path}: labels are written as Parquet; give a name that ends in .parquet")
    return None if path is None else Path(path)
