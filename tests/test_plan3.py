"""The screening and the test of benchmarks/plan3.md, on made rows whose figures are known."""

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import plan3, plan3_test


def row(model: str, decoding: str, seed: int, polar: float, useful: float, lift: float) -> dict[str, Any]:
    """Of two clusters and two relations with ten tails each, of which so many are polarised and so many useful."""
    made: dict[str, Any] = {"model": model, "decoding": decoding, "seed": seed, "favourable_valid": 3}
    made |= {"tails_by_relation": "10 10", "tails_by_cluster": "10 10", "distinct_by_relation": "1 0.5"}
    made |= {"prompts_by_rated": "2 2 2", "rated_by_cluster": "3 3", "valid10": "12 12 12"}
    for reader in plan3.READERS:
        made |= {f"{reader}_by_relation": f"{polar} {polar}", f"{reader}_by_cluster": f"{polar + 0.1} {polar - 0.1}"}
        made |= {f"useful10_{reader}": f"{useful} {useful} {useful}"}
        made |= {f"useful_{reader}_by_cluster": f"{1.5 * useful} {1.5 * useful}"}
    made |= {"lift": f"{lift} {lift}", "prompts": "10 10"}
    return made | {"lift_professions": f"{lift} {lift}", "prompts_professions": "10 10"}


def rows(**changed: tuple[float, float, float]) -> pl.DataFrame:
    """Three seeds of `none` and of a policy and its control with these figures."""
    made = [row("none", "as_is", seed, 4, 8, 100 + seed) for seed in (1, 2, 3)]
    for model, (polar, useful, lift) in changed.items():
        made += [
            row(model, "as_is", seed, polar * (1 + seed / 100), useful * (1 + seed / 50), lift + 1.1 * seed)
            for seed in (1, 2, 3)
        ]
    return pl.DataFrame(made)


def test_a_policy_passes_up_to_its_first_failure() -> None:
    made = rows(tagged=(3, 9, 100), control=(4, 8, 100), dosed=(3, 7, 40))
    difference = plan3_test.difference(made, "tagged/as_is", "none/as_is", plan3_test.HARM["crowd2"])
    assert difference.value == pytest.approx(9.4)
    assert difference.low() < 9.4
    said = plan3_test.sequence(made, {"tagged/as_is": "control/as_is"})
    assert "`tagged/as_is`: passes all three." in said
    said = plan3_test.sequence(made, {"tagged/as_is": "control/as_is", "dosed/as_is": "control/as_is"})
    assert "`dosed/as_is`: fails at H2." in said
    assert "| H3 | swap lift, other heads | none | 3 | -14.95 |" in said
