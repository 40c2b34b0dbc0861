"""How templates become HTML pages that need nothing beside them."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate.report import legend

NO_BREAK = "\N{NO-BREAK SPACE}"


def environment() -> Environment:
    """This folder's templates; all they are given is escaped, for tails and statements are other people's words."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": legend.number, "duration": _duration, "unbroken": _unbroken}
    return made


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _unbroken(reasons: str) -> str:
    """Reasons with a true minus, whose labels and counts stay on the line of their scorers."""
    return reasons.replace(" -", f"{NO_BREAK}−").replace(" +", f"{NO_BREAK}+").replace(" (", f"{NO_BREAK}(")
