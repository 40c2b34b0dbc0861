"""recipe=labels: what the scorers find in statements, in triples, or in texts given outright, and the words with the
largest influence. load > verbalise > score."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.files import LoadedStatements
from mitigate.load.layout import TABLES
from mitigate.load.texts import STANDARD_INPUT
from mitigate.load.texts import load as texts_of
from mitigate.measure.agreement import CLASSES
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.loading import load_data
from mitigate.recipes.scorers import Scorers
from mitigate.recipes.targets import list_named
from mitigate.runs.files import elsewhere, write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.formats import FORMATS, table_bytes
from mitigate.runs.label_cache import LabelStore
from mitigate.tasks.counts import count_labels, label_names
from mitigate.tasks.identity_words import COLUMN, identity_word_notices
from mitigate.tasks.label import Labeller, label_statements, occlude
from mitigate.tasks.statements import long_texts
from mitigate.triples import OTHER, Scorer
from mitigate.words.texts import counted

SHOWN = 10  # texts of a file that are shown on the terminal


def run(config: DictConfig) -> None:
    """Label what `data` or `texts` names, into the run folder and data.output; given texts onto the terminal, and into
    data.output alone."""
    output = _output(config.data.output)
    given = plain(config.texts)
    file = _file(given) if isinstance(given, str) else None
    scorers = Scorers(config.score).labelling
    cache = LabelStore(Path(config.paths.cache) / "labels")
    if given and config.data.get("path") is not None:
        raise MitigateError(
            f"texts and data.path={config.data.path} are both given, and only texts would be labelled; leave one out"
        )
    if given and config.measure.masking == "paper":
        raise MitigateError(
            "measure.masking=paper masks the target that each statement is about, and texts= names none: leave it out, "
            "or give statements with their targets (data=statements data.path=FILE)"
        )
    if given and file is None:
        texts = [given] if isinstance(given, str) else given
        label_given(config, texts, scorers, cache, output)
        return
    loaded: Any = load_data(config) if file is None else texts_of(file, config.recipe.column, config.data.on_bad_line)
    statements = loaded.statements if isinstance(loaded, LoadedStatements) else None
    target_list, notices = list_named(config, statements if file is None else None)
    for notice in [*loaded.notices, *notices]:
        say(f"  note: {notice}")
    table = loaded.triples if statements is None else statements
    if taken := [scorer.name for scorer in scorers if scorer.name in table.columns]:
        raise MitigateError(
            f"the data has a column {taken[0]} already, which would be lost beside the labels of the scorer of that "
            "name: leave data.label_column out"
        )
    own = list(loaded.own_relations) if statements is None else []
    name = (
        f"{config.recipe.name}-{'texts' if file else config.data.name}-{config.score.regard or config.score.sentiment}"
    )

    labeller = Labeller(scorers, config.measure.masking, target_list, own, cache)

    def pipeline(job: Job) -> None:
        labels = job.stage("labels", Labeller.label, labeller, table, explain=True)
        job.stage("metrics", count_labels, labels)
        if config.recipe.occlusion:
            job.stage("occlusion", occlude, labels, scorers, using={"cache": cache})

    source = digest_of_values(table, target_list, own)
    if found := perform(config, name, source, pipeline, record):
        labels = found["labels"].table()
        save(labels, output)
        if file:
            show(labels.head(SHOWN), found["occlusion"].table() if config.recipe.occlusion else None)
        notices_of(labels)
        say(summary(found["metrics"].facts()))


def record(job: Job) -> None:
    """The counts, on W&B."""
    job.tracking.summarise(job.results["metrics"].facts())


def label_given(
    config: DictConfig, texts: list[str], scorers: list[Scorer], cache: LabelStore, output: Path | None
) -> None:
    """Label texts that the command names."""
    target_list, notices = list_named(config)
    for notice in notices:
        say(f"  note: {notice}")
    table = pl.DataFrame({"statement": texts}).with_row_index("row", offset=1)
    labels = label_statements(table, scorers, target_list=target_list, explain=True, cache=cache)
    show(labels, occlude(labels, scorers, cache=cache) if config.recipe.occlusion else None)
    notices_of(labels)
    if not config.dry_run:
        save(labels, output)


def notices_of(labels: pl.DataFrame) -> None:
    """What a reader of the labels must know."""
    for notice in [*long_texts(labels["masked"]), *identity_word_notices(labels)]:
        say(f"  note: {notice}")


def save(labels: pl.DataFrame, output: Path | None) -> None:
    """Write the labels to data.output, in the format that its ending names."""
    if output is not None:
        write(output, table_bytes(labels, output.suffix[1:]), elsewhere("data.output=FILE"))
        say(f"  written     {output}")


def summary(metrics: dict[str, int]) -> str:
    """The counts as a table."""
    columns = dict.fromkeys(key.partition("/")[0] for key in metrics if "/" in key)
    lines = [" " * 20 + "".join(f"{name:>20}" for name in CLASSES.values())]
    for column in columns:
        cells = [metrics[f"{column}/{name}"] for name in CLASSES.values()]
        lines.append(f"  {column:<18}" + "".join(f"{n:>11,} ({n / metrics['rows']:>5.1%})" for n in cells))
    return "\n".join(
        [*lines, f"  {counted(metrics['rows'], 'row')}, {counted(metrics['distinct'], 'distinct text')} once masked"]
    )


def show(table: pl.DataFrame, occlusion: pl.DataFrame | None = None) -> None:
    """Each text with every scorer's label, strength and words; and its label and strength without each word."""
    named = {**CLASSES, OTHER: "other"}
    for row in table.rows(named=True):
        is_masked = row["masked"] != row["statement"]
        say(f"{row['statement']}  ({row['masked']})" if is_masked else row["statement"])
        for column in label_names(table):
            drove = row[f"{column}_words"] or ""
            identity = row.get(f"{column}{COLUMN}")  # none beside labels of the neutral wording
            drove += f"  depends on: {identity}" if identity else ""
            say(f"  {column:<10}{named[row[column]]:<12} {row[f'{column}_strength']:+z.2f}  {drove}".rstrip())
            if occlusion is not None:
                for word, label, strength in _without(occlusion, column, row["masked"]):
                    say(f"    without {word:<16} {named[label]:<12} {strength:+z.2f}")


def _without(occlusion: pl.DataFrame, scorer: str, text: str) -> list[tuple[str, int, float]]:
    rows = occlusion.filter(pl.col("scorer") == scorer, pl.col("masked") == text)
    return rows.select("word", "label_without", "strength_without").rows()


def _file(given: str) -> str | None:
    """The file, or "-", that `texts` names: after an @, or by the ending of a table; None for a text."""
    if given.startswith("@"):
        if given != f"@{STANDARD_INPUT}" and not Path(given[1:]).exists():
            raise MitigateError(
                f"texts={given}: no such file: {given[1:]}; a text that begins with @ stands in brackets: texts=[@...]"
            )
        return given[1:]
    ends = given.lower().removesuffix(".gz").endswith((*TABLES, ".txt"))
    return given if given == STANDARD_INPUT or (ends and (" " not in given or Path(given).exists())) else None


def _output(path: str | None) -> Path | None:
    if path is not None and Path(path).suffix[1:] not in FORMATS:
        allowed = ", ".join(f".{name}" for name in FORMATS)
        raise MitigateError(f"data.output={path}: the file name has no known ending; allowed: {allowed}")
    return None if path is None else Path(path)
