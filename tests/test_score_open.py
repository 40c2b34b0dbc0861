"""A scorer of a user's own is one class and one line of YAML, for policies too; what it labels is never stale."""

import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command import composed

from mitigate.errors import MitigateError
from mitigate.policies import apply_policy
from mitigate.recipes.config import Scorers
from mitigate.score.labeller import label_statements

TOY = """'Prejudice is any of a list of words.'
import numpy as np
from mitigate.triples import Labels

class Toy:
    version = "1"

    def __init__(self, words=("cruel",), file=None):
        self.words_of = list(words)

    def __call__(self, texts):
        found = np.array([any(word in text.split() for word in self.words_of) for text in texts])
        return Labels(-found.astype(np.int8), -found.astype(np.float32))
"""
LINE = "+score.scorers.toy._target_=own_toy.Toy"


@pytest.fixture
def write_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the module `own_toy`, as a new process would find it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str) -> None:
        (tmp_path / "own_toy.py").write_text(source)
        monkeypatch.delitem(sys.modules, "own_toy", raising=False)

    write(TOY)
    return write


def fingerprint_of(*overrides: str) -> str:
    (scorer,) = Scorers(composed(LINE, "score.extra=[toy]", *overrides).score).extras
    return scorer.fingerprint


def test_a_policy_filters_by_any_configured_scorers(write_toy: Callable[[str], None]) -> None:
    config = composed(LINE, "policy.scorers=[sentiment,toy,keyword]")
    configured = Scorers(config.score)
    policy = configured.policy(config.policy)
    scorers = [configured.of_roles[0], *configured.of_policy(policy)]
    assert [scorer.name for scorer in scorers] == ["sentiment", "toy", "keyword"]
    tails = ["table", "cruel", "kind", "thief"]
    triples = pl.DataFrame({"head": ["nurse"] * 4, "relation": ["HasProperty"] * 4, "tail": tails})
    ledger = apply_policy(policy, label_statements(triples.with_columns(split=pl.lit("train")), scorers))
    reasons = ["kept", "sentiment -1, toy -1, keyword -1", "sentiment +1, keyword +1", "sentiment -1"]
    assert ledger["reason"].to_list() == reasons
    assert ledger["weight"].to_list() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ("", ["sentiment", "regard"]),
        ("score.regard=null", ["sentiment"]),
        ("score.regard=toy +score.scorers.toy.measures=regard", ["sentiment", "regard"]),
        ("score.regard=vader", ["sentiment", "vader"]),
    ],
)
def test_a_scorer_is_called_by_its_role_where_it_measures_it(overrides, names, write_toy) -> None:
    score = composed(LINE, *overrides.split()).score
    assert [scorer.name for scorer in Scorers(score).labelling] == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("regard", "and its name not a role; with `measures: regard` its results count as"),
        ("mine_strength", "'mine_strength': it is, or ends as, another column of tables"),
        ("quality", "a scorer cannot be called 'quality': keys of metrics.json begin with its name"),
    ],
)
def test_a_name_that_means_something_else_is_refused(name: str, message: str, write_toy: Callable[[str], None]) -> None:
    with pytest.raises(MitigateError) as told:
        _ = Scorers(composed(LINE.replace("toy.", f"{name}.", 1), f"score.extra=[{name}]").score).extras
    assert message in str(told.value)


def test_a_fingerprint_follows_the_version_the_arguments_and_the_files_they_name(write_toy, tmp_path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("cruel")
    first, of_words = fingerprint_of(), fingerprint_of("+score.scorers.toy.words=[vile]")
    of_file = fingerprint_of(f"+score.scorers.toy.file={words}")
    words.write_text("vile")
    of_other_file = fingerprint_of(f"+score.scorers.toy.file={words}")
    assert fingerprint_of() == first
    write_toy(TOY.replace('version = "1"', 'version = "10"'))  # bytecode of a file of the same size could be stale
    assert len({first, of_words, of_file, of_other_file, fingerprint_of()}) == 5
    write_toy(TOY.replace('version = "1"', 'fingerprint = "mine"'))
    assert fingerprint_of() == "mine"  # as its class gives it
