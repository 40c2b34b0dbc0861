"""What a result depends on is found in the sources."""

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.filter import apply_policy
from mitigate.report import audit
from mitigate.runs import fingerprints, import_tracing
from mitigate.runs.fingerprints import (
    SURROUNDING,
    digest_of_code,
    digest_of_stage,
    digest_of_values,
    fingerprint,
    is_intact,
    reached,
    reached_by_stage,
    sealed,
)
from mitigate.score.vader import Vader
from mitigate.tasks.scorers import identified
from mitigate.verbalise import verbalise

DATA = fingerprints.DATA


def names(of: object) -> set[str]:
    """The files that are reached, from the package's folder on."""
    found = reached(of)
    return {str(path.relative_to(fingerprints.PACKAGE.parent)) for path in (*found.sources, *found.data)}


def test_functions_reach_modules_and_data_files_and_every_data_file_is_reached() -> None:
    """A data file that no source names could change without any result noticing."""
    assert names(verbalise) == {
        *(
            "mitigate/verbalise.py",
            "mitigate/words/__init__.py",
            "mitigate/words/relations.py",
            "mitigate/words/targets.py",
        ),
        *("mitigate/words/targets.py", "mitigate/words/word_forms.py", "mitigate/data/plurals.csv"),
        "mitigate/package_data.py",
        *("mitigate/data/relations.csv", "mitigate/data/targets.csv", "mitigate/data/clusters.csv"),
        *("mitigate/words/events.py", "mitigate/data/event_frames.csv", "mitigate/data/event_subjects.csv"),
        "mitigate/data/atomic_relations.csv",
    }
    assert {"mitigate/filter/reweight.py", "mitigate/data/swaps.csv", "mitigate/data/people.csv"} <= names(apply_policy)
    assert names(Vader) == {"mitigate/score/vader.py", "mitigate/triples.py", "mitigate/runs/__init__.py"}
    assert {"mitigate/report/audit.html.jinja", "mitigate/report/style.css.jinja"} <= names(audit)
    found = {file for path in fingerprints.PACKAGE.rglob("*.py") for file in import_tracing._named_files(path)}
    everything = {path for path in DATA.rglob("*") if path.is_file() and path.suffix not in {".md", ".py"}}
    assert everything - found == set()


def test_a_stage_reaches_the_modules_among_its_values() -> None:
    """As recipe=compare gives its stages the module of a kind."""
    template = next(path for path in reached(audit).data if path.name == "audit.html.jinja")
    assert template not in reached_by_stage(verbalise, [1]).data
    assert template in reached_by_stage(verbalise, [1, {"kind": audit}]).data


def write_modules(folder: Path, **sources: str) -> None:
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)


def own_class(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str = "own_scorer") -> type:
    """A class of a user's own, as a new process would find it."""
    monkeypatch.syspath_prepend(folder)
    for name in ("own_scorer", "own_words", "own_other", "own_package", "own_package.scorer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    fingerprints.forget()
    return import_module(module).Scorer


def digest_in(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str = "own_scorer") -> str:
    """The digest of the code that such a class reaches."""
    return digest_of_code(own_class(folder, monkeypatch, module))


SCORER = """'A scorer.'
from own_words import WORDS
from mitigate.score.vader import THRESHOLD

class Scorer:
    name = "own"
"""


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"own_words": "WORDS = ('good', 'bad')\n"}, True),
        ({"own_scorer": SCORER + "    threshold = 2\n"}, True),
        ({"own_scorer": SCORER.replace("A scorer.", "A fine scorer.") + "\n\n# a comment\n"}, False),
        ({"own_other": "x = 2\n"}, False),
    ],
    ids=["module beside it", "its own code", "words about it", "a module it does not import"],
)
def test_a_class_of_a_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict, counts: bool) -> None:
    write_modules(tmp_path, own_scorer=SCORER, own_words="WORDS = ('good',)\n", own_other="x = 1\n")
    before = digest_in(tmp_path, monkeypatch)
    write_modules(tmp_path, **change)
    assert (digest_in(tmp_path, monkeypatch) != before) is counts


def test_a_module_above_the_package_of_a_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "scorer.py").write_text("from own_words import WORDS\n\nclass Scorer:\n    pass\n")
    found = []
    for words in ("('rude',)", "('rude', 'lazy')"):
        write_modules(tmp_path, own_words=f"WORDS = {words}\n")
        found.append(digest_in(tmp_path, monkeypatch, "own_package.scorer"))
    assert found[0] != found[1]


def test_an_environment_in_a_users_folder_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its packages are no code of the user's, and reading them all takes seconds; some cannot even be imported."""
    installed = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (installed / "own_package").mkdir(parents=True)
    (installed / "own_package" / "__init__.py").write_text("raise AttributeError('for another Python')\n")
    write_modules(installed, own_other="from own_package import part\n")
    write_modules(tmp_path, own_scorer="class Scorer:\n    def load(self):\n        import own_other\n")
    monkeypatch.syspath_prepend(installed)
    scorer = own_class(tmp_path, monkeypatch)
    assert [path.name for path in reached(scorer).sources] == ["own_scorer.py"]


def test_an_argument_of_a_scorer_that_names_files_counts_by_what_they_hold(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    long = "a text that is no file " * 20
    arguments = [{"one": str(words)}, {"several": [str(words), long]}, {"by": {"name": words}}]
    found = []
    for content in ("rude", "rude lazy"):
        words.write_text(content)
        found.append([identified(Labelling(), "own", given).fingerprint for given in arguments])
    assert len({*found[0], *found[1]}) == 6


class Labelling:
    """A scorer, which is never called."""

    version = "1"

    def __call__(self, texts: list[str]) -> None: ...


@dataclass(frozen=True)
class Times:
    """A method's state."""

    times: int

    def apply(self, number: int) -> dict[str, int]:
        return {"found": self.times * number}


class Stateful:
    def apply(self) -> None: ...


def test_a_stage_is_known_by_its_function_too() -> None:
    """Two functions of one module reach the same code."""
    assert digest_of_stage(names, []) == digest_of_stage(names, [])
    assert digest_of_stage(names, []) != digest_of_stage(write_modules, [])
    assert digest_of_stage(Times(2).apply, []) == digest_of_stage(Times(2).apply, [])
    assert digest_of_stage(Times(2).apply, []) != digest_of_stage(Times(3).apply, [])
    with pytest.raises(TypeError, match="a result cannot depend on"):
        digest_of_stage(Stateful().apply, [])


@dataclass(frozen=True)
class Settings:
    lr: float = 0.1
    checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)


def test_values() -> None:
    table = pl.DataFrame({"a": [1, 2]})
    same = [
        (table, pl.concat([table.head(1), table.tail(1)], rechunk=False)),
        (Settings(), Settings(checkpoint_every=1.0)),
        ({1, 2}, {2, 1}),
        (np.arange(3), np.arange(3)),
        (partial(verbalise, masking="token"), partial(verbalise, masking="token")),
    ]
    for left, right in same:
        assert digest_of_values(left) == digest_of_values(right)
    different = [
        (table, table.rename({"a": "b"})),
        (Settings(), Settings(lr=0.2)),
        ([1, 2], [2, 1]),
        (np.arange(3), np.arange(3.0)),
        ("1", 1),
        (None, ""),
        (partial(verbalise, masking="token"), partial(verbalise, masking="paper")),
    ]
    for one, other in different:
        assert digest_of_values(one) != digest_of_values(other)
    for value in (Path("file"), object(), iter([1])):
        with pytest.raises(TypeError, match="a result cannot depend on"):
            digest_of_values(value)


def test_an_object_counts_by_its_class_facts_and_name() -> None:
    """The columns of a scorer are called by its name."""
    assert fingerprint(Vader(), "lexicon") != fingerprint(Vader(), "another lexicon")
    assert fingerprint(Vader(), "lexicon") == fingerprint(Vader(), "lexicon")
    first, second = Vader(), Vader()
    assert digest_of_values(first) == digest_of_values(second)
    second.name = "polarity"
    assert digest_of_values(first) != digest_of_values(second)


def test_a_sealed_object_with_any_damage_is_not_intact() -> None:
    content = sealed({"code": "a1", "seconds": 0.5})
    assert is_intact(content)
    assert is_intact({"code": "a1", "seconds": 0.5})  # as earlier code wrote it
    assert is_intact({})
    for name in content:
        renamed = {name + "x" if key == name else key: value for key, value in content.items()}
        assert not is_intact(renamed), name
        assert not is_intact({**content, name: "other"}), name


def test_facts_of_a_source_are_stored_and_those_of_another_source_or_damaged_ones_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_tracing, "OURS", (f"{tmp_path}{os.sep}",))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    source = tmp_path / "words.py"

    def facts(text: str) -> import_tracing.Facts:
        source.write_text(text)
        for cached in (import_tracing.facts_of, import_tracing.nodes_of):
            cached.cache_clear()
        return import_tracing.facts_of(source)

    text = '"""Words."""\nimport mitigate as m\nfrom ..a import b as c\nm.Labels\nTABLE = "words.csv"\n'
    first = facts(text)
    assert first[:4] == ([["mitigate", "m"]], [(2, "a", [["b", "c"]])], ["Labels"], ["words.csv"])
    (stored,) = tmp_path.glob("__pycache__/*.facts.json")
    with monkeypatch.context() as patched:
        patched.setattr(import_tracing, "nodes_of", lambda path: pytest.fail("the source is parsed again"))
        patched.setattr(import_tracing.nodes_of, "cache_clear", lambda: None, raising=False)
        assert facts(text).code == first.code
    assert facts("# a comment\n" + text.replace("Words.", "Other words.")).code == first.code
    assert facts(text + "m.Scorer\n").attributes == ["Labels", "Scorer"]
    stored.write_text("{")
    assert facts('TABLE = "words.csv"').imports == []
    import_tracing.forget()
