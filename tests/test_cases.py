"""Files as people have them, after public reports: their outcome (the inputs lie outside the repository)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_load import whole

from mitigate.errors import MitigateError
from mitigate.load import conceptnet, graph, statements, triples
from mitigate.load.ratings import read_answers
from mitigate.load.targets import about_targets
from mitigate.words.targets import choose_targets

CASES = Path(__file__).parents[2] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
LENIENT = partial(triples.load, on_bad_line="skip")
TRIPLE = "head relation tail"


def senses(path: str) -> list[tuple[str, str]]:
    rows = whole(conceptnet.dump(path))[0]
    return about_targets(rows, choose_targets("all"), "exact").select("target", "tail").rows()


@pytest.mark.parametrize(
    ("name", "load", "columns", "expected"),
    [
        ("kogito_custom.jsonl", triples.generations, TRIPLE, ("teacher", "CapableOf", "explain rules")),
        ("genericskb_lines.jsonl", statements.genericskb, "statement", ("Nurses work in hospitals.",)),
        ("genericskb_hub.tsv", statements.genericskb, "term", ("lawyer",)),
        ("quoted.tsv", triples.load, TRIPLE, ("lawyer", "CapableOf", 'win the "big" case')),
        ("quoted_texts.tsv", statements.load_texts, "statement", ('He said "no" to the nurse',)),
        ("cskg.tsv", LENIENT, TRIPLE, ("lawyer", "CapableOf", "win case")),
        ("array.json", triples.load, TRIPLE, ("lawyer", "CapableOf", "argue")),
        ("bad_types.jsonl", LENIENT, TRIPLE, ("nurse", "CapableOf", "help")),
        ("atomic2019.csv", triples.atomic, "split", ("train",)),
    ],
)
def test_a_file_is_read(name: str, load: Callable[[str], Any], columns: str, expected: tuple) -> None:
    assert expected in whole(load(str(CASES / name)))[0].select(columns.split()).rows()


def test_other_files_are_read() -> None:
    assert senses(str(CASES / "turn4/senses.csv")) == [("china", "fragile"), ("turkey", "middle east")]
    assert len(graph.load(str(CASES / "small_graph.tsv")).train) > 50


REFUSED: list[tuple[str, Callable[[str], Any], str]] = [
    ("generations_open.jsonl", statements.sentences, "name the column of the texts: 'data.columns={statement: NAME}'"),
    ("bad_types.jsonl", lambda path: triples.load(path).rows, ":4: not JSON(.|\n)*:5: not an object(.|\n)*:6: a blank"),
    ("turn4/class_labels.csv", partial(statements.load, label_column="label"), "data.labels={0: prejudice, 1: neutral"),
    ("turn4/cp1252.csv", triples.load, "the file seems to be in CP1252. Convert it: .* iconv -f CP1252 -t UTF-8"),
    ("openke", graph.load, "."),  # not read, in a sentence
    ("turn4/labelstudio.csv", lambda path: read_answers([Path(path)], ["101", "102", "103"], 1), ":5: no label"),
]


@pytest.mark.parametrize(("name", "read", "message"), REFUSED)
def test_a_file_is_refused_with_what_to_do(name: str, read: Callable[[str], Any], message: str) -> None:
    with pytest.raises(MitigateError, match=message.replace("{", r"\{")):
        read(str(CASES / name))
