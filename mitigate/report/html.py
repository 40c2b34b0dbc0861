"""How a template becomes an HTML page that loads nothing, and what every page has: the fields that base.html.jinja
shows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mitigate.report import drawing, legend, reasons
from mitigate.report.identity import identity_errors
from mitigate.report.run_figures import Picture
from mitigate.report.scorer_reliability import proxies, reliability
from mitigate.words.texts import readable

NO_BREAK = "\N{NO-BREAK SPACE}"


class Stage(NamedTuple):
    """A stage of the run behind a page."""

    name: str
    seconds: float
    from_cache: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """The content of every page. An empty field's part is left out."""

    name: str  # of the run folder
    command: str  # repeats the run
    demonstration: bool
    stages: Sequence[Stage] = ()
    facts: Mapping[str, object] = field(default_factory=dict)  # versions, seed, fingerprints, data and licence ...
    notices: Sequence[str] = ()  # limits of the figures that a reader must know first


def render_page(
    template: str,
    page: Page,
    *,
    sentences: Sequence[str],
    scorers: Mapping[str, str] = MappingProxyType({}),
    cost: str = "",
    more: Sequence[str] = (),
    **content: object,
) -> str:
    """The HTML of a page, the same each time for the same content.

    sentences: the findings in words, the headline first; cost: what stands below the headline; more: further findings,
    which are folded; scorers: by role, those whose reliability is shown, such as
    {"regard": "minilm"}; content: what the template needs beyond them."""
    rows = proxies(scorers)
    return (
        environment()
        .get_template(template)
        .render(
            report=page,
            sentences=sentences,
            cost=cost,
            more=more,
            facts=flat(page.facts),
            proxies=rows,
            identity=identity_errors(scorers),
            reliability={role: reliability(rows, role) for role in scorers},
            legend=legend,
            why=reasons.why,
            without_interval=reasons.without_interval,
            **content,
        )
    )


def environment() -> Environment:
    """This folder's templates. All texts are escaped and their control characters left out, since tails and statements
    come from outside the project."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_readable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_function"] = _json
    made.filters |= {"number": legend.number, "duration": _duration, "unbroken": _unbroken, "svg": _svg}
    return made


def flat(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested facts as one list: {"data": {"licence": "MIT"}} is {"data, licence": "MIT"}."""
    found: dict[str, object] = {}
    for name, value in facts.items():
        found |= flat(value, f"{prefix}{name}, ") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def _readable(value: object) -> object:
    """A text without control characters, markup as markup; lists and dicts with such texts; anything else as it is."""
    if isinstance(value, str):
        return type(value)(readable(value))
    if isinstance(value, Mapping):
        return {_readable(key): _readable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(part) for part in value]
    return value


def _json(content: object, **options: Any) -> str:
    return json.dumps(_readable(content), **options)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _unbroken(reasons: str) -> str:
    """Reasons with a true minus, whose labels and counts stay on the line of their scorers."""
    return reasons.replace(" -", f"{NO_BREAK}−").replace(" +", f"{NO_BREAK}+").replace(" (", f"{NO_BREAK}(")


def _svg(picture: Picture) -> Markup:
    """The figure as markup: it escapes its own texts."""
    return Markup(drawing.svg(picture.figure, picture.name, picture.alt))
