"""Results: the figures of a run in one tidy table, results.parquet, from which metrics.json, W&B's summary, and tables
in CSV and LaTeX are derived.

A row is a figure: measure, scorer, template (paper or neutral), variant, by (all, category, relation, subset
or target), group (its value, such as origin), value, low and high (the 95 % interval), n (the units of the mean,
such as targets). docs/measures.md describes the schema and every measure."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from string import Formatter
from typing import Any

import polars as pl

from mitigate.measure.base import ENDS, Estimate, Figure, bounds, find, measures
from mitigate.measure.intervals import Bootstrap, mean_over_targets

VERSION = 2
"""The version of the schema: a change of a column's meaning raises it, a new column does not."""
FILE = "results.parquet"
SCHEMA = {
    **dict.fromkeys(("measure", "scorer", "template", "variant", "by", "group"), pl.String),
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "n": pl.Int64,
}
Groups = Mapping[tuple[str, str], pl.Expr]
"""Conditions by `by` and `group`."""
ALL = ("all", "")
EVERY: Groups = {ALL: pl.lit(True)}


def by_category(table: pl.DataFrame) -> Groups:
    """All rows, and those of each category."""
    names = table["category"].unique(maintain_order=True)
    return {**EVERY, **{("category", name): pl.col("category") == name for name in names}}


def measured(
    of: str,
    table: Any,
    groups: Groups = EVERY,
    *,
    clusters: Mapping[str, str] | None = None,
    intervals: Bootstrap | None = None,
    **labelled: str,
) -> pl.DataFrame:
    """The figures (SCHEMA) of all declared measures of a table, for each group of its rows; a group without rows has
    counts alone, and of a mapping the numbers that it has. intervals: None leaves them out; clusters: word -> the word
    whose inflection it is, drawn together. labelled: scorer, template and variant."""
    rows = []
    given = table if isinstance(table, Mapping) else ["", *table.columns]
    usable = [one for one in measures(of) if (one.name if isinstance(table, Mapping) else one.needs) in given]
    for (by, group), condition in groups.items():
        part = table.filter(condition) if isinstance(table, pl.DataFrame) else table
        for one in usable:
            if not one.groups and (by, group) != ALL:
                continue
            is_void = (by, group) != ALL and one.unit != "count" and part.is_empty()
            found = None if is_void else one.function(part)
            found = mean_over_targets(found, "share") if isinstance(found, pl.DataFrame) else found
            found = found if isinstance(found, Estimate) else Estimate(found)
            low, high = found.interval(intervals, clusters or {}) if found.interval and intervals else (None, None)
            row = {"measure": one.name, "by": by, "group": group, "value": found.value, "n": found.n}
            rows.append(row | {**labelled, "low": low, "high": high})
    return as_rows(rows)


def as_rows(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Figures as a table (SCHEMA); absent texts are empty, `by` is all."""
    frame = pl.DataFrame(list(rows), schema_overrides=SCHEMA, infer_schema_length=None)
    absent = {name: pl.lit(None, dtype) for name, dtype in SCHEMA.items() if name not in frame.columns}
    frame = frame.with_columns(**absent).select(*SCHEMA).with_columns(pl.col("by").fill_null("all"))
    return frame.with_columns(pl.col(pl.String).fill_null(""), pl.col(pl.Float64).fill_nan(None))


def keyed(place: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of a study's table that `place` does not name, each under a key that begins with it:
    "{source}/{figure}" gives keys such as "COMeT/kappa/low"."""
    names = {name for _, name, *_ in Formatter().parse(place)}
    return {f"{place.format(**row)}/{name}": row[name] for row in rows for name in row if name not in names}


def of_study(flat: Mapping[str, Any]) -> pl.DataFrame:
    """The numbers of a study's own metrics.json as figures: the measure is the last part of a key, and what stands
    before it is the group (by row)."""
    ends = {key + end for key in flat for end in ENDS[1:]}
    rows = []
    for key, value in flat.items():
        if key not in ends and isinstance(value, int | float | None):
            group, _, name = key.rpartition("/")
            low, high = (flat.get(bound) for bound in bounds(key))
            rows.append({"measure": name, "by": "row", "group": group, "value": value, "low": low, "high": high})
    return as_rows(rows)


class Results(Mapping[str, Any]):
    """The figures of a run and facts about it: a mapping with the keys and values of metrics.json.

    table: SCHEMA; facts: texts and numbers that identify the run, such as its seed and policy."""

    def __init__(self, table: pl.DataFrame, facts: Mapping[str, Any] | None = None) -> None:
        self.table, self.facts = table, dict(facts or {})
        self.overall = table.filter(pl.col("by") != "target")  # metrics.json leaves out single targets

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The figures of `overall` by their keys."""
        rows = self.overall.select(Figure._fields).iter_rows()
        return {figure.key: figure for figure in map(Figure._make, rows)}

    @cached_property
    def flat(self) -> dict[str, Any]:
        """The content of metrics.json: facts, then every figure, with its bounds where there is an interval."""
        found = dict(self.facts)
        numbers = self.overall.select("value", "low", "high").iter_rows()
        for (key, figure), (value, low, high) in zip(self.figures.items(), numbers, strict=True):
            whole = value is not None and figure.declared.unit == "count" and value == int(value)
            found[key] = int(value) if whole else value
            if low is not None or high is not None:
                found |= zip(bounds(key), (low, high), strict=True)
        return found

    def __getitem__(self, key: str) -> Any:
        return self.flat[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.flat)

    def __len__(self) -> int:
        return len(self.flat)

    @classmethod
    def of(cls, table: pl.DataFrame, flat: Mapping[str, Any]) -> "Results":
        """The results of a table, and the facts that metrics.json has besides."""
        ends = {key + end for key in cls(table).figures for end in ENDS}
        return cls(table, {key: value for key, value in flat.items() if key not in ends})

    @classmethod
    def of_run(cls, run: Any) -> "Results":
        """The results of a finished run (finished.FinishedRun); of a run of version 0.2, whose figures have the same
        keys, from metrics.json alone."""
        if FILE not in run.files:
            return cls.of_json(run.metrics)
        known = pl.col("measure").is_in([one.name for one in measures()]) | (pl.col("by") == "row")
        return cls.of(run.table(FILE).filter(known), run.metrics)  # an earlier version has other measures

    @classmethod
    def of_json(cls, flat: Mapping[str, Any]) -> "Results":
        """The results that metrics.json holds."""
        known = {key: figure for key in flat if (figure := find(key))}
        rows = [
            figure._asdict() | dict(zip(("value", "low", "high"), (flat.get(key + end) for end in ENDS), strict=True))
            for key, figure in known.items()
        ]
        return cls.of(as_rows(rows), flat)


def as_json(table: pl.DataFrame, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The content of metrics.json."""
    return Results(table, facts).flat
