"""Numbers as people read them, on pages, in cards and on the terminal."""

import math

Value = float | int | str | None


def number(value: Value, decimals: int = 2) -> str:
    """The number as shown: separated thousands, a true minus, and a dash for a missing value."""
    if not isinstance(value, int | float) or value != value:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")  # what rounds to 0 has no sign


def signed(value: Value, decimals: int = 1) -> str:
    """A difference with its sign: "+1.2", "−0.3"."""
    return f"{'+' if isinstance(value, int | float) and value > 0 else ''}{number(value, decimals)}"


def span(low: Value, high: Value, decimals: int = 2) -> str:
    """The bounds of an interval: "59.80, 62.70". A missing or infinite value is not a bound."""
    ends = {"no lower bound": low, "no upper bound": high}
    return ", ".join(
        none if value is None or value in (math.inf, -math.inf) else number(value, decimals)
        for none, value in ends.items()
    )


def p_value(p: float | None) -> str:
    """A p-value as shown: "0.031", "< 0.001", or a dash. A value below 0.05 is not rounded to it: "0.0498"."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.4f}" if 0.0495 <= p < 0.05 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """A time: "12.4 s", "1 min 39 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
