"""recipe=labels: the scorers' labels of statements, triples, or texts of the command, and the words that drove them.
load > verbalise > score."""

import re
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, counted
from mitigate.files import write
from mitigate.load.statements import load_texts
from mitigate.load.table import TABLES
from mitigate.measure.agreement import CLASSES
from mitigate.measure.harms import label_names
from mitigate.measure.results import measured, of_study
from mitigate.recipes.config import Config, Scorers
from mitigate.recipes.job import open_job, say, say_notes
from mitigate.score.base import IDENTITY
from mitigate.score.labeller import Labeller, label_statements
from mitigate.score.labels import long_texts, not_english
from mitigate.stages import FORMATS, digest_of_values, table_bytes
from mitigate.triples import OTHER, Scorer, fold_other

SHOWN = 10  # texts of a file that are shown on the terminal


def run(config: Config) -> None:
    """Label the rows that `data` or `texts` names, into the run folder and data.output; texts of the command onto the
    terminal, and into data.output alone."""
    output, texts = config.data.output and Path(config.data.output), config.texts
    if texts == "":
        raise MitigateError("texts is empty; give texts=[one text,another], texts=FILE, or data=... data.path=FILE")
    if texts and config.data.path:
        raise MitigateError(f"texts=... and data.path={config.data.path} both name what is labelled; leave one out")
    if output and output.suffix[1:] not in FORMATS:
        raise MitigateError(f"data.output={output}: unknown file ending; allowed: .{', .'.join(FORMATS)}")
    file = _file(texts) if isinstance(texts, str) else None
    if output and output.resolve() == Path(file or config.data.path or "").resolve():
        raise MitigateError(f"data.output={output} is the file that is labelled; choose another place")
    scorers = Scorers(config.score).labelling
    if texts and config.measure.masking == "paper":
        raise MitigateError(
            "measure.masking=paper needs the target of each statement, and texts= has none; leave measure.masking "
            "out, or give statements with their targets (data=statements data.path=FILE)"
        )
    if not texts or file is not None:
        label_table(config, file, scorers, output)
        return
    target_list, notices = config.target_list()
    say_notes(notices)
    table = pl.DataFrame({"statement": [texts] if isinstance(texts, str) else texts}).with_row_index("row", offset=1)
    if config.dry_run:
        say(f"  {counted(table.height, 'text')} would be labelled")
        return
    labels = label_statements(table, scorers, target_list=target_list, explain=True, cache=config.label_cache())
    show(labels)
    save(labels, output)


def label_table(config: Config, file: str | None, scorers: list[Scorer], output: Path | None) -> None:
    """Label the rows of a file of texts, or without one those that `data` names."""
    if file is None and config.data.demonstration:
        say("The sample corpus is labelled: set texts= or data= for others.")
    loaded = config.load_data() if file is None else load_texts(file, config.recipe.column, config.data.on_bad_line)
    target_list, notices = config.target_list(loaded.rows if "target" in loaded.rows.columns else None)
    say_notes([*loaded.notices, *notices])
    own_relations = list(loaded.own_relations)
    labeller = config.labeller(scorers, target_list, own_relations)
    labeller.label(loaded.rows.clear())  # raises where a scorer has the name of a column
    by = config.score.regard or config.score.sentiment or scorers[0].name
    name = f"{config.recipe.name}-{'texts' if file else config.data.name}-{by}"
    with open_job(config, name, digest_of_values(loaded.rows, target_list, own_relations)) as job:
        labels = job.stage("labels", Labeller.label, labeller, loaded.rows, explain=True)
        job.measure(count_labels, labels)
        counts = job.results["metrics"].facts()
        if job.is_new():
            job.tracking.summarise(counts)
    if not config.dry_run:
        if file:
            show(labels.table().head(SHOWN))
        save(labels.table(), output)
        say(f"{summary(counts)}\n  labels      {job.folder / 'labels.parquet'}")


def count_labels(table: pl.DataFrame) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): numbers of rows, of distinct masked texts, and of each label by column:
    {column}/{prejudice|neutral|favouritism}; other counts as neutral."""
    counts = {
        f"{column}/{name}": int((fold_other(table[column].to_numpy()) == label).sum())
        for column in label_names(table)
        for label, name in CLASSES.items()
    }
    sizes = measured("numbers", {"rows": table.height, "distinct": table["masked"].n_unique()})
    return pl.concat([sizes, of_study(counts)])


def save(labels: pl.DataFrame, output: Path | None) -> None:
    """Write the labels to data.output, in the format of its ending, and print notices of long texts and of other
    languages."""
    if output is not None:
        write(output, table_bytes(labels, output.suffix[1:]), "choose another place with data.output=FILE")
        say(f"  written     {output}")
    say_notes([*long_texts(labels["masked"]), *not_english(labels["masked"])])


def summary(metrics: dict[str, int]) -> str:
    """The counts, of which metrics.json writes those of labels with a decimal point, as a table."""
    columns = dict.fromkeys(key.partition("/")[0] for key in metrics if "/" in key)
    lines = [" " * 20 + "".join(f"{name:>20}" for name in CLASSES.values())]
    for column in columns:
        cells = [metrics[f"{column}/{name}"] for name in CLASSES.values()]
        lines.append(f"  {column:<18}" + "".join(f"{n:>11,.0f} ({n / metrics['rows']:>5.1%})" for n in cells))
    distinct = counted(metrics["distinct"], "distinct text")
    return "\n".join([*lines, f"  {counted(metrics['rows'], 'row')}, {distinct} once masked"])


def show(table: pl.DataFrame) -> None:
    """Print each text with every scorer's label, strength and words."""
    named = {**CLASSES, OTHER: "other"}
    for row in table.rows(named=True):
        is_masked = row["masked"] != row["statement"]
        say(f"{row['statement']}  ({row['masked']})" if is_masked else row["statement"])
        for column in label_names(table):
            drove = row[f"{column}_words"] or ""
            identity = row.get(f"{column}{IDENTITY}")  # none beside labels of the neutral wording
            drove += f"  depends on: {identity}" if identity else ""
            say(f"  {f'{column} ':<10}{named[row[column]]:<12} {row[f'{column}_strength']:+z.2f}  {drove}".rstrip())


def _file(given: str) -> str | None:
    """The file that `texts` names: after an @, or with the ending of a table; None for a text."""
    if given.startswith("@"):
        if not Path(given[1:]).exists():
            raise MitigateError(
                f"texts={given}: no such file: {given[1:]}; to label a text that begins with @, set texts=[@...]"
            )
        return given[1:]
    exists = len(given) < 255 and Path(given).exists()
    if given.lower().removesuffix(".gz").endswith((*TABLES, ".txt")) and (exists or " " not in given):
        return given
    if exists or re.fullmatch(r"\S+\.[a-zA-Z]\w{1,4}", given):
        raise MitigateError(
            f"texts={given} seems to be a file: write texts=@{given} (a text a line), or texts=[{given}]"
        )
    return None
