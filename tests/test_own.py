"""The example of docs/examples/own: a scorer and policies of one's own, by a folder that --config-dir names."""

import importlib
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import ROOT, UNDRAWN, here, recipe_is
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass

from mitigate.errors import MitigateError
from mitigate.policies import Filter, apply_policy
from mitigate.recipes.config import Scorers

EXAMPLE = ROOT / "docs" / "examples" / "own"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """What a command with --config-dir changes in its process is put back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*UNDRAWN)
        patch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        patch.syspath_prepend(tmp_path_factory.mktemp("path"))
        yield patch
    sys.modules.pop("study", None)


def test_the_policy_of_ones_own_class_weighs_the_training_triples(own: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a scorer of one's own in regard's place; in a folder with a space."""
    asked = ("--config-dir", "docs/examples/own", "recipe=filter", "policy=short_tails", "policy.scorers=[regard]")
    rude = ("score=study", "score.regard=rude", "score.scorers.rude.words=[office,teeth]")
    assert here(own, *asked, *rude, f"paths.outputs={tmp_path}/own runs", "tracking=none") == 0
    (finished,) = (tmp_path / "own runs").glob("filter-short_tails-*")
    ledger = pl.read_parquet(finished / "ledger.parquet")
    words = ledger["masked"].str.split(" ")
    rude = (words.list.contains("office") | words.list.contains("teeth")) & (ledger["split"] == "train")
    long = (ledger["tail"].str.split(" ").list.len() > 4) & ~rude & (ledger["split"] == "train")
    for rows, weight, reason in ((rude, 0.0, "rude -1"), (long, 0.5, "long tail"), (~rude & ~long, 1.0, "kept")):
        assert rows.any()
        assert ledger.filter(rows)["weight"].unique().to_list() == [weight]
        assert ledger.filter(rows)["reason"].unique().to_list() == [reason]


def test_the_commands_of_the_documentation_build_what_they_name(own: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python -m mitigate (--config-dir docs/examples/own .*)$", text, re.MULTILINE)
    built = []

    def build(config: DictConfig) -> None:
        scorers = Scorers(config.score)
        built.append((scorers.policy(config.policy).name, [scorer.name for scorer in scorers.labelling]))

    with own.context() as patch:
        recipe_is(patch, build)
        for command in commands:
            assert here(own, *shlex.split(command, comments=True)) == 0
    both = ["sentiment", "regard"]
    assert built == [
        ("both_neutral", [*both, "rude"]),
        ("no_rude_words", both),
        ("both_neutral", ["sentiment", "rude"]),
        ("both_neutral", [*both, "rude"]),
        ("short_tails", both),
    ]


ROWS = pl.DataFrame({"row": [1, 2, 3], "split": ["train", "train", "test"], "head": "a", "tail": "b", "mine": 0})


@dataclass(frozen=True)
class Given(Filter):
    """Returns what it is told to."""

    returns: Any = None

    def weigh(self, rows: pl.DataFrame, target_list: object) -> pl.DataFrame:
        return self.returns(rows)


def given(returns: Callable[[pl.DataFrame], object]) -> Given:
    return Given("mine", ["mine"], "paper", returns=returns)


RETURNED = [lambda rows: None, lambda rows: rows.filter(split="test"), lambda rows: rows.select("weight")]
RETURNED += [partial(pl.DataFrame.with_columns, weight=weight) for weight in (-1.0, math.nan, pl.lit(None))]


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("returns", RETURNED)
def test_what_a_class_of_ones_own_returns_is_checked(returns: Callable[[pl.DataFrame], object], control: bool) -> None:
    with pytest.raises(MitigateError, match="policy 'mine': Given.weigh must return its rows in their order"):
        apply_policy(replace(given(returns), control=control), ROWS.with_columns(relation=pl.lit("IsA")))


def test_a_class_of_ones_own_has_its_random_control(own: pytest.MonkeyPatch) -> None:
    own.syspath_prepend(EXAMPLE)
    study = importlib.import_module("study")
    tails = ["a", "b c d e f", "g", "h", "i", "j"] * 4
    rows = pl.DataFrame({"tail": tails, "rude": ([-1] + [0] * 5) * 4}).with_columns(relation=pl.lit("IsA"))
    weighed, *drawn = (
        study.ShortTails("mine", ["rude"], "paper", control=control, seed=seed).filter(rows)
        for control, seed in ((False, 1), (True, 1), (True, 2))
    )
    assert weighed["weight"].to_list() == [0.0, 0.5, 1.0, 1.0, 1.0, 1.0] * 4
    for ledger in drawn:
        assert ledger["weight"].sort().to_list() == weighed["weight"].sort().to_list()
        assert set(ledger["reason"]) == {"kept", "drawn at random"}
    assert not drawn[0].equals(drawn[1])


def test_a_resource_of_ones_own_is_loaded_and_its_faults_are_named(tmp_path: Path, own: pytest.MonkeyPatch) -> None:
    own.syspath_prepend(EXAMPLE)
    load = importlib.import_module("pairs").load
    (path := tmp_path / "mine.txt").write_text("nurse = person\nlawyer = person\n")
    rows = [(1, "nurse", "person"), (2, "lawyer", "person")]
    assert load(str(path)).rows.select("row", "head", "tail").rows() == rows
    path.write_text("nurse = person\nlawyer\n")
    with pytest.raises(MitigateError, match=r"mine.txt:2: 'lawyer', expected 'head = tail'"):
        load(str(path))
