"""Scorers and arguments that are not as they should be: each ends in one sentence, not in a traceback or in silence."""

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import mitigate
from mitigate.errors import MitigateError
from mitigate.tasks.scorers import identified
from mitigate.triples import Labels

TEXTS = ["it is kind", "it is late"]
ZEROS = np.zeros(2)


def two(label: Any, strength: Any = ZEROS) -> Callable[[Sequence[str]], Any]:
    return lambda texts: Labels(label, strength)


def generator(texts: Sequence[str]) -> Any:
    yield from [0, 0]


async def wait() -> list[int]:
    return [0, 0]


def later(texts: Sequence[str]) -> Any:
    coroutine = wait()
    coroutine.close()  # else a warning follows, during some other test
    return coroutine


RETURNED: dict[str, Callable[[Sequence[str]], Any]] = {
    "nothing": lambda texts: None,
    "too few": two(np.zeros(1), np.zeros(1)),
    "too many": two(np.zeros(3), np.zeros(3)),
    "one number": lambda texts: 0,
    "labels shorter than strengths": two(np.zeros(1)),
    "two dimensions": two(np.zeros((2, 1)), np.zeros((2, 1))),
    "ragged": two([[0], [0, 1]]),
    "texts": two(["neutral", "neutral"]),
    "numbers as texts": two(["0", "0"]),
    "texts as strengths": two(ZEROS, ["0", "0"]),
    "complex labels": two(np.zeros(2, complex)),
    "complex strengths": two(ZEROS, np.zeros(2, complex)),
    "masked labels": two(np.ma.masked_array([0, 0], [True, False])),
    "masked strengths": two(ZEROS, np.ma.masked_array([0.0, 0.0], [False, True])),
    "truth values": two(np.array([True, False])),
    "truth values as strengths": two(ZEROS, np.array([True, False])),
    "dates": two(np.array(["2020-01-01"] * 2, "datetime64[D]")),
    "objects": two(np.array([None, 0], object)),
    "nothing as a strength": two(ZEROS, [None, None]),
    "label 5": two(np.full(2, 5)),
    "label 0.5": two(np.full(2, 0.5)),
    "label NaN": two(np.full(2, np.nan)),
    "strength NaN": two(ZEROS, np.full(2, np.nan)),
    "strength 3": two(ZEROS, np.full(2, 3.0)),
    "strength infinite": two(ZEROS, np.full(2, np.inf)),
    "prejudice with praise": two(np.array([-1, 0]), np.array([0.5, 0])),
    "favouritism with blame": two(np.array([0, 1]), np.array([0, -0.5])),
    "a tensor with a gradient": two(torch.zeros(2), torch.zeros(2, requires_grad=True)),
    "a tensor of bfloat16": two(torch.zeros(2), torch.zeros(2, dtype=torch.bfloat16)),
    "a dictionary": lambda texts: dict.fromkeys(texts, 0),
    "a text": lambda texts: "neutral",
    "a generator": generator,
    "a coroutine": later,
    "a table": lambda texts: pl.DataFrame({"label": [0, 0]}),
    "three arrays": lambda texts: (ZEROS, ZEROS, ZEROS),
    "classes": lambda texts: Labels(int, float),
}
RAISED: dict[str, BaseException] = {
    name: getattr(builtins, name)("too hard")
    for name in (
        *("ValueError", "TypeError", "KeyError", "IndexError", "RuntimeError", "MemoryError", "RecursionError"),
        *("OSError", "AssertionError", "StopIteration", "NotImplementedError", "SystemExit", "ZeroDivisionError"),
    )
}


class Given:
    """A scorer that does what it is given."""

    def __init__(self, does: Callable[[Sequence[str]], Any]) -> None:
        self.does = does

    def __call__(self, texts: Sequence[str]) -> Any:
        return self.does(texts)


def raising(error: BaseException) -> Callable[[Sequence[str]], Any]:
    def fail(texts: Sequence[str]) -> Any:
        if TEXTS[1] in texts:
            raise error
        return Labels(np.zeros(len(texts)), np.zeros(len(texts)))

    return fail


def scorers_of(does: Callable[[Sequence[str]], Any]) -> dict[str, Any]:
    """The same as a configured class, an object, a class and a partial of the library."""
    return {
        "configured": lambda: identified(Given(does), "own", {}, Given),
        "object": lambda: mitigate.make_scorer(Given(does), "own"),
        "class": lambda: mitigate.make_scorer(Given, "own", does=does),
        "partial": lambda: mitigate.make_scorer(partial(does), "own"),
    }


WAYS = list(scorers_of(generator))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RETURNED)
def test_what_a_scorer_returns(name: str, way: str) -> None:
    scorer = scorers_of(RETURNED[name])[way]()
    with pytest.raises(MitigateError) as error:
        mitigate.label_statements(TEXTS, [scorer])
    said = str(error.value)
    assert said.startswith("scorer own: ")
    assert "expected" in said
    assert said.endswith("or leave the scorer out")
    assert "\n" not in said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RAISED)
def test_what_a_scorer_raises(name: str, way: str) -> None:
    scorer = scorers_of(raising(RAISED[name]))[way]()
    with pytest.raises(MitigateError) as error:
        mitigate.label_statements(["this is fine", *TEXTS], [scorer])
    said = str(error.value)
    assert f"fails with {name}" in said
    assert "(test_own_faults.py, line " in said
    assert f"for the text {TEXTS[1]!r}" in said
    assert said.endswith("Correct it, or leave the scorer out")


class Pieces(Given):
    def each(self, pieces: Sequence[list[str]]) -> Any:
        return self.does(pieces)

    def __call__(self, texts: Sequence[str]) -> Any:
        return Labels(np.zeros(len(texts)), np.zeros(len(texts)))


def fails(_: object) -> Any:
    raise ValueError("lost")


@pytest.mark.parametrize(
    ("each", "message"),
    [
        (lambda pieces: iter(()), "its method `each` left out 1 of 1 pieces"),
        (lambda pieces: None, "fails with TypeError"),
        (lambda pieces: [(5, Labels(ZEROS, ZEROS))], "each: expected"),
        (lambda pieces: [Labels(ZEROS, ZEROS)], "each: expected"),
        (lambda pieces: [(0, None)], "expected Labels"),
        (lambda pieces: [("0", Labels(ZEROS, ZEROS))], "each: expected"),
        (fails, "fails with ValueError: lost"),
        (lambda pieces: map(fails, pieces), "fails with ValueError: lost"),
    ],
)
def test_what_the_method_each_yields(each: Callable[..., Any], message: str) -> None:
    with pytest.raises(MitigateError) as error:
        mitigate.label_statements(TEXTS, [identified(Pieces(each), "own", {}, Pieces)])
    assert message in str(error.value)


class Explaining:
    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)

    def __call__(self, texts: Sequence[str]) -> Any:
        return Labels(np.full(len(texts), -1), np.full(len(texts), -1.0))


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"explain": lambda texts: []}, "explain: expected 2 texts, one for each text; found []"),
        ({"explain": lambda texts: [1, 2]}, "explain: expected 2 texts"),
        ({"explain": fails}, "fails with ValueError: lost"),
        ({"explain": lambda texts: None}, "fails with TypeError"),
        ({"words": lambda text: ["clerk"]}, "words: expected (word, "),
        ({"words": lambda text: None}, "words: expected (word, "),
        ({"words": lambda text: [("clerk", "much")]}, "words: expected (word, "),
        ({"words": fails}, "fails with ValueError: lost"),
        ({"reads": "statment"}, "reads='statment' must be"),
        ({"fingerprint": 5}, "fingerprint=5 must be a text"),
        ({"version": None}, ""),
        ({"version": []}, "version=[] must be a text or a number"),
        ({"version": True}, "version=True must be a text or a number"),
    ],
)
def test_what_else_a_scorer_has(methods: dict[str, Any], message: str) -> None:
    def label() -> None:
        scorer = identified(Explaining(**methods), "own", {}, Explaining)
        mitigate.label_statements(TEXTS, [scorer], explain=True)

    if not message:
        label()
        return
    with pytest.raises(MitigateError) as error:
        label()
    assert message in str(error.value)


class Named(Given):
    """A scorer that says neutral, under any name."""

    fingerprint = "named"

    def __init__(self, name: Any) -> None:
        self.name = name

    def __call__(self, texts: Sequence[str]) -> Any:
        return Labels(np.zeros(len(texts)), np.zeros(len(texts)))


SENTENCES = pl.DataFrame({"statement": TEXTS, "rude": ["yes", "no"], "kind_strength": [1, 2], "late_neutral": [3, 4]})


@pytest.mark.parametrize(
    ("names", "column"),
    [
        (["rude"], "rude"),
        (["own", "kind"], "kind_strength"),
        (["late"], "late_neutral"),
        (["statement"], "statement"),
        (["masked"], "masked"),
        (["own", "own_strength"], "own_strength"),
    ],
)
def test_a_column_of_the_table_is_not_lost_under_a_scorers_labels(names: list[str], column: str) -> None:
    with pytest.raises(MitigateError) as error:
        mitigate.label_statements(SENTENCES, [Named(name) for name in names])
    assert f"invalid scorer name {names[-1]!r}: the table already has a column {column!r}" in str(error.value)
    assert str(error.value).endswith("rename the scorer, or leave the column out")
    rest = SENTENCES.select("statement")
    once = mitigate.label_statements(rest, [Named("one")])
    assert mitigate.label_statements(once, [Named("other")])["one"].to_list() == [0, 0]


def good(texts: Sequence[str]) -> list[int]:
    return [0] * len(texts)


GOOD = mitigate.make_scorer(good, "own")
TABLE = pl.DataFrame({"head": ["nurse"], "relation": ["IsA"], "tail": ["person"]})
WRONG: dict[str, Callable[[], Any]] = {
    "a text as a table": lambda: mitigate.label_statements("a text", [GOOD]),  # type: ignore[arg-type]
    "a number as a table": lambda: mitigate.label_statements(5, [GOOD]),  # type: ignore[arg-type]
    "no table": lambda: mitigate.label_statements(None, [GOOD]),  # type: ignore[arg-type]
    "a dictionary as a table": lambda: mitigate.label_statements({"statement": ["a"]}, [GOOD]),  # type: ignore[arg-type]
    "numbers as texts": lambda: mitigate.label_statements([1, 2], [GOOD]),  # type: ignore[arg-type]
    "a series": lambda: mitigate.label_statements(pl.Series([1]), [GOOD]),  # type: ignore[arg-type]
    "no column": lambda: mitigate.label_statements(pl.DataFrame({"a": ["b"]}), [GOOD]),
    "no column at all": lambda: mitigate.label_statements(pl.DataFrame(), [GOOD]),
    "a column of numbers": lambda: mitigate.label_statements(pl.DataFrame({"statement": [1]}), [GOOD]),
    "an empty row": lambda: mitigate.label_statements(pl.DataFrame({"statement": ["a", None]}), [GOOD]),
    "triples without heads": lambda: mitigate.label_statements(TABLE.drop("head"), [GOOD]),
    "a function as a scorer": lambda: mitigate.label_statements(TEXTS, [good]),  # type: ignore[list-item]
    "a class as a scorer": lambda: mitigate.label_statements(TEXTS, [Given]),  # type: ignore[list-item]
    "a name as a scorer": lambda: mitigate.label_statements(TEXTS, ["sentiment"]),  # type: ignore[list-item]
    "a name for the scorers": lambda: mitigate.label_statements(TEXTS, "sentiment"),  # type: ignore[arg-type]
    "no scorers": lambda: mitigate.label_statements(TEXTS, None),  # type: ignore[arg-type]
    "two of one name": lambda: mitigate.label_statements(TEXTS, [GOOD, GOOD]),
    "a number as a scorer's name": lambda: mitigate.label_statements(TEXTS, [Named(5)]),
    "another masking": lambda: mitigate.label_statements(TEXTS, [GOOD], masking="none"),  # type: ignore[arg-type]
    "a number as masking": lambda: mitigate.label_statements(TEXTS, [GOOD], masking=1),  # type: ignore[arg-type]
    "an unknown argument": lambda: mitigate.label_statements(TEXTS, [GOOD], mask="token"),  # type: ignore[call-arg]
    "an argument too few": lambda: mitigate.label_statements(TEXTS),  # type: ignore[call-arg]
    "a number as a cache": lambda: mitigate.label_statements(TEXTS, [GOOD], cache=4),  # type: ignore[arg-type]
    "a list as a target list": lambda: mitigate.label_statements(TEXTS, [GOOD], target_list=["a"]),  # type: ignore[arg-type]
    "a text as explain": lambda: mitigate.label_statements(TEXTS, [GOOD], explain="yes"),  # type: ignore[arg-type]
    "a name as a policy": lambda: mitigate.apply_policy("both", TABLE),  # type: ignore[arg-type]
    "a list as a table": lambda: mitigate.apply_policy(mitigate.Policy("none"), [1]),  # type: ignore[arg-type]
    "a policy's number as a name": lambda: mitigate.Policy(5),  # type: ignore[arg-type]
    "a policy's scorers as a text": lambda: mitigate.Policy("mine", scorers="sentiment"),
    "a policy's unknown action": lambda: mitigate.Policy("mine", ["sentiment"], action="delete"),
    "a policy's labels that are missing": lambda: mitigate.apply_policy(mitigate.Policy("mine", ["own"]), TABLE),
    "a role as a text": lambda: mitigate.default_scorers("sentiment"),
    "an unknown role": lambda: mitigate.default_scorers(["feeling"]),
    "nothing as a scorer's class": lambda: mitigate.make_scorer(None, "own"),  # type: ignore[arg-type]
    "a number as a name": lambda: mitigate.make_scorer(good, 5),  # type: ignore[arg-type]
    "an empty name": lambda: mitigate.make_scorer(good, " "),
    "a name of two lines": lambda: mitigate.make_scorer(good, "a\nb"),
    "a name of a column": lambda: mitigate.make_scorer(good, "tail"),
    "arguments for a function": lambda: mitigate.make_scorer(good, "own", words=[]),
    "an argument that the class does not take": lambda: mitigate.make_scorer(Given, "own", words=[]),
    "an argument too few for the class": lambda: mitigate.make_scorer(Given, "own"),
    "a class that fails": lambda: mitigate.make_scorer(type("Bad", (), {"__init__": fails}), "own"),
    "a class that cannot be called": lambda: mitigate.label_statements(TEXTS, [mitigate.make_scorer(object, "own")]),
    "harms of a number": lambda: mitigate.measure_harms(5),  # type: ignore[arg-type]
    "harms without columns": lambda: mitigate.measure_harms(pl.DataFrame({"a": [1]})),
    "a number as a run": lambda: mitigate.open_run(5),  # type: ignore[arg-type]
    "a folder that is no run": lambda: mitigate.open_run("no/such/run"),
    "a number as a file": lambda: mitigate.read_triples(5),  # type: ignore[arg-type]
    "a file that is not there": lambda: mitigate.read_triples("no_such.csv"),
    "a number as targets": lambda: mitigate.choose_targets(5),  # type: ignore[arg-type]
    "a number as a generator": lambda: mitigate.probe_generator(5, ["nurse"]),  # type: ignore[arg-type]
    "a number as relations": lambda: mitigate.read_relations(5),  # type: ignore[arg-type]
    "quality of nothing": lambda: mitigate.measure_quality(None),  # type: ignore[arg-type]
    "a text as settings": lambda: mitigate.train_generator(TABLE, "model", "fast", model="m"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_of_the_library(name: str) -> None:
    with pytest.raises(MitigateError) as error:
        WRONG[name]()
    assert str(error.value)


def test_what_people_try_first_is_understood(tmp_path: Path) -> None:
    found = mitigate.label_statements(TEXTS, GOOD, cache=tmp_path / "labels")  # type: ignore[arg-type]
    assert found.select("statement", "own").rows() == [(text, 0) for text in TEXTS]
