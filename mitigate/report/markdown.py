"""Rendering of templates as Markdown."""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate.report import metric_display
from mitigate.report.table import as_markdown
from mitigate.words.outside_text import readable


def environment(folder: Path) -> Environment:
    """The templates of a folder. Control characters are left out, and a missing variable is an error. A text from
    outside the project passes the filter `plain`, in backticks `code`, and on lines of its own `block`."""
    made = Environment(
        loader=FileSystemLoader(folder),
        finalize=lambda value: readable(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "number": metric_display.number,
        "plain": plain,
        "code": code,
        "block": block,
        "table": as_markdown,
    }
    made.filters["percent"] = lambda share: "–" if share is None else f"{share:.1f}"
    return made


SIGNS = re.compile(
    r"[\\`*\[\]<>|~#]"  # code, emphasis, links, tags, cells, headings
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; inside a word the sign has no meaning
    r"|&(?=#?\w+;)"  # an entity
    r"|^[-+=](?=\s|$)|(?<=^\d)[.)]|(?<=^\d\d)[.)]"  # items of a list
)


def plain(value: object) -> str:
    """A text on one line with Markdown's characters escaped, for headings and tables."""
    return SIGNS.sub(r"\\\g<0>", " ".join(str(value).split()))


def code(value: object) -> str:
    """A text on one line as code, in more backticks than it contains."""
    text = " ".join(str(value).split())
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if not text or text[0] == "`" or text[-1] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def block(value: object) -> str:
    """A text as lines of code."""
    fence = "`" * max(3, _longest_run(str(value)) + 1)
    return f"{fence}\n{value}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
