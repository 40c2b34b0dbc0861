"""Scorers and arguments that are not as they should be: each ends in one sentence, not in a traceback or in silence."""

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import mitigate
from mitigate.errors import MitigateError
from mitigate.score.base import identified
from mitigate.score.labeller import label_statements
from mitigate.triples import Labels

TEXTS = ["it is kind", "it is late"]
ZEROS = np.zeros(2)


def two(label: Any, strength: Any = ZEROS) -> Callable[[Sequence[str]], Any]:
    return lambda texts: Labels(label, strength)


def generator(texts: Sequence[str]) -> Any:
    yield from [0, 0]


RETURNED: dict[str, Callable[[Sequence[str]], Any]] = {
    "nothing": lambda texts: None,
    "too few": two(np.zeros(1), np.zeros(1)),
    "texts": two(["neutral", "neutral"]),
    "label 5": two(np.full(2, 5)),
    "strength NaN": two(ZEROS, np.full(2, np.nan)),
    "prejudice with praise": two(np.array([-1, 0]), np.array([0.5, 0])),
    "a tensor with a gradient": two(torch.zeros(2), torch.zeros(2, requires_grad=True)),
    "a generator": generator,
}
RAISED: dict[str, BaseException] = {
    name: getattr(builtins, name)("too hard") for name in ("ValueError", "MemoryError", "StopIteration", "SystemExit")
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
    """The same as a configured class, an object and a partial of the library."""
    return {
        "configured": lambda: identified(Given(does), "own", {}, Given),
        "object": lambda: mitigate.make_scorer(Given(does), "own"),
        "partial": lambda: mitigate.make_scorer(partial(does), "own"),
    }


WAYS = list(scorers_of(generator))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RETURNED)
def test_what_a_scorer_returns(name: str, way: str) -> None:
    scorer = scorers_of(RETURNED[name])[way]()
    with pytest.raises(MitigateError) as error:
        label_statements(pl.DataFrame({"statement": TEXTS}), [scorer])
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
        label_statements(pl.DataFrame({"statement": ["this is fine", *TEXTS]}), [scorer])
    said = str(error.value)
    assert f"fails with {name}" in said
    assert "(test_own_faults.py, line " in said
    assert "for 3 texts, the first 'this is fine'" in said
    assert said.endswith("Correct it, or leave the scorer out")
