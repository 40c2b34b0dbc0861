"""Run folders read as data: what is checked, and that nothing of a foreign folder is resolved or believed; and
comparisons of runs whose labels are not all by the same scorers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from compared_runs import configured, edit, make_run, plan_of, seal

from mitigate.errors import MitigateError
from mitigate.finished import open_run, read_runs, recipe_of
from mitigate.tasks.compare import scorers
from mitigate.tasks.compare.quality import quality_differences
from mitigate.triples import called, role_scorers

USED = ("statements.parquet", "likelihood.parquet")


def test_a_finished_run_is_plain_data(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, "both", 3, lr=0.1), "mitigate", USED)
    assert (run.recipe, run.policy, run.seed, run.setting("data.name")) == ("mitigate", "both", 3, "made_up")
    assert (run.setting("data.name.of"), run.setting("nothing", 5)) == (None, 5)
    assert run.settings["trainer.lr"] == 0.1
    assert run.table("statements.parquet", ["target"]).height == 2000
    assert recipe_of(run.folder) == "mitigate"
    with pytest.raises(MitigateError, match=r"statements.parquet has no column weight; run the command that made it"):
        run.table("statements.parquet", ["target", "weight"])


def test_interpolations_of_a_foreign_folder_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    folder = make_run(tmp_path)
    edit(folder, "config.yaml", lambda config: config.replace("name: made_up", "name: ${oc.env:SECRET}"))
    assert open_run(folder).setting("data.name") == "${oc.env:SECRET}"


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("config.yaml", b"recipe: \xff", "its config.yaml cannot be read (it is not UTF-8); run the command that made"),
        ("config.yaml", b"a: &a [*a]", "its config.yaml cannot be read (it has no settings)"),
        ("config.yaml", b"a: !!python/object/apply:os.getcwd []", "its config.yaml cannot be read"),
        ("config.yaml", b"a: " + b"[" * 5000, "its config.yaml cannot be read"),
        ("config.yaml", b"name: another program's", "its config.yaml names no recipe"),
        ("config.yaml", b"recipe: {name: mitigate}", "config.yaml has no value of seed and policy.name and data.name"),
        ("config.yaml", b"recipe: {name: audit}", "is a run of recipe=audit"),
        ("manifest.json", b"{", "manifest.json is damaged: it is not JSON"),
        ("manifest.json", b"[]", "manifest.json is damaged: it is not a JSON object"),
        ("manifest.json", b"{}", "manifest.json is damaged: it does not list the run's files"),
        ("manifest.json", b'{"files": {}, "sha256": "0"}', "manifest.json is damaged: its content changed"),
        ("manifest.json", None, "is not finished (it has no manifest.json); run its command again"),
        ("metrics.json", b"[1]", "metrics.json is damaged: it is not a JSON object"),
        ("metrics.json", b"[" * 100_000, "metrics.json is damaged: it is not JSON"),
        ("metrics.json", b"{}", "metrics.json has no fingerprint"),
        ("metrics.json", b'{"fingerprint": "a", "NRM": "5", "x/y": []}', "metrics.json has no number as NRM and x/y"),
        ("metrics.json", None, "is not finished (it has no metrics.json)"),
    ],
)
def test_each_fault_of_a_folder_is_one_sentence(name: str, content: bytes | None, fault: str, tmp_path: Path) -> None:
    """Also where the manifest fits the damaged file."""
    folder = make_run(tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    if name != "manifest.json":
        seal(folder)
    with pytest.raises(MitigateError) as caught:
        read_runs([folder], "mitigate", "compare.runs", USED)
    assert str(caught.value).startswith(f"compare.runs: {folder}")
    assert fault in str(caught.value)
    assert str(caught.value).endswith(". Set it to folders of finished runs of recipe=mitigate.")


def test_all_files_of_a_folder_are_checked(tmp_path: Path) -> None:
    """Also the kind of a table, although the manifest fits."""
    folder = make_run(tmp_path)
    (folder / "statements").mkdir()
    pl.DataFrame({"a": [1]}).write_parquet(folder / "statements" / "000000.parquet")
    with pytest.raises(MitigateError, match="lacks statements/: run the command"):
        open_run(folder, needs=["statements/"])
    seal(folder)
    run = open_run(folder, needs=["statements/"])
    assert run.below("statements") == ["statements/000000.parquet"]
    (folder / "statements" / "000000.parquet").write_text("other")
    with pytest.raises(MitigateError, match=r"000000.parquet is damaged: its content is not that in manifest.json"):
        open_run(folder, needs=["statements/"])
    (folder / "statements.parquet").write_text("PAR1")
    seal(folder)
    with pytest.raises(MitigateError, match=r"statements.parquet cannot be read as a table; run the command"):
        open_run(folder, needs=USED).table("statements.parquet")


SCORERS = {
    "vader": {"_target_": "mitigate.score.vader.Vader", "measures": "sentiment"},
    "minilm": {"_target_": "mitigate.score.regard.MiniLMRegard", "measures": "regard"},
    "ngram": {"_target_": "mitigate.score.regard.NgramRegard", "measures": "regard"},
    "mine": {"_target_": "mine.Words", "words": ["lazy"]},
}


def labelled_by(run: Path, regard: str, known: Mapping[str, Any] = SCORERS, **manifest: Any) -> Path:
    """The run as one whose scorer in the place of regard is that one."""
    score = {"sentiment": "vader", "regard": regard, "scorers": dict(known)}
    configured(run, score=score, policy={"scorers": ["sentiment", "regard"]})
    name = called(score)["regard"]
    for table in ("statements", "likelihood"):
        edit(run, f"{table}.parquet", lambda frame: frame.rename(lambda column: column.replace("regard", name)))
    return edit(run, "manifest.json", lambda facts: facts | manifest)


@pytest.fixture
def none(tmp_path: Path) -> Path:
    return make_run(tmp_path, "none")


@pytest.fixture
def both(tmp_path: Path) -> Path:
    return make_run(tmp_path, "both", neutral=0.9)


def notices(*runs: Path, having: str) -> list[str]:
    return [notice for notice in plan_of(*runs).notices if having in notice]


def test_the_names_of_the_scorers_of_the_roles() -> None:
    own, shipped = ({"sentiment": "vader", "regard": regard, "scorers": SCORERS} for regard in ("mine", "minilm"))
    assert called(shipped) == {"sentiment": "sentiment", "regard": "regard"}
    assert role_scorers(own) == {"sentiment": "vader", "mine": "mine"}
    assert called({"sentiment": None, "regard": "keyword"}) == {"regard": "regard"}  # of an earlier revision


def test_runs_by_the_same_scorer_of_ones_own_are_compared_by_it(none: Path, both: Path) -> None:
    plan = plan_of(labelled_by(none, "mine"), labelled_by(both, "mine"))
    assert list(plan.labellings) == ["mine_neutral", "mine", "sentiment_neutral", "sentiment"]
    assert (plan.scorers, plan.deciding) == ({"sentiment": "vader", "mine": "mine"}, ["sentiment", "mine"])
    assert scorers.filtered_by(plan.runs[1]) == ["sentiment", "mine"]
    assert not [notice for notice in plan.notices if "labelled" in notice]


@pytest.mark.parametrize("second", ["mine", "ngram"])
def test_different_scorers_in_one_role_are_not_mixed(second: str, none: Path, both: Path) -> None:
    """Also where both measure regard, so that their columns have one name."""
    plan = plan_of(labelled_by(none, "minilm"), labelled_by(both, second))
    assert list(plan.labellings) == ["sentiment_neutral", "sentiment"]
    assert (plan.scorers, plan.deciding) == ({"sentiment": "vader"}, [])
    assert plan.notices[0] == (
        f"The runs were labelled by different scorers in the place of regard (minilm, {second}): neither its figures "
        "are compared, nor those of neutral and of polarised triples."
    )
    quality = quality_differences(plan.contrasts, plan.relations, plan.deciding)
    assert "quality/perplexity/all" in quality["figure"]
    assert not [figure for figure in quality["figure"] if figure.endswith(("/neutral", "/polar"))]


def test_a_scorer_with_other_settings_or_other_code_is_named(none: Path, both: Path) -> None:
    """Also the plausibility classifier, on which swap lift rests."""
    rude = SCORERS | {"mine": {"_target_": "mine.Words", "words": ["rude"]}}
    labelled_by(none, "mine", scorers={"mine": "1a2b", "plausibility": "1a2b"})
    plan = plan_of(none, labelled_by(both, "mine", rude))
    assert list(plan.labellings) == ["sentiment_neutral", "sentiment"]
    assert "in the place of regard (mine, with other settings): neither" in plan.notices[0]
    plan = plan_of(none, labelled_by(both, "mine", scorers={"mine": "3c4d", "plausibility": "1a2b"}))
    assert "mine" in plan.labellings
    assert plan.notices[0].startswith("The scorer mine has the same settings in all runs, but not the same code")
    assert not notices(none, both, having="The scorer plausibility has the same")
    edit(both, "manifest.json", lambda facts: facts | {"scorers": {"mine": "1a2b", "plausibility": "3c4d"}})
    assert notices(none, both, having="The scorer plausibility has the same")


def test_a_further_scorer_that_only_some_runs_have_is_named(none: Path, both: Path) -> None:
    more = {"keyword": "regard", "keyword_strength": "regard_strength"}
    plan = plan_of(edit(none, "statements.parquet", lambda said: said.with_columns(**more)), both)
    assert "keyword" not in plan.labellings
    assert plan.notices[0] == "Not all runs were labelled by keyword: these labels are not compared."


def test_runs_without_a_scorer_in_common_are_refused(none: Path, both: Path) -> None:
    other = SCORERS | {"vader": {"_target_": "mine.Sentiment", "measures": "sentiment"}}
    with pytest.raises(MitigateError) as caught:
        plan_of(labelled_by(none, "mine"), labelled_by(both, "minilm", other))
    assert str(caught.value).startswith(
        "the runs have no labels by the same scorer. The runs were labelled by different"
    )
    assert str(caught.value).endswith("Make one of them again with the other's score.sentiment and score.regard")


def test_a_policy_that_is_measured_by_its_own_scorers(none: Path, both: Path, tmp_path: Path) -> None:
    """A random control filters by none, and a held-out scorer measures without that bias."""
    (notice,) = notices(none, both, having="filtered by the same scorers")
    assert notice.startswith("both: filtered by the same scorers that measure it")
    random = {"action": "random", "scorers": ["sentiment", "regard"]}
    control = configured(make_run(tmp_path, "random_both"), policy=random)
    assert scorers.filtered_by(plan_of(none, control).runs[1]) == []
    for action, decoding, expected in (
        ("keep", "random_rerank", []),
        ("random", "random_rerank", []),
        ("random", "rerank", ["sentiment", "regard"]),
        ("drop", "random_rerank", ["sentiment", "regard"]),
        ("rerank", "none", ["sentiment", "regard"]),  # of an earlier version
    ):
        run = open_run(configured(control, policy=random | {"action": action, "decoding": decoding}))
        assert scorers.filtered_by(run) == expected
    tuned = random | {"tuning": "prefer"}  # of version 0.2
    assert scorers.filtered_by(open_run(configured(control, policy=tuned))) == ["sentiment", "regard"]
    drawn = make_run(tmp_path, "then")
    parts = {"first": {"scorers": ["sentiment"]}, "second": {"scorers": ["regard"]}, "action": None, "scorers": None}
    for control, expected in ((False, ["sentiment", "regard"]), (True, [])):
        run = open_run(configured(drawn, policy=parts | {"control": control}))
        assert scorers.filtered_by(run) == expected
    more = {"crowd": pl.col("regard"), "crowd_strength": pl.col("regard_strength")}
    held_out = [edit(run, "statements.parquet", lambda said: said.with_columns(**more)) for run in (none, both)]
    assert not notices(*held_out, having="filters by the same scorers")
