"""Two resources side by side as one HTML page that loads nothing: where they differ, and how certain that is. No
difference counts as better or worse: one resource has more of something than the other, or is not shown to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import polars as pl

from mitigate.metrics import Share, Statistic, harm_key, with_part
from mitigate.report import audit_tables, metric_display, plots, prejudice_regions
from mitigate.report import run_figures as gallery
from mitigate.report.audit_tables import Wording
from mitigate.report.change_formats import CORRECTED, change, decimals_of, interval, number_column
from mitigate.report.examples import FEWEST_STATEMENTS, statement_tables, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number, signed
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, grouped, text
from mitigate.report.verdicts import ALIKE, ALPHA, SAME, UNKNOWN, p_value
from mitigate.words.outside_text import counted

MORE, LESS = "more", "less"
POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")
SIGNS = {"prejudice": "negative", "favouritism": "positive"}
GROUPS = {
    "boxes": (
        "Spread over targets",
        "Percentage of a target's statements; lower is better. A box is the middle half of a category's targets, its "
        "line is the median, dots lie more than 1.5 boxes away. A tall box is disparity (the paper's Fig. 1).",
    ),
    "bars": (
        "Largest differences",
        "The targets of the table above, in percent of their statements: prejudice to the left, favouritism to the "
        "right; lower is better (in the style of the paper's Fig. 3).",
    ),
    "counts": gallery.GROUPS["counts"],
    "regions": (
        "Targets with more prejudice or more favouritism than others",
        "One point for each target, both axes in percent of its statements, each resource on its own scale. The dashed "
        "lines are a resource's upper quartiles: to the right of the first a target has more negative statements than "
        "three quarters of them, above the second more positive ones, however few (the paper's Fig. 2 and 8).",
    ),
}


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
    first_scorer = "regard"

    def row(self, key: str, category: str = "") -> dict[str, Any]:
        """The row of a figure in `figures`."""
        return self.figures.row(by_predicate=(pl.col("key") == with_part(key, category)), named=True)

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `figures` about the second resource."""
        if self.is_same:
            return SAME
        if row["p_holm"] is None:
            return UNKNOWN
        if row["p_holm"] >= ALPHA:
            return ALIKE
        return MORE if row["value"] > row["baseline"] else LESS

    @property
    def headlines(self) -> dict[str, str]:
        """Scorer -> the template that sentences and pictures are in: the paper's, where both have it."""
        return audit_tables.headlines(self.wordings)

    def key(self, scorer: str, statistic: Statistic, share: Share) -> str:
        """The key of a figure in a scorer's headline."""
        return harm_key(scorer, statistic, share, self.headlines[scorer])

    def of(self, scorer: str) -> pl.DataFrame:
        """The rows of `targets` under a scorer's headline."""
        return self.targets.filter(scorer=scorer, template=self.headlines[scorer])

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return gallery.named_apart(_pictures(self))

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
    rows = audit_tables.rows(resources.wordings)
    return render_page(
        "compared_audits.html.jinja",
        resources,
        sentences=list(sentences(resources)),
        scorers=resources.scorers,
        keys=[row.key for row in rows],
        measures=_measure_table(resources, rows),
        categories=_category_table(resources, rows),
        meanings=audit_tables.meanings(rows),
        differ_most={
            scorer: (
                _differing_table(resources, scorer, chosen),
                statement_tables(
                    resources.statements[scorer],
                    resources.titles,
                    lambda target, title: f"{title} about “{target}”",
                    scorer,
                    empty="no polarised statement",
                ),
            )
            for scorer, chosen in resources.differ_most.items()
        },
        groups=GROUPS,
        pictures=grouped(resources.pictures, attrgetter("group")),
        left_out=left_out(resources.targets["target"].to_list()),
        targets=_target_table(resources),
        alpha=ALPHA,
        fewest_statements=FEWEST_STATEMENTS,
    )


def _measure_table(resources: Resources, lines: Sequence[audit_tables.Row]) -> Table:
    """The measures over all targets of both, the change between them, and the figures of each alone."""
    first, second = resources.titles
    return Table(
        "",
        [
            text("Measure", "name"),
            number_column(first, "baseline"),
            number_column(second, "value"),
            Column("change", lambda row: Cell(change(row, decimals_of(row)), [_corrected(row)])),
            Column("p", "p", show=p_value, kind="whole"),
            Column("corrected", "p_holm", show=p_value, kind="whole"),
            text(f"{second} has", resources.verdict),
            number_column(f"{first} alone", "first_alone"),
            number_column(f"{second} alone", "second_alone"),
        ],
        grouped(
            ({**resources.row(line.key), "name": line.name, "section": line.section} for line in lines),
            lambda row: row["section"],
        ),
        label="Both resources' measures",
    )


def _corrected(row: Mapping[str, Any]) -> str:
    """The corrected interval of a row."""
    return interval(row, decimals_of(row), CORRECTED)


def _category_table(resources: Resources, lines: Sequence[audit_tables.Row]) -> Table:
    def category_column(category: str) -> Column:
        def both(line: audit_tables.Row) -> Cell:
            row, places = resources.row(line.key, category), line.decimals
            said = f"{number(row['baseline'], places)} → {number(row['value'], places)}"
            return Cell(said, [_corrected(row), f"p {p_value(row['p_holm'])}"])

        targets = resources.row(lines[0].key, category)["targets"]
        return Column(category, both, note=counted(targets, "target"))

    first, second = resources.titles
    return Table(
        f"{first} → {second}, the corrected interval of the difference (of variances: of the ratio), and the corrected "
        "p-value.",
        [text("Measure", "name"), *map(category_column, metric_display.ordered(resources.targets["category"]))],
        grouped(lines, lambda line: line.section),
        label="Both resources' measures by category",
    )


def _differing_table(resources: Resources, scorer: str, targets: pl.DataFrame) -> Table:
    """The targets that differ most by a scorer."""
    sides = [
        column
        for title, end in zip(resources.titles, ("", "_second"), strict=True)
        for column in (
            Column(f"{title}, statements", f"statements{end}"),
            *(Column(f"{sign}, %", share + end, show=1) for share, sign in metric_display.OVERGENERALISED.items()),
        )
    ]
    difference = Column("polarised, difference", "difference", show=signed)
    return Table(
        "",
        [text("Target", "target"), text("category", "category"), *sides, difference],
        targets,
        label=f"Targets that differ most by {scorer}",
    )


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
    )


def sentences(resources: Resources) -> Iterator[str]:
    """Yield the share of overgeneralisations in each, regard first as in the paper; the targets compared; and their
    agreement."""
    first, second = resources.titles
    shared = resources.targets["target"].n_unique()
    order = sorted(resources.headlines, key=lambda scorer: scorer != "regard")
    for place, scorer in enumerate(order):
        row = resources.row(resources.key(scorer, "pooled", "polarised"))
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
            resources.agreement[resources.key(scorer, "rank correlation", share)] for share in POLARISED
        )
        if against is not None and towards is not None:
            found.append(f"by {scorer} {number(against)} for prejudice and {number(towards)} for favouritism")
    if found:
        yield (
            f"Rank correlations between the two over targets are {'; '.join(found)}. 1 means that both rank the "
            "targets alike, 0 that their rankings are unrelated."
        )


def line(resources: Resources, scorer: str) -> str:
    """A scorer on one line of the terminal: the share polarised, and means and variances of either side."""
    parts = []
    for share, statistic in (audit_tables.OF_LABELS[-1], *audit_tables.OF_LABELS[:4]):
        row = resources.row(resources.key(scorer, statistic, share))
        known = f"{interval(row, 2, CORRECTED)}, " if row["low"] is not None else ""
        parts.append(
            f"{row['key']} {row['baseline']:.2f} → {row['value']:.2f} ({change(row, 2)} {known}"
            f"p {p_value(row['p_holm'])}: {resources.verdict(row)})"
        )
    return f"{resources.titles[1]} compared with {resources.titles[0]}: {'; '.join(parts)}"


def _in_words(resources: Resources, row: Mapping[str, Any]) -> str:
    said = resources.verdict(row)
    if said not in (MORE, LESS):
        return {SAME: "the same numbers", UNKNOWN: "whether they differ is unknown"}.get(said, "no difference is shown")
    known = f"corrected interval {interval(row, 1, CORRECTED).strip('[]')}".replace(", ", " to ")
    return f"{abs(row['change']):.1f} percentage points {said} ({known})"


def _pictures(resources: Resources) -> Iterator[Picture]:
    first, second = titles = resources.titles
    frames = {scorer: resources.of(scorer) for scorer in resources.headlines}
    for scorer, frame in frames.items():
        for share, sign in SIGNS.items():
            alt = f"Box plots of {sign} {scorer} by category. {_medians(resources, frame, share, ' %')}"
            figure = plots.boxes_of_two(frame, share, titles)
            yield Picture(f"boxes-{scorer}-{sign}", "boxes", f"{scorer.capitalize()}, {sign}", alt, figure)
    for scorer, frame in resources.differ_most.items():
        if not frame.is_empty():
            seen = "; ".join(
                f"{row['target']} {row['prejudice']:.0f} and {row['prejudice_second']:.0f} % negative, "
                f"{row['favouritism']:.0f} and {row['favouritism_second']:.0f} % positive"
                for row in frame.iter_rows(named=True)
            )
            alt = f"Bars of {scorer}, {first} and {second}: {seen}."
            yield Picture(f"bars-{scorer}", "bars", scorer.capitalize(), alt, plots.bars_of_two(frame, titles))
    frame = next(iter(frames.values()))
    alt = f"Box plots by category. {_medians(resources, frame, 'statements')}"
    yield Picture("counts", "counts", "Statements", alt, plots.boxes_of_two(frame, "statements", titles))
    scorer = "regard" if "regard" in frames else next(iter(frames))
    for category in metric_display.ordered(frames[scorer]["category"]):
        for place, (title, end) in enumerate(zip(titles, ("", "_second"), strict=True), start=1):
            shares = [pl.col(share + end).alias(share) for share in ("prejudice", "neutral", "favouritism")]
            frame = frames[scorer].select("target", "category", *shares)
            yield Picture(
                f"regions-{gallery.slug(category)}-{place}",
                "regions",
                f"{category.capitalize()}, {title}, {scorer}",
                gallery.region_alt(prejudice_regions.with_regions(frame), category),
                prejudice_regions.regions(frame, category),
            )


def _medians(resources: Resources, frame: pl.DataFrame, column: str, unit: str = "") -> str:
    """The medians of both by category: "Median over targets, one and two: gender 1.2 % and 3.4 %; ..."."""
    found = frame.group_by("category").agg(pl.median(column, f"{column}_second")).sort("category")
    said = [f"{name} {number(one, 1)}{unit} and {number(two, 1)}{unit}" for name, one, two in found.iter_rows()]
    return f"Median over targets, {' and '.join(resources.titles)}: {'; '.join(said)}."
