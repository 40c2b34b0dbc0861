"""What could not be measured says why, wherever figures are shown; an interval without an upper bound says so."""

import math
from dataclasses import replace

import polars as pl
import pytest
import report_example
from test_report_card import CARD

from mitigate.measure import bootstrap
from mitigate.measure.audit_figures import representation
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import neutral_metrics, representation_disparity, share_figures
from mitigate.measure.uncertainty import as_bound, neutral_intervals
from mitigate.report import card, metric_display, metrics_table, page, table
from mitigate.report.audit_tables import console as audit_console
from mitigate.report.missing_figures import ALL_ALIKE, note, why, without_interval

NOTHING = {f"quality/{name}/{part}": None for name in ("perplexity", "bleu2") for part in ("all", "polar")}
METRICS = {
    **{"targets": 2, "targets/gender": 1, "targets/own": 1, "empty_targets": 1},
    **{"empty_targets/gender": 0, "empty_targets/own": 1},
    **{"NSM": 50.0, "NSV": None, "NSM/gender": 50.0, "NSV/gender": None, "NSM/own": None, "NSV/own": None},
    **{"D_R": 4.0, "D_R/gender": None, "ngram/D_O-/gender": None, "frequent_relations/NSM": None},
    **NOTHING,
    **{"quality/triples/all": 12, "quality/triples/polar": 0, "quality/triples/neutral": 12},
    **{"quality/perplexity/all": 9.0, "quality/bleu2/all": 1.0, "quality/first_valid/all": None},
    **{"quality/valid/all": 10.0, "quality/valid/polar": None, "quality/valid/gender": None},
    **{"quality/valid/relation/IsA": 20.0, "quality/valid/relation/mentors": None},
    **{"quality/valid/relation/mentors_low": None, "quality/valid/relation/mentors_high": None},
    **{"shared_tails": None, "novelty/T_o": None, "quality/bits_per_char/all": None, "quality/swap_lift/all": None},
    **{"quality/about_perplexity/polar": None, "coverage/triples": None},
}
BLEU = ("quality/bleu2/all", "quality/bleu2/polar")
UNKNOWN = "plausibility was trained on ConceptNet's relations and does not know"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("NSM", ""),
        ("NSV", "one target only has statements"),
        ("NSV/gender", "one target only"),
        ("ngram/D_O-/gender", "one target only"),
        ("D_R/gender", "one target only"),
        ("NSM/own", "no statement about a target"),
        ("NSV/own", "no statement about a target"),
        ("frequent_relations/NSM", "no relation with enough training triples"),
        ("quality/perplexity/polar", "no polarised test triples"),
        ("quality/perplexity/all", ""),
        ("quality/first_valid/all", f"{UNKNOWN} these triples'"),
        ("quality/valid/relation/mentors", f"{UNKNOWN} mentors"),
        ("quality/valid/gender", f"{UNKNOWN} mentors"),
        ("quality/valid/polar", "no statement with a polarised label and a relation that plausibility was trained on"),
        ("quality/bits_per_char/all", "this generator gives no probabilities"),
        ("quality/swap_lift/all", "no relation in which an oracle's tails are accepted as plausible"),
        ("quality/about_perplexity/polar", "no such published triples"),
        ("coverage/triples", "no training triple about a target"),
        ("coverage/triples/own", "no training triple about a target"),  # a category that none is about has no figure
        ("shared_tails", "one target only"),
        ("novelty/T_o", "nothing was generated"),
        ("quality/bleu2/neutral", ""),  # not measured by this run at all
        ("filter/kept", ""),
        ("no metric", ""),
    ],
)
def test_why_a_figure_is_missing(key: str, reason: str) -> None:
    assert why(METRICS, key) == reason


def test_without_test_triples_no_subset_has_any() -> None:
    metrics = {"quality/triples/all": 0, "quality/triples/polar": 0} | dict.fromkeys(BLEU)
    assert {why(metrics, key) for key in BLEU} == {"no test triples"}
    assert why({"quality/valid/polar": None}, "quality/valid/polar") == "no statement with a polarised label"


def test_the_terminal_says_why_below_its_table() -> None:
    said = metrics_table.console({"mine": METRICS})
    absent = "no polarised test triples: perplexity (polar), BLEU-2 (polar)"
    assert ["NSV", "↓", "–"] in [line.split() for line in said.splitlines()]
    assert "\n  –  one target only has statements: NSV (all)\n" in said
    assert f"\n  –  {absent}\n" in said
    other = {**METRICS, "quality/triples/polar": 3, "quality/bleu2/polar": 1.0}
    both = metrics_table.console({"mine": METRICS, "other": other})
    assert f"{absent}; in mine" in both
    assert max(map(len, both.splitlines())) <= 100
    assert "–  one target only: D_R (gender)" in audit_console({**METRICS, "statements": 1}, [("sentiment", "paper")])


def test_tables_of_numbers_have_a_note() -> None:
    metrics = {**METRICS, "NSV": 4.0, "NSV_low": 1.0, "NSV_high": None}
    frame = metrics_table.measures({"value": metrics})
    harms = frame.filter(section="harms, paper template")
    assert dict(harms.select(pl.concat_str("measure", "part"), "value_note").rows()) == {
        **{"NSM ↑": None, "NSM ↑gender": None, "NSM ↑own": "no statement about a target"},
        **{"NSV ↓": "no upper bound", "NSV ↓gender": "one target only", "NSV ↓own": "no statement about a target"},
    }
    assert note({"NSV": 4.0, "NSV_low": 1.0, "NSV_high": math.inf}, "NSV") == "no upper bound"
    assert r" & no upper bound \\" in table.latex(frame, "mine")


def test_page_and_card_say_why() -> None:
    report = report_example.report(per_target_statements=10, num_targets=5)
    shown = page.render(replace(report, metrics={**report.metrics, **METRICS, "NSV_low": 1.0, "NSV_high": None}))
    for reason in ("one target only", "no polarised test triples", UNKNOWN.replace("'", "&#39;"), "no statement about"):
        assert reason in shown
    assert "[1.00, no upper bound]" in shown
    text = card.render(replace(CARD, metrics={**METRICS, "NSM_low": 40.0, "NSM_high": 60.0}))
    assert "| perplexity ↓ | polar | – (no polarised test triples) |" in text
    assert "| NSV ↓ neutral sentiment, variance | – | – (one target only has statements) |" in text
    assert "| NSM ↑ neutral sentiment, mean | – | 50.00 [40.00, 60.00] |" in text
    assert "| those with a polarised label | – (no statement with a polarised label and a relation" in text


def test_intervals_without_a_bound_read_so() -> None:
    assert metric_display.interval({"NSV": 4.0, "NSV_low": 0.1, "NSV_high": None}, "NSV") == "[0.10, no upper bound]"
    assert metric_display.interval({"NSV": 4.0, "NSV_low": None, "NSV_high": None}, "NSV") == ""
    assert metric_display.span(-math.inf, math.inf) == "no lower bound, no upper bound"
    assert metric_display.span(1.0, 2.5, 1) == "1.0, 2.5"


def per_target(*neutral: float) -> pl.DataFrame:
    """A table of so many targets, each of its own category but for the first two."""
    names = [f"word {number}" for number in range(len(neutral))]
    categories = ["gender", "gender", "origin", "own"][: len(neutral)]
    return pl.DataFrame({"target": names, "category": categories, "neutral": list(neutral)}).with_columns(
        statements=pl.lit(10), prejudice=100 - pl.col("neutral"), favouritism=pl.lit(0.0)
    )


def test_variances_of_a_single_target_and_without_an_upper_bound() -> None:
    """Of two targets every second resample is constant, so that nothing bounds the variance."""
    found = neutral_metrics(per_target(50.0, 70.0, 80.0), "sentiment")
    assert (found["NSV/gender"], found["NSM/origin"], found["NSV/origin"]) == (100, 80, None)
    names = [f"{name}{part}" for name in ("D_R", "ngram/D_O-", "ngram/D_O+") for part in ("", "/gender")]
    disparity = [("prejudice", "variance"), ("favouritism", "variance")]
    found = representation_disparity(per_target(50.0)) | share_figures(per_target(50.0), "ngram", disparity)
    assert found == dict.fromkeys(names)
    table, few = per_target(50.0, 70.0), Bootstrap(resamples=200)
    found = neutral_intervals(table, "sentiment", {}, few)
    found |= representation(table.with_columns(statements=pl.Series([10, 30])), {}, few)
    for name in ("NSV", "D_R"):
        assert found[f"{name}_high"] is None
        assert found[f"{name}_low"] is not None
    bounds = (bootstrap.MOST_VARIANCE, math.nan, math.inf, 99.5)
    assert [as_bound(bound) for bound in bounds] == [None, None, None, 99.5]


def test_a_mean_of_equal_targets_says_why_it_has_no_interval() -> None:
    known = {"targets": 3, "NSM": 25.0, "NSM_low": None, "NSM_high": None, "NSV": 0.0, "NSV_low": 0.0}
    assert without_interval(known, "NSM") == ALL_ALIKE
    assert without_interval(known, "NSV") == ""
    assert without_interval(known | {"NSM_low": 20.0}, "NSM") == ""
    assert without_interval(known | {"targets": 1}, "NSM") == ""  # of one target the variance says so
    assert without_interval(known | {"NSM": None}, "NSM") == ""
