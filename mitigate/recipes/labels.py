"""recipe=labels: the scorers' labels of statements, triples, or texts of the command, and the words with the largest
influence. load > verbalise > score."""

from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import elsewhere, write
from mitigate.load.statements import STANDARD_INPUT
from mitigate.load.statements import load_texts as texts_of
from mitigate.load.table import TABLES
from mitigate.measure.agreement import CLASSES
from mitigate.measure.identity import identity_word_notices
from mitigate.measure.statements import FORMATS, count_labels, label_names, long_texts, table_bytes
from mitigate.recipes.config import Config
from mitigate.recipes.job import open_job, say, say_notes
from mitigate.recipes.scorers import Scorers
from mitigate.score.base import IDENTITY
from mitigate.score.labeller import Labeller, abstentions, label_statements, mask, occlude, texts_to_ask
from mitigate.score.labels import Asks
from mitigate.stages import digest_of_values
from mitigate.triples import OTHER, Scorer
from mitigate.words.english import not_english
from mitigate.words.outside_text import counted

SHOWN = 10  # texts of a file that are shown on the terminal


def run(config: Config) -> None:
    """Label the rows that `data` or `texts` names, into the run folder and data.output; texts of the command onto the
    terminal, and into data.output alone."""
    output, given = config.data.output and Path(config.data.output), config.texts
    if output and output.suffix[1:] not in FORMATS:
        allowed = ", ".join(f".{name}" for name in FORMATS)
        raise MitigateError(f"data.output={output}: unknown file ending; allowed: {allowed}")
    file = _file(given) if isinstance(given, str) else None
    texts = [given] if isinstance(given, str) else given or []
    scorers = Scorers(config.score).labelling
    if given and config.data.path is not None:
        raise MitigateError(
            f"texts and data.path={config.data.path} are both set, but only texts would be labelled; leave one out"
        )
    if given and config.measure.masking == "paper":
        raise MitigateError(
            "measure.masking=paper needs the target of each statement, and texts= has none; leave measure.masking "
            "out, or give statements with their targets (data=statements data.path=FILE)"
        )
    if given and file is None:
        label_given(config, texts, scorers, output)
    else:
        label_table(config, file, scorers, output)


def label_table(config: Config, file: str | None, scorers: list[Scorer], output: Path | None) -> None:
    """Label the rows of a file of texts, or without one those that `data` names."""
    loaded: Any = config.load_data() if file is None else texts_of(file, config.recipe.column, config.data.on_bad_line)
    statements = loaded.rows if loaded.kind == "statements" else None
    target_list, notices = config.target_list(statements if file is None else None)
    say_notes([*loaded.notices, *notices])
    table, own = (loaded.rows, list(loaded.own_relations)) if statements is None else (statements, [])
    if taken := [scorer.name for scorer in scorers if scorer.name in table.columns]:
        raise MitigateError(
            f"the data already has a column {taken[0]}, which the labels of the scorer {taken[0]} would replace; "
            "leave data.label_column out"
        )
    labeller = config.labeller(scorers, target_list, own)
    by = config.score.regard or config.score.sentiment or scorers[0].name
    parts = config.recipe.name, "texts" if file else config.data.name, by
    if config.dry_run and any(isinstance(scorer, Asks) for scorer in scorers):
        say_notes(texts_to_ask(scorers, mask(table, config.measure.masking, target_list, own), labeller.cache))
    with open_job(config, "-".join(parts), digest_of_values(table, target_list, own)) as job:
        labels = job.stage("labels", Labeller.label, labeller, table, explain=True)
        job.measure(count_labels, labels)
        without = None
        if config.recipe.occlusion:
            without = job.stage("occlusion", occlude, labels, scorers, using={"cache": labeller.cache}).table()
        counts = job.results["metrics"].facts()
        if job.is_new():
            job.tracking.summarise(counts)
    if not config.dry_run:
        save(labels.table(), output)
        if file:
            show(labels.table().head(SHOWN), without)
        say_label_notes(labels.table(), scorers)
        say(summary(counts))


def label_given(config: Config, texts: list[str], scorers: list[Scorer], output: Path | None) -> None:
    """Label texts of the command."""
    target_list, notices = config.target_list()
    say_notes(notices)
    table, cache = pl.DataFrame({"statement": texts}).with_row_index("row", offset=1), config.label_cache()
    if config.dry_run:
        say_notes(texts_to_ask(scorers, mask(table, target_list=target_list), cache))
        scorers = [scorer for scorer in scorers if not isinstance(scorer, Asks)]
    labels = label_statements(table, scorers, target_list=target_list, explain=True, cache=cache)
    show(labels, occlude(labels, scorers, cache=cache) if config.recipe.occlusion else None)
    say_label_notes(labels, scorers)
    if not config.dry_run:
        save(labels, output)


def say_label_notes(labels: pl.DataFrame, scorers: list[Scorer]) -> None:
    """Print notices of long texts, of labels that depend on identity words, and of abstentions."""
    say_notes(
        [
            *long_texts(labels["masked"]),
            *not_english(labels["masked"]),
            *identity_word_notices(labels),
            *abstentions(scorers, labels),
        ]
    )


def save(labels: pl.DataFrame, output: Path | None) -> None:
    """Write the labels to data.output, in the format of its ending."""
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
    """Print each text with every scorer's label, strength and words; and its label and strength without each word."""
    named = {**CLASSES, OTHER: "other"}
    for row in table.rows(named=True):
        is_masked = row["masked"] != row["statement"]
        say(f"{row['statement']}  ({row['masked']})" if is_masked else row["statement"])
        for column in label_names(table):
            drove = row[f"{column}_words"] or ""
            identity = row.get(f"{column}{IDENTITY}")  # none beside labels of the neutral wording
            drove += f"  depends on: {identity}" if identity else ""
            say(f"  {column:<10}{named[row[column]]:<12} {row[f'{column}_strength']:+z.2f}  {drove}".rstrip())
            if occlusion is not None:
                rows = occlusion.filter(scorer=column, masked=row["masked"])
                for word, label, strength in rows.select("word", "label_without", "strength_without").rows():
                    say(f"    without {word:<16} {named[label]:<12} {strength:+z.2f}")


def _file(given: str) -> str | None:
    """The file, or "-", that `texts` names: after an @, or with the ending of a table; None for a text."""
    if given.startswith("@"):
        if given != f"@{STANDARD_INPUT}" and not Path(given[1:]).exists():
            raise MitigateError(
                f"texts={given}: no such file: {given[1:]}; to label a text that begins with @, set texts=[@...]"
            )
        return given[1:]
    ends = given.lower().removesuffix(".gz").endswith((*TABLES, ".txt"))
    return given if given == STANDARD_INPUT or (ends and (" " not in given or Path(given).exists())) else None
