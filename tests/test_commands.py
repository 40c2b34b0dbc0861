"""Every command that README and docs show: each is composed with the configuration as it stands, so that a setting that
there is not fails; and commands.csv says which test runs it in a cut-down form, or what it needs that tests have not.
Composing starts nothing: it reads what a command would do."""

import csv
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import ROOT
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from mitigate.cli import readable
from mitigate.settings import check, left_open, with_lists

SHELL = re.compile(r"(?:[A-Z_]+=\S+ )*(?:python|pip|\.venv/bin/pip|make|cd|export|mitigate|ray|wandb|cat|\.) ")
MODULE = ["python", "-m", "mitigate"]
FLAGS = ("-m", "--multirun")


class Command(NamedTuple):
    """A command of a page, without its comment."""

    page: str
    line: int
    text: str
    place: Path  # the folder it is given in


class Row(NamedTuple):
    """What commands.csv says of all commands that begin so and with no longer beginning of the file."""

    begins: str
    test: str  # a file of this folder that runs such a command
    absent: str  # what tests have not


def commands() -> Iterator[Command]:
    """Those in blocks without a language, in their order."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8").replace("\\\n", "  ")
        place, language, begun = ROOT, "", False
        for number, line in enumerate(text.splitlines(), start=1):
            if line.startswith("```"):
                begun, language, place = not begun, line[3:].strip(), ROOT
            elif begun and language in ("", "sh") and SHELL.match(line):
                yield Command(page.name, number, shown(line), place)
                if line.startswith("cd "):
                    place = ROOT / line.split()[1]


def shown(line: str) -> str:
    """A line of a block without its comment and with single blanks."""
    return " ".join(re.sub(r"\s#\s.*", "", line).split())


@cache
def rows() -> list[Row]:
    with (Path(__file__).parent / "commands.csv").open(encoding="utf-8") as lines:
        return [Row(**row) for row in csv.DictReader(lines)]


def row_of(text: str) -> Row | None:
    return next((row for row in rows() if text.startswith(row.begins)), None)


def composed(arguments: list[str], place: Path) -> list[dict[str, Any]]:
    """The configurations of the first and the last job that a command would start, as plain settings."""
    named = [word for before, word in pairwise(arguments) if before == "--config-dir"]
    folders = [str(place / folder) for folder in named]
    overrides = [readable(word) for word in arguments if word not in named and not word.startswith("-")]
    parsed = OverridesParser.create().parse_overrides(overrides)
    searches = any(word.startswith("hydra/sweeper") for word in overrides)  # which chooses values itself
    several = searches or any(part.is_sweep_override() for part in parsed)
    assert any(word in FLAGS for word in arguments) == several, "several jobs need -m, and -m several jobs"
    found = []
    for end in (0, -1):
        job = [
            f"{part.get_key_element()}={list(part.sweep_string_iterator())[end]}" if part.is_sweep_override() else text
            for part, text in zip(parsed, overrides, strict=True)
        ]
        if job not in [known for known, _ in found]:
            found.append((job, _compose(job, folders)))
    return [config for _, config in found]


def _compose(overrides: list[str], folders: list[str]) -> dict[str, Any]:
    path = [f"hydra.searchpath=[{','.join(f'file://{folder}' for folder in folders)}]"] if folders else []
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        config = compose("config", [*overrides, *path])
    written: Any = OmegaConf.to_container(config, resolve=False)
    assert list(left_open(written)) == [], overrides
    OmegaConf.set_struct(config, False)
    for key, value in with_lists(written).items():
        OmegaConf.update(config, key, value)
    plain: Any = OmegaConf.to_container(config, resolve=True)
    return plain


def compose_and_check(arguments: list[str], place: Path) -> None:
    for config in composed(arguments, place):
        check(config)


def after_module(text: str) -> list[str] | None:
    """The arguments of a command that starts mitigate; None for another."""
    words = shlex.split(text)
    if "<" in words:
        words = words[: words.index("<")]
    if words[0] == "mitigate":
        return words[1:]
    places = [place for place in range(len(words)) if words[place : place + 3] == MODULE]
    return words[places[0] + 3 :] if places else None


OURS = {command.text: command for command in commands() if after_module(command.text) is not None}


def test_pages_have_commands() -> None:
    assert len(OURS) > 80
    assert {"README.md", "run.md", "ask.md", "kge.md", "compare.md"} <= {command.page for command in commands()}


@pytest.mark.parametrize("text", OURS)
def test_a_command_is_composed(text: str) -> None:
    compose_and_check(after_module(text) or [], OURS[text].place)


def test_each_command_has_its_test_or_its_reason() -> None:
    lacking = [f"{command.page}:{command.line}: {command.text}" for command in commands() if not row_of(command.text)]
    assert lacking == []
    for row in rows():
        assert row.test or row.absent, row.begins
        assert not row.test or (ROOT / "tests" / row.test).is_file(), row.begins


def test_no_row_is_without_a_command() -> None:
    used = {row_of(command.text) for command in commands()}
    assert [row.begins for row in rows() if row not in used] == []
