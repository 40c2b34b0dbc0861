"""Prompts of a user's own: slots, the forms of files, faults by line, and targets."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.studies.stories import fill, prompts_of_file, read_prompts
from mitigate.words.targets import choose_targets


def written(folder: Path, content: Any, name: str = "prompts.csv") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("template", "target", "text"),
    [
        ("{Target} read a book.", "deaf woman", "Deaf woman read a book."),
        ("{A target} met {a target}.", "old man", "An old man met an old man."),
        ("the {target} was late", "german", "the german was late"),
    ],
)
def test_slots_are_filled(template: str, target: str, text: str) -> None:
    assert fill(template, target) == text


def test_a_file_of_ones_own_as_csv_and_as_json_lines(tmp_path: Path) -> None:
    content = (
        "id,prompt,group,category\n"
        'a,"Deaf people, at work:",Deaf_people,disability\n'
        "a,Blind people at work:,blind people,disability\n"
        ",Tell me about a nurse.,nurse,\n"
        ",{Target} went home.,,\n"
    )
    rows, _ = read_prompts(written(tmp_path, content))
    expected = [
        ("deaf people", "disability", "a", "Deaf people, at work:"),
        ("blind people", "disability", "a", "Blind people at work:"),
        ("nurse", "profession", None, "Tell me about a nurse."),
        (None, "own", "{Target} went home.", "{Target} went home."),
    ]
    assert rows.drop("row").rows() == expected
    assert rows["row"].to_list() == [2, 3, 4, 5]
    names = ("target", "category", "template", "prompt")
    lines = [json.dumps({name: value for name, value in zip(names, row, strict=False) if value}) for row in expected]
    assert read_prompts(written(tmp_path, "\n".join(lines), "p.jsonl"))[0].drop("row").rows() == expected


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("prompt,target\n ,nurse\n", "p.csv", r"p.csv:2: a blank prompt"),
        ("prompt,target\nHello.,\n", "p.csv", r"p.csv:2: no target: name one in a column target, .*: 'Hello.'"),
        ("prompt,target\na {tagret} b,nurse\n", "p.csv", r"p.csv:2: unknown slot '\{tagret\}'; allowed: \{target\}, "),
        ("prompt,target,category\na,b,c\na,b,d\n", "p.csv", r"p.csv:3: the target 'b' has the category 'd', and 'c'"),
        ("text,about\na,b\n", "p.csv", r"has no column prompt; .*; expected columns prompt, target \(or group\)"),
        ("prompt,target\n", "p.csv", r"has no prompts; expected columns prompt"),
        ("prompt,target\na,b,c\n", "p.csv", r"p.csv:2: 3 columns, expected 2"),
        ('{"prompt": "a", "target": "b"}\n{"prompt": "a"', "p.jsonl", r"p.jsonl:2: not JSON"),
    ],
)
def test_broken_files(tmp_path: Path, content: Any, name: str, message: str) -> None:
    path = written(tmp_path, content, name)
    refuses(MitigateError, message, read_prompts, path)


def rows_of(folder: Path) -> pl.DataFrame:
    about = "Tell me about a carer.,carer,work\nTell me about a nurse.,nurse,\n"
    return read_prompts(written(folder, f"prompt,target,category\n{about}{{Target}} went home.,,\n"))[0]


def test_targets_of_a_file_and_those_that_are_chosen(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    own = ["carer", "old woman"]
    found, chosen, notices = prompts_of_file(rows, own, partial(choose_targets, own))
    assert found.select("row", "target", "category", "kind", "template", "prompt").rows() == [
        (1, "carer", "work", "own prompts", None, "Tell me about a carer."),
        (2, "carer", "work", "own prompts", "{Target} went home.", "Carer went home."),
        (3, "old woman", "own", "own prompts", "{Target} went home.", "Old woman went home."),
    ]
    assert chosen["target"].to_list() == own
    assert notices == ["1 row left out, about none of the 2 targets"]
    _, chosen, _ = prompts_of_file(rows, "all", partial(choose_targets, "all"))
    assert chosen.height == 330
