"""A page of results, which loads nothing: no script, style, font or picture from elsewhere.

It begins with a state of a few words, a picture and three numbers; sections of tables, pictures and paragraphs follow.
Every recipe builds a `Page`; `write` stores it with its pictures (plots/) and tables (tables/)."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mitigate import files
from mitigate.report import plots
from mitigate.report.numbers import duration, number, p_value
from mitigate.report.plots import Picture
from mitigate.report.table import Cell, Column, Table, text
from mitigate.words.outside_text import readable

DIRECTIONS = {"↑": "higher is better", "↓": "lower is better"}
MOST_NOTICES = 3  # on the first screen
OPEN = "No conclusion"
"""The state of a page whose figures show nothing."""


class Number(NamedTuple):
    """A figure of the first screen: its name, its value with the unit, and its interval or what it is compared with."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Fold:
    """Parts that a reader unfolds; with a content warning where texts are shown."""

    title: str
    parts: Sequence["Part"]
    warning: bool = False


Part = str | Table | Picture | Fold | list[Picture] | Mapping[str, str] | None
"""A paragraph (Markup: as it is), a table, a picture or several, a fold, meanings by name, or nothing."""


@dataclass(frozen=True)
class Section:
    title: str
    parts: Sequence[Part]

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """The content of a page."""

    name: str  # of the run folder
    command: str  # repeats the run
    state: str  # at most eight words; OPEN where the figures show nothing
    hedge: str = ""  # how certain the state is; of OPEN the reason, and what to change
    picture: Picture | None = None
    numbers: Sequence[Number] = ()
    summary: Sequence[Part] = ()  # below the numbers
    sections: Sequence[Section] = ()
    notices: Sequence[str] = ()  # limits of the figures, those that change a reading first
    limits: Sequence[str] = ()
    demonstration: str | bool = False  # or the sentence that says what is demonstrated
    links: Mapping[str, str] = field(default_factory=dict)  # names of other pages -> the way to them
    stages: Sequence[Mapping[str, Any]] = ()  # of the run: name, seconds, result
    facts: Mapping[str, object] = field(default_factory=dict)  # versions, seed, fingerprints, data and licence ...
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # stored beside the page

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, that of the first screen first."""
        parts = [part for section in self.sections for part in section.parts]
        return [*filter(None, [self.picture]), *_pictures([*self.summary, *parts])]

    @property
    def shown_sections(self) -> list[Section]:
        return [section for section in self.sections if any(section.parts)]


def _pictures(parts: Sequence[Part]) -> Iterator[Picture]:
    for part in parts:
        if isinstance(part, Fold):
            yield from _pictures(part.parts)
        elif isinstance(part, Picture):
            yield part
        elif isinstance(part, list):
            yield from part


def render(page: Page) -> str:
    """The HTML of the page, the same each time for the same content."""
    template = environment().get_template("base.html.jinja")
    shown = [text("stage", "name"), Column("time", "seconds", duration), text("result")]
    stages = Table("Computing time of each stage", shown, page.stages, kind="narrow").present()
    return template.render(
        page=page,
        is_open=page.state.startswith(OPEN),
        notices=page.notices[:MOST_NOTICES],
        housekeeping=page.notices[MOST_NOTICES:],
        facts=flat(page.facts),
        stages=stages,
    )


def write(page: Page, folder: Path, name: str = "report.html") -> None:
    """Write the page, its pictures with their captions, and its tables that have rows."""
    files.write(folder / name, render(page))
    for title, frame in page.tables.items():
        if frame.height:
            save_table(frame, folder / "tables" / title)
    for picture in page.pictures:
        plots.save_figure(picture.figure, folder / "plots" / picture.name)
    rows = [(one.name, one.group, f"{one.title}. {one.alt}") for one in page.pictures]
    if rows:
        captions = pl.DataFrame(rows, schema=["picture", "group", "caption"], orient="row")
        files.write(folder / "plots" / "captions.csv", captions.write_csv())


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
    made.policies["json.dumps_function"] = lambda content, **options: json.dumps(_readable(content), **options)
    made.filters |= {"html": html, "arrows": arrows, "number": number}
    return made


def _readable(value: object) -> object:
    """Remove control characters from a text, and from texts in lists and dicts; leave other values as they are."""
    if isinstance(value, str):
        return type(value)(readable(value))
    if isinstance(value, Mapping):
        return {_readable(key): _readable(part) for key, part in value.items()}
    return [_readable(part) for part in value] if isinstance(value, list | tuple) else value


def html(part: Part) -> Markup:
    """A part of a page as HTML."""
    match part:
        case Markup():
            return part
        case str():
            return element("p", arrows(part))
        case Table():
            return _table(part)
        case Fold(title, parts, warning):
            said = element("span", " — content warning: some are offensive", kind="warning") if warning else ""
            return element("details", element("summary", title, said), *map(html, parts))
        case Picture():
            drawn = Markup(plots.svg(part))  # a figure escapes its own texts
            return element("figure", element("figcaption", part.title), drawn)
        case Mapping():
            pairs = (element("div", element("dt", arrows(name)), element("dd", words)) for name, words in part.items())
            return element("dl", *pairs, kind="words")
        case None:
            return Markup("")
        case _:
            return element("div", *map(html, part), kind="figures")


def _table(shown: Table) -> Markup:
    """A table; on a phone the rows of one with many columns are blocks of lines, each line with its heading."""
    stacked = len(shown.columns) > 3 or any("sentence" in column.kind for column in shown.columns)
    heads = [element("th", arrows(column.heading), kind=column.kind, scope="col") for column in shown.columns]
    bodies = []
    for title, rows in shown.groups:
        heading = element("th", arrows(title), scope="rowgroup", colspan=len(heads)) if title else ""
        group = [element("tr", heading, kind="group")] if title else []
        bodies.append(element("tbody", *group, *(_row(shown, row, stacked) for row in rows)))
    caption = element("caption", arrows(shown.caption)) if shown.caption else ""
    kind = "stacked" if stacked else "pinned" if shown.headed else ""
    found = element("table", caption, element("thead", element("tr", *heads)), *bodies, kind=kind, id=shown.name)
    label = shown.caption.partition(". ")[0].rstrip(".") or shown.columns[0].title
    box = element("div", found, kind=f"scroll {shown.kind}".strip(), tabindex="0", role="region", aria_label=label)
    if not shown.search:
        return box
    words = shown.name.replace("-", " ")
    field = Markup('Search {} <input type="search" autocomplete="off" aria-controls="{}">').format(words, shown.name)
    status = element("span", f"{number(shown.height)} rows", kind="quiet", role="status", id=f"{shown.name}-shown")
    return element("div", element("label", field), status, kind="tools") + box


def _row(shown: Table, row: Mapping[str, Any], stacked: bool) -> Markup:
    cells = []
    for place, column in enumerate(shown.columns):
        cell: Cell = column.cell(row)
        below = [element("small", line) for line in cell.below]
        if place == 0 and shown.headed:
            kind = column.kind.removeprefix("text").strip()
            cells.append(element("th", arrows(cell.text), *below, kind=kind, scope="row"))
        else:
            label = column.heading if stacked and place else ""
            cells.append(element("td", cell.text, *below, kind=column.kind, data_label=label))
    return element("tr", *cells, data_search=shown.search(row) if shown.search else "")


def element(tag: str, *inside: object, kind: str = "", **attributes: object) -> Markup:
    """An HTML element of a class; attributes: "data-label" is written data_label, those that are "" are left out."""
    named = {"class": kind, **{name.replace("_", "-"): value for name, value in attributes.items()}}
    given = Markup("").join(Markup(' {}="{}"').format(name, _readable(value)) for name, value in named.items() if value)
    return Markup("<{0}{1}>{2}</{0}>\n").format(tag, given, Markup("").join(map(_escaped, inside)))


def _escaped(value: object) -> Markup:
    return escape(_readable(value))


def arrows(words: str) -> Markup:
    """The words, with names of the arrows for assistive technology."""

    def named(found: re.Match[str]) -> str:
        return f'<span role="img" aria-label="{DIRECTIONS[found.group()]}">{found.group()}</span>'

    return Markup(re.sub("[↑↓]", named, _escaped(words)))


def flat(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Flatten nested facts: {"data": {"licence": "MIT"}} is {"data, licence": "MIT"}."""
    found: dict[str, object] = {}
    for name, value in facts.items():
        found |= flat(value, f"{prefix}{name}, ") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def save_table(frame: pl.DataFrame, path: Path) -> None:
    """Write the frame as path.csv and as the LaTeX table path.tex, which needs the package booktabs."""
    files.write(path.with_name(f"{path.name}.csv"), frame.write_csv(float_precision=4))
    files.write(path.with_name(f"{path.name}.tex"), latex(frame, path.name))


def latex(frame: pl.DataFrame, caption: str) -> str:
    """p-values are words, since two decimals would make 0.05 of 0.049."""
    names = [name for name in ("p", "p_holm") if name in frame.columns]
    frame = frame.with_columns(pl.Series(name, [p_value(p) for p in frame[name]], pl.String) for name in names)
    rows = [frame.columns, *frame.with_columns(pl.col(pl.String).fill_null("")).iter_rows()]
    head, *lines = (" & ".join(map(_latex_cell, row)) + r" \\" for row in rows)
    body = textwrap.indent("\n".join([r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]), "    ")
    alignment = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    return (
        f"\\begin{{table}}\n  \\centering\n  \\caption{{{_latex_cell(caption)}}}\n"
        f"  \\begin{{tabular}}{{{alignment}}}\n{body}\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


SIGNS: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
}
SIGNS |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", **{sign: f"\\{sign}" for sign in "&%$#_{}"}}


def _latex_cell(value: object) -> str:
    words = number(value) if isinstance(value, int | float) or value is None else str(value)
    return words.translate(str.maketrans(SIGNS))
