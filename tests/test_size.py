"""How large the project is. The bounds only fall."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOUND = 25_850  # lines of Python in mitigate/ and models/, and of templates
TESTS = 16_590  # lines of Python in tests/
TABLES = 4_480  # lines of CSV, JS, CSS and YAML in mitigate/ and conf/, the samples apart
WIDTH = 52  # characters of a line, on average
SOURCES = ("mitigate/*.py", "models/*.py", "mitigate/*.jinja")
OTHERS = [f"{folder}/*.{kind}" for folder in ("mitigate", "conf") for kind in ("csv", "js", "css", "yaml")]
SAMPLES = ":!mitigate/data/sample"


@cache
def text_of(*patterns: str) -> str:
    """All that Git has under these patterns, one file after the other."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs Git and a checkout: sizes are those of the files that Git has")
    files = [ROOT / name for name in listed.stdout.splitlines()]
    return "".join(path.read_text(encoding="utf-8") for path in files if path.is_file())


def test_the_code_stays_below_its_bound() -> None:
    assert 0 < text_of(*SOURCES).count("\n") <= BOUND


def test_the_tests_stay_below_their_bound() -> None:
    assert 0 < text_of("tests/*.py").count("\n") <= TESTS


def test_lines_do_not_grow_wider_in_place_of_longer() -> None:
    assert len(text_of(*SOURCES)) <= WIDTH * BOUND


def test_tables_and_settings_take_no_code_in() -> None:
    assert 0 < text_of(*OTHERS, SAMPLES).count("\n") <= TABLES
