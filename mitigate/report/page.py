"""A run as one HTML page that loads nothing: no script, style, font or picture from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import polars as pl

from mitigate.measure.base import PAPER_SCORERS, Measure, bounds, find, key_of, measure_of, measures, own_measures
from mitigate.measure.learnt import faults
from mitigate.measure.quality import BASELINES
from mitigate.report import brief, metric_display
from mitigate.report.examples import FEWEST_STATEMENTS, examples, statement_table, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page, unbroken
from mitigate.report.ledger import most_polarised, summary, touched
from mitigate.report.metric_display import Metrics
from mitigate.report.metrics_table import crossed, measured
from mitigate.report.run_figures import Picture, firsts, gallery
from mitigate.report.table import Column, Table
from mitigate.report.table_declarations import column, declared
from mitigate.triples import FAVOURITISM, PREJUDICE, TEMPLATES, label_columns
from mitigate.words.outside_text import counted

MOST_LEAKS = 10  # relations named in the section on the templates
WORST = ("p90_O-", "largest_O-")
SIGNS = {share: metric_display.OVERGENERALISED.get(share, share) for share in ("prejudice", "neutral", "favouritism")}


@dataclass(frozen=True, kw_only=True)
class Report(Page):
    """The content of a run's page. Whatever a run does not have stays empty, and its section is left out."""

    metrics: Metrics
    targets: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Tables by label column ("sentiment", "sentiment_neutral", "regard", "regard_neutral"): one row a target,
    (target, category, statements, prejudice, favouritism, neutral), the last three in percent."""
    statements: pl.DataFrame | None = None  # labelled
    ledger: pl.DataFrame | None = None  # the filter's, one row an input triple
    lifts: pl.DataFrame | None = None  # swap lift by group and relation, as tasks.lift.by_relation returns it
    shown: Sequence[str] = ()  # chosen targets, whose bars are drawn
    baseline: Metrics | None = None  # of the run of policy none that differs by its policy alone, if there is one
    links: Mapping[str, str] = field(default_factory=dict)  # names of other pages -> the way to them
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Those of the roles, by what they are called: {"sentiment": "vader", "regard": "minilm"}."""

    @property
    def roles(self) -> list[str]:
        """The names of the scorers of the roles."""
        return list(self.scorers) or list(PAPER_SCORERS)

    @property
    def label_columns(self) -> dict[str, tuple[str, str]]:
        """Scorer and template by label column, in the page's order, which begins with the headline's."""
        pairs = product(metric_display.by_headline(self.roles), metric_display.TEMPLATE_NAMES)
        return {label_columns(*pair)[0]: pair for pair in pairs}

    @property
    def ordered_targets(self) -> dict[str, pl.DataFrame]:
        """The tables of targets in the same order."""
        return {column: self.targets[column] for column in self.label_columns if column in self.targets}

    @property
    def first_columns(self) -> list[str]:
        """The first label column of each scorer."""
        return firsts(name for name in self.label_columns if name in getattr(self.statements, "columns", ()))

    @cached_property
    def verdict(self) -> tuple[str, str]:
        """The sentence that the run's page, card, terminal and record begin with, and its cost."""
        sentence, cost = brief.of_run(self.metrics, self.roles, self.baseline)
        return sentence or "This run measured no harms.", cost

    @cached_property
    def pictures(self) -> list[Picture]:
        return gallery(self.ordered_targets, self.ledger, self.statements, self.shown, self.first_columns)


def render(report: Report) -> str:
    metrics, scorers = report.metrics, metric_display.by_headline(report.roles)
    verdict, cost = report.verdict
    harms = metric_display.harms_by(scorers, metrics)
    return render_page(
        "page.html.jinja",
        report,
        sentences=list(filter(None, [verdict, brief.quality_sentence(metrics)])),
        cost=cost,
        scorers={name: report.scorers[name] for name in metric_display.by_headline(report.scorers)},
        unlearnt=bool(faults(metrics)),
        headlines=[_headline(metrics, measure) for measure in harms],
        measures=_measure_table(metrics),
        meanings=_meanings(harms),
        leaks=_leaks(report.statements, scorers),
        lift=_lift_tables(metrics, report.lifts),
        quality=_by_group("run quality", metrics, "test triples"),
        validity=_by_group("run validity", metrics, *metric_display.VALIDITY),
        worst=_worst_table(metrics, scorers),
        own=_own_table(metrics),
        about=_by_group("run published", metrics, "published triples"),
        filtered=_ledger_tables(report.ledger, scorers),
        left_out=left_out([target for frame in report.targets.values() for target in frame["target"]]),
        **target_section(report.ordered_targets, report.label_columns, report.statements, report.first_columns),
    )


def _headline(metrics: Metrics, measure: Measure) -> dict[str, str]:
    """A figure in large type: its name, value and unit, and its interval."""
    key = brief.harm_of(measure, set(metrics))
    cell = measured(metrics, key, 1)
    return {
        "name": f"{measure.named}{', neutral template' * (key != metric_display.harm_key(measure, 'paper'))}",
        "value": cell.text,
        "unit": " %" if measure.better == "up" else "",
        "note": " ".join(cell.below),
    }


def _meanings(measures: Iterable[Measure]) -> dict[str, str]:
    return {measure.named: measure.meaning for measure in measures}


def _measure_table(metrics: Metrics) -> Table | None:
    """The measures of harm over all targets and by category, grouped by template."""
    harms = metric_display.harms(metrics)
    rows = {
        name: [(one.named, (one, template)) for one in harms if metric_display.harm_key(one, template) in metrics]
        for template, name in metric_display.TEMPLATE_NAMES.items()
    }
    has_intervals = any(
        bound in metrics for measure in harms for bound in bounds(metric_display.harm_key(measure, "paper"))
    )
    words: dict[str, Any] = {
        "abbreviations": metric_display.abbreviations(metrics),
        "brackets": "; in brackets the 95 % interval" if has_intervals else "",
    }
    table = crossed(
        "run measures",
        metrics,
        {name: lines for name, lines in rows.items() if lines},
        metric_display.with_all(metric_display.categories(metrics)),
        lambda row, part: metric_display.harm_key(row[0], row[1], part),
        **words,
    )
    return table if table.height else None


def _leaks(statements: pl.DataFrame | None, scorers: Sequence[str]) -> dict[str, Table]:
    """For each scorer the relations with the largest difference between the templates; empty without labels with
    both."""
    if statements is None or statements.is_empty() or "relation" not in statements.columns:
        return {}
    found = {}
    for scorer in scorers:
        if label_columns(scorer, "neutral")[0] in statements.columns:
            relations = leak(statements, scorer).head(MOST_LEAKS)
            table = declared("run template effect", relations, scorer=scorer, number=relations.height)
            found[scorer.capitalize()] = table
    return found


def leak(statements: pl.DataFrame, scorer: str) -> pl.DataFrame:
    """For each relation: (relation, statements, paper, neutral, difference), the largest difference first.

    paper and neutral are the percentages of its statements with a polarised label under either template. The difference
    is the part of the labels that is caused by the relation's phrase instead of the tail."""
    polarised = {
        template: 100 * pl.col(label_columns(scorer, template)[0]).is_in([PREJUDICE, FAVOURITISM]).mean()
        for template in TEMPLATES
    }
    return (
        statements.group_by("relation")
        .agg(statements=pl.len(), **polarised)
        .with_columns(difference=pl.col("paper") - pl.col("neutral"))
        .sort(pl.col("difference").abs(), "relation", descending=[True, False])
    )


def _by_group(name: str, metrics: Metrics, *rows: str) -> dict[str, Any]:
    """The table of the measures by group of these rows, and their meanings; empty where there are no figures. name: of
    the declared table."""
    measures, groups = metric_display.by_group(metrics, *rows)
    lines = [(title, group) for group, title in groups.items()]
    if not lines:
        return {}
    table = crossed(name, metrics, lines, measures, lambda group, measure: key_of(measure.name, group=group))
    return {"table": table, "meanings": _meanings(measures)}


def _own_table(metrics: Metrics) -> Table | None:
    """The figures of a user's own measures over all rows."""
    own = {one.name for one in own_measures()}
    known = ((figure, key) for key in metrics if (figure := find(key)) and figure.by == "all")
    rows = [(figure.title, key) for figure, key in known if figure.measure in own]
    return crossed("run own measures", metrics, rows, {"": "value"}, lambda key, _: key) if rows else None


def _lift_tables(metrics: Metrics, lifts: pl.DataFrame | None) -> dict[str, Any]:
    """Swap lift by groups of heads and by relation, each beside that of the baselines; empty where it was not
    measured."""
    (_, groups), lift = metric_display.by_group(metrics, "heads"), measure_of("swap_lift")
    if not groups:
        return {}
    baselines = {f"swap_lift_{name}": column(name).title for name in BASELINES}
    columns = {"swap_lift": "this generator", **baselines}
    rows = [(title, group) for group, title in groups.items()]
    by_group = crossed(
        "run swap lift", metrics, rows, columns, lambda group, name: key_of(name, group=group), arrow=lift.arrow
    )
    found = {"meaning": lift.meaning, "groups": by_group, "relations": None, "left_out": {}}
    if lifts is not None and not lifts.is_empty():
        named = lifts.with_columns(pl.col("group").str.replace_all("_", "-"))
        seldom = named.filter(~pl.col("counts")).group_by("group", maintain_order=True).agg("relation")
        found["relations"] = declared("run swap lift by relation", named.filter("counts"))
        found["left_out"] = dict(seldom.iter_rows())
    return found


def _worst_table(metrics: Metrics, scorers: Sequence[str]) -> Table | None:
    """The figures of the groups with the worst results, as far as they were measured."""
    rows = [(measure.named, key_of(measure.name)) for measure in measures("training triples")]
    for scorer, name in product(scorers, WORST):
        measure = measure_of(name, scorer)
        rows.append((measure.named, brief.harm_of(measure, set(metrics))))
    rows = [(name, key) for name, key in rows if key in metrics]
    is_neutral = any(figure.template == "neutral" for _, key in rows if (figure := find(key)))
    template = metric_display.TEMPLATE_NAMES["neutral" if is_neutral else "paper"]
    parts = metric_display.with_all(metric_display.categories(metrics))
    return (
        crossed(
            "run worst",
            metrics,
            rows,
            parts,
            lambda key, part: f"{key}/{part}".rstrip("/"),
            decimals=1,
            template=template,
        )
        if rows
        else None
    )


def target_section(
    frames: Mapping[str, pl.DataFrame],
    labels: Mapping[str, tuple[str, str]],
    statements: pl.DataFrame | None,
    columns: Sequence[str],
) -> dict[str, Any]:
    """The variables of targets.html.jinja. frames: the tables of targets by label column; labels: scorer and template
    of each; columns: of the labels by which examples are chosen."""
    shown = {name: labels[name] for name in frames if name in labels}
    table = _target_table(frames, shown)
    found: dict[str, Any] = {"targets": table, "examples": {}, "labelled_neutral": False}
    found["templates"] = {template: metric_display.TEMPLATE_NAMES[template] for _, template in shown.values()}
    if statements is not None and not statements.is_empty():
        if table:  # of many targets it shows some
            in_table = [row["target"] for _, rows in table.groups for row in rows]
            statements = statements.filter(pl.col("target").is_in(in_table))
        chosen = examples(statements, scorers=columns)
        titles = {name: labels[name][0] if name in labels else name for name in chosen.columns[3:]}
        found["labelled_neutral"] = next(iter(titles), "").endswith("_neutral")
        found["examples"] = {
            (target, rows["category"][0]): statement_table(f"Statements about “{target}”", rows, titles)
            for (target,), rows in chosen.partition_by("target", as_dict=True, maintain_order=True).items()
        }
    return found


def _target_table(frames: Mapping[str, pl.DataFrame], labels: Mapping[str, tuple[str, str]]) -> Table | None:
    """The targets with their percentages under every label column; None without targets."""
    first = next(iter(frames.values()), pl.DataFrame())
    if first.is_empty():
        return None
    rows = first.select("target", "category", "statements").sort("target")
    columns = [Column("statements", "statements")]
    for name, (scorer, template) in labels.items():
        found = frames[name].select("target", **{f"{name}/{share}": share for share in SIGNS})
        rows = rows.join(found, on="target", how="left", maintain_order="left")
        columns += [
            Column(f"{scorer} {sign}", f"{name}/{share}", show=1, kind=template) for share, sign in SIGNS.items()
        ]

    def size(row: Mapping[str, Any]) -> tuple[bool, float]:
        """A target's order in the table: frequent ones first, by the largest percentage of prejudice or favouritism."""
        polarised = [row[f"{name}/{share}"] or 0.0 for name in labels for share in ("prejudice", "favouritism")]
        return row["statements"] >= FEWEST_STATEMENTS, max(polarised)

    return target_table(
        f"{counted(rows.height, 'target')}.",
        columns,
        rows.to_dicts(),
        size,
        largest=f"the largest percentage of prejudice or favouritism ({FEWEST_STATEMENTS} statements or more first)",
        file=f"tables/targets_{next(iter(frames))}.csv",
    )


def _ledger_tables(ledger: pl.DataFrame | None, scorers: Sequence[str]) -> dict[str, Any]:
    """The variables of filter.html.jinja; empty where the policy touched nothing."""
    if ledger is None or ledger.is_empty() or (changed := touched(ledger)).is_empty():
        return {}
    reasons, polarised = summary(ledger, "reason"), most_polarised(ledger, scorers)
    totals: dict[str, Any] = {name: reasons[name].sum() for name in ("input", "kept", "added", "weight")}
    cells = {
        "reason": lambda row: unbroken(row["reason"]),
        "reason_kind": lambda row: unbroken(row["reason"]),
        "reasons": lambda row: unbroken(row["reasons"] or ""),
        "percent_of_all": lambda row: 100 * row["input"] / totals["input"],
    }
    and_added, by = "and added " if totals["added"] else "", {}
    for name in ("relation", "target"):
        if (frame := summary(ledger, name)).height:
            by[name] = declared(f"filter by {name}", frame, cells=cells, and_added=and_added)
    return {
        **totals,
        "reasons": declared("filter reasons", reasons, cells=cells, without=() if and_added else ("added",)),
        "by": by,
        "most_polarised": declared("filter most polarised", polarised, cells=cells) if polarised.height else None,
        "touched": declared("filter touched", changed, cells=cells),
    }
