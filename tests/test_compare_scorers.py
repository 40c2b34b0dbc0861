"""Runs whose labels are not all by the same scorers: what is compared, and what is said of the rest."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from compared_runs import make_run, seal
from omegaconf import OmegaConf

from mitigate.decisions import called, role_scorers
from mitigate.errors import MitigateError
from mitigate.tasks.compare import scorers
from mitigate.tasks.compare.findings import axes_of
from mitigate.tasks.compare.plan import ComparePlan, make_plan, read_compared
from mitigate.tasks.compare.quality import quality_differences

SCORERS = {
    "vader": {"_target_": "mitigate.score.vader.Vader", "measures": "sentiment"},
    "minilm": {"_target_": "mitigate.score.regard.MiniLMRegard", "measures": "regard"},
    "ngram": {"_target_": "mitigate.score.regard.NgramRegard", "measures": "regard"},
    "mine": {"_target_": "mine.Words", "words": ["lazy"]},
}


def labelled_by(run: Path, regard: str, known: Mapping[str, Any] = SCORERS, **manifest: Any) -> Path:
    """The run as one whose scorer in the place of regard is that one."""
    config = OmegaConf.load(run / "config.yaml")
    config.score = {"sentiment": "vader", "regard": regard, "scorers": dict(known)}
    config.policy.scorers = ["sentiment", "regard"]
    (run / "config.yaml").write_text(OmegaConf.to_yaml(config))
    name = called({"regard": regard, "scorers": known})["regard"]
    for table in ("statements", "likelihood"):
        frame = pl.read_parquet(run / f"{table}.parquet")
        renamed = {column: column.replace("regard", name) for column in frame.columns if column.startswith("regard")}
        frame.rename(renamed).write_parquet(run / f"{table}.parquet")
    facts = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(facts | manifest))
    return seal(run)


def plan_of(*runs: Path) -> ComparePlan:
    return make_plan(*read_compared([str(run) for run in runs], None))


@pytest.fixture
def none(tmp_path: Path) -> Path:
    return make_run(tmp_path, "none")


@pytest.fixture
def both(tmp_path: Path) -> Path:
    return make_run(tmp_path, "both", neutral=0.9)


def test_what_the_scorers_of_the_roles_are_called() -> None:
    assert called({"sentiment": "vader", "regard": "minilm", "scorers": SCORERS}) == {
        "sentiment": "sentiment",
        "regard": "regard",
    }
    assert role_scorers({"sentiment": "vader", "regard": "mine", "scorers": SCORERS}) == {
        "sentiment": "vader",
        "mine": "mine",
    }
    assert called({"sentiment": None, "regard": "keyword"}) == {"regard": "regard"}  # of an earlier revision


def test_runs_by_the_same_scorer_of_ones_own_are_compared_by_it(none: Path, both: Path) -> None:
    plan = plan_of(labelled_by(none, "mine"), labelled_by(both, "mine"))
    assert list(plan.labellings) == ["sentiment", "sentiment_neutral", "mine", "mine_neutral"]
    assert (plan.scorers, plan.deciding) == ({"sentiment": "vader", "mine": "mine"}, ["sentiment", "mine"])
    assert [axis.key for axis in axes_of(plan)] == ["neutral_template/NSM", "neutral_template/mine/neutral_mean"]
    assert scorers.filtered_by(plan.runs[1]) == ["sentiment", "mine"]
    assert not [notice for notice in plan.notices if "labelled" in notice]


@pytest.mark.parametrize(("first", "second"), [("minilm", "mine"), ("minilm", "ngram")])
def test_different_scorers_in_one_role_are_not_mixed(first: str, second: str, none: Path, both: Path) -> None:
    """Also where both measure regard, so that their columns have one name."""
    plan = plan_of(labelled_by(none, first), labelled_by(both, second))
    assert list(plan.labellings) == ["sentiment", "sentiment_neutral"]
    assert (plan.scorers, plan.deciding) == ({"sentiment": "vader"}, [])
    assert [axis.slug for axis in axes_of(plan)] == ["sentiment"]
    assert plan.notices[0] == (
        f"The runs were labelled by different scorers in the place of regard ({first}, {second}): neither its figures "
        "are compared, nor those of neutral and of polarised triples."
    )
    quality = quality_differences(plan.contrasts, plan.relations, plan.deciding)
    assert "quality/perplexity/all" in quality["figure"]
    assert not [figure for figure in quality["figure"] if figure.endswith(("/neutral", "/polar"))]


def test_a_scorer_with_other_settings_or_other_code_is_told(none: Path, both: Path) -> None:
    rude = SCORERS | {"mine": {"_target_": "mine.Words", "words": ["rude"]}}
    labelled_by(none, "mine", scorers={"mine": "1a2b"})
    plan = plan_of(none, labelled_by(both, "mine", rude))
    assert list(plan.labellings) == ["sentiment", "sentiment_neutral"]
    assert "in the place of regard (mine, with other settings): neither" in plan.notices[0]
    plan = plan_of(none, labelled_by(both, "mine", scorers={"mine": "3c4d"}))
    assert "mine" in plan.labellings
    assert plan.notices[0].startswith("The scorer mine has the same settings in all runs, but not the same code")


def test_another_plausibility_classifier_under_the_same_settings_is_told(none: Path, both: Path) -> None:
    """Swap lift rests on it."""
    for run, known in ((none, "1a2b"), (both, "3c4d")):
        labelled_by(run, "minilm", scorers={"sentiment": "5e", "plausibility": known})
    assert [
        notice for notice in plan_of(none, both).notices if notice.startswith("The scorer plausibility has the same")
    ]
    labelled_by(both, "minilm", scorers={"sentiment": "5e", "plausibility": "1a2b"})
    assert not [notice for notice in plan_of(none, both).notices if "plausibility has the same" in notice]


def test_a_further_scorer_that_only_some_runs_have_is_told(none: Path, both: Path) -> None:
    said = pl.read_parquet(none / "statements.parquet")
    said.with_columns(keyword="regard", keyword_strength="regard_strength").write_parquet(none / "statements.parquet")
    plan = plan_of(seal(none), both)
    assert "keyword" not in plan.labellings
    assert plan.notices[0] == "Not all runs were labelled by keyword: these labels are not compared."


def test_runs_without_a_scorer_in_common_are_refused(none: Path, both: Path) -> None:
    other = SCORERS | {"vader": {"_target_": "mine.Sentiment", "measures": "sentiment"}}
    with pytest.raises(MitigateError) as told:
        plan_of(labelled_by(none, "mine"), labelled_by(both, "minilm", other))
    assert str(told.value).startswith("the runs have no labels by the same scorer. The runs were labelled by different")
    assert str(told.value).endswith("Make one of them again with the other's score.sentiment and score.regard")


def test_a_policy_that_its_own_scorers_measure_is_told(none: Path, both: Path, tmp_path: Path) -> None:
    (told,) = [notice for notice in plan_of(none, both).notices if "filters by the same scorers" in notice]
    assert "measure it (both): the figures of harm are biased in its favour" in told
    control = set_action(make_run(tmp_path, "random_both"), "random")
    assert scorers.filtered_by(plan_of(none, control).runs[1]) == []
    held_out = [with_column(run, "crowd") for run in (none, both)]
    assert not [notice for notice in plan_of(*held_out).notices if "filters by the same scorers" in notice]


def set_action(run: Path, action: str) -> Path:
    """The run as one of a policy with this action, which names sentiment and regard."""
    config = OmegaConf.load(run / "config.yaml")
    config.policy.action, config.policy.scorers = action, ["sentiment", "regard"]
    (run / "config.yaml").write_text(OmegaConf.to_yaml(config))
    return seal(run)


def with_column(run: Path, scorer: str) -> Path:
    """The run with labels of one more scorer, those of regard."""
    frame = pl.read_parquet(run / "statements.parquet")
    mine = {name: pl.col(name.replace(scorer, "regard")) for name in (scorer, f"{scorer}_strength")}
    frame.with_columns(**mine).write_parquet(run / "statements.parquet")
    return seal(run)
