"""Two resources, paired by target: figures one can check by hand."""

import numpy as np
import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.between_resources import rank_correlation, representation, shares, side_by_side
from mitigate.measure.bootstrap import mean_of
from mitigate.measure.comparison import paired


def table(rows: dict[str, tuple[int, float, float]]) -> pl.DataFrame:
    """target -> statements, prejudice, favouritism."""
    found = [(target, "gender", *row, 100 - row[1] - row[2]) for target, row in rows.items()]
    names = ["target", "category", "statements", "prejudice", "favouritism", "neutral"]
    return pl.DataFrame(found, schema=names, orient="row")


FIRST = table({"woman": (10, 0, 10), "man": (10, 20, 10), "girl": (30, 10, 0), "boy": (0, 0, 0), "aunt": (4, 5, 0)})
SECOND = table({"man": (100, 40, 10), "woman": (20, 0, 30), "girl": (80, 20, 5), "boy": (9, 0, 0), "uncle": (9, 0, 0)})


def figures(found: pl.DataFrame) -> dict[str, tuple]:
    return {row["figure"]: (row["baseline"], row["value"], row["change"]) for row in found.to_dicts()}


def test_the_figures_are_of_the_targets_in_both_resources() -> None:
    both = side_by_side(FIRST, SECOND)
    assert both["target"].to_list() == ["woman", "man", "girl"]
    found = figures(shares(both, "sentiment", {}))
    assert found["sentiment/O-"] == pytest.approx((10, 20, 10))
    assert found["sentiment/O-/gender"] == found["sentiment/O-"]
    assert found["sentiment/O+"] == pytest.approx((20 / 3, 15, 25 / 3))
    assert found["sentiment/D_O-"] == pytest.approx((200 / 3, 800 / 3, 4))
    assert found["NSM"] == pytest.approx((250 / 3, 65, 65 - 250 / 3))
    assert found["sentiment/polarised"] == pytest.approx((14, 38, 24))  # 7 of 50 and 76 of 200
    assert figures(representation(both, {}))["D_R"] == pytest.approx((800 / 9, 10400 / 9, 13))
    with pytest.raises(MitigateError, match="no target that both speak of"):
        side_by_side(FIRST, table({"dog": (3, 0, 0)}))


def test_a_resource_does_not_differ_from_itself() -> None:
    both = side_by_side(FIRST, FIRST)
    for row in [*shares(both, "regard", {}).to_dicts(), *representation(both, {}).to_dicts()]:
        assert (row["baseline"], row["p"], row["low"]) == (row["value"], None, None)
    assert rank_correlation(both, "prejudice") == 1


def test_with_equal_weights_the_share_polarised_is_a_mean_over_targets() -> None:
    random = np.random.default_rng(1)
    sides = [table({f"t{i}": (50, float(random.integers(0, 60)), 0.0) for i in range(30)}) for _ in range(2)]
    found = shares(side_by_side(*sides), "sentiment", {})
    names = ("sentiment/O-", "sentiment/polarised")
    mean, polarised = (found.filter(figure=name).drop("figure").row(0) for name in names)
    assert polarised == pytest.approx(mean)


def test_the_interval_of_the_share_polarised_covers() -> None:
    """A thousand pairs of resources with the same chances: the true difference is 0."""
    random = np.random.default_rng(2)
    shape = (2, 80, 1000)
    weights = random.lognormal(3, 0.5, shape)
    values = 100 * (random.beta(2, 8, shape[1:]) + random.normal(0, 0.1, shape))
    first, second = (np.stack([of, of * share]) for of, share in zip(weights, values, strict=True))  # sums of each word
    p = [paired(first[:, :, [i]], second[:, :, [i]], mean_of).p for i in range(1000)]
    assert 0.03 <= (np.array(p) < 0.05).mean() <= 0.07


def test_ranks_and_single_targets() -> None:
    """Ranks in reverse order correlate by -1; ranks that are all equal, or of one target, have no figure."""
    sides = [
        table({f"t{i}": (9, float(value), 0.0) for i, value in enumerate(side)}) for side in ([1, 2, 3], [9, 5, 4])
    ]
    assert rank_correlation(side_by_side(*sides), "prejudice") == -1
    assert rank_correlation(side_by_side(*sides), "favouritism") is None
    both = side_by_side(table({"woman": (10, 10, 20)}), table({"woman": (20, 30, 10)}))
    found = figures(pl.concat([shares(both, "regard", {}), representation(both, {})]))
    without = {f"{name}{part}" for name in ("regard/D_O-", "regard/D_O+", "NRV", "D_R") for part in ("", "/gender")}
    assert {name for name, values in found.items() if values == (None, None, None)} == without
    assert found["regard/O-"] == pytest.approx((10, 30, 20))
