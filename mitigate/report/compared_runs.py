"""A comparison of runs as one HTML page that loads nothing: the effect on harms, the cost in quality, and how certain
both are. Findings are about policies where there are several seeds of each, else about two trained models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate import metrics
from mitigate.report import change_formats as shown
from mitigate.report import contrast_sentences, metric_display, pareto
from mitigate.report.brief import LIFT
from mitigate.report.change_formats import CORRECTED, PERPLEXITY, blank
from mitigate.report.contrast_findings import Pair
from mitigate.report.examples import statement_tables, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import TEMPLATE_NAMES, number, signed
from mitigate.report.missing_figures import NO_SHARED_TARGET, NOT_ASKED, not_compared, why_no_change, why_no_interval
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, figures, grouped, text, with_bounds
from mitigate.report.verdicts import FEWEST_SEEDS, kept, p_value

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Page):
    """The content of a comparison's page."""

    pairs: Sequence[Pair]
    models: pl.DataFrame  # one row for each run: policy, seed, run, and figures by their keys in metrics.json
    moves: pl.DataFrame  # contrast, scorer, target, category, before, after, difference
    scorers: Mapping[str, str]  # by what they are called: {"sentiment": "vader", "regard": "minilm"}
    axes: Sequence[pareto.Axis] = pareto.HARMS  # of the plots of harm against quality
    links: Mapping[str, str] = field(default_factory=dict)  # by run, the way from this page to its own

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return list(pareto.pictures(self.models, self.axes))

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """The tables by the names of their files."""
        return {
            "primary": pl.concat(pair.primary_with_verdicts for pair in self.pairs),
            "margins": pl.concat(pair.within for pair in self.pairs),
            "harms": pl.concat(pair.harms for pair in self.pairs),
            "quality": pl.concat(pair.quality for pair in self.pairs),
            "moves": self.moves,
            "models": self.models,
        }

    @property
    def differences(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """The rows over all targets of each pair, for W&B: policy, baseline, rows."""
        return [(pair.name, pair.against, pair.overall.to_dicts() + pair.quality.to_dicts()) for pair in self.pairs]

    @property
    def first_scorer(self) -> str:
        """The scorer in regard's place."""
        return next(reversed(list(self.scorers)), "regard")


def render(comparison: Comparison) -> str:
    """The page's HTML, always the same for the same comparison."""
    pairs = comparison.pairs
    verdicts = [(contrast_sentences.verdict(pair), contrast_sentences.cost(pair)) for pair in pairs]
    categories = metric_display.ordered(comparison.moves["category"])
    return render_page(
        "compared_runs.html.jinja",
        comparison,
        sentences=[verdicts[0][0] if len(verdicts) == 1 else f"{len(verdicts)} comparisons, each with its cost."],
        verdicts=verdicts,
        cost=verdicts[0][1] if len(verdicts) == 1 else "",
        more=list(contrast_sentences.sentences(pairs)),
        scorers={name: comparison.scorers[name] for name in metric_display.by_headline(comparison.scorers)},
        neutralised=any(row["template"] == "neutral" for row in pairs[0].headlines.values()),
        several=any(pair.several_seeds for pair in pairs),
        levels=sorted({f"{level:.4g}" for pair in pairs for level in pair.primary["level"]}),
        fewest_seeds=FEWEST_SEEDS,
        primary=_primary_table(pairs),
        within=_within_table(pairs) if any(pair.within.height for pair in pairs) else None,
        exploratory=_exploratory_table(pairs),
        tables=[
            {
                "pair": pair,
                "harms": _harm_table(pair),
                "categories": _category_table(pair, categories),
                "quality": _quality_table(pair),
                "not_compared": not_compared(pair.missing),
                "relations": _relation_table(pair),
                "moved": {scorer: _moved_tables(pair, scorer) for scorer in pair.headlines},
            }
            for pair in pairs
        ],
        lifts=_lift_table(comparison),
        targets=_target_table(comparison.moves),
        runs=_run_table(comparison),
        left_out=left_out(comparison.moves["target"].to_list()),
        detectable=any(pair.has_detectable for pair in pairs),
        abbreviations=metric_display.abbreviations(pairs[0].harms["measure"]),
        unnamed=[kind for kind in ("harm", "quality") if kind not in pairs[0].primary["endpoint"].to_list()],
    )


def _of(pairs: Sequence[Pair], rows: Callable[[Pair], Iterable[Row]]) -> list[dict[str, Any]]:
    """The rows of several pairs, each with its pair."""
    return [{"pair": pair, **row} for pair in pairs for row in rows(pair)]


def _change(end: str = "") -> Column:
    return Column("change", lambda row: shown.changed(row, row["pair"].fewest, end))


def _p(title: str, name: str) -> Column:
    return Column(title, lambda row: shown.tested(row[name], row["pair"].fewest), kind="whole")


def _fixed(end: str = "") -> Column:
    return Column("targets fixed", lambda row: shown.fixed(row, row["pair"].fewest, end))


POLICY = text("Policy", lambda row: row["pair"].name)
FIGURE = text("figure", lambda row: shown.figure_in_words(row["figure"]))
BEFORE, AFTER = Column("baseline", "baseline"), Column("policy", "value")


def _primary_table(pairs: Sequence[Pair]) -> Table:
    def policy(row: Row) -> Cell:
        return Cell(row["pair"].name, [f"against {row['pair'].against}, {row['pair'].seeds_in_words}"])

    return Table(
        "Primary endpoints. Change from the baseline with its corrected interval: over seeds and targets, and with the "
        "targets fixed over seeds alone. The first says what other seeds and words would give, the second what other "
        "seeds would give for these words.",
        [
            text("Policy", policy),
            text("finding", lambda row: f"{row['endpoint']}: {row['pair'].verdict(row)}"),
            _change(CORRECTED),
            text("endpoint", lambda row: shown.figure_in_words(row["figure"])),
            BEFORE,
            AFTER,
            _p("p, corrected", "p_holm"),
            _fixed(CORRECTED),
        ],
        _of(pairs, lambda pair: pair.primary.to_dicts()),
    )


def _within_table(pairs: Sequence[Pair]) -> Table:
    def quality(row: Row) -> Cell:
        return Cell(str(kept([row])), [f"({row['pair'].strength})"] if row["pair"].strength else [])

    return Table(
        "Quality within margins that are set before the comparison (non-inferiority). It is kept where the whole "
        "interval is better than the margin. Power: how probable it is that a true copy of the baseline, trained with "
        "as many seeds, is shown to be within the margin.",
        [
            POLICY,
            text("quality", quality),
            FIGURE,
            _change(),
            Column("margin", shown.margin_in_words),
            Column("power, for a copy of the baseline", "copy_passes", unit=" %", show=0, kind="power"),
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
    def detectable(row: Row) -> Cell | str:
        if row["detectable"] is None:
            return blank(why_no_change(row) or why_no_interval(row, pair.fewest))
        return f"× {shown.ratio(row['detectable'])}" if row["as"] == "ratio" else number(row["detectable"])

    by_seeds = [_p("p", "p"), _fixed(), _p("p", "fixed_p")]
    power = Column("minimum detectable change (80 % power)", detectable, kind="power")
    return Table(
        "",
        [
            text("Measure", shown.measure_in_words),
            Column(pair.against, "baseline"),
            Column(pair.name, "value"),
            _change(),
            *(by_seeds if pair.several_seeds else []),
            *([power] if pair.has_detectable else []),
        ],
        _by_template(_of([pair], lambda pair: pair.overall.to_dicts())),
        label=f"Harms, {pair.title}",
    )


def _by_template(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = grouped(rows, lambda row: row["template"])
    return {name: found[template] for template, name in TEMPLATE_NAMES.items() if template in found}


def _category_table(pair: Pair, categories: Sequence[str]) -> Table:
    """The changes of each measure in each category."""

    def change_in(category: str) -> Column:
        def cell(cells: Row) -> Cell:
            if (row := cells.get(category)) is None:
                return blank(NO_SHARED_TARGET)
            p = "" if row["p"] is None else f"p {p_value(row['p'])}, "
            targets = f"{row['targets']} {'target' if row['targets'] == 1 else 'targets'}"
            cell = shown.changed(row, pair.fewest)
            return cell._replace(below=[*cell.below, f"{p}{targets}{', fixed' if row['drawn'] == 'seeds' else ''}"])

        return Column(category, cell)

    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in pair.harms.filter(pl.col("category") != "").to_dicts():
        cells = {"template": row["template"], "measure": shown.measure_in_words(row)}
        found.setdefault((row["template"], row["measure"]), cells)[row["category"]] = row
    return Table(
        f"Difference from {pair.against} (means, in percentage points) or ratio to it (variances), its 95 % interval, "
        "and the p-value. A category of few different words has the analysis with targets fixed.",
        [text("Measure", "measure"), *map(change_in, categories)],
        _by_template(found.values()),
    )


def _lift_table(comparison: Comparison) -> Table | None:
    """The swap lift of the models for which it was measured."""
    rows = [row for row in comparison.models.to_dicts() if row.get(LIFT) is not None]
    names = {
        metrics.quality_key(metrics.lift_of(name)): metric_display.BASELINES[name] for name in metrics.BASELINE_LIFTS
    }
    lift = metrics.quality(metrics.SWAP_LIFT)
    table = Table(
        f"{lift.name.capitalize()} {lift.arrow} of each model in percentage points, beside that of generators that "
        "know nothing of the head and of an oracle, on the same heads; in brackets the 95 % interval over heads. "
        "Held-out heads and professions count alike.",
        [
            text("Policy", lambda row: _linked(comparison, row["run"], row["policy"])),
            Column("seed", "seed"),
            Column("this generator", lambda row: with_bounds(row, LIFT)),
            *figures(1, **names),
        ],
        rows,
        kind="narrow",
    )
    return table if rows else None


def _linked(comparison: Comparison, run: str, name: str) -> str:
    """A name as a link to the page of its run, where there is one."""
    place = comparison.links.get(run)
    return Markup('<a href="{}">{}</a>').format(place, name) if place else name


def _quality_table(pair: Pair) -> Table:
    """All figures of quality but those of single relations."""

    def interval(row: Row) -> Cell | str:
        return shown.interval(row, shown.decimals_of(row)) or blank(why_no_interval(row, pair.fewest))

    rows = [row for row in pair.quality.iter_rows(named=True) if metrics.relation_of(row["figure"]) is None]
    return Table(
        "",
        [
            text("On", lambda row: shown.section_and_part(row["figure"])[1]),
            shown.number_column(pair.against, "baseline"),
            shown.number_column(pair.name, "value"),
            Column("change", lambda row: shown.change(row, shown.decimals_of(row))),
            Column("95 % interval", interval),
            Column("number", lambda row: "" if row["items"] is None else number(row["items"])),
        ],
        grouped(rows, lambda row: shown.section_and_part(row["figure"])[0]),
        label=f"Quality, {pair.title}",
        kind="narrow",
    )


def _relation_table(pair: Pair) -> Table | None:
    """Perplexity and plausible statements by relation, those with most held-out triples first."""
    rows: dict[str, dict[str, Any]] = {}
    for row in pair.quality.iter_rows(named=True):
        if relation := metrics.relation_of(row["figure"]):
            cells = rows.setdefault(relation, {"relation": relation})
            cells[metrics.measure_of_quality(row["figure"])] = row

    def items(cells: Row) -> int | None:
        return cells[PERPLEXITY]["items"] if PERPLEXITY in cells else 0

    def side(title: str, measure: str, name: str) -> Column:
        return Column(title, lambda cells: cells[measure][name] if measure in cells else None)

    def change(measure: str) -> Column:
        def cell(cells: Row) -> Cell:
            known = cells.get(measure)
            return shown.changed(known, pair.fewest) if known else blank(pair.why_not(measure, cells["relation"]))

        return Column("change", cell)

    table = Table(
        "Perplexity on a relation's held-out triples (lower is better), and the percentage of its generated statements "
        "that are accepted as plausible, mean over targets (higher is better). Figures of few triples are uncertain.",
        [
            text("Relation", "relation"),
            Column("triples", items),
            side(f"perplexity, {pair.against}", PERPLEXITY, "baseline"),
            side(pair.name, PERPLEXITY, "value"),
            change(PERPLEXITY),
            side(f"plausible, {pair.against}", metrics.PLAUSIBLE, "baseline"),
            side(pair.name, metrics.PLAUSIBLE, "value"),
            change(metrics.PLAUSIBLE),
        ],
        sorted(rows.values(), key=lambda cells: -(items(cells) or 0)),
    )
    return table if rows else None


def _moved_tables(pair: Pair, scorer: str) -> dict[str, Any]:
    """The targets with the largest changes by a scorer, and the statements about each before and after."""
    table = Table(
        "",
        [
            text("Target", "target"),
            text("category", "category"),
            *figures(1, before="before, %", after="after, %"),
            Column("change", lambda target: signed(target["after"] - target["before"])),
        ],
        pair.moved[scorer],
        label=f"Targets with the largest change by {scorer}, {pair.name}",
        kind="narrow",
    )
    said = statement_tables(
        pair.statements[scorer],
        (pair.against, pair.name),
        lambda target, whose: f"Generated about “{target}” only by “{whose}”",
        scorer,
        empty="no statement that the other does not generate",
    )
    return {"chance": pair.chance[scorer], "table": table, "said": said}


def _target_table(moves: pl.DataFrame) -> Table:
    def difference(name: str) -> Column:
        return Column(name, lambda row: blank(NOT_ASKED) if row[name] is None else Cell(number(row[name], 1)))

    named = moves.sort("target").with_columns(column=pl.format("{}, {}", "contrast", "scorer"))
    columns = named.pivot("column", index=["target", "category"], values="difference", aggregate_function="last")
    names = moves.select(pl.format("{}, {}", "contrast", "scorer")).to_series().unique(maintain_order=True)
    return target_table(
        "Change of the percentage of neutral statements, in percentage points; above 0 is more neutral.",
        [difference(name) for name in names],
        columns.to_dicts(),
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
