"""HTML pages from templates, which load nothing; the fields of all pages (base.html.jinja); the tables and pictures of
a page as files beside it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mitigate.report import drawing, metric_display
from mitigate.report import run_figures as gallery
from mitigate.report.run_figures import Picture
from mitigate.report.scorer_reliability import reliability
from mitigate.report.table import Table, grouped, save_csv, save_latex
from mitigate.report.table_declarations import Cells, declared
from mitigate.words.outside_text import readable

NO_BREAK = "\N{NO-BREAK SPACE}"
DIRECTIONS = {"↑": "higher is better", "↓": "lower is better"}


class Stage(NamedTuple):
    """A stage of the run behind a page."""

    name: str
    seconds: float
    from_cache: bool


RESULTS: Cells = {"result": lambda stage: "cached" if stage.from_cache else "computed"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """The fields of every page. The part of an empty field is left out. The module of a kind of page has its content, a
    subclass of this, and the function `render`: the page's HTML, always the same for the same content."""

    name: str  # of the run folder
    command: str  # repeats the run
    demonstration: bool
    stages: Sequence[Stage] = ()
    facts: Mapping[str, object] = field(default_factory=dict)  # versions, seed, fingerprints, data and licence ...
    notices: Sequence[str] = ()  # limits of the figures that a reader must know first
    groups = gallery.GROUPS  # headings and captions of figures

    @property
    def pictures(self) -> Sequence[Picture]:
        """The figures of the page; a page draws them once."""
        return ()


def render_page(
    template: str,
    page: Page,
    *,
    sentences: Sequence[str],
    scorers: Mapping[str, str] = MappingProxyType({}),
    cost: str = "",
    **content: object,
) -> str:
    """The HTML of a page, the same each time for the same content.

    sentences: the findings in words, the headline first; cost: the text below the headline; scorers: those whose
    reliability is shown, by role, such as {"regard": "minilm"}; content: further variables of the template."""
    variables = {
        "report": page,
        "sentences": sentences,
        "cost": cost,
        "facts": flat(page.facts),
        "stages": declared("stages", page.stages, cells=RESULTS) if page.stages else None,
        "reliability": {role: reliability(scorer, role) for role, scorer in scorers.items()},
        "groups": page.groups,
        "pictures": grouped(page.pictures, attrgetter("group")),
        "contents": [],
    }
    return environment().get_template(template).render(**variables, **content)


def save(
    folder: Path, frames: Mapping[str, pl.DataFrame], pictures: Sequence[Picture] = (), *, latex: bool = True
) -> None:
    """Write the tables (tables/{name}.csv and, with latex, .tex) and the pictures (plots/, with captions.csv) of a run
    folder. Tables without rows are left out."""
    for name, frame in frames.items():
        if frame.height:
            save_csv(frame, folder / "tables" / f"{name}.csv")
            if latex:
                save_latex(frame, folder / "tables" / f"{name}.tex", caption=name)
    if pictures:
        gallery.save(pictures, folder / "plots")
        save_csv(gallery.captions(pictures), folder / "plots" / "captions.csv")


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

    def html(found: Table | Iterable[Table]) -> Markup:
        template, tables = made.get_template("table.html.jinja"), [found] if isinstance(found, Table) else found
        return Markup("\n").join(Markup(template.render(table=table)) for table in tables)

    made.policies["json.dumps_function"] = lambda content, **options: json.dumps(_readable(content), **options)
    made.filters |= {"number": metric_display.number, "arrows": _arrows, "html": html}
    # A figure escapes its own texts.
    made.filters["svg"] = lambda picture: Markup(drawing.svg(picture.figure, picture.name, picture.alt))
    return made


def flat(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Flatten nested facts: {"data": {"licence": "MIT"}} is {"data, licence": "MIT"}."""
    found: dict[str, object] = {}
    for name, value in facts.items():
        found |= flat(value, f"{prefix}{name}, ") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def _readable(value: object) -> object:
    """Remove control characters from a text, and from texts in lists and dicts; leave markup and other values as they
    are."""
    if isinstance(value, str):
        return type(value)(readable(value))
    if isinstance(value, Mapping):
        return {_readable(key): _readable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(part) for part in value]
    return value


def unbroken(reasons: str) -> str:
    """Reasons with a true minus, and with labels and counts on the line of their scorers."""
    return reasons.replace(" -", f"{NO_BREAK}−").replace(" +", f"{NO_BREAK}+").replace(" (", f"{NO_BREAK}(")


def _arrows(words: str) -> Markup:
    """The words, with names of the arrows for assistive technology."""

    def named(found: re.Match[str]) -> str:
        return f'<span role="img" aria-label="{DIRECTIONS[found.group()]}">{found.group()}</span>'

    return Markup(re.sub("[↑↓]", named, escape(_readable(words))))
