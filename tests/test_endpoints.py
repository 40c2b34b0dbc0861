"""What a standard error allows one to say of a change, and the primary endpoints: which figures they are, and what is
corrected; by numbers from a table of Student's t."""

import math
from dataclasses import asdict

import polars as pl
import pytest
import yaml
from command import ROOT
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.comparison import CHANGE, STATISTICS, Change, change_of, together
from mitigate.measure.seeds import Changes, by_seeds
from mitigate.tasks.compare.endpoints import Endpoints, primary, within_margins

ONE, TWO, PERPLEXITY = "NRM", "quality/valid/all", "quality/perplexity/neutral"


def test_differences_and_ratios_by_hand() -> None:
    """An error of 1 with 10 degrees of freedom: 2.228 at 95 %, 0.879 at 80 %; a ratio has its logarithm's."""
    change = Change(80.0, 83.0, "difference", 1.0, 10)
    assert change.size == 3
    assert change.bounds() == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert change.detectable() == pytest.approx(2.228 + 0.879, abs=0.001)
    assert change.p == pytest.approx(2 * stats.t.sf(3, 10))
    change = Change(100.0, 25.0, "ratio", math.log(2), math.inf)
    assert change.size == 0.25
    assert change.bounds() == pytest.approx((0.25 / 2**1.96, 0.25 * 2**1.96), rel=0.001)
    assert change.detectable() == pytest.approx(2 ** (1.960 + 0.842), rel=0.001)
    assert change.p == pytest.approx(2 * stats.norm.sf(2))


def test_where_nothing_varied_or_a_variance_vanishes_nothing_is_known() -> None:
    for error in (math.nan, 0.0):
        row = Change(100.0, 100.0, "difference", error).row()
        assert (row["change"], row["low"], row["high"], row["p"], row["detectable"]) == (0, None, None, None, None)
        ratio = Change(100.0, 50.0, "ratio", error)
        assert all(map(math.isnan, (*ratio.bounds(), ratio.detectable(), ratio.p)))
    row = Change(100.0, 0.0, "ratio", math.inf).row()
    assert (row["change"], row["low"], row["high"], row["p"]) == (0, 0, None, None)
    assert Change(0.0, 100.0, "ratio", math.inf).row()["change"] is None


def test_a_true_copy_passes_as_often_as_it_should() -> None:
    """A margin of 1 with an error of 0.5 and many degrees of freedom: the interval reaches 0.98 down, and somewhat more
    than half of all copies lie above -0.02."""
    assert Change(11.0, 11.0, "difference", 0.5).passes(-1.0) == pytest.approx(stats.norm.cdf(2 - 1.96), abs=0.001)
    assert Change(9.0, 9.0, "ratio", 0.01).passes(1.03) == pytest.approx(stats.norm.cdf(2.956 - 1.96), abs=0.001)
    wider = Change(11.0, 11.0, "difference", 0.5).passes(-1.0, level=0.975)
    assert wider == pytest.approx(stats.norm.cdf(2 - 2.241), abs=0.001)
    assert math.isnan(Change(11.0, 11.0).passes(-1.0))


def test_a_row_is_read_as_it_was_written() -> None:
    changes = [Change(2.0, 3.0, "ratio", 0.1, 4.5), Change(2.0, 3.0)]
    table = pl.DataFrame([change.row() for change in changes], schema=CHANGE)
    assert [change_of(row).row() for row in table.to_dicts()] == [change.row() for change in changes]


def test_errors_together() -> None:
    """Of one part it is that part's. Of two alike with 4 and 1e9 degrees of freedom the reach is between theirs."""
    assert together([(3.0, 4)]) == (3.0, 4)
    assert together([(0.0, 4), (2.0, 50)]) == (2.0, 50)
    error, degrees = together([(1.0, 4), (1.0, 1e9)])
    assert error == pytest.approx(2**0.5)
    assert error * stats.t.ppf(0.975, degrees) == pytest.approx(math.hypot(2.776, 1.960), abs=0.001)
    assert together([(1.0, 4), (math.inf, 30)])[0] == math.inf


def table(figures: dict[str, tuple[float, float]], contrasts: tuple[str, ...] = ("both",)) -> pl.DataFrame:
    """By figure: its change, and its standard error with 10 degrees of freedom; with targets fixed half of it."""
    rows = []
    for contrast in contrasts:
        for figure, (change, error) in figures.items():
            of, fixed = (Change(50.0, 50.0 + change, "difference", size, 10) for size in (error, error / 2))
            rows.append({"contrast": contrast, "figure": figure} | of.row() | by_seeds(Changes(of, fixed), "seeds"))
    return pl.DataFrame(rows, schema={"contrast": pl.String, "figure": pl.String, **STATISTICS})


def test_two_endpoints_are_corrected_between_themselves() -> None:
    """97.5 % of t with 10 degrees of freedom lies within 2.634, 95 % within 2.228. All policies of a page are one
    family."""
    found = primary(table({ONE: (3.0, 1.0), "NSM": (9.0, 1.0)}), table({TWO: (-0.5, 0.2)}), Endpoints())
    quality, harm = found.to_dicts()
    assert (harm["endpoint"], harm["figure"], quality["endpoint"], quality["figure"]) == ("harm", ONE, "quality", TWO)
    assert (harm["low"], harm["high"]) == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert (harm["low_corrected"], harm["high_corrected"]) == pytest.approx((3 - 2.634, 3 + 2.634), abs=0.001)
    assert harm["fixed_high_corrected"] == pytest.approx(3 + 1.317, abs=0.001)
    assert harm["level"] == 97.5
    assert harm["p_holm"] == pytest.approx(2 * min(harm["p"], quality["p"]))
    assert harm["p_holm"] <= quality["p_holm"] == pytest.approx(max(quality["p"], harm["p_holm"]))
    names = ("both", "swap", "regard")
    found = primary(table({ONE: (3.0, 1.0)}, names), table({TWO: (-0.5, 0.2)}, names), Endpoints())
    assert found["level"].unique().to_list() == [pytest.approx(100 - 5 / 6)]


def test_the_endpoint_is_the_first_figure_that_all_runs_have() -> None:
    wanted = Endpoints(harm=["neutral_template/NRM", "NRM"], quality=["quality/bleu2/all"])
    every = {"neutral_template/NRM": (1.0, 1.0), ONE: (1.0, 1.0)}
    found = primary(pl.concat([table(every), table({ONE: (1.0, 1.0)}, ("swap",))]), table({TWO: (1.0, 1.0)}), wanted)
    assert found["figure"].to_list() == [ONE, ONE]  # no run has the one of quality


def test_a_margin_has_its_power_beside_it() -> None:
    """The primary figure's interval is the corrected one; a true copy with an error of 0.2 has it reach 0.527 down, and
    passes where it lies above -0.473, 2.366 errors down. Where nothing varied, the power is unknown."""
    quality = table({TWO: (-0.4, 0.2), PERPLEXITY: (0.1, 5.0)})
    tested = primary(table({ONE: (3.0, 1.0)}), quality, Endpoints())
    share, perplexity = within_margins(quality, tested, {TWO: -1.0, PERPLEXITY: -2.0}).to_dicts()
    assert (share["low"], share["margin"]) == (pytest.approx(-0.927, abs=0.001), -1.0)
    assert share["copy_passes"] == pytest.approx(98.0, abs=0.1)
    assert perplexity["low"] == pytest.approx(0.1 - 5 * 2.228, abs=0.01)
    assert perplexity["copy_passes"] < 5
    same = table({TWO: (0.0, 0.0)})
    (row,) = within_margins(same, primary(table({ONE: (0.0, 0.0)}), same, Endpoints()), {TWO: -1.0}).to_dicts()
    assert (row["low"], row["high"], row["copy_passes"]) == (None, None, None)  # NaN is no JSON


def test_the_configuration_names_the_same_endpoints_and_only_metrics_are_allowed() -> None:
    settings = yaml.safe_load((ROOT / "conf/recipe/compare.yaml").read_text(encoding="utf-8"))["compare"]
    assert {**settings["primary"], "margins": settings["margins"]} == {
        name: value if isinstance(value, dict) else list(value) for name, value in asdict(Endpoints()).items()
    }
    with pytest.raises(MitigateError, match=r"compare.primary.harm names 'NRN', not a metric; allowed are keys"):
        Endpoints(harm=["NRN"])
    with pytest.raises(MitigateError, match="compare.margins names 'quality/luck'"):
        Endpoints(margins={"quality/luck": -1.0})
