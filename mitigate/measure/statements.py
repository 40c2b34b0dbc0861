"""Labelled statements: their columns of labels with percentages and counts, a folder of parts as a query or a sample,
and files that other programs read."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.measure.caveats import few_targets, same_sources
from mitigate.measure.harms import EmptyTargets, audit_results, tallied_per_target
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import measured
from mitigate.triples import ROLES, TEMPLATES, Scorer, label_columns
from mitigate.words.outside_text import counted
from mitigate.words.targets import TargetList

MOST = 200_000  # that examples, the export and the record in W&B are chosen from
NAMED = 5  # targets without statements, in a notice
LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30


class Labelling(NamedTuple):
    """A column of labels, with its scorer and the template of the labelled statements."""

    column: str
    scorer: str
    template: str  # of TEMPLATES


def labellings(scorers: Sequence[Scorer], templates: Sequence[str] = TEMPLATES) -> list[Labelling]:
    """Return the columns that these scorers label, with each of the templates."""
    return [
        Labelling(label_columns(scorer.name, template)[0], scorer.name, template)
        for scorer in scorers
        for template in templates
    ]


@dataclass(frozen=True)
class Measurement:
    """The targets that are measured over, the columns of labels, and how harms are measured."""

    targets: pl.DataFrame  # (target, category)
    labellings: Sequence[Labelling]
    target_list: TargetList
    intervals: Bootstrap
    empty_targets: EmptyTargets = "exclude"

    @property
    def wordings(self) -> dict[str, tuple[str, str]]:
        """Scorer and template by column."""
        return {labels.column: (labels.scorer, labels.template) for labels in self.labellings}

    @property
    def scorers(self) -> list[str]:
        """The scorers' names, those of the roles last first: regard, sentiment, and any others."""
        names = dict.fromkeys(labels.scorer for labels in self.labellings)
        return sorted(names, key=lambda name: -ROLES.index(name) if name in ROLES else 1)

    def tables(self, tallied: pl.DataFrame, empty_targets: EmptyTargets | None = None) -> dict[str, pl.DataFrame]:
        """Tables with a row a target and its percentages (harms.per_target), by label column. tallied: what
        measure.harms.tally returns."""
        empty = empty_targets or self.empty_targets
        return {column: tallied_per_target(tallied, column, self.targets, empty) for column in self.wordings}

    def harms(self, tallied: pl.DataFrame) -> pl.DataFrame:
        """The results of measure.harms.audit_results."""
        clusters = self.target_list.clusters
        return audit_results(tallied, self.targets, self.wordings, clusters, self.intervals, self.empty_targets)

    def notices(self, tallied: pl.DataFrame) -> list[str]:
        """Limits of the figures that a reader must know first: small categories, targets without statements, scorers of
        the same sources."""
        table = next(iter(self.tables(tallied).values()))
        found = few_targets(table, self.target_list)
        if empty := table.filter(pl.col("statements") == 0)["target"].to_list():
            effect = "they have no percentage and are left out of means and variances of percentages."
            if self.empty_targets == "zero":
                effect = "each counts as 0 % prejudiced, favoured and neutral, as in the paper, which lowers means and "
                effect += "makes variances larger."
            words = ", ".join(empty[:NAMED]) + (" ..." if len(empty) > NAMED else "")
            found.append(f"{len(empty)} of {table.height} targets have no statements ({words}): {effect}")
        return found + same_sources(labels.scorer for labels in self.labellings)


def label_names(table: pl.DataFrame) -> list[str]:
    """The columns of labels: those beside a column of their strengths."""
    return [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]


def count_labels(table: pl.DataFrame) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): numbers of rows, of distinct masked texts, and of each label by column."""
    found = [measured("resource", {"rows": table.height, "distinct": table["masked"].n_unique()})]
    found += [measured("labels", table[column], scorer=column) for column in label_names(table)]
    return pl.concat(found).drop_nulls("value")


def about_targets(folder: Path) -> pl.LazyFrame:
    """Query the statements about a target in a folder of parts, without reading them into memory."""
    parts = sorted(folder.glob("*.parquet"))  # by their names: a folder's own may have brackets
    return pl.scan_parquet(parts, glob=False).filter(pl.col("target").is_not_null())


def choice(folder: Path, seed: int) -> tuple[pl.DataFrame, int]:
    """Sample the statements about a target, and count all of them. Of more than MOST about that many are taken: those
    of rows whose hash is small, which are the same however the resource is cut into parts."""
    statements = about_targets(folder)
    height = statements.select(pl.len()).collect(engine="streaming").item()
    if height > MOST:
        statements = statements.filter(pl.col("row").hash(seed) < int(MOST / height * 2**64))
    return statements.collect(engine="streaming").sort("row", maintain_order=True), height


def export(statements: pl.DataFrame) -> str:
    """Write the distinct statements as lines `target<TAB>statement` under a line of names, as recipe=humans and
    recipe=labels read them with data=statements."""
    one_line = pl.col("statement").str.replace_all(r"\s+", " ").str.strip_chars()
    rows = statements.select("target", one_line).unique(maintain_order=True)
    return rows.write_csv(separator="\t", quote_style="never")


def long_texts(texts: pl.Series) -> list[str]:
    """A notice where texts are longer than those that scorers are made for and were measured on."""
    words = texts.str.count_matches(r"\S+")
    long = words.filter(words > LONG).to_list()
    if not long:
        return []
    has = "has" if len(long) == 1 else "have"
    return [
        f"{len(long):,} of {counted(len(words), 'text')} {has} more than {LONG} words, up to {max(long):,}. The "
        "scorers are made for single statements: sentiment adds up all words, so that a long text tends to an extreme, "
        "and classifiers read the beginning of a text. Give its sentences one by one."
    ]


def _tsv(frame: pl.DataFrame, file: io.BytesIO) -> None:
    """Write a table without quotes, as ConceptNet's files are. A tab or line end within a text becomes a space."""
    plain = pl.col(pl.String).str.replace_all(r"[\t\r\n]", " ")
    frame.with_columns(plain).write_csv(file, separator="\t", quote_style="never")


FORMATS: dict[str, Callable[[pl.DataFrame, io.BytesIO], Any]] = {
    **{"parquet": pl.DataFrame.write_parquet, "csv": pl.DataFrame.write_csv},
    **{"tsv": _tsv, "jsonl": pl.DataFrame.write_ndjson},
}
"""The formats of tables by the ending of the file."""


def table_bytes(frame: pl.DataFrame, format: str) -> bytes:
    """A table as a file's content. Equal tables give equal bytes."""
    content = io.BytesIO()
    FORMATS[format](frame, content)
    return content.getvalue()
