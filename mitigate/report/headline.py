"""The first lines of a run's page, of a comparison's page and of the terminal: quality by swap lift, beside what
generators reach that know nothing of a head."""

from mitigate.metrics import BASELINE_LIFTS, SWAP_LIFT, bounds, lift_of, quality_key
from mitigate.report.legend import BASELINES, Metrics, interval, number

QUALITY = quality_key(SWAP_LIFT)
"""The figure of quality that pages and terminal begin with."""

MEANING = "Swap lift is how much more often a tail is accepted as plausible with its own head than with other heads."
NO_QUALITY = "What a generator without quality says shows nothing about harm."


def of_run(metrics: Metrics) -> list[str]:
    """A run's quality, and whether it is more than a generator reaches that knows nothing of the head; then what that
    means. Empty where swap lift was not measured."""
    value = metrics.get(QUALITY)
    if not isinstance(value, int | float):
        return []
    low, high = (metrics.get(bound) for bound in bounds(QUALITY))
    found = "not shown to be better"
    if isinstance(low, int | float) and isinstance(high, int | float):
        found = "better" if low > 0 else "worse" if high < 0 else found
    spread = f" {interval(metrics, QUALITY, 1)}" if interval(metrics, QUALITY, 1) else ""
    known = [(name, metrics.get(quality_key(lift_of(name)))) for name in BASELINE_LIFTS]
    beside = ", ".join(f"{BASELINES[name]} {number(lift, 1)}" for name, lift in known if lift is not None)
    more = [MEANING, f"On the same heads: {beside}." if beside else "", "" if found == "better" else NO_QUALITY]
    points = f"{number(value, 1)} percentage points{spread}"
    first = f"Quality: swap lift of {points}, {found} than without any knowledge of the head (0)."
    return [first, " ".join(filter(None, more))]
