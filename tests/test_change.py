"""What a standard error allows one to say of a change, by numbers from a table of Student's t."""

import math

import polars as pl
import pytest
from scipy import stats

from mitigate.measure.change import CHANGE, Change, of_row, together


def test_a_difference_by_hand() -> None:
    """An error of 1 with 10 degrees of freedom: 2.228 at 95 %, 0.879 at 80 %."""
    change = Change(80.0, 83.0, "difference", 1.0, 10)
    assert change.size == 3
    assert change.bounds() == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert change.detectable() == pytest.approx(2.228 + 0.879, abs=0.001)
    assert change.p == pytest.approx(2 * stats.t.sf(3, 10))


def test_a_ratio_has_the_error_of_its_logarithm() -> None:
    change = Change(100.0, 25.0, "ratio", math.log(2), math.inf)
    low, high = change.bounds()
    assert change.size == 0.25
    assert (low, high) == pytest.approx((0.25 / 2**1.96, 0.25 * 2**1.96), rel=0.001)
    assert change.detectable() == pytest.approx(2 ** (1.960 + 0.842), rel=0.001)
    assert change.p == pytest.approx(2 * stats.norm.sf(2))


def test_a_variance_that_vanishes_is_bounded_by_nothing() -> None:
    row = Change(100.0, 0.0, "ratio", math.inf).row()
    assert (row["change"], row["low"], row["high"], row["p"]) == (0, 0, None, None)
    assert Change(0.0, 100.0, "ratio", math.inf).row()["change"] is None


@pytest.mark.parametrize("error", [math.nan, 0.0])
def test_where_nothing_varied_nothing_is_known(error: float) -> None:
    row = Change(100.0, 100.0, "difference", error).row()
    assert (row["change"], row["low"], row["high"], row["p"], row["detectable"]) == (0, None, None, None, None)
    ratio = Change(100.0, 50.0, "ratio", error)
    assert all(map(math.isnan, (*ratio.bounds(), ratio.detectable(), ratio.p)))


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
    for change, row in zip(changes, table.to_dicts(), strict=True):
        assert of_row(row).row() == change.row()


def test_errors_together() -> None:
    """Of one part it is that part's. Of two alike with 4 and 1e9 degrees of freedom the reach is between theirs."""
    assert together([(3.0, 4)]) == (3.0, 4)
    assert together([(0.0, 4), (2.0, 50)]) == (2.0, 50)
    error, degrees = together([(1.0, 4), (1.0, 1e9)])
    assert error == pytest.approx(2**0.5)
    assert error * stats.t.ppf(0.975, degrees) == pytest.approx(math.hypot(2.776, 1.960), abs=0.001)
    assert together([(1.0, 4), (math.inf, 30)])[0] == math.inf
