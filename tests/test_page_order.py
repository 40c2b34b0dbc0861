"""One scorer and one template down a page: the headline's. What decides stands open, what is best at a value says so,
and no percentage leaves 0 to 100."""

import re
from dataclasses import replace

import polars as pl
import pytest
import report_example
from comparison_example import example_comparison
from page_elements import unlabelled

from mitigate import metrics
from mitigate.report import compared_runs, metric_display, metrics_table, page, table
from mitigate.report.pareto import HARMS, QUALITIES, pareto
from mitigate.tracking.headlines import headline


@pytest.fixture(scope="module")
def report() -> page.Report:
    return report_example.report(num_targets=16)


@pytest.fixture(scope="module")
def text(report: page.Report) -> str:
    worst = {"neutral_template/regard/largest_O-": 44.0, "regard/largest_O-": 55.0, "sentiment/largest_O-": 66.0}
    return page.render(replace(report, metrics={**report.metrics, **worst}))


def test_regard_with_neutral_phrases_begins_every_table_and_plot(report: page.Report, text: str) -> None:
    order = ["regard_neutral", "regard", "sentiment_neutral", "sentiment"]
    assert list(report.ordered_targets) == order
    boxes = [picture.name for picture in report.pictures if picture.group == "boxes"]
    assert boxes == [f"boxes-{column}" for column in order]
    for group in ("regions", "bars"):  # one template of each scorer
        names = [picture.name for picture in report.pictures if picture.group == group]
        assert {name.split("-")[1] for name in names} == {"regard_neutral", "sentiment_neutral"}
        assert names[0].startswith(f"{group}-regard_neutral")
    assert re.findall(r"<dt>(N..) ", text)[:4] == ["NRM", "NRV", "NSM", "NSV"]
    groups = re.findall(r'<tr class="group"><th scope="rowgroup" colspan="\d+">(\w+) template', text)
    assert groups[:2] == ["neutral", "paper"]
    assert re.findall(r'id="template-(\w+)"( checked)?', text) == [("neutral", " checked"), ("paper", "")]
    heads = re.findall(r'<th scope="col" class="(neutral|paper)"[^>]*>(\w+ \S+)</th>', text)
    assert heads[:4] == [("neutral", f"regard {sign}") for sign in ("O−", "neutral", "O+")] + [("paper", "regard O−")]
    sections = [row.section for row in metrics_table.rows(["NSM", "neutral_template/NSM", "neutral_template/NRM"])]
    assert sections == ["harms, neutral template", "harms, neutral template", "harms, paper template"]


def test_groups_that_fare_worst_and_examples_have_the_headlines_template(report: page.Report, text: str) -> None:
    worst = unlabelled(text[text.index('id="worst"') : text.index('id="filter"')])
    assert "with the neutral template, in percent" in worst
    assert re.findall(r"<td>(\d\d\.0)", worst) == ["44.0", "66.0"]  # sentiment's is of the paper's alone
    assert report.first_columns == ["regard_neutral", "sentiment_neutral"]
    assert "labels are with the neutral template" in text
    assert "regard_neutral</th>" not in text  # a column of labels, named as its scorer


def test_notices_stand_open_between_the_headline_and_all_else(text: str) -> None:
    place = text.index("The generator gives many targets the same tails")
    assert text.index('class="lede"') < place < text.index('class="reliability"')
    assert "<details" not in text[:place]


def test_a_page_counts_rows_and_draws_no_bar_below_a_number(text: str) -> None:
    assert re.search(r'id="target-table-shown"[^>]*>17 in all<', text)
    assert "--v:" not in text


def test_a_targets_region_is_relative_and_says_so(report: page.Report) -> None:
    (alt,) = (it.alt for it in report.pictures if it.name == "regions-regard_neutral-origin")
    assert re.search(r"more negative \d+, more positive \d+, more of both \d+, neither \d+", alt)


def test_a_comparison_names_the_held_out_scorers_where_there_are_some() -> None:
    found = example_comparison()
    assert "The policy filters by sentiment, and not by regard." in compared_runs.render(found)
    alone = replace(found, pairs=[replace(pair, filtered_by=["sentiment", "regard"]) for pair in found.pairs])
    assert "The policy filters by sentiment and regard." in compared_runs.render(alone)


def test_a_change_that_reads_zero_is_no_finding() -> None:
    several, single = example_comparison().pairs
    row = several.primary.row(0, named=True)
    tiny = {**row, "value": 80.004, "change": 0.004, "low_corrected": 0.003, "high_corrected": 0.005}
    assert (several.verdict(row), single.verdict(row)) == ("better, exploratory", "differ, for the better")
    assert (several.verdict(tiny), single.verdict(tiny)) == ("no effect shown", "no difference shown")
    ratio = {**row, "as": "ratio", "value": 80.1, "change": 1.004, "low_corrected": 1.001, "high_corrected": 1.007}
    assert single.verdict(ratio) == "no difference shown"


def test_percentages_stay_between_0_and_100_on_axes() -> None:
    """Two seeds each, whose intervals by Student's t would reach from −40 to 160 %."""
    regard, valid = HARMS[0], next(axis for axis in QUALITIES if axis.slug == "valid")
    perplexity = next(axis for axis in QUALITIES if axis.slug == "perplexity")
    models = pl.DataFrame(
        {
            "policy": ["none", "none", "both", "both"],
            regard.key: [50.0, 70.0, 99.0, 100.0],
            valid.key: [1.0, 9.0, 40.0, 60.0],
            perplexity.key: [5.0, 9.0, 2.0, 6.0],
        }
    )
    (axes,) = pareto(models, regard, valid).axes
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert 0 <= low < high <= 100
    (axes,) = pareto(models, regard, perplexity).axes
    assert axes.get_xlim()[0] >= 1


def test_what_is_best_at_a_value_says_at_which() -> None:
    closest = {row.key: row for row in metrics.table().values() if row.better == "closest"}
    assert set(closest) == {
        *(f"kge/{name}" for name in ("parity", "predictive_parity", "amplification")),
        *(f"kge/leakage_{probe}" for probe in ("linear", "nonlinear")),
    }
    for row in closest.values():
        assert row.best in metrics.table() or float(row.best) == 0
    amplification, parity = closest["kge/amplification"], closest["kge/parity"]
    assert (amplification.named, parity.named) == ("bias amplification → 0", "demographic parity distance → chance")
    assert (amplification.said_better, parity.said_better) == ("closest to 0 is best", "closest to chance is best")
    assert (metrics.metric("NSM").said_better, metrics.metric("seed").said_better) == ("higher is better", "")
    assert headline("neutral_template/NRM").said_better == " (higher is better)"
    assert r"amplification $\rightarrow$ 0" in table.latex(pl.DataFrame({"figure": [amplification.named]}), "Kge")
    assert metric_display.by_headline(["sentiment", "regard"]) == ["regard", "sentiment"]
