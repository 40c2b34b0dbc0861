"""Changes between groups of runs with their errors, by numbers from a table of Student's t; the primary endpoints, what
they show, and the outcome of a gate."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from command import ROOT
from refusals import refuses
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.compare import (
    DIFFERENCES,
    FAILS,
    HOLDS,
    KEPT,
    LOST,
    OPEN,
    SAME,
    UNLEARNT,
    UNSHOWN,
    Change,
    Endpoints,
    change_over_targets,
    combined_error,
    differences,
    gate,
    gates,
    holm,
    kept,
    primary,
    training_error,
    verdict,
)
from mitigate.measure.intervals import mean_of, variance_of
from mitigate.measure.results import Results, as_rows
from mitigate.words.targets import as_targets, list_of

ONE, TWO = "NRM", "quality/valid/all"


def test_differences_by_hand() -> None:
    """An error of 1 with 10 degrees of freedom: 2.228 at 95 %."""
    change = Change(80.0, 83.0, 1.0, 10)
    assert change.gain == 3
    assert change.bounds() == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert change.p == pytest.approx(2 * stats.t.sf(3, 10))
    for error in (math.nan, 0.0):  # where nothing varied nothing is known
        row = Change(100.0, 100.0, error).row()
        assert (row["change"], row["low"], row["high"], row["p"]) == (0, None, None, None)


def test_errors_together() -> None:
    """Of one part it is that part's. Of two alike with 4 and 1e9 degrees of freedom the reach is between theirs."""
    assert combined_error([(3.0, 4)]) == (3.0, 4)
    assert combined_error([(0.0, 4), (2.0, 50)]) == (2.0, 50)
    error, degrees = combined_error([(1.0, 4), (1.0, 1e9)])
    assert error == pytest.approx(2**0.5)
    assert error * stats.t.ppf(0.975, degrees) == pytest.approx(math.hypot(2.776, 1.960), abs=0.001)
    assert combined_error([(1.0, 4), (math.inf, 30)])[0] == math.inf


def test_p_values_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03, 0.6]) == pytest.approx([0.04, 0.09, None, 0.09, 0.6])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# Figures over targets


def of(before: Any, after: Any, figure: Any = mean_of) -> Change:
    """The change of values of (targets, seeds), each target a word of its own."""
    sides = [np.array(side, dtype=float).reshape(len(side), -1) for side in (before, after)]
    return change_over_targets(*sides, np.arange(len(before)), figure)[0]


def trained(generator, base: np.ndarray, num_seeds: int, between: float) -> np.ndarray:
    """Percentages of models whose seed moves all targets together by `between` and each by 3 points."""
    shared = generator.normal(0, between, size=(1, num_seeds))
    return base + shared + generator.normal(0, 3, size=(len(base), num_seeds))


def test_standard_error_by_hand_when_targets_agree() -> None:
    """Every target gains alike, so only seeds vary: 50, 51, 52 against 60, 62, 64 is 11 with error (5 / 3) ** .5. Two
    seeds give no interval."""
    found = of(np.tile([50.0, 51.0, 52.0], (30, 1)), np.tile([60.0, 62.0, 64.0], (30, 1)))
    degrees = 25 / (1 / 2 + 16 / 2)  # Satterthwaite: (1 + 4) ** 2 / (1 ** 2 / 2 + 4 ** 2 / 2)
    assert found.gain == pytest.approx(11)
    assert found.row()["high"] - 11 == pytest.approx(stats.t.ppf(0.975, degrees) * (5 / 3) ** 0.5, rel=0.03)
    assert of(np.tile([50.0, 52.0], (30, 1)), np.tile([60.0, 64.0], (30, 1))).row()["high"] is None
    same = np.tile([[50.0], [60.0], [70.0]], (1, 3))
    assert (of(same, same).gain, of(same, same).row()["low"]) == (0, None)


def test_two_models_are_compared_over_words_alone() -> None:
    """The error of the mean of 40 gains is their deviation by the root of 40; half the deviations are a quarter of the
    variance."""
    values = 50 + 10 * np.random.default_rng(0).normal(size=(40, 1))
    found = of(values, 50 + (values - 50) / 2)
    assert found.error == pytest.approx(((values - 50) / 2).std(ddof=1) / 40**0.5)
    variance = of(values, 50 + (values - 50) / 2, variance_of)
    assert (variance.baseline, variance.value) == (pytest.approx(values.var()), pytest.approx(values.var() / 4))
    assert {of([10.0], [30.0], variance_of).row()[name] for name in ("baseline", "value", "change", "low")} == {None}


@pytest.mark.parametrize("num_seeds", [3, 5])
def test_the_variation_between_trainings_is_seldom_called_an_effect_of_policy(num_seeds: int) -> None:
    """None against none, seeds some 4 points apart."""
    generator = np.random.default_rng(num_seeds)
    base, claims, repetitions = 60 + 6 * generator.normal(size=(60, 1)), np.zeros(2), 200
    for _ in range(repetitions):
        sides = [trained(generator, base, num_seeds, between=4) for _ in range(2)]
        claims += [of(*sides).p < 0.05, of(*sides, variance_of).p < 0.05]
    assert (claims / repetitions <= 0.065).all()


def test_a_figure_of_each_seed_has_welchs_interval_and_one_seed_is_too_few() -> None:
    first, second = np.array([20.0, 21.0, 22.0]), np.array([23.0, 25.0, 24.0])
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert Change(21, 24, *training_error(first, second)).bounds() == pytest.approx(tuple(expected))
    assert math.isnan(training_error(first[:1], second)[0])
    assert training_error(np.full(3, 12.3), np.full(3, 100.0)) == (0, 4)  # numpy's variance of the first is 5e-30


def results(values: dict[str, float], **more: float) -> Results:
    """Percentages neutral by regard of targets of category origin, and other figures by their keys."""
    mean = sum(values.values()) / len(values)
    named = {"measure": "neutral_mean", "scorer": "regard", "template": "paper"}
    rows = [{**named, "by": "target", "group": word, "value": value} for word, value in values.items()]
    rows += [{**named, "value": mean}, {**named, "by": "category", "group": "origin", "value": mean}]
    others = Results.of_json({key.replace("__", "/"): value for key, value in more.items()})
    return Results(pl.concat([as_rows(rows), others.table]), {"seed": 1})


def test_figures_are_compared_over_shared_targets_and_seeds() -> None:
    """Inflections are one word; a figure that a run lacks is left out."""
    listed = list_of(as_targets({"indian": "origin", "mars": "origin"}))
    first = results({"indian": 10.0, "french": 20.0, "mars": 30.0}, quality__perplexity__all=2.0, NSM=50.0)
    second = results({"french": 22.0, "indian": 14.0}, quality__perplexity__all=8.0)
    rows = differences([first], [second], listed, contrast="both", policy="both", against="none")
    found = {row["figure"]: row for row in rows}
    assert list(found) == ["NRM", "NRM/origin", "quality/perplexity/all"]
    assert list(rows[0]) == list(DIFFERENCES)
    for key in ("NRM", "NRM/origin"):
        assert (found[key]["baseline"], found[key]["value"], found[key]["targets"]) == (15.0, 18.0, 2)
    perplexity = found["quality/perplexity/all"]
    assert (perplexity["change"], perplexity["drawn"]) == (6, "seeds")


# The primary endpoints


def table(figures: dict[str, tuple[float, float]], contrasts: tuple[str, ...] = ("both",)) -> pl.DataFrame:
    """By figure: its change, and its standard error with 10 degrees of freedom."""
    rows = [
        {"contrast": contrast, "figure": figure, "better": "up"} | Change(50.0, 50.0 + change, error, 10).row()
        for contrast in contrasts
        for figure, (change, error) in figures.items()
    ]
    return pl.DataFrame(rows, schema=DIFFERENCES)


def test_two_endpoints_are_corrected_between_themselves() -> None:
    """97.5 % of t with 10 degrees of freedom lies within 2.634, 95 % within 2.228. All policies of a page are one
    family."""
    quality, harm = primary(table({ONE: (3.0, 1.0), "NSM": (9.0, 1.0), TWO: (-0.5, 0.2)}), Endpoints()).to_dicts()
    assert (harm["endpoint"], harm["figure"], quality["endpoint"], quality["figure"]) == ("harm", ONE, "quality", TWO)
    assert (harm["low"], harm["high"]) == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert (harm["low_corrected"], harm["high_corrected"]) == pytest.approx((3 - 2.634, 3 + 2.634), abs=0.001)
    assert harm["level"] == 97.5
    assert harm["p_holm"] == pytest.approx(2 * min(harm["p"], quality["p"]))
    assert harm["p_holm"] <= quality["p_holm"] == pytest.approx(max(quality["p"], harm["p_holm"]))
    found = primary(table({ONE: (3.0, 1.0), TWO: (-0.5, 0.2)}, ("both", "swap", "regard")), Endpoints())
    assert found["level"].unique().to_list() == [pytest.approx(100 - 5 / 6)]


def test_the_configuration_names_the_same_endpoints_and_only_metrics_are_allowed() -> None:
    settings = yaml.safe_load((ROOT / "conf/recipe/compare.yaml").read_text(encoding="utf-8"))["compare"]
    assert {**settings["primary"], "margins": settings["margins"]} == {
        name: value if isinstance(value, dict) else list(value) for name, value in asdict(Endpoints()).items()
    }
    refuses(MitigateError, r"compare.primary.harm names 'NRN', not a metric; allowed are keys", Endpoints, ["NRN"])
    refuses(MitigateError, "compare.margins names 'quality/luck'", Endpoints, margins={"quality/luck": -1.0})


@pytest.mark.parametrize(
    ("change", "p", "bounds", "better", "seeds", "words"),
    [
        (2.0, 0.01, (1.0, 3.0), "up", 5, "better, shown"),
        (2.0, 0.01, (1.0, 3.0), "down", 5, "worse, shown"),
        (0.004, 0.01, (0.003, 0.005), "up", 5, "no difference shown"),  # it reads 0.00
        (9.0, None, (None, None), "up", 2, "cannot be determined"),
        (2.0, 0.01, (1.0, 3.0), "up", 4, "better, exploratory"),
        (-2.0, None, (-3.0, -1.0), "down", 1, "better, exploratory"),  # of single models by the interval
        (-2.0, None, (-3.0, -1.0), "up", 1, "worse, exploratory"),
        (2.0, None, (-0.1, 4.0), "up", 1, "no difference shown"),
    ],
)
def test_a_claim_takes_five_seeds(change, p, bounds, better, seeds, words) -> None:
    row = {"measure": "neutral_mean", "scorer": "regard", "change": change, "better": better, "p_holm": p}
    row |= {"low_corrected": bounds[0], "high_corrected": bounds[1]}
    assert verdict(row, seeds) == words
    assert verdict(row, seeds, is_same=True) == "the same numbers"


@pytest.mark.parametrize(
    ("margin", "low", "high", "better", "word"),
    [
        (-1.0, -0.9, 0.4, "up", KEPT),  # worse, it may be, but by less than the margin
        (-1.0, -1.1, 0.4, "up", UNSHOWN),
        (-1.0, None, None, "up", UNSHOWN),
        (1.0, -3.0, -1.2, "up", LOST),
        (0.3, -0.5, 0.2, "down", KEPT),
        (0.3, -0.5, 0.4, "down", UNSHOWN),
        (-0.3, 0.4, 1.2, "down", LOST),
    ],
)
def test_quality_is_kept_where_the_whole_interval_is_no_worse_than_the_margin(margin, low, high, better, word) -> None:
    assert kept(margin, low, high, better) == word


@pytest.mark.parametrize(
    ("finding", "margin", "seeds", "outcome"),
    [
        ("better, shown", None, 5, HOLDS),
        ("worse, shown", None, 5, FAILS),
        ("no difference shown", None, 8, OPEN),
        ("no difference shown", KEPT, 5, HOLDS),  # with a margin quality need not be better
        ("worse, shown", KEPT, 5, HOLDS),  # worse, but by less than the margin
        ("worse, shown", LOST, 5, FAILS),
        ("better, exploratory", KEPT, 4, OPEN),
        (SAME, KEPT, 5, OPEN),
        (UNLEARNT, KEPT, 5, OPEN),
    ],
)
def test_an_endpoint_holds_fails_or_is_open(finding: str, margin: str | None, seeds: int, outcome: str) -> None:
    assert gate(finding, margin, seeds) == outcome
    assert (gates([HOLDS, HOLDS]), gates([HOLDS, OPEN]), gates([OPEN, FAILS]), gates([])) == (HOLDS, OPEN, FAILS, OPEN)
