"""The first lines: quality by swap lift leads, and generators that know nothing are called so."""

from mitigate.report.findings import findings
from mitigate.report.headline import of_run

RUN = {
    "quality/swap_lift/all": 14.2,
    "quality/swap_lift/all_low": 12.1,
    "quality/swap_lift/all_high": 16.3,
    "NSM": 60.0,
}
RUN |= {f"quality/swap_lift_{name}/all": lift for name, lift in (("echo", -2.0), ("constants", 0.0), ("random", 0.24))}


def test_a_runs_page_begins_with_quality() -> None:
    first, second, third, *_ = findings(RUN)
    assert first == (
        "Quality: swap lift of 14.2 percentage points [12.1, 16.3], better than without any knowledge of the head (0)."
    )
    assert second == (
        "Swap lift is how much more often a tail is accepted as plausible with its own head than with other heads. "
        "On the same heads: repeating the head −2.0, the same tails for all heads 0.0, random training tails 0.2."
    )
    assert third.startswith("On average, 60.0 % of the statements")
    assert findings({"NSM": 60.0})[0].startswith("On average")


def test_a_run_that_knows_nothing_is_called_so() -> None:
    first, second = of_run(RUN | {"quality/swap_lift/all": 0.0, "quality/swap_lift/all_low": -0.4})
    assert first.endswith(
        "0.0 percentage points [−0.4, 16.3], not shown to be better than without any knowledge of the head (0)."
    )
    assert second.endswith("What a generator without quality says shows nothing about harm.")
    first, _ = of_run(RUN | {"quality/swap_lift/all_low": -3.0, "quality/swap_lift/all_high": -1.0})
    assert first.endswith("worse than without any knowledge of the head (0).")
