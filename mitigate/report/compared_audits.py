"""Two resources side by side as one HTML page that loads nothing: where they differ, and how certain that is. No
difference counts as better or worse: one resource has more of something than the other, or is not shown to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import polars as pl

from mitigate.metrics import Share, Statistic, harm_key, with_part
from mitigate.report import audit_tables, metric_display
from mitigate.report.audit_tables import Wording
from mitigate.report.change_formats import CELLS, CORRECTED, by_category, interval
from mitigate.report.examples import FEWEST_STATEMENTS, statement_tables, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number, signed
from mitigate.report.run_figures import GROUPS_OF_TWO, Picture, of_two
from mitigate.report.table import Column, Table, as_text, grouped
from mitigate.report.table_declarations import declared
from mitigate.report.verdicts import ALIKE, ALPHA, SAME, UNKNOWN
from mitigate.words.outside_text import counted

MORE, LESS = "more", "less"
IN_WORDS = {SAME: "the same numbers", UNKNOWN: "whether they differ is unknown", ALIKE: "no difference is shown"}
POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")


@dataclass(frozen=True, kw_only=True, eq=False)
class Resources(Page):
    """The content of the page of two resources."""

    titles: tuple[str, str]
    is_same: bool
    wordings: Sequence[Wording]
    spoken: tuple[int, int]  # the number of targets that each mentions
    figures: pl.DataFrame  # a row for each figure: scorer, template, key, category, and its comparison
    targets: pl.DataFrame  # scorer, template, target, category, and both resources' statements and shares
    agreement: Mapping[str, float | None]  # key -> rank correlation over targets
    differ_most: Mapping[str, pl.DataFrame]  # scorer -> rows of targets, with `difference`
    statements: Mapping[str, Mapping[str, Sequence[pl.DataFrame]]]
    """Statements and labels by scorer and target, from each."""
    scorers: Mapping[str, str]  # by their names in tables: {"regard": "minilm"}
    first_scorer, groups = "regard", GROUPS_OF_TWO

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `figures` about the second resource."""
        if self.is_same:
            return SAME
        if row["p_holm"] is None or row["value"] is None:
            return UNKNOWN
        if row["p_holm"] >= ALPHA:
            return ALIKE
        return MORE if row["value"] > row["baseline"] else LESS

    def rows(self, categories: Sequence[str] = ("",)) -> list[dict[str, Any]]:
        """The rows of `figures` over all targets or in categories, as tables show them: with section, name and
        finding."""
        found = {row["key"]: row | {"finding": self.verdict(row)} for row in self.figures.to_dicts()}
        lines = audit_tables.rows(self.wordings)
        return [
            {**found[with_part(line.key, category)], "section": line.section, "name": line.measure}
            for line in lines
            for category in categories
        ]

    @property
    def headlines(self) -> dict[str, str]:
        """Scorer -> the template that sentences and pictures are in: the paper's, where both have it."""
        return audit_tables.headlines(self.wordings)

    def row(self, scorer: str, statistic: Statistic, share: Share) -> dict[str, Any]:
        """The row of a figure over all targets in a scorer's headline."""
        key = harm_key(scorer, statistic, share, self.headlines[scorer])
        return self.figures.row(by_predicate=pl.col("key") == key, named=True)

    def of(self, scorer: str) -> pl.DataFrame:
        """The rows of `targets` under a scorer's headline."""
        return self.targets.filter(scorer=scorer, template=self.headlines[scorer])

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return of_two({scorer: self.of(scorer) for scorer in self.headlines}, self.differ_most, self.titles)

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """The tables by the names of their files."""
        words = pl.Series("verdict", [self.verdict(row) for row in self.figures.to_dicts()], dtype=pl.String)
        return {"figures": self.figures.with_columns(words), "targets": self.targets}

    @property
    def differences(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """The figures over all targets, for W&B: the second resource, the first, rows."""
        first, second = self.titles
        return [(second, first, self.figures.filter(category="").rename({"key": "figure"}).to_dicts())]


def render(resources: Resources) -> str:
    """The page's HTML, always the same for the same resources."""
    shown = audit_tables.rows(resources.wordings)
    categories = metric_display.ordered(resources.targets["category"])
    titles = _titles(resources)
    return render_page(
        "compared_audits.html.jinja",
        resources,
        sentences=list(sentences(resources)),
        scorers=resources.scorers,
        abbreviations=metric_display.abbreviations(line.key for line in shown),
        measures=_measure_table(resources),
        categories=by_category("resources categories", resources.rows(categories), categories, CORRECTED, **titles),
        meanings=audit_tables.meanings(shown),
        differ_most={scorer: _differing_tables(resources, scorer, titles) for scorer in resources.differ_most},
        left_out=left_out(resources.targets["target"].to_list()),
        targets=_target_table(resources),
        alpha=ALPHA,
        fewest_statements=FEWEST_STATEMENTS,
    )


def lines(resources: Resources) -> list[str]:
    """The measures for the terminal."""
    return as_text(_measure_table(resources)).splitlines()


def _measure_table(resources: Resources) -> Table:
    """The measures over all targets of both, the change between them, and the figures of each alone."""
    groups = grouped(resources.rows(), itemgetter("section"))
    return declared("resources measures", groups, cells=CELLS, **_titles(resources))


def _titles(resources: Resources) -> dict[str, Any]:
    return dict(zip(("first_title", "second_title"), resources.titles, strict=True))


def _differing_tables(
    resources: Resources, scorer: str, titles: Mapping[str, Any]
) -> tuple[Table, dict[str, list[Table]]]:
    """The targets that differ most by a scorer, and statements about each."""
    words = {**titles, **dict(zip(("negative", "positive"), metric_display.OVERGENERALISED.values(), strict=True))}
    said = statement_tables(
        resources.statements[scorer],
        resources.titles,
        lambda target, title: f"{title} about “{target}”",
        scorer,
        empty="no polarised statement",
    )
    return declared("resources differ", resources.differ_most[scorer], scorer=scorer, **words), said


def _target_table(resources: Resources) -> Table:
    """For each target the numbers of its statements, and by each scorer the percentages polarised."""
    first, second = resources.titles
    columns = [Column(f"{first}, statements", "statements"), Column(f"{second}, statements", "statements_second")]
    rows = resources.of(next(iter(resources.headlines))).sort("target")
    for scorer in resources.headlines:
        shares = [pl.col("prejudice" + end) + pl.col("favouritism" + end) for end in ("", "_second")]
        named = {f"{scorer}/0": shares[0], f"{scorer}/1": shares[1], f"{scorer}/2": shares[1] - shares[0]}
        rows = rows.join(resources.of(scorer).select("target", **named), on="target", how="left", maintain_order="left")
        columns += [
            Column(f"{first}, {scorer}", f"{scorer}/0", show=1),
            Column(f"{second}, {scorer}", f"{scorer}/1", show=1),
            Column("difference", f"{scorer}/2", show=signed),
        ]
    return target_table(
        "Percentage of polarised statements of each target that both mention, and the difference in percentage points.",
        columns,
        rows.to_dicts(),
        lambda row: max(abs(row[f"{scorer}/2"] or 0) for scorer in resources.headlines),
        largest="the largest differences",
        file="tables/targets.csv",
    )


def sentences(resources: Resources) -> Iterator[str]:
    """Yield the share of overgeneralisations in each, regard first as in the paper; the targets compared; and their
    agreement."""
    first, second = resources.titles
    shared = resources.targets["target"].n_unique()
    order = sorted(resources.headlines, key=lambda scorer: scorer != "regard")
    for place, scorer in enumerate(order):
        row = resources.row(scorer, "pooled", "polarised")
        of = f" about the {shared:,} targets found in both" if place == 0 else ""
        yield (
            f"By {scorer}, {row['baseline']:.1f}\u00a0% of the statements in {first}{of} favour or disparage a whole "
            f"group, and {row['value']:.1f}\u00a0% of those in {second}: {_in_words(resources, row)}."
        )
    yield (
        f"{first} mentions {counted(resources.spoken[0], 'target')}, {second} {resources.spoken[1]:,}. "
        "Those found in both are compared."
    )
    if not resources.is_same:
        yield from _agreement(resources, order)


def _agreement(resources: Resources, order: Sequence[str]) -> Iterator[str]:
    found = []
    for scorer in order:
        against, towards = (
            resources.agreement[harm_key(scorer, "rank correlation", share, resources.headlines[scorer])]
            for share in POLARISED
        )
        if against is not None and towards is not None:
            found.append(f"by {scorer} {number(against)} for prejudice and {number(towards)} for favouritism")
    if found:
        yield (
            f"Rank correlations between the two over targets are {'; '.join(found)}. 1 means that both rank the "
            "targets alike, 0 that their rankings are unrelated."
        )


def _in_words(resources: Resources, row: Mapping[str, Any]) -> str:
    said = resources.verdict(row)
    if said in IN_WORDS:
        return IN_WORDS[said]
    known = interval(row, 1, CORRECTED).strip("[]").replace(", ", " to ")
    return f"{abs(row['change']):.1f} percentage points {said} (corrected interval {known})"
