"""A comparison of runs as one HTML page that loads nothing: the effect on harms, the cost in quality, and how certain
both are. Findings are about policies where there are several seeds of each, else about two trained models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate.metrics import BASELINE_LIFTS, SWAP_LIFT, lift_of, quality, quality_key
from mitigate.report import comparison_brief, comparison_tables, legend, pareto
from mitigate.report.brief import LIFT
from mitigate.report.comparison_tables import CORRECTED, blank, changed, figure_named, fixed, measure_named, tested
from mitigate.report.examples import statement_table, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.legend import TEMPLATE_NAMES, number, signed
from mitigate.report.pair import Pair
from mitigate.report.reasons import NO_SHARED_TARGET, NOT_ASKED, not_compared, why_no_change, why_no_interval
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, figures, grouped, text, with_bounds
from mitigate.report.verdicts import FEWEST_SEEDS, kept, p_value


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Page):
    """The content of a comparison's page."""

    pairs: Sequence[Pair]
    models: pl.DataFrame  # one row for each run: policy, seed, run, and figures by their keys in metrics.json
    moves: pl.DataFrame  # contrast, scorer, target, category, before, after, difference
    scorers: Mapping[str, str]  # by what they are called: {"sentiment": "vader", "regard": "minilm"}
    axes: Sequence[pareto.Axis] = pareto.HARMS  # of the plots of harm against quality
    links: Mapping[str, str] = field(default_factory=dict)  # by run, the way from this page to its own

    @property
    def lifts(self) -> list[dict[str, Any]]:
        """The rows of models whose swap lift was measured."""
        return [row for row in self.models.to_dicts() if row.get(LIFT) is not None]

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return list(pareto.pictures(self.models, self.axes))


def render(comparison: Comparison) -> str:
    """The page's HTML, always the same for the same comparison."""
    pairs = comparison.pairs
    verdicts = [(comparison_brief.verdict(pair), comparison_brief.cost(pair)) for pair in pairs]
    return render_page(
        "comparison.html.jinja",
        comparison,
        sentences=[verdicts[0][0] if len(verdicts) == 1 else f"{len(verdicts)} comparisons, each with its cost."],
        verdicts=verdicts,
        cost=verdicts[0][1] if len(verdicts) == 1 else "",
        more=list(comparison_brief.sentences(pairs)),
        scorers={name: comparison.scorers[name] for name in legend.by_headline(comparison.scorers)},
        neutralised=any(row["template"] == "neutral" for row in pairs[0].headlines.values()),
        several=any(pair.several_seeds for pair in pairs),
        levels=sorted({f"{level:.4g}" for pair in pairs for level in pair.primary["level"]}),
        fewest_seeds=FEWEST_SEEDS,
        primary=_primary_table(pairs),
        within=_within_table(pairs) if any(pair.within.height for pair in pairs) else None,
        exploratory=_exploratory_table(pairs),
        tables=[_tables_of(pair, legend.ordered(comparison.moves["category"])) for pair in pairs],
        lifts=_lift_table(comparison) if comparison.lifts else None,
        targets=_target_table(comparison.moves),
        runs=_run_table(comparison),
        left_out=left_out(comparison.moves["target"].to_list()),
        detectable=any(pair.has_detectable for pair in pairs),
        abbreviations=legend.abbreviations(pairs[0].harms["measure"]),
        unnamed=[kind for kind in ("harm", "quality") if kind not in pairs[0].primary["endpoint"].to_list()],
    )


def _tables_of(pair: Pair, categories: Sequence[str]) -> dict[str, Any]:
    """The tables of one pair, and what else its parts of the page show."""
    relations = comparison_tables.relation_rows(pair.quality)
    return {
        "pair": pair,
        "title": f"{pair.name} against {pair.against}",
        "harms": _harm_table(pair),
        "categories": _category_table(pair, categories),
        "quality": _quality_table(pair),
        "not_compared": not_compared(pair.missing),
        "relations": _relation_table(pair, relations) if relations else None,
        "moved": {scorer: _moved_tables(pair, scorer) for scorer in pair.headlines},
    }


def _of(pairs: Sequence[Pair], rows: Callable[[Pair], Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of several pairs, each with its pair."""
    return [{"pair": pair, **row} for pair in pairs for row in rows(pair)]


def _change(end: str = "") -> Column:
    return Column("change", lambda row: changed(row, row["pair"].fewest, end=end))


def _p(title: str, name: str) -> Column:
    return Column(title, lambda row: tested(row[name], row["pair"].fewest), kind="whole")


POLICY = text("Policy", lambda row: row["pair"].name)
FIGURE = text("figure", lambda row: figure_named(row["figure"]))
BEFORE, AFTER = Column("baseline", "baseline"), Column("policy", "value")


def _primary_table(pairs: Sequence[Pair]) -> Table:
    def policy(row: Mapping[str, Any]) -> Cell:
        return Cell(row["pair"].name, [f"against {row['pair'].against}, {row['pair'].said_seeds}"])

    return Table(
        "Primary endpoints. Change from the baseline with its corrected interval: over seeds and targets, and with the "
        "targets fixed over seeds alone. The first says what other seeds and words would give, the second what other "
        "seeds would give for these words.",
        [
            text("Policy", policy),
            text("finding", lambda row: f"{row['endpoint']}: {row['pair'].verdict(row)}"),
            _change(CORRECTED),
            text("endpoint", lambda row: figure_named(row["figure"])),
            BEFORE,
            AFTER,
            _p("p, corrected", "p_holm"),
            Column("targets fixed", lambda row: fixed(row, row["pair"].fewest, CORRECTED)),
        ],
        _of(pairs, lambda pair: pair.primary.to_dicts()),
    )


def _within_table(pairs: Sequence[Pair]) -> Table:
    def found(row: Mapping[str, Any]) -> Cell:
        return Cell(str(kept([row])), [f"({row['pair'].strength})"] if row["pair"].strength else [])

    power = "power, for a copy of the baseline"
    return Table(
        "Quality within margins that are set before the comparison (non-inferiority). It is kept where the whole "
        "interval is better than the margin. Power: how probable it is that a true copy of the baseline, trained with "
        "as many seeds, is shown to be within the margin.",
        [
            POLICY,
            text("quality", found),
            FIGURE,
            _change(),
            Column("margin", comparison_tables.said_margin),
            Column(power, "copy_passes", unit=" %", show=0, kind="power"),
        ],
        _of(pairs, lambda pair: pair.within.to_dicts()),
    )


def _exploratory_table(pairs: Sequence[Pair]) -> Table:
    return Table(
        "Exploratory figures. Change from the baseline with its 95 % interval, of this figure alone.",
        [POLICY, FIGURE, BEFORE, AFTER, _change(), _p("p", "p")],
        _of(pairs, lambda pair: pair.exploratory),
    )


def _harm_table(pair: Pair) -> Table:
    rows = _of([pair], lambda pair: pair.harms.filter(category="").to_dicts())
    by_seeds = [
        _p("p", "p"),
        Column("targets fixed", lambda row: fixed(row, pair.fewest)),
        _p("p", "fixed_p"),
    ]
    detectable = Column("minimum detectable change (80 % power)", _detectable, kind="power")
    return Table(
        "",
        [
            text("Measure", measure_named),
            Column(pair.against, "baseline"),
            Column(pair.name, "value"),
            _change(),
            *(by_seeds if pair.several_seeds else []),
            *([detectable] if pair.has_detectable else []),
        ],
        _by_template(rows),
        label=f"Harms, {pair.name} against {pair.against}",
    )


def _detectable(row: Mapping[str, Any]) -> Cell | str:
    if row["detectable"] is None:
        return blank(why_no_change(row) or why_no_interval(row, row["pair"].fewest))
    ratio = comparison_tables.ratio(row["detectable"])
    return f"× {ratio}" if row["as"] == "ratio" else number(row["detectable"])


def _by_template(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = grouped(rows, lambda row: row["template"])
    return {name: found[template] for template, name in TEMPLATE_NAMES.items() if template in found}


def _category_table(pair: Pair, categories: Sequence[str]) -> Table:
    """The changes of each measure in each category."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in pair.harms.filter(pl.col("category") != "").to_dicts():
        cells = {"template": row["template"], "measure": measure_named(row)}
        found.setdefault((row["template"], row["measure"]), cells)[row["category"]] = row

    def changes(category: str) -> Column:
        return Column(category, lambda cells: _in_category(cells.get(category), pair.fewest))

    return Table(
        f"Difference from {pair.against} (means, in percentage points) or ratio to it (variances), its 95 % interval, "
        "and the p-value. A category of few different words has the analysis with targets fixed.",
        [text("Measure", "measure"), *map(changes, categories)],
        _by_template(found.values()),
    )


def _in_category(row: Mapping[str, Any] | None, seeds: int) -> Cell:
    if row is None:
        return blank(NO_SHARED_TARGET)
    p = "" if row["p"] is None else f"p {p_value(row['p'])}, "
    targets = f"{row['targets']} {'target' if row['targets'] == 1 else 'targets'}"
    cell = changed(row, seeds)
    return cell._replace(below=[*cell.below, f"{p}{targets}{', fixed' if row['drawn'] == 'seeds' else ''}"])


def _lift_table(comparison: Comparison) -> Table:
    lift, keys = quality(SWAP_LIFT), {quality_key(lift_of(name)): legend.BASELINES[name] for name in BASELINE_LIFTS}
    return Table(
        f"{lift.name.capitalize()} {lift.arrow} of each model in percentage points, beside that of generators that "
        "know nothing of the head and of an oracle, on the same heads; in brackets the 95 % interval over heads. "
        "Held-out heads and professions count alike.",
        [
            text("Policy", lambda row: _linked(comparison, row["run"], row["policy"])),
            Column("seed", "seed"),
            Column("this generator", lambda row: with_bounds(row, LIFT)),
            *figures(1, **keys),
        ],
        comparison.lifts,
        kind="narrow",
    )


def _linked(comparison: Comparison, run: str, name: str) -> str:
    """A name as a link to the page of its run, where there is one."""
    place = comparison.links.get(run)
    return Markup('<a href="{}">{}</a>').format(place, name) if place else name


def _quality_table(pair: Pair) -> Table:
    return Table(
        "",
        [
            text("On", "name"),
            Column(pair.against, "baseline"),
            Column(pair.name, "value"),
            Column("change", "change"),
            Column("95 % interval", lambda row: row["interval"] or blank(why_no_interval(row["row"], pair.fewest))),
            Column("number", lambda row: "" if row["items"] is None else number(row["items"])),
        ],
        grouped(comparison_tables.quality_rows(pair.quality), lambda row: row["section"]),
        label=f"Quality, {pair.name} against {pair.against}",
        kind="narrow",
    )


def _relation_table(pair: Pair, relations: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Perplexity and plausible statements by relation."""

    def side(title: str, measure: str, name: str) -> Column:
        return Column(title, lambda row: row[measure][name] if measure in row else None)

    def change(measure: str) -> Column:
        def shown(row: Mapping[str, Any]) -> Cell:
            known = row.get(measure)
            return changed(known, pair.fewest) if known else blank(pair.why_not(measure, row["relation"]))

        return Column("change", shown)

    both = [
        (side(f"{word}, {pair.against}", measure, "baseline"), side(pair.name, measure, "value"), change(measure))
        for measure, word in ((comparison_tables.PERPLEXITY, "perplexity"), ("valid", "plausible"))
    ]
    return Table(
        "Perplexity on a relation's held-out triples (lower is better), and the percentage of its generated statements "
        "that are accepted as plausible, mean over targets (higher is better). Figures of few triples are uncertain.",
        [
            text("Relation", "relation"),
            Column("triples", lambda row: row.get(comparison_tables.PERPLEXITY, {"items": 0})["items"]),
            *(column for columns in both for column in columns),
        ],
        [{"relation": relation, **rows} for relation, rows in relations.items()],
    )


def _moved_tables(pair: Pair, scorer: str) -> dict[str, Any]:
    """The targets with the largest changes by a scorer, and the statements about each before and after."""
    said = {
        target.target: [
            statement_table(
                f"Generated about “{target.target}” only by “{whose}”",
                rows,
                {"label": scorer},
                empty="no statement that the other does not generate",
            )
            for whose, rows in target.said.items()
        ]
        for target in pair.moved[scorer]
    }
    return {"chance": pair.chance[scorer], "table": _moved_table(pair, scorer), "said": said}


def _moved_table(pair: Pair, scorer: str) -> Table:
    return Table(
        "",
        [
            text("Target", "target"),
            text("category", "category"),
            *figures(1, before="before, %", after="after, %"),
            Column("change", lambda target: signed(target.after - target.before)),
        ],
        pair.moved[scorer],
        label=f"Targets with the largest change by {scorer}, {pair.name}",
        kind="narrow",
    )


def _target_table(moves: pl.DataFrame) -> Table:
    rows: dict[str, dict[Any, Any]] = {}
    for row in moves.sort("target").iter_rows(named=True):
        mine = rows.setdefault(row["target"], {"target": row["target"], "category": row["category"]})
        mine[row["contrast"], row["scorer"]] = row["difference"]

    def difference(contrast: str, scorer: str) -> Column:
        def shown(row: Mapping[Any, Any]) -> Cell:
            value = row.get((contrast, scorer))
            return blank(NOT_ASKED) if value is None else Cell(number(value, 1))

        return Column(f"{contrast}, {scorer}", shown)

    known = moves.select("contrast", "scorer").unique(maintain_order=True).rows()
    return target_table(
        "Change of the percentage of neutral statements, in percentage points; above 0 is more neutral.",
        [difference(*pair) for pair in known],
        list(rows.values()),
    )


def _run_table(comparison: Comparison) -> Table:
    return Table(
        "The runs that are compared.",
        [
            text("Run", lambda row: _linked(comparison, row["run"], row["run"])),
            text("policy", "policy"),
            Column("seed", "seed"),
        ],
        comparison.models,
        kind="narrow",
    )
