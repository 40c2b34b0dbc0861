"""How templates become Markdown."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate.report import legend
from mitigate.texts import readable


def environment(folder: Path) -> Environment:
    """A folder's templates. Control characters are left out, and what a template is not given is an error; a text from
    outside the project is put into a table by the filter `cell`."""
    made = Environment(
        loader=FileSystemLoader(folder),
        finalize=lambda value: readable(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"number": legend.number, "cell": cell}
    return made


def cell(value: object) -> str:
    """A text as one cell of a table: its bars, line ends and tags are none of Markdown's."""
    return " ".join(str(value).replace("|", r"\|").replace("<", "&lt;").splitlines())
