"""A page of results, which loads nothing: no script, style, font or picture from elsewhere.

It begins with a state of a few words, a picture and three numbers; sections of tables, pictures and paragraphs follow.
Every recipe builds a `Page`; `write` stores it with its pictures (plots/) and tables (tables/)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate import files
from mitigate.errors import readable
from mitigate.report import plots
from mitigate.report.plots import Picture
from mitigate.report.table import Column, Table, duration, number, p_value, text

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
        sections=[section for section in page.sections if any(section.parts)],
        is_open=page.state.startswith(OPEN),
        notices=page.notices[:MOST_NOTICES],
        housekeeping=page.notices[MOST_NOTICES:],
        facts={
            f"{group}, {name}" if name else group: fact
            for group, facts in page.facts.items()
            for name, fact in (facts.items() if isinstance(facts, Mapping) else [("", facts)])
        },
        stages=stages,
    )


def write(page: Page, folder: Path, name: str = "report.html") -> None:
    """Write the page, its pictures with their captions, and its tables that have rows."""
    files.write(folder / name, render(page))
    for title, frame in page.tables.items():
        if frame.height:
            files.write(folder / "tables" / f"{title}.csv", frame.write_csv(float_precision=4))
            files.write(folder / "tables" / f"{title}.tex", latex(frame, title))
    for picture in page.pictures:
        plots.save_figure(picture.figure, folder / "plots" / picture.name)
    rows = [(one.name, one.group, f"{one.title}. {one.alt}") for one in page.pictures]
    if rows:
        captions = pl.DataFrame(rows, schema=["picture", "group", "caption"], orient="row")
        files.write(folder / "plots" / "captions.csv", captions.write_csv())


def environment(html: bool = True) -> Environment:
    """This folder's templates; for HTML all texts are escaped. Control characters are left out, since tails and
    statements come from outside the project, and a missing variable is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=html,
        finalize=lambda value: type(value)(readable(value)) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
    )
    made.filters["number"], made.globals["svg"] = number, plots.svg
    return made


def latex(frame: pl.DataFrame, caption: str) -> str:
    """A table for the package booktabs. p-values are words, since two decimals would make 0.05 of 0.049."""
    names = [name for name in ("p", "p_holm") if name in frame.columns]
    frame = frame.with_columns(pl.Series(name, [p_value(p) for p in frame[name]], pl.String) for name in names)

    def cell(value: object) -> str:
        words = number(value) if isinstance(value, int | float) or value is None else str(value)
        return words.translate(str.maketrans(SIGNS))

    rows = [frame.columns, *frame.with_columns(pl.col(pl.String).fill_null("")).iter_rows()]
    head, *lines = (" & ".join(map(cell, row)) + r" \\" for row in rows)
    alignment = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    top = [r"\begin{table}", r"\centering", rf"\caption{{{cell(caption)}}}", rf"\begin{{tabular}}{{{alignment}}}"]
    body = [r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*top, *body, r"\end{tabular}", r"\end{table}", ""])


SIGNS: dict[str, str | int | None] = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SIGNS |= {"–": "--", "−": "$-$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$"}
SIGNS |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
