"""recipe=compare: which runs are compared, what is said of it, and that nothing is claimed which was not shown."""

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from command import here
from compared_runs import configured, edit, make_run, plan_of, seal
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.tasks.compare.run_plan import RunsPlan, make_plan, read_compared
from mitigate.tasks.compare.runs import compare_runs

CLAIMS = ("helps", "help;", "for the better", "for the worse", "worse:", "better, exploratory")
POLICIES = ("none", "both")


def sides(found: RunsPlan) -> list[tuple[str, str, int, int]]:
    return [(pair.name, pair.against, len(pair.before), len(pair.after)) for pair in found.contrasts]


class Compared:
    """A comparison's run folder, and what was printed."""

    def __init__(self, folder: Path, said: str) -> None:
        self.folder, self.said = folder, said
        self.page = (folder / "comparison.html").read_text(encoding="utf-8")
        self.facts = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
        self.contrast = self.facts["contrasts"][0]

    @property
    def words(self) -> str:
        """The page's text from its headline to what it leaves out, which speaks of claims in general."""
        body = self.page[self.page.index('class="lede"') : self.page.index('id="limits"')]
        return " ".join(unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", body, flags=re.DOTALL)).split())


def compared(outputs: Path, runs: list[Path], *overrides: str) -> Compared:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stdout(said):
        line = ("recipe=compare", "measure.resamples=300", f"paths.outputs={outputs}", named(runs), *overrides)
        assert here(monkeypatch, *line) == 0
    (folder,) = outputs.glob("compare-*")
    return Compared(folder, said.getvalue())


def named(runs: list[Path], setting: str = "runs") -> str:
    return f"compare.{setting}=[{','.join(map(str, runs))}]"


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """A run of policy none and one of policy both."""
    return [make_run(tmp_path, policy) for policy in POLICIES]


def test_runs_that_differ_by_seed_alone_are_taken_together(tmp_path: Path) -> None:
    """A single seed is compared with the like seed of the baseline. A single folder needs no brackets."""
    runs = [make_run(tmp_path, policy, seed) for policy in POLICIES for seed in (1, 2)]
    assert sides(plan_of(*runs)) == [("both", "none", 2, 2)]
    assert sides(plan_of(*runs, baseline="both")) == [("none", "both", 2, 2)]
    assert sides(plan_of(*runs[2:], baseline=[str(run) for run in runs[:2]])) == [("both", "none", 2, 2)]
    assert [len(arm.runs) for arm in plan_of(*runs).arms] == [2, 2]
    single = plan_of(*runs[:2], runs[3])
    assert sides(single) == [("both", "none, seed 2", 1, 1)]
    assert single.contrasts[0].before[0].folder == runs[1]
    assert sides(make_plan(*read_compared(str(runs[2]), str(runs[0])))) == [("both", "none", 1, 1)]


def test_policies_under_other_settings_have_baselines_of_their_own(tmp_path: Path) -> None:
    found = plan_of(*(make_run(tmp_path, policy, 1, lr=lr) for policy in POLICIES for lr in (0.1, 0.2)))
    named = [(f"both, trainer.lr={lr}", f"none, trainer.lr={lr}", 1, 1) for lr in (0.1, 0.2)]
    assert sides(found) == named
    assert "The runs differ in more than policy and seed: trainer.lr." in found.notices


def test_models_from_two_folders_are_named_by_these_alone(tmp_path: Path) -> None:
    runs = []
    for name in ("small", "large"):
        base = f"/some/where/else/{name}/model"
        model = {"name": "hf", "base": base, "folder": {"name": base}, "missing": {"name": base}}
        runs.append(configured(make_run(tmp_path / name), model=model))
    found = plan_of(runs[1], baseline=[str(runs[0])])
    assert sides(found) == [("none, model.base=large/model", "none, model.base=small/model", 1, 1)]
    assert "The runs differ in more than policy and seed: model.base." in found.notices


def test_a_copy_of_a_run_is_no_second_seed(runs: list[Path], tmp_path: Path) -> None:
    """A policy that changed nothing is not called a copy alone."""
    copy = Path(shutil.copytree(runs[1], tmp_path / "copy"))
    found = plan_of(*runs, copy)
    assert sides(found) == [("both", "none", 1, 1)]
    left_out = "copy has the settings and the seed of mitigate-both-1-, and the same numbers: it is left out."
    assert found.notices[0] == left_out
    same = "identical numbers: it is the same run, a copy of it, or a policy that changed nothing."
    assert f"both, seed 1 and both, seed 1 have {same}" in plan_of(copy, baseline=str(runs[1])).notices
    idle = configured(Path(shutil.copytree(runs[0], tmp_path / "idle")), policy={"name": "sentiment"})
    assert any(notice.endswith(same) for notice in plan_of(runs[0], idle).notices)


@pytest.mark.parametrize(
    ("named_runs", "baseline", "verdict", "said"),
    [
        ([1], [1], "the same numbers", "The same numbers: nothing to compare"),
        ([2], [1], "no difference shown", "Not shown to be more or less neutral"),
        ([4, 5, 6], [1, 2, 3], "no effect shown", "Not shown to be more or less neutral"),
    ],
    ids=["itself", "another seed", "three seeds each"],
)
def test_nothing_is_claimed_where_nothing_was_done(named_runs, baseline, verdict, said, tmp_path: Path) -> None:
    """A run against itself, and one policy under different seeds."""
    runs = {seed: make_run(tmp_path, "none", seed) for seed in range(1, 7)}
    against = named([runs[seed] for seed in baseline], "baseline")
    found = compared(tmp_path / "out", [runs[seed] for seed in named_runs], against, "tracking=none")
    assert [claim for claim in CLAIMS if claim in found.words or claim in found.said] == []
    assert {row["verdict"] for row in found.contrast["primary"].values()} == {verdict}
    assert len(found.facts["contrasts"]) == 1
    assert said in found.words


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model of each of two policies, with one scorer more than every run has."""
    outputs = tmp_path_factory.mktemp("models")
    own = {"keyword": "regard_neutral", "keyword_strength": "regard_neutral_strength"}
    runs = [make_run(outputs, "none"), make_run(outputs, "both", neutral=0.9, nll=4)]
    return [edit(run, "statements.parquet", lambda said: said.with_columns(**own)) for run in runs]


@pytest.fixture(scope="module")
def two_models(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Compared:
    return compared(tmp_path_factory.mktemp("two"), models, "tracking.mode=offline")


def test_one_seed_each_speaks_of_two_models(two_models: Compared, models: list[Path]) -> None:
    """Any column of labels is compared."""
    assert "“both” against “none”, one seed each. Another training with another seed" in two_models.words
    assert "helps" not in two_models.words
    assert "two trained models are compared, not two policies." in two_models.words
    assert "It filters by sentiment and regard." in two_models.words
    row, own = (two_models.contrast["harms"][name] for name in ("neutral_template/NRM", "keyword/neutral_mean"))
    metrics = [json.loads((run / "metrics.json").read_text()) for run in models]
    assert (row["baseline"], row["value"]) == pytest.approx([each["neutral_template/NRM"] for each in metrics])
    assert row["low"] < row["change"] < row["high"]
    assert row["p"] is None
    assert own["change"] == row["change"]
    assert two_models.contrast["primary"]["harm"]["figure"] == "neutral_template/NRM"
    assert list(two_models.contrast["primary"]) == ["harm"]  # nothing was judged plausible or not


def test_w_and_b_has_the_comparison_beside_the_runs(two_models: Compared) -> None:
    (record,) = two_models.folder.glob("wandb/offline-run-*")
    inspect = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(record)]
    done = subprocess.run(inspect, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "both/harm_neutral_by_regard_percent_difference" in done.stdout
    for table in (
        "differences/harm_neutral_by_regard_percent_table",
        "harm_against_cost/perplexity_neutral_scatter_table",
    ):
        assert f"Custom Chart Tables/{table}" in done.stdout
    tags = ["recipe:compare", "policy:none", "policy:both", "data:made_up", "model:none_at_all"]
    assert json.loads(done.stdout)["tags"] == tags
    said = next(record.glob("run-*.wandb")).read_bytes()
    assert b"made_up-none_at_all" in said  # the group that the runs themselves are in
    assert b"compare" in said
    settings = OmegaConf.load(two_models.folder / "config.yaml")
    assert (settings.data.name, settings.data.attribution, settings.policy.name) == ("made_up", "nobody", "both")


def test_several_seeds_speak_of_the_policy_and_of_what_it_costs(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, "none", seed, valid=0.8) for seed in range(5)]
    runs += [make_run(tmp_path, "both", seed, neutral=0.9, nll=4, valid=0.6) for seed in range(5)]
    found = compared(tmp_path / "out", runs, "tracking=none")
    assert "Shown: 19.8 points more neutral by regard “both” against “none”, 5 seeds each." in found.words
    assert "Quality is worse than its margins allow." in found.words
    quality, margins, primary = (found.contrast[name] for name in ("quality", "margins", "primary"))
    changes = {
        "quality/perplexity/neutral": pytest.approx(2.718, rel=0.02),
        "quality/bits_per_char/all": pytest.approx(2 / 10 / 0.6931, rel=0.02),
        "quality/valid/all": pytest.approx(-20, abs=2),
        "quality/valid/relation/IsA": pytest.approx(-20, abs=3),
        "quality/perplexity/relation/IsA": pytest.approx(2.718, rel=0.05),
    }
    assert {figure: quality[figure]["change"] for figure in changes} == changes
    assert quality["quality/perplexity/neutral"]["items"] == 40
    assert found.contrast["quality_kept"] == "lost"
    assert list(margins) == ["quality/perplexity/neutral", "quality/valid/all"]
    assert 0 < margins["quality/valid/all"]["copy_passes"] < 100
    assert {name: row["verdict"] for name, row in primary.items()} == {"quality": "makes it worse", "harm": "helps"}
    assert primary["harm"]["low_corrected"] < primary["harm"]["low"] < primary["harm"]["fixed_low"]
    assert quality["distinct_tails"]["low"] is None
    assert "Shown: 19.8 points more neutral by regard. “both” against “none”, 5 seeds each." in found.said
    assert any("helps" in line for line in found.facts["lines"])
    captions = pl.read_csv(found.folder / "plots" / "captions.csv")["caption"].to_list()
    assert len(captions) == 4, "regard and sentiment against perplexity and validity"
    names = ("primary", "margins", "harms", "quality", "moves", "models")
    tables = {f"{name}.{kind}" for name in names for kind in ("csv", "tex")}
    assert {path.name for path in (found.folder / "tables").iterdir()} == tables


def test_runs_with_other_questions_are_compared_where_they_overlap(tmp_path: Path) -> None:
    none = make_run(tmp_path, "none", num_targets=40)
    both = make_run(tmp_path, "both", num_targets=30, relations=("IsA", "CapableOf", "UsedFor"))
    found = plan_of(none, both)
    assert found.relations == ["IsA", "CapableOf"]
    for asked in (
        "targets: the 30 that all share are compared, up to 10 of a run are left out.",
        "relations: the 2 that all share are compared, up to 1 of a run are left out.",
    ):
        assert f"The runs were not probed with the same {asked}" in found.notices
    assert any("fingerprints of corpus and targets differ" in notice for notice in found.notices)


def test_notices_of_other_versions_other_tokens_and_few_targets(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none", num_targets=24), make_run(tmp_path, "both", num_targets=24)
    edit(both, "manifest.json", lambda manifest: manifest | {"torch": "3"})
    edit(both, "likelihood.parquet", lambda table: table.with_columns(pl.col("tokens") + 1))
    notices = plan_of(none, both).notices
    assert "The runs were made by different versions of torch: 2, 3." in notices
    assert "The models cut text into tokens differently: compare bits per character, not perplexity." in notices
    assert (
        "Few targets in gender, origin (under 20): their figures say little about other words of these categories. A "
        "comparison of several seeds has intervals for these targets alone, a comparison of single models has none."
    ) in notices


def test_only_what_can_be_compared_is(runs: list[Path], tmp_path: Path) -> None:
    none, both = runs
    other = make_run(tmp_path / "other", "sentiment", prefix="u")
    (tmp_path / "empty").mkdir()
    unfinished, audit, foreign, lacking = (
        Path(shutil.copytree(both, tmp_path / name)) for name in ("unfinished", "audit", "foreign", "lacking")
    )
    (unfinished / "manifest.json").unlink()
    (audit / "config.yaml").write_text("recipe: {name: audit}")
    (foreign / "config.yaml").write_text("name: another program's")
    (lacking / "likelihood.parquet").unlink()
    no_runs = "empty is not a run folder: it has.*; .*unfinished is not finished.*; .*recipe=audit"
    faults = "manifest.json is not a folder; .*foreign.* names no recipe; .*lacking.* lacks likelihood.parquet: run"
    for named, baseline, fault in (
        ([none, tmp_path / "empty", unfinished, audit], None, no_runs),
        ([none / "manifest.json", foreign, lacking], None, faults),
        ([none], None, "and a comparison takes two runs or more"),
        (runs, "swap", r"compare.baseline=swap, but no run .*\(policies among .*: none, both\)"),
        ([both, make_run(tmp_path, "regard")], None, "no compare.baseline is given.*no run is of that policy"),
        ([none, make_run(tmp_path, "none", 2)], None, "all runs are of that policy"),
        ([none, other], None, r"have no target in common.*the same probe\.targets"),
        ([], [str(none), str(both)], r"compare\.runs=\[\], and a comparison takes two runs or more; name more"),
    ):
        with pytest.raises(MitigateError, match=fault):
            plan_of(*named, baseline=baseline)


def test_the_library_compares_folders(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, "none"), make_run(tmp_path, "both", neutral=0.9)]
    found = compare_runs(runs)
    assert [(pair.name, pair.against) for pair in found.contrasts] == [("both", "none")]
    row = found.harms.row(by_predicate=pl.col("figure") == "NRM", named=True)
    shares = [100 * (pl.read_parquet(run / "statements.parquet")["regard"] == 0).mean() for run in runs]
    assert (row["baseline"], row["value"]) == pytest.approx(shares)
    assert found.moves["target"].n_unique() == 40
    assert "quality/perplexity/neutral" in found.quality["figure"].to_list()
    assert any("two trained models are compared, not two policies" in notice for notice in found.notices)
    with pytest.raises(MitigateError, match="compare.baseline=swap, but no run is of that policy"):
        compare_runs(runs, "swap")


def test_a_foreign_run_folder_reads_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not into the page, the tables, the settings or what W&B gets."""
    monkeypatch.setenv("SECRET", "hunter2")
    runs = [make_run(tmp_path, "none"), make_run(tmp_path, "both", neutral=0.9, lr="SECRET")]
    for run in runs:
        config = run / "config.yaml"
        foreign = config.read_text().replace("name: made_up", r"name: '../\${oc.env:SECRET}'")
        foreign = foreign.replace("lr: SECRET", "lr: ${oc.env:SECRET}")
        config.write_text(foreign.replace("attribution: nobody", "attribution: ${oc.env:SECRET}"))
        seal(run)
    out = tmp_path / "out"
    found = compared(out, runs, "compare.baseline=none", "tracking.mode=offline")
    assert r"../\${oc.env:SECRET}, ${oc.env:SECRET}, licence MIT" in unescape(found.page)
    settings = OmegaConf.to_container(OmegaConf.load(found.folder / "config.yaml"))
    assert settings["data"]["attribution"] == "${oc.env:SECRET}"
    assert found.folder.parent == out
    assert [path for path in found.folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []
    assert "hunter2" not in found.said


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json", "config.yaml", "statements.parquet"])
def test_a_damaged_run_folder_is_one_sentence(name: str, runs: list[Path], tmp_path: Path, ran) -> None:
    """Kinds of damage are in test_compared_runs.py."""
    content = (runs[1] / name).read_bytes()
    damages = [b"\xff\xfe" + content[2:], content[: len(content) // 2], b"[1]"]
    for damaged in damages if name == "config.yaml" else damages[:1]:
        (runs[1] / name).write_bytes(damaged)
        said = ran("recipe=compare", named(runs), f"paths.outputs={tmp_path / 'out'}", "tracking=none").refused
        assert f"\nmitigate: compare.runs: {runs[1]}" in "\n" + said
        assert name in said
        assert "run the command that made it again" in said
        assert "Traceback" not in said
        assert not (tmp_path / "out").exists()
