"""recipe=compare: what is set against what, what is said of it, and that nothing is claimed which was not shown."""

import contextlib
import io
import json
import math
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from command import here
from compared_runs import UNTRUSTED, make_run, seal
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.tasks.compare.compared import compare_runs
from mitigate.tasks.compare.plan import ComparePlan, make_plan, read_compared
from mitigate.tasks.compare.quality import quality_differences
from mitigate.tracking import NoTracking

CLAIMS = ("helps", "help;", "for the better", "for the worse", "worse:", "better, exploratory")


def plan(runs: object, baseline: object = None) -> ComparePlan:
    """What would be compared."""
    named = [str(run) for run in runs] if isinstance(runs, list) else runs
    return make_plan(*read_compared(named, baseline))


def sides(found: ComparePlan) -> list[tuple[str, str, int, int]]:
    return [(pair.name, pair.against, len(pair.before), len(pair.after)) for pair in found.contrasts]


class Compared:
    """A comparison's run folder, and what was printed."""

    def __init__(self, folder: Path, said: str) -> None:
        self.folder = folder
        self.said = said
        self.page = (folder / "comparison.html").read_text(encoding="utf-8")
        self.facts = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))

    @property
    def words(self) -> str:
        """The page's text from its headline to what it leaves out, which speaks of claims in general."""
        body = self.page[self.page.index('class="lede"') : self.page.index('id="limits"')]
        return " ".join(unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", body, flags=re.DOTALL)).split())


def compared(outputs: Path, *overrides: str) -> Compared:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stdout(said):
        status = here(monkeypatch, "recipe=compare", "measure.resamples=300", f"paths.outputs={outputs}", *overrides)
    assert status == 0
    (folder,) = outputs.glob("compare-*")
    return Compared(folder, said.getvalue())


def named(*runs: Path) -> str:
    return f"compare.runs=[{','.join(map(str, runs))}]"


def test_runs_that_differ_by_seed_alone_are_taken_together(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, policy, seed) for policy in ("none", "both") for seed in (1, 2)]
    assert sides(plan(runs)) == [("both", "none", 2, 2)]
    assert sides(plan(runs, "both")) == [("none", "both", 2, 2)]
    assert sides(plan(runs[2:], [str(run) for run in runs[:2]])) == [("both", "none", 2, 2)]
    assert [len(arm.runs) for arm in plan(runs).arms] == [2, 2]


def test_a_single_seed_is_compared_run_by_run_with_the_like_seed_of_the_baseline(tmp_path: Path) -> None:
    none = [make_run(tmp_path, "none", seed) for seed in (1, 2)]
    found = plan([*none, make_run(tmp_path, "both", 2)])
    assert sides(found) == [("both", "none, seed 2", 1, 1)]
    assert found.contrasts[0].before[0].folder == none[1]


def test_policies_under_other_settings_meet_the_baseline_of_their_own(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, policy, 1, lr=lr) for policy in ("none", "both") for lr in (0.1, 0.2)]
    assert sides(plan(runs)) == [
        ("both, trainer.lr=0.1", "none, trainer.lr=0.1", 1, 1),
        ("both, trainer.lr=0.2", "none, trainer.lr=0.2", 1, 1),
    ]
    assert "The runs differ in more than policy and seed: trainer.lr." in plan(runs).notices


def test_models_from_two_folders_are_named_by_these_alone(tmp_path: Path) -> None:
    runs = []
    for name in ("small", "large"):
        folder = make_run(tmp_path / name)
        config = OmegaConf.load(folder / "config.yaml")
        base = f"/some/where/else/{name}/model"
        config.model = {"name": "hf", "base": base, "folder": {"name": base}, "missing": {"name": base}}
        OmegaConf.save(config, folder / "config.yaml")
        runs.append(seal(folder))
    found = plan(runs[1:], [str(runs[0])])
    assert sides(found) == [("none, model.base=large/model", "none, model.base=small/model", 1, 1)]
    assert "The runs differ in more than policy and seed: model.base." in found.notices


def test_a_copy_of_a_run_is_no_second_seed(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both")
    copy = Path(shutil.copytree(both, tmp_path / "copy"))
    found = plan([none, both, copy])
    assert sides(found) == [("both", "none", 1, 1)]
    assert found.notices[0] == (
        "copy has the settings and the seed of mitigate-both-1-, and the same numbers: it is left out."
    )
    with_itself = plan([copy], str(both))
    assert (
        "both, seed 1 and both, seed 1 have identical numbers: it is the same run, a copy of it, or a policy that "
        "changed nothing."
    ) in with_itself.notices


@pytest.mark.parametrize("scene", ["itself", "another seed", "two seeds each"])
def test_nothing_is_claimed_where_nothing_was_done(scene: str, tmp_path: Path) -> None:
    """A run against itself, and one policy under different seeds."""
    runs = [make_run(tmp_path, "none", seed) for seed in (1, 2, 3, 4)]
    named_runs, baseline = {
        "itself": (runs[:1], runs[:1]),
        "another seed": (runs[1:2], runs[:1]),
        "two seeds each": (runs[2:], runs[:2]),
    }[scene]
    which = f"compare.baseline=[{','.join(map(str, baseline))}]"
    found = compared(tmp_path / "out", named(*named_runs), which, "tracking=none")
    for claim in CLAIMS:
        assert claim not in found.words
        assert claim not in found.said
    (contrast,) = found.facts["contrasts"]
    assert {row["verdict"] for row in contrast["primary"].values()} == {
        "itself": {"the same numbers"},
        "another seed": {"no difference shown"},
        "two seeds each": {"no effect shown"},
    }[scene]
    told = {
        "itself": "“none, seed 1” has the same numbers",
        "another seed": "the model of “none, seed 2” is not shown to differ",
        "two seeds each": "“none” is not shown to change anything",
    }
    assert told[scene] in found.words


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model of each of two policies, with one scorer more than every run has."""
    outputs = tmp_path_factory.mktemp("models")
    runs = [make_run(outputs, "none"), make_run(outputs, "both", neutral=0.9, nll=4)]
    for run in runs:
        said = pl.read_parquet(run / "statements.parquet")
        own = said.with_columns(keyword="regard_neutral", keyword_strength="regard_neutral_strength")
        own.write_parquet(run / "statements.parquet")
        seal(run)
    return runs


@pytest.fixture(scope="module")
def two_models(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Compared:
    return compared(tmp_path_factory.mktemp("two"), named(*models), "tracking.mode=offline")


def test_one_seed_each_speaks_of_two_models(two_models: Compared, models: list[Path]) -> None:
    assert (
        "Harm, neutral regard, mean (NRM), neutral template, against “none”: the model of “both” differs, for the "
        "better" in two_models.words
    )
    assert "One seed each: two models, no claim about policies." in two_models.words
    assert "helps" not in two_models.words
    assert "One trained model is one draw." in two_models.words
    (contrast,) = two_models.facts["contrasts"]
    row = contrast["harms"]["neutral_template/NRM"]
    metrics = [json.loads((run / "metrics.json").read_text()) for run in models]
    assert (row["baseline"], row["value"]) == pytest.approx([each["neutral_template/NRM"] for each in metrics])
    assert row["low"] < row["change"] < row["high"]
    assert row["p"] is None
    assert contrast["primary"]["harm"]["figure"] == "neutral_template/NRM"
    assert list(contrast["primary"]) == ["harm"]  # nothing was judged plausible or not


def test_any_column_of_labels_is_compared(two_models: Compared) -> None:
    (contrast,) = two_models.facts["contrasts"]
    regard, own = (contrast["harms"][name] for name in ("neutral_template/NRM", "keyword/neutral_mean"))
    assert own["change"] == regard["change"]
    assert "filters by sentiment and regard, and not by keyword." in two_models.words


def test_the_page_is_whole_trusts_no_text_and_warns(two_models: Compared) -> None:
    page = two_models.page
    assert UNTRUSTED not in page
    assert "src=" not in page
    assert 'http-equiv="Content-Security-Policy"' in page
    assert page.index("content warning") < page.index("&lt;b&gt;")
    assert "only by “none”" in page
    assert 'aria-label="Scatter plot of 2 models of 2 policies' in page


def test_w_and_b_has_the_comparison_beside_the_runs(two_models: Compared) -> None:
    (record,) = two_models.folder.glob("wandb/offline-run-*")
    inspect = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(record)]
    done = subprocess.run(inspect, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    read = done.stdout
    assert "both/harm_neutral_regard_percent_difference" in read
    assert "Custom Chart Tables/differences/harm_neutral_regard_percent_table" in read
    assert "Custom Chart Tables/harm_against_cost/perplexity_neutral_scatter_table" in read
    assert json.loads(read)["tags"] == [
        "recipe:compare",
        "policy:none",
        "policy:both",
        "data:made_up",
        "model:none_at_all",
    ]
    said = next(record.glob("run-*.wandb")).read_bytes()
    assert b"made_up-none_at_all" in said  # the group that the runs themselves are in
    assert b"compare" in said
    settings = OmegaConf.load(two_models.folder / "config.yaml")
    assert (settings.data.name, settings.data.attribution, settings.policy.name) == ("made_up", "nobody", "both")


def test_a_complete_comparison_is_read_and_says_the_same(two_models: Compared, models: list[Path]) -> None:
    again = compared(two_models.folder.parent, named(*models), "compare.baseline=none", "tracking.mode=offline")
    assert "complete: nothing is left to do" in again.said
    (contrast,) = two_models.facts["contrasts"]
    for said in (contrast["sentence"], contrast["cost"], two_models.facts["figures"]):
        assert said in again.said
    assert two_models.facts["lines"][0] not in again.said
    verbose = compared(two_models.folder.parent, named(*models), "compare.baseline=none", "verbose=true")
    assert two_models.facts["lines"][0] in verbose.said
    assert two_models.page == again.page


def test_a_complete_comparison_that_wandb_hands_out_is_recorded_whole(tmp_path: Path, monkeypatch) -> None:
    recorded: list[object] = []
    monkeypatch.setattr("mitigate.report.comparison.Comparison.pictures", [])
    monkeypatch.setattr(NoTracking, "summarise", lambda self, metrics: recorded.append(list(metrics)[:1]))
    monkeypatch.setattr(NoTracking, "table", lambda self, name, frame: recorded.append((name, frame.height > 0)))
    mine = (named(make_run(tmp_path, "none"), make_run(tmp_path, "both", neutral=0.9)), "tracking=none")
    compared(tmp_path / "out", *mine)
    names = ("differences", "primary", "margins", "harms", "quality", "moves", "models")
    whole = [["both/harm_neutral_regard_percent_difference"], *((name, True) for name in names)]
    assert recorded == whole
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    assert compared(tmp_path / "out", *mine).said.count("cached") == 5
    assert recorded == 2 * whole


def test_several_seeds_speak_of_the_policy_and_of_what_it_costs(tmp_path: Path) -> None:
    none = [make_run(tmp_path, "none", seed, valid=0.8) for seed in range(5)]
    both = [make_run(tmp_path, "both", seed, neutral=0.9, nll=4, valid=0.6) for seed in range(5)]
    found = compared(tmp_path / "out", named(*none, *both), "tracking=none")
    assert "Quality, plausible share (all probed statements), against “none”: “both” makes it worse" in found.words
    assert "Harm, neutral regard, mean (NRM), neutral template: “both” helps" in found.words
    assert "Quality is worse than its margins allow with “both”." in found.words
    assert "F1 with people: favouritism 0.43 to 0.56" in found.words
    (contrast,) = found.facts["contrasts"]
    quality = contrast["quality"]
    assert quality["quality/perplexity/neutral"]["change"] == pytest.approx(2.718, rel=0.02)
    assert quality["quality/perplexity/neutral"]["items"] == 40
    assert quality["quality/bits_per_char/all"]["change"] == pytest.approx(2 / 10 / 0.6931, rel=0.02)
    assert quality["quality/valid/all"]["change"] == pytest.approx(-20, abs=2)
    assert quality["quality/valid/relation/IsA"]["change"] == pytest.approx(-20, abs=3)
    assert quality["quality/perplexity/relation/IsA"]["change"] == pytest.approx(2.718, rel=0.05)
    assert contrast["quality_kept"] == "lost"
    assert list(contrast["margins"]) == ["quality/perplexity/neutral", "quality/valid/all"]
    assert 0 < contrast["margins"]["quality/valid/all"]["copy_passes"] < 100
    primary = contrast["primary"]
    assert {name: row["verdict"] for name, row in primary.items()} == {"quality": "makes it worse", "harm": "helps"}
    assert primary["harm"]["low_corrected"] < primary["harm"]["low"] < primary["harm"]["fixed_low"]
    assert "both against none by relation" in found.words
    assert quality["distinct_tails"]["low"] is None
    assert "“both” is " in found.said
    assert ", shown with 5 seeds each." in found.said
    (line,) = found.facts["lines"]
    assert line.startswith("both against none (5 seeds each)")
    assert "helps" in line
    assert "quality/valid/all" in line
    pictures = {f"pareto-{harm}-{cost}" for harm in ("regard", "sentiment") for cost in ("perplexity", "valid")}
    assert {path.name for path in (found.folder / "plots").iterdir()} == {
        *(f"{name}.{kind}" for name in pictures for kind in ("png", "svg")),
        "captions.csv",
    }
    assert {path.name for path in (found.folder / "tables").iterdir()} == {
        f"{name}.{kind}"
        for name in ("primary", "margins", "harms", "quality", "moves", "models")
        for kind in ("csv", "tex")
    }


def test_runs_that_were_asked_other_questions_meet_where_they_can(tmp_path: Path) -> None:
    none = make_run(tmp_path, "none", num_targets=40)
    both = make_run(tmp_path, "both", num_targets=30, relations=("IsA", "CapableOf", "UsedFor"))
    found = plan([none, both])
    assert found.relations == ["IsA", "CapableOf"]
    assert (
        "Not all runs were asked about the same targets: 30 are compared, up to 10 of a run are left out."
        in found.notices
    )
    assert (
        "Not all runs were asked for the same relations: 2 are compared, up to 1 of a run are left out."
        in found.notices
    )
    assert any("fingerprints of corpus and targets differ" in notice for notice in found.notices)


def test_a_reader_is_told_of_other_versions_deaf_models_and_few_targets(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none", num_targets=24), make_run(tmp_path, "both", num_targets=24)
    manifest = json.loads((both / "manifest.json").read_text())
    (both / "manifest.json").write_text(json.dumps(manifest | {"torch": "3"}))
    metrics = json.loads((both / "metrics.json").read_text())
    (both / "metrics.json").write_text(json.dumps(metrics | {"shared_tails": 80.0}))
    seal(both)
    notices = plan([none, both]).notices
    assert "The runs were made by different versions of torch: 2, 3." in notices
    assert any("largely ignore the target" in notice and both.name in notice for notice in notices)
    thought = pl.read_parquet(both / "likelihood.parquet").with_columns(pl.col("tokens") + 1)
    thought.write_parquet(both / "likelihood.parquet")
    seal(both)
    assert (
        "The models cut text into tokens differently: compare bits per character, not perplexity."
        in plan([none, both]).notices
    )
    assert (
        "Few targets in gender, origin (under 20): these words say little about others. In a comparison of several "
        "seeds these categories have intervals for these very words; of single models, none."
    ) in notices


def test_only_what_can_be_compared_is(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both")
    other = make_run(tmp_path / "other", "sentiment", prefix="u")
    (tmp_path / "empty").mkdir()
    unfinished = Path(shutil.copytree(both, tmp_path / "unfinished"))
    (unfinished / "manifest.json").unlink()
    audit = Path(shutil.copytree(both, tmp_path / "audit"))
    (audit / "config.yaml").write_text("recipe: {name: audit}")
    with pytest.raises(
        MitigateError, match="empty is no run folder: it has.*; .*unfinished is not finished.*; .*recipe=audit"
    ):
        plan([none, tmp_path / "empty", unfinished, audit])
    with pytest.raises(MitigateError, match="and a comparison takes two runs or more"):
        plan([none])
    with pytest.raises(MitigateError, match=r"compare.baseline=swap, but no run .*\(policies among .*: none, both\)"):
        plan([none, both], "swap")
    with pytest.raises(MitigateError, match="no compare.baseline is given.*no run is of that policy"):
        plan([both, make_run(tmp_path, "regard")])
    with pytest.raises(MitigateError, match="all runs are of that policy"):
        plan([none, make_run(tmp_path, "none", 2)])
    with pytest.raises(MitigateError, match=r"have no target in common.*the same probe\.targets"):
        plan([none, other])


def test_a_single_folder_needs_no_brackets(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both")
    assert sides(plan(str(both), str(none))) == [("both", "none", 1, 1)]
    with pytest.raises(MitigateError, match=r"compare\.runs=\[\], and a comparison takes two runs or more; name more"):
        plan(None, [str(none), str(both)])


@pytest.mark.parametrize("config", ["a: [", "- a\n- b", "5", "a: {${"])
def test_a_broken_file_of_settings_is_told(config: str, tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both")
    (both / "config.yaml").write_text(config)
    with pytest.raises(
        MitigateError, match=r"compare\.runs: .*both-1- is no run folder: its config.yaml cannot be read"
    ):
        plan([none, both])


def test_what_is_no_run_folder_any_more_is_told(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, policy) for policy in ("none", "both", "regard")]
    (runs[1] / "config.yaml").write_text("name: another program's")
    (runs[2] / "likelihood.parquet").unlink()
    faults = "manifest.json is no folder; .*both.* names no recipe; .*regard.* lacks likelihood.parquet: the command"
    with pytest.raises(MitigateError, match=faults):
        plan([runs[0] / "manifest.json", *runs[1:]])


def test_a_policy_that_changed_nothing_is_not_called_a_copy_alone(tmp_path: Path) -> None:
    none = make_run(tmp_path, "none")
    idle = Path(shutil.copytree(none, tmp_path / "idle"))
    config = OmegaConf.load(idle / "config.yaml")
    config.policy.name = "sentiment"
    OmegaConf.save(config, idle / "config.yaml")
    seal(idle)
    assert any(notice.endswith("or a policy that changed nothing.") for notice in plan([none, idle]).notices)


def test_perplexity_of_several_seeds_is_a_geometric_mean_without_intervals_too(tmp_path: Path) -> None:
    """Nothing is paired here: the runs were tested on other triples."""
    none = [make_run(tmp_path, "none", seed, nll=nll) for seed, nll in ((1, 2.0), (2, 4.0))]
    both = [make_run(tmp_path, "both", seed, nll=6.0) for seed in (1, 2)]
    for run in both:
        pl.read_parquet(run / "likelihood.parquet").head(50).write_parquet(run / "likelihood.parquet")
        seal(run)
    compared = plan([*none, *both])
    found = quality_differences(compared.contrasts, compared.relations).row(
        by_predicate=pl.col("figure").str.contains("neutral"), named=True
    )
    assert found["low"] is None
    assert found["baseline"] == pytest.approx(math.exp(1.5))
    assert found["change"] == pytest.approx(math.exp(3) / math.exp(1.5))


def test_the_library_compares_folders(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both", neutral=0.9)
    found = compare_runs([none, both])
    assert [(pair.name, pair.against) for pair in found.contrasts] == [("both", "none")]
    row = found.harms.row(by_predicate=pl.col("figure") == "NRM", named=True)
    shares = {run: 100 * (pl.read_parquet(run / "statements.parquet")["regard"] == 0).mean() for run in (none, both)}
    assert (row["baseline"], row["value"]) == pytest.approx((shares[none], shares[both]))
    assert found.moves["target"].n_unique() == 40
    assert "quality/perplexity/neutral" in found.quality["figure"].to_list()
    assert any("One trained model is one draw" in notice for notice in found.notices)
    with pytest.raises(MitigateError, match="compare.baseline=swap, but no run is of that policy"):
        compare_runs([none, both], "swap")


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
    found = compared(out, named(*runs), "compare.baseline=none", "tracking.mode=offline")
    assert r"../\${oc.env:SECRET}, ${oc.env:SECRET}, licence MIT" in unescape(found.page)
    assert OmegaConf.to_container(OmegaConf.load(found.folder / "config.yaml"))["data"]["attribution"] == (
        "${oc.env:SECRET}"
    )
    assert found.folder.parent == out
    assert [path for path in found.folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []
    assert "hunter2" not in found.said


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json", "config.yaml", "statements.parquet"])
@pytest.mark.parametrize("damage", ["header", "cut", "list"])
def test_a_damaged_run_folder_is_one_sentence(
    name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none, both = make_run(tmp_path, "none"), make_run(tmp_path, "both")
    content = (both / name).read_bytes()
    damaged = {"header": b"\xff\xfe" + content[2:], "cut": content[: len(content) // 2], "list": b"[1]"}[damage]
    (both / name).write_bytes(damaged)
    out = tmp_path / "out"
    assert here(monkeypatch, "recipe=compare", named(none, both), f"paths.outputs={out}", "tracking=none") == 2
    said = capsys.readouterr().err
    assert f"\nmitigate: compare.runs: {both}" in "\n" + said
    assert name in said
    assert "the command that made it writes it anew" in said
    assert "Traceback" not in said
    assert not out.exists()
