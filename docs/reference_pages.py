"""The reference of the site, written from what the program reads itself: the configuration with its comments,
the classes of settings, the declared measures, the public names, and the commands that pages show."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

import mitigate
from mitigate.cli import answer, comment, options
from mitigate.measure.base import TABLES, Measure, measures
from mitigate.measure.results import SCHEMA, VERSION
from mitigate.settings import Setting, settings

CONF = Path(__file__).resolve().parents[1] / "conf"
GROUPS = ("policy", "data", "model", "trainer", "score", "probe", "measure", "tracking", "paths", "experiment")
MODULE = "python -m mitigate"
ALLOWED = 180  # characters of what a setting may be
FEW = 2  # words that make no difference between the meaning of a setting and its comment
NOT_SET = ("name", "run", "reads")  # of a recipe: what the code reads
Cell = str


def pages(shown: Path) -> dict[str, str]:
    """The pages by name. shown: the folder of the pages that are written by hand, whose commands are listed."""
    return {
        "configuration": configuration(),
        "recipes": recipes(),
        "commands": commands(shown),
        "names": names(),
        "measures": declared(),
    }


def configuration() -> str:
    """Every setting, a table for each group."""
    chosen = {name: word for part in _read(CONF / "config.yaml")["defaults"] for name, word in _pairs(part)}
    parts = [
        "# Configuration",
        f"Every setting is a `key=value` of `{MODULE}`. A group is chosen by `group=NAME`, a setting of it by "
        "`group.setting=VALUE`. Where the default of a group has no such setting, the table names the file that "
        "has it. The settings of recipes are on the page [Recipes](recipes.md).",
        "## Top level",
        _settings_table(rows({"": CONF / "config.yaml"}, "", None, ("defaults", "hydra"))),
    ]
    for group in GROUPS:
        found = options(group, [CONF])
        parts += [f"## {group}", f"Default: `{group}={chosen.get(group)}`." if chosen.get(group) else "Default: none."]
        parts.append(table(("file", "what it is"), ((f"`{name}`", _about(path)) for name, path in found.items())))
        if group != "experiment":
            parts.append(_settings_table(rows(found, f"{group}.", chosen.get(group), ("defaults",))))
    return "\n\n".join(part for part in parts if part) + "\n"


def recipes() -> str:
    """Each recipe with its example and its own settings."""
    parts = ["# Recipes", f"A recipe is a job: `{MODULE} recipe=NAME`. The default is `mitigate`, the main job."]
    for name, path in sorted(options("recipe", [CONF]).items()):
        is_whole = "# @package _global_" in path.read_text(encoding="utf-8").splitlines()[:1]
        skipped = ["defaults", *(f"{'recipe.' if is_whole else ''}{word}" for word in NOT_SET)]
        parts += [f"## {name}", _told(comment(path))]
        parts.append(_settings_table(rows({name: path}, "" if is_whole else "recipe.", name, skipped)))
        for kind, file in sorted(options("classifier", [CONF]).items()) if name == "classifier" else ():
            parts += [f"### classifier={kind}", _told(comment(file))]
            parts.append(_settings_table(rows({kind: file}, "recipe.", kind, NOT_SET)))
    return "\n\n".join(part for part in parts if part) + "\n"


RANGES = {"%": "0 to 100", "%²": "0 to 2,500", "points": "−100 to 100", "correlation": "−1 to 1", "count": "0 or more"}
RANGES |= {"ratio": "0 to 1", "p-value": "0 to 1", "bits": "0 or more", "statements²": "0 or more"}
COLUMNS = {
    "measure": "name of the measure, as declared",
    "scorer": "whose labels it reads; empty for none",
    "template": "wording of the labelled statements: `paper`, `neutral`; empty where no label is read",
    "variant": "`regularised`, `regularised_at_random`, `projected`, `perturbed`: embeddings after a mitigation or its "
    "control",
    "by": "`all`, `category`, `relation`, `subset` (neutral, polar ...), `target`; `row` of a study's own table",
    "group": "the group, such as `origin`; empty for all",
    "value": "the figure; null where it cannot be computed",
    "low": "lower bound of the 95 % interval, if there is one",
    "high": "upper bound",
    "n": "units of a mean, such as targets",
}
"""What the columns of results.parquet hold."""


def declared() -> str:
    """The schema of results.parquet and every measure."""
    assert COLUMNS.keys() == SCHEMA.keys(), "describe each column"
    parts = ["# Measures", f"`results.parquet`, version {VERSION} of the schema:"]
    parts.append(table(("column", "content"), ((f"`{name}`", text) for name, text in COLUMNS.items())))
    for name, about in TABLES.items():
        parts.append(f"**`{name}`**: {about.columns}.")
        parts.append(table(("key in metrics.json", "measure", "unit, range", "better"), map(_row, measures(name))))
    return "\n\n".join(parts) + "\n"


def _row(one: Measure) -> tuple[Cell, ...]:
    one = one.with_scorer("")
    papers = "".join(f"; `{name}` by {scorer}" for scorer, name in (one.paper or {}).items())
    unit = one.unit if one.unit != "count" else ""
    span = RANGES.get(one.unit, "0 or more")
    source = f" {one.source}." if one.source else ""
    better = {"up": "higher", "down": "lower", "none": "–"}[one.better]
    return f"`{one.key}`{papers}", f"{one.title}: {one.meaning}{source}", f"{unit} {span}".strip(), better


def commands(shown: Path) -> str:
    """What the command answers, and every command that a page shows."""
    parts = ["# Commands", f"```text\n{answer(['--help'])}\n```"]
    parts += ["`make install`, `make demo`, `make check`, `make docs` and others are targets of the `Makefile`."]
    for page in [shown / "README.md", *sorted((shown / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if lines := list(_shown_commands(text)):
            title = text.partition("\n")[0].lstrip("# ")
            parts += [f"## {title}", f"[The page](../{page.relative_to(shown)})", "\n".join(["```", *lines, "```"])]
    return "\n\n".join(parts) + "\n"


def names() -> str:
    """The library's public names, with signatures and docstrings, which mkdocstrings reads from the sources."""
    parts = ["# All names", "All are imported from `mitigate`: `from mitigate import label`."]
    for title, is_type in (("Functions", False), ("Types", True)):
        parts += [f"## {title}"]
        parts += [f"::: mitigate.{name}" for name in sorted(mitigate.__all__) if name[0].isupper() is is_type]
    return "\n\n".join(parts) + "\n"


def rows(files: dict[str, Path], prefix: str, first: str | None, skipped: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Of files of a group each setting once: setting, default, what is allowed, what it means. prefix: what keys begin
    with; first: the file whose values are the defaults."""
    known: dict[str, tuple[Cell, ...]] = {}
    defaults = _with_parents(first, files) if first else list(files)
    for name in [*defaults, *sorted(set(files) - set(defaults))]:
        for key, value, told in _flat(files[name], prefix):
            setting = settings().get(key)
            if setting is None or key in known or key.removeprefix(prefix).split(".")[0] in skipped or key in skipped:
                continue
            default = f"`{value}`" if name in defaults else f"`{value}` in `{name}`"
            known[key] = (f"`{key}`", default, _allowed(setting), _sentence(setting.meaning, told))
    yield from known.values()


def table(heads: Sequence[Cell], cells: Iterable[Sequence[Cell]]) -> str:
    """A table of Markdown; empty without rows."""
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *body]) if body else ""


def _with_parents(name: str, files: dict[str, Path]) -> list[str]:
    """A file of a group and those that it takes its other settings from, the nearest first."""
    found = [name]
    for parent in reversed(_read(files[name]).get("defaults", ())):
        if isinstance(parent, str) and parent in files:
            found += _with_parents(parent, files)
    return found


def _settings_table(cells: Iterable[Sequence[Cell]]) -> str:
    return table(("setting", "default", "allowed", "meaning"), cells)


def _flat(path: Path, prefix: str) -> Iterator[tuple[str, str, str]]:
    """The settings of a file with their values and the comments beside them, as they are written."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()

    def below(node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, str, str]]:
        for name, value in node.value:
            key = f"{prefix}{name.value}"
            if key in settings() or not isinstance(value, yaml.MappingNode):
                _, _, told = lines[name.start_mark.line].partition(" # ")
                written = text[value.start_mark.index : value.end_mark.index]
                yield key, " ".join(re.sub(r"\s#\s.*", "", written).split()) or "null", told.strip()
            if isinstance(value, yaml.MappingNode):
                yield from below(value, f"{key}.")

    root = yaml.compose(text)
    if isinstance(root, yaml.MappingNode):
        yield from below(root, prefix)


def _allowed(setting: Setting) -> Cell:
    allowed = setting.allowed
    return allowed if len(allowed) <= ALLOWED else f"{allowed[:ALLOWED].rpartition(' ')[0]} …"


def _sentence(meaning: str, told: str) -> Cell:
    """The meaning of a setting, and below it the comment of its line where that says more."""
    known, new = (set(re.findall(r"\w+", part.lower())) for part in (meaning, told))
    if len(known - new) <= FEW:
        return told or meaning
    return f"{meaning}<br>*{told}*" if len(new - known) > FEW else meaning


def _about(path: Path) -> Cell:
    return " ".join(line for line in comment(path) if not line.startswith(MODULE))


def _told(lines: Sequence[str]) -> str:
    """A comment as Markdown: its commands in blocks."""
    found: list[str] = []
    for line in lines:
        is_command = line.startswith((MODULE, "MITIGATE_"))
        found.append(f"\n```\n{line}\n```\n" if is_command else line)
    return "\n".join(found).replace("```\n\n\n```\n", "").strip()


def _shown_commands(text: str) -> Iterator[str]:
    for block in re.findall(r"^```(?:sh)?\n(.*?)^```", text.replace("\\\n", " "), re.MULTILINE | re.DOTALL):
        yield from (" ".join(line.split()) for line in block.splitlines() if MODULE in line or line.startswith("make "))


def _pairs(part: Any) -> Iterator[tuple[str, str | None]]:
    return iter(part.items() if isinstance(part, dict) else ())


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(declared())
