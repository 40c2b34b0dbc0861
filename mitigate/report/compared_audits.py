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
        return of_two({scorer: self.of(scorer) for scorer in self.headlines}, self.differ_most, self.titles)

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        words = pl.Series("verdict", [self.verdict(row) for row in self.figures.to_dicts()], dtype=pl.String)
        return {"figures": self.figures.with_columns(words), "targets": self.targets}

    @property
    def differences(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """The figures over all targets, for W&B: the second resource, the first, rows."""
        first, second = self.titles
        return [(second, first, self.figures.filter(category="").rename({"key": "figure"}).to_dicts())]


def render(resources: Resources) -> str:
    shown, titles = audit_tables.rows(resources.wordings), resources.titles
    categories = metric_display.ordered(resources.targets["category"])
    in_categories = resources.rows(categories)
    return render_page(
        "compared_audits.html.jinja",
        resources,
        sentences=list(sentences(resources)),
        scorers=resources.scorers,
        abbreviations=metric_display.abbreviations(line.key for line in shown),
        measures=_measure_table(resources),
        categories=by_category("resources categories", in_categories, categories, CORRECTED, titles=titles),
        meanings=audit_tables.meanings(shown),
        differ_most={
            scorer: (
                declared("resources differ", targets, scorer=scorer, titles=titles),
                statement_tables(
                    resources.statements[scorer], titles, "{title} about “{target}”", scorer, "no polarised statement"
                ),
            )
            for scorer, targets in resources.differ_most.items()
        },
        left_out=left_out(resources.targets["target"].to_list()),
        targets=_target_table(resources),
        alpha=ALPHA,
        fewest_statements=FEWEST_STATEMENTS,
    )


def lines(resources: Resources) -> list[str]:
    return as_text(_measure_table(resources)).splitlines()


def _measure_table(resources: Resources) -> Table:
    """The measures over all targets of both, the change between them, and the figures of each alone."""
    groups = grouped(resources.rows(), itemgetter("section"))
    return declared("resources measures", groups, cells=CELLS, titles=resources.titles)


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
    order = sorted(resources.headlines, key=lambda scorer: scorer != "regard")
    of = f" about the {resources.targets['target'].n_unique():,} targets found in both"
    for scorer in order:
        row = resources.row(scorer, "pooled", "polarised")
        yield (
            f"By {scorer}, {row['baseline']:.1f}\u00a0% of the statements in {first}{of} favour or disparage a whole "
            f"group, and {row['value']:.1f}\u00a0% of those in {second}: {_in_words(resources, row)}."
        )
        of = ""
    yield (
        f"{first} mentions {counted(resources.spoken[0], 'target')}, {second} {resources.spoken[1]:,}. "
        "Those found in both are compared."
    )
    agreement = []
    for scorer in [] if resources.is_same else order:
        found = [
            resources.agreement[harm_key(scorer, "rank correlation", share, resources.headlines[scorer])]
            for share in POLARISED
        ]
        if None not in found:
            against, towards = map(number, found)
            agreement.append(f"by {scorer} {against} for prejudice and {towards} for favouritism")
    if agreement:
        yield (
            f"Rank correlations between the two over targets are {'; '.join(agreement)}. 1 means that both rank the "
            "targets alike, 0 that their rankings are unrelated."
        )


def _in_words(resources: Resources, row: Mapping[str, Any]) -> str:
    finding = resources.verdict(row)
    if finding in IN_WORDS:
        return IN_WORDS[finding]
    bounds = interval(row, 1, CORRECTED).strip("[]").replace(", ", " to ")
    return f"{abs(row['change']):.1f} percentage points {finding} (corrected interval {bounds})"
