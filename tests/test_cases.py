"""Files as people have them, after public reports: their outcome (the inputs lie outside the repository)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_load import whole

from mitigate.errors import MitigateError
from mitigate.load import conceptnet, graph, statements, triples
from mitigate.load.corpus import corpus_of
from mitigate.load.ratings import read_answers
from mitigate.load.targets import about_targets, sentences_about_targets
from mitigate.measure.statements import long_texts
from mitigate.words.ambiguous import share
from mitigate.words.english import not_english
from mitigate.words.targets import choose_targets

CASES = Path(__file__).parents[2] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
TRIPLE = ["head", "relation", "tail"]
ALL = choose_targets("all")


def tails_of(load: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda path: whole(load(path))[0].select(TRIPLE).rows()


def texts_of(load: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda path: whole(load(path))[0]["statement"].to_list()


def labelled(path: str, labels: dict[Any, str] | None = None) -> list[int]:
    return statements.load(path, label_column="label", labels=labels).rows["label"].to_list()


def of_targets(path: str) -> dict[str, int]:
    """The terms that sentences of GenericsKB are about."""
    rows = whole(statements.genericskb(path))[0]
    return dict(sentences_about_targets(rows, ALL, "exact")["target"].value_counts().sort("target").iter_rows())


def senses(path: str) -> list[tuple[str, str]]:
    rows = whole(conceptnet.dump(path))[0]
    return about_targets(rows, ALL, "exact").select("target", "tail").rows()


def homographs(path: str) -> list[str]:
    rows = whole(statements.sentences(path))[0]
    found = sentences_about_targets(rows, ALL, "contains").filter(pl.col("target") != "jordan")
    ambiguous = share(found["target"].value_counts(name="statements"))[1]["target"]
    return found.filter(~pl.col("target").is_in(ambiguous.implode()))["target"].to_list()


def atomic(path: str) -> tuple[dict[str, int], list[str]]:
    rows, notices = whole(triples.atomic(path))
    return dict(rows["split"].value_counts().sort("split").iter_rows()), notices


def dev_part(path: str) -> set[str]:
    return set(corpus_of(triples.load(path), holdout=0.5, only_in_data=True).triples["split"])


NURSES, EXPLAINS = "Nurses work in hospitals.", ("teacher", "CapableOf", "explain rules")
COLUMN = partial(statements.sentences, columns={"statement": "generation"})
MEANT = {0: "prejudice", 1: "neutral", 2: "favouritism"}
OUTCOMES: list[tuple[str, Callable[[str], Any], Any]] = [
    ("kogito_custom.jsonl", tails_of(triples.generations), EXPLAINS),
    ("genericskb_lines.jsonl", of_targets, {"nurse": 1}),
    ("genericskb_lines.jsonl", texts_of(statements.genericskb), [NURSES, "Trees have roots."]),
    ("genericskb_hub.tsv", of_targets, {"lawyer": 1, "nurse": 1}),
    ("quoted.tsv", tails_of(triples.load), ("lawyer", "CapableOf", 'win the "big" case')),
    ("quoted.tsv", tails_of(triples.load), ("nurse", "Desires", "help people")),
    ("quoted_texts.tsv", texts_of(statements.load_texts), 'He said "no" to the nurse'),
    ("cskg.tsv", tails_of(partial(triples.load, on_bad_line="skip")), ("lawyer", "CapableOf", "win case")),
    ("generations_open.jsonl", texts_of(COLUMN), "Left-leaning parties support more schools."),
    ("array.json", tails_of(triples.load), [("nurse", "CapableOf", "help"), ("lawyer", "CapableOf", "argue")]),
    ("bad_types.jsonl", tails_of(partial(triples.load, on_bad_line="skip")), [("nurse", "CapableOf", "help")]),
    ("turn4/class_labels.csv", partial(labelled, labels=MEANT), [-1, 0, 1, -1, 0, 1]),
    ("turn4/senses.csv", senses, [("china", "fragile"), ("turkey", "middle east")]),
    ("turn4/homographs.txt", homographs, ["he", "her", "chef"]),
    ("turn4/no_dev.csv", dev_part, {"train", "dev", "test"}),
    ("small_graph.tsv", lambda path: len(graph.load(path).train) > 50, True),
]


@pytest.mark.parametrize(("name", "read", "expected"), OUTCOMES)
def test_a_file_is_read(name: str, read: Callable[[str], Any], expected: Any) -> None:
    found = read(str(CASES / name))
    assert found == expected or (isinstance(found, list) and expected in found), found


REFUSED: list[tuple[str, Callable[[str], Any], str]] = [
    ("generations_open.jsonl", statements.sentences, "name the column of the texts: 'data.columns={statement: NAME}'"),
    ("bad_types.jsonl", lambda path: triples.load(path).rows, ":4: not JSON(.|\n)*:5: not an object(.|\n)*:6: a blank"),
    ("turn4/class_labels.csv", labelled, "data.labels={0: prejudice, 1: neutral, 2: favouritism}"),
    ("turn4/cp1252.csv", triples.load, "the file seems to be in CP1252. Convert it: .* iconv -f CP1252 -t UTF-8"),
    ("openke", graph.load, "."),  # not read, in a sentence
    ("turn4/labelstudio.csv", lambda path: read_answers([Path(path)], ["101", "102", "103"], 1), ":5: no label"),
]


@pytest.mark.parametrize(("name", "read", "message"), REFUSED)
def test_a_file_is_refused_with_what_to_do(name: str, read: Callable[[str], Any], message: str) -> None:
    with pytest.raises(MitigateError, match=message.replace("{", r"\{")):
        read(str(CASES / name))


def test_what_is_left_out_is_counted_and_oddities_are_announced() -> None:
    splits, notices = atomic(str(CASES / "atomic2019.csv"))
    assert set(splits) <= {"train", "dev", "test"}
    assert any("the tail is 'none'" in notice for notice in notices)
    assert any("an empty list of tails" in notice for notice in notices)
    _, notices = whole(triples.generations(str(CASES / "kogito_custom.jsonl")))
    for part in ("nothing was generated: null or an empty list", "whose relation has no phrase: xWant2 1"):
        assert any(part in notice for notice in notices)
    assert not_english(statements.load_texts(str(CASES / "turn4/languages.txt")).rows["statement"])
    assert long_texts(statements.load_texts(str(CASES / "long_balanced.txt")).rows["statement"])
