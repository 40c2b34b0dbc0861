"""Own code besides configured scorers: pairs of different scorers in the library never share labels; policies, stages
and loaders of a user's own are computed anew after each change."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from omegaconf import OmegaConf

import mitigate
from mitigate.filter import apply_policy
from mitigate.recipes.instantiate import build, named, watch_modules
from mitigate.runs import fingerprints
from mitigate.runs.store import Run

TEXTS = ["it is rude", "it is lazy"]
WORD = "rude"


def by_word(texts: Sequence[str], word: str = "rude") -> list[int]:
    return [-int(word in text) for text in texts]


def by_global(texts: Sequence[str]) -> list[int]:
    return [-int(WORD in text) for text in texts]


def closure(word: str) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: [-int(word in text) for text in texts]


class Has:
    """A scorer by what it is given."""

    word = "rude"

    def __init__(self, given: Any = None) -> None:
        self.given = given

    def __call__(self, texts: Sequence[str]) -> mitigate.Labels:
        import numpy as np

        given = self.given
        word = given(self) if callable(given) else given["word"] if isinstance(given, dict) else given or self.word
        found = np.array(by_word(texts, word), dtype=np.int8)
        return mitigate.Labels(found, found.astype(np.float32))

    def label(self, texts: Sequence[str]) -> list[int]:
        return by_word(texts, self.given)


def class_of(word: str, version: str | None = None) -> type:
    class Made(Has):
        pass

    Made.word = word
    if version:
        Made.version = version  # type: ignore[attr-defined]
    return Made


def changing(target: Any, attribute: str, value: Any) -> Callable[[], Any]:
    def change() -> Any:
        setattr(target, attribute, value)
        return target

    return change


def redefined(word: str) -> Any:
    """A class of a notebook's cell."""
    space: dict[str, Any] = {"Has": Has, "__name__": "__main__"}
    exec(f"class Cell(Has):\n    word = {word!r}\n", space)
    return space["Cell"]


def version(thing: Any, value: str = "1") -> Any:
    thing.version = value
    return thing


class Versioned(Has):
    version = "1"


PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "partials": (lambda: partial(by_word, word="rude"), lambda: partial(by_word, word="lazy")),
    "closures": (lambda: closure("rude"), lambda: closure("lazy")),
    "lambdas": (lambda: lambda t: by_word(t, "rude"), lambda: lambda t: by_word(t, "lazy")),
    "closures as attributes": (lambda: Has(lambda self, w="rude": w), lambda: Has(lambda self, w="lazy": w)),
    "classes made in a function": (lambda: class_of("rude"), lambda: class_of("lazy")),
    "such with one version": (lambda: class_of("rude", "1"), lambda: class_of("lazy", "1")),
    "a class that is redefined": (lambda: redefined("rude"), lambda: redefined("lazy")),
    "a global": (lambda: by_global, changing(sys.modules[__name__], "WORD", "lazy")),
    "a default": (lambda: by_word, changing(by_word, "__defaults__", ("lazy",))),
    "an attribute of the class": (lambda: Has, changing(Has, "word", "lazy")),
    "objects": (lambda: Has("rude"), lambda: Has("lazy")),
    "objects with a mapping": (lambda: Has({"word": "rude"}), lambda: Has({"word": "lazy"})),
    "objects of a version": (lambda: Versioned("rude"), lambda: Versioned("lazy")),
    "methods of objects": (lambda: Has("rude").label, lambda: Has("lazy").label),
    "methods of objects of a version": (lambda: Versioned("rude").label, lambda: Versioned("lazy").label),
    "partials of a version": (
        lambda: partial(version(by_word), word="rude"),
        lambda: partial(version(by_word), word="lazy"),
    ),
    "closures of a version": (lambda: version(closure("rude")), lambda: version(closure("lazy"))),
    "attributes that cannot be compared": (
        lambda: Versioned(lambda self, w="rude": w),
        lambda: Versioned(lambda self, w="lazy": w),
    ),
    "two versions": (lambda: version(class_of("rude"), "1"), lambda: version(class_of("lazy"), "2")),
    "a method that is replaced": (lambda: Has, changing(Has, "__call__", lambda self, texts: by_word(texts, "lazy"))),
}


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys.modules[__name__], "WORD", "rude")
    monkeypatch.setattr(by_word, "__defaults__", ("rude",))
    monkeypatch.setattr(Has, "word", "rude")
    monkeypatch.setattr(Has, "__call__", Has.__call__)
    yield
    vars(by_word).pop("version", None)
    fingerprints.forget()


@pytest.mark.parametrize("name", PAIRS)
def test_two_scorers_of_the_library_share_no_labels(name: str, tmp_path: Path) -> None:
    found = []
    for make in PAIRS[name]:
        made = make()
        made = by_global if made is sys.modules[__name__] else made
        scorer = mitigate.make_scorer(made, "own")
        if name == "a method that is replaced" and len(found) == 1:
            scorer = mitigate.make_scorer(lambda texts: by_word(texts, "lazy"), "own")
        for _ in range(2):
            labels = mitigate.label_statements(TEXTS, [scorer], cache=mitigate.LabelStore(tmp_path))
        found.append(labels["own"].to_list())
    assert found == [[-1, 0], [0, -1]]


def test_a_version_decides_alone_and_is_kept_by_the_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def label(made: Any) -> list[int]:
        scorer = mitigate.make_scorer(made, "own")
        return mitigate.label_statements(TEXTS, [scorer], cache=mitigate.LabelStore(tmp_path))["own"].to_list()

    assert label(Versioned) == [-1, 0]
    monkeypatch.setattr(Has, "word", "lazy")
    assert label(Versioned) == [-1, 0]
    monkeypatch.setattr(Versioned, "version", "2")
    assert label(Versioned) == [0, -1]
    assert capsys.readouterr().err == ""
    assert label(Has) == [0, -1]
    assert capsys.readouterr().err == (
        "the result of the scorer own cannot be reused: the next process computes this again, also after a kill, "
        'because test_own_shared.Has has no version. To identify the code by a version alone, set Has.version = "1"\n'
    )


POLICY = """
from dataclasses import dataclass
from pathlib import Path
import mitigate
{head}
HERE = Path(__file__).parent

@dataclass(frozen=True)
class Mine(mitigate.Policy):
    {attribute}

    def word(self):
        return {word}

    def act(self, rows):
        found = [1.0 - (self.word() in tail) for tail in rows["tail"]]
        return rows.with_columns(weight=rows["weight"] * rows["weight"].__class__(found))
"""
STAGE = """
from pathlib import Path
import polars as pl
{head}
HERE = Path(__file__).parent

def stage(tails):
    return {{"found": [{word} in tail for tail in tails]}}
"""


def policy(word: str, head: str = "", attribute: str = "pass") -> str:
    return POLICY.format(word=word, head=head, attribute=attribute)


def stage(word: str, head: str = "") -> str:
    return STAGE.format(word=word, head=head)


READ = '(HERE / "word.txt").read_text()'
BY_POLARS = 'pl.read_csv(HERE / "word.txt", has_header=False, new_columns=["w"])["w"][0]'
DERIVED = """
from base import Mine as Base

class Mine(Base):
    pass
"""
STAGES: dict[str, tuple[dict[str, str], dict[str, str], str | None]] = {
    "a policy's code": ({"mine.py": policy("'rude'")}, {"mine.py": policy("'lazy'")}, None),
    "a policy's attribute": (
        {"mine.py": policy("self.mine", attribute="mine = 'rude'")},
        {"mine.py": policy("self.mine", attribute="mine = 'lazy'")},
        None,
    ),
    "a policy's base class": (
        {"mine.py": DERIVED, "base.py": policy("'rude'")},
        {"base.py": policy("'lazy'")},
        None,
    ),
    "a policy's module": (
        {"mine.py": policy("WORD", "from lists import WORD"), "lists.py": "WORD = 'rude'"},
        {"lists.py": "WORD = 'lazy'"},
        None,
    ),
    "a policy's file": ({"mine.py": policy(READ), "word.txt": "rude"}, {"word.txt": "lazy"}, None),
    "a policy's file by polars": (
        {"mine.py": policy(BY_POLARS, "import polars as pl"), "word.txt": "rude"},
        {"word.txt": "lazy"},
        "`read_csv`",
    ),
    "a stage's code": ({"mine.py": stage("'rude'")}, {"mine.py": stage("'lazy'")}, None),
    "a stage's module": (
        {"mine.py": stage("lists.WORD", "import lists"), "lists.py": "WORD = 'rude'"},
        {"lists.py": "WORD = 'lazy'"},
        None,
    ),
    "a stage's file": ({"mine.py": stage(READ), "word.txt": "rude"}, {"word.txt": "lazy"}, None),
    "a stage's file by polars": (
        {"mine.py": stage(BY_POLARS), "word.txt": "rude"},
        {"word.txt": "lazy"},
        "`read_csv`",
    ),
}


@pytest.mark.parametrize("name", STAGES)
def test_stages_of_ones_own_code_are_never_stale(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, after, said = STAGES[name]
    for files, kept in ((before, [False, True]), (after, [True, False])):
        for file, content in files.items():
            (tmp_path / file).write_text(content)
        for module in ("mine", "lists", "base"):
            sys.modules.pop(module, None)
        fingerprints.forget()
        results = [found_by(name, tmp_path) for _ in range(2)]
        assert [result[0] for result in results] == [kept] * 2
        assert [result[1] for result in results] == [False, True]  # the same process reuses what it has computed
    told = capsys.readouterr().err
    assert told.count("\n") == (0 if said is None else 2)
    assert said is None or said in told
    for module in ("mine", "lists", "base"):
        sys.modules.pop(module, None)


def found_by(name: str, place: Path) -> tuple[list[bool], bool]:
    """What is kept of a rude and of a lazy tail, and whether it is reused."""
    rows = pl.DataFrame({"head": "a clerk", "relation": "IsA", "tail": ["rude", "lazy"]})
    run = Run(place / "run")
    try:
        if "policy" in name:
            made = build(OmegaConf.create({"_target_": "mine.Mine", "name": "mine"}), "policy")
            result = run.stage("ledger", apply_policy, made, rows)
            return (result.table()["weight"] > 0).to_list(), result.from_cache
        node = {"_target_": "mine.stage"}
        watch_modules(node)
        result = run.stage("mine", named(node, "mine", "tails"), rows["tail"].to_list())
        return [not found for found in result.facts()["found"]], result.from_cache
    finally:
        run.close()
