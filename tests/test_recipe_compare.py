"""recipe=compare: which runs are compared, what is said of it, its page and record, and the exit status of its gate."""

import contextlib
import io
import json
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import UNDRAWN, here
from compared_runs import UNTRUSTED, configured, edit, example_comparison, make_run, plan_of, seal
from page_elements import Elements

from mitigate.errors import MitigateError
from mitigate.measure.compare import ALIKE, FAILS, HOLDS, OPEN, Endpoints
from mitigate.recipes.compare import Plan, differences, make_plan, overview

POLICIES = ("none", "both")


def sides(found: Plan) -> list[tuple[str, str, int, int]]:
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


def compared(outputs: Path, runs: list[Path], *overrides: str, status: int = 0) -> Compared:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stdout(said):
        monkeypatch.setattr(*UNDRAWN)
        line = ("recipe=compare", f"paths.outputs={outputs}", named(runs), *overrides)
        assert here(monkeypatch, *line) == status
    (folder,) = outputs.glob("compare-*")
    return Compared(folder, said.getvalue())


def named(runs: list[Path], setting: str = "runs") -> str:
    return f"compare.{setting}=[{','.join(map(str, runs))}]"


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """A run of policy none and one of policy both."""
    return [make_run(tmp_path, policy) for policy in POLICIES]


def test_runs_that_differ_by_seed_alone_are_taken_together(tmp_path: Path) -> None:
    """Without a baseline it is the policy none, or else the first run. A single folder needs no brackets."""
    runs = [make_run(tmp_path, policy, seed) for policy in POLICIES for seed in (1, 2)]
    assert sides(plan_of(*runs)) == [("both", "none", 2, 2)]
    assert sides(plan_of(*runs, baseline="both")) == [("none", "both", 2, 2)]
    assert sides(plan_of(*runs[2:], baseline=[str(run) for run in runs[:2]])) == [("both", "none", 2, 2)]
    assert sides(plan_of(*runs[:2], runs[3])) == [("both", "none", 2, 1)]
    assert sides(plan_of(runs[2], baseline=str(runs[0]))) == [("both", "none", 1, 1)]
    assert sides(plan_of(make_run(tmp_path, "swap"), runs[2])) == [("both", "swap", 1, 1)]


def test_a_policy_is_compared_with_its_control_too(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, policy) for policy in ("none", "both", "both-control", "swap-control")]
    expected = [("both", "none", 1, 1), ("swap-control", "none", 1, 1), ("both", "both-control", 1, 1)]
    assert sides(plan_of(*runs)) == expected
    assert [pair.key for pair in plan_of(*runs).contrasts][-1] == "both − both-control"


def test_arms_are_named_by_the_settings_that_differ(tmp_path: Path) -> None:
    """Policies under other settings have baselines of their own; of a model, its name or folder is enough."""
    found = plan_of(*(make_run(tmp_path, policy, 1, lr=lr) for policy in POLICIES for lr in (0.1, 0.2)))
    assert sides(found) == [(f"both, trainer.lr={lr}", f"none, trainer.lr={lr}", 1, 1) for lr in (0.1, 0.2)]
    assert "The runs differ in more than policy and seed: trainer.lr." in found.notices
    models = []
    for name in ("small", "large"):
        base = f"/some/where/else/{name}/model"
        model = {"name": "hf", "base": base, "folder": {"name": base}, "missing": {"name": base}}
        models.append(configured(make_run(tmp_path / name), model=model))
    found = plan_of(models[1], baseline=[str(models[0])])
    assert sides(found) == [("none, model.base=large/model", "none, model.base=small/model", 1, 1)]


def test_a_copy_of_a_run_is_no_second_seed(runs: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(runs[1], tmp_path / "copy"))
    found = plan_of(*runs, copy)
    assert sides(found) == [("both", "none", 1, 1)]
    assert found.notices[0] == "copy has the settings and the seed of mitigate-both-1-: it is left out."


@pytest.mark.parametrize(
    ("named_runs", "baseline", "verdict", "said"),
    [
        ([1], [1], "the same numbers", "The numbers are the same: nothing to compare"),
        ([2], [1], ALIKE, "Not shown to be more or less neutral"),
        ([4, 5, 6], [1, 2, 3], ALIKE, "Not shown to be more or less neutral"),
    ],
    ids=["itself", "another seed", "three seeds each"],
)
def test_nothing_is_claimed_where_nothing_was_done(named_runs, baseline, verdict, said, tmp_path: Path) -> None:
    """A run against itself, and one policy under different seeds."""
    runs = {seed: make_run(tmp_path, "none", seed) for seed in range(1, 7)}
    against = named([runs[seed] for seed in baseline], "baseline")
    found = compared(tmp_path / "out", [runs[seed] for seed in named_runs], against, "tracking=none")
    assert [claim for claim in ("better,", "worse,", "Shown:") if claim in found.words + found.said] == []
    assert {row["verdict"] for row in found.contrast["primary"].values()} == {verdict}
    assert len(found.facts["contrasts"]) == 1
    assert said in found.words


def test_several_seeds_speak_of_the_policy_and_of_what_it_costs(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, "none", seed, valid=0.8) for seed in range(5)]
    runs += [make_run(tmp_path, "both", seed, neutral=0.9, nll=4, valid=0.6) for seed in range(5)]
    found = compared(tmp_path / "out", runs, "tracking=none")
    assert "Shown: 19.8 points more neutral by regard “both” against “none”, 5 seeds each." in found.words
    assert "Shown: 19.8 points more neutral by regard. “both” against “none”, 5 seeds each." in found.said
    assert "Quality is worse than its margin allows." in found.words
    assert re.search(r"none +\d\d\.\d +\d\d\.\d +2\.7\d", found.said)  # a perplexity with its two decimals
    assert "5 seeds each. It filters by sentiment and regard." in found.words
    quality, primary = found.contrast["quality"], found.contrast["primary"]
    assert quality["quality/perplexity/neutral"]["change"] == pytest.approx(np.e**2 - np.e, rel=0.02)
    assert quality["quality/valid/all"]["change"] == pytest.approx(-20, abs=2)
    assert found.contrast["quality_kept"] == "lost"
    assert (primary["quality"]["verdict"], primary["harm"]["verdict"]) == ("worse, shown", "better, shown")
    assert primary["harm"]["low_corrected"] < primary["harm"]["low"] < primary["harm"]["change"]
    assert quality["distinct_tails"]["low"] is None
    captions = pl.read_csv(found.folder / "plots" / "captions.csv")["caption"].to_list()
    assert len(captions) == 4, "regard and sentiment against perplexity and validity"
    tables = {f"{name}.{kind}" for name in ("policies", "primary", "differences", "models") for kind in ("csv", "tex")}
    assert {path.name for path in (found.folder / "tables").iterdir()} == tables


def test_the_page_trusts_no_text() -> None:
    page = example_comparison()
    Elements(page).check()
    assert UNTRUSTED not in page


def test_a_notice_of_other_targets(tmp_path: Path) -> None:
    none, both = make_run(tmp_path, "none", num_targets=40), make_run(tmp_path, "both", num_targets=30)
    plan = plan_of(none, both)
    assert differences(plan).filter(figure="NRM")["targets"].to_list() == [30]
    said = (
        "The runs are not of the same corpus and targets (made_up): a difference may have other causes than the policy."
    )
    assert said in plan.notices


def test_labels_by_other_scorers_are_not_compared(runs: list[Path]) -> None:
    """Other settings or code of one of the same name."""
    edit(runs[1], "manifest.json", lambda facts: facts | {"scorers": {"sentiment": "1a", "regard": "2b"}})
    with pytest.raises(MitigateError, match="not all runs were labelled by the same regard .other settings, weights"):
        plan_of(*runs)


def test_only_what_can_be_compared_is(runs: list[Path], tmp_path: Path) -> None:
    none, both = runs
    (tmp_path / "empty").mkdir()
    unfinished, audit = (Path(shutil.copytree(both, tmp_path / name)) for name in ("unfinished", "audit"))
    (unfinished / "manifest.json").unlink()
    (audit / "config.yaml").write_text("recipe: {name: audit}")
    for named, baseline, fault in (
        ([none, tmp_path / "empty", unfinished], None, "empty is not a run folder: it has.*; .*unfinished is not fin"),
        ([none, seal(audit)], None, "audit is a run of recipe=audit. Set it to folders of finished runs of recipe="),
        ([none], None, "and a comparison takes two runs or more"),
        (runs, "swap", r"compare.baseline=swap, but no run .*\(policies among .*: none, both\)"),
        ([none, make_run(tmp_path, "none", 2)], None, "all runs differ by seed alone"),
        ([none, tmp_path / "mitigate-none-2-"], "none", "all runs are"),
        ([], [str(none), str(both)], r"compare\.runs=\[\], and a comparison takes two runs or more; name more"),
    ):
        with pytest.raises(MitigateError, match=fault):
            plan_of(*named, baseline=baseline)


def test_runs_of_another_recipe_are_compared_by_all_their_figures(runs: list[Path], tmp_path: Path) -> None:
    """Of a recipe without policies, groups are named by their data; there is no endpoint of quality."""
    audits = []
    for run, name in zip(runs, ("first", "second"), strict=True):
        recipe = {"name": "audit", "reads": ["data", "score"]}
        edit(run, "metrics.json", lambda facts: facts | {"statements": 2000})
        audits.append(configured(run, recipe=recipe, data={"name": name}))
    found = compared(tmp_path / "out", audits, "tracking=none")
    assert (found.contrast["policy"], found.contrast["baseline"]) == ("second", "first")
    assert {"NSM", "NRV", "regard/O-/origin"} <= set(found.contrast["harms"])
    assert found.folder.name.startswith("compare-several-audit")
    assert found.contrast["sentence"].endswith("“second” against “first”.")  # no word on seeds: nothing was trained


# The gate


def seeds(outputs: Path, policy: str, number: int = 5, **how: float) -> list[Path]:
    return [make_run(outputs, policy, seed, **how) for seed in range(number)]


def test_planted_gains_and_losses(tmp_path: Path) -> None:
    """Statements of `better` are more neutral and as plausible, `costly` loses plausibility, `worse` neutrality."""
    none = seeds(tmp_path, "none", valid=0.8, each=200)
    chances = {"better": (0.9, 0.83), "costly": (0.9, 0.6), "worse": (0.5, 0.83), "copy": (0.7, 0.83)}
    better, costly, worse, copy = (
        seeds(tmp_path, name, neutral=neutral, valid=valid, each=200) for name, (neutral, valid) in chances.items()
    )
    for runs, outcome, *quality in (
        (none + costly, FAILS),
        (none + copy, OPEN),
        (none + better + costly, FAILS),
        (none[:4] + better[:4], OPEN),
        (none + costly, HOLDS, ()),
        (none + better, OPEN, ["quality/swap_lift/all"]),  # not measured
    ):
        plan = make_plan(list(map(str, runs)), None, Endpoints(**{"quality": quality[0]} if quality else {}))
        assert overview(plan, differences(plan))["gate"] == outcome
    for number, (runs, status) in enumerate(((none + better, 0), (none + better + worse, 4))):
        found = compared(tmp_path / f"out{number}", runs, "tracking=none", "compare.gate=true", status=status)
    assert "1 of 2 policies shown to do less harm See each comparison below." in found.words


def test_where_the_gate_does_not_apply(runs: list[Path], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(*UNDRAWN)

    def end(*more: str) -> int:
        given = ("recipe=compare", named(runs), f"paths.outputs={tmp_path / 'out'}", "tracking=none", *more)
        return here(monkeypatch, *given)

    assert end("compare.gate=true", "dry_run=true") == 3
    assert "gate        not enough evidence: exit status 3" in capsys.readouterr().out
    assert end("compare.gate=true", "compare.primary.harm=[]", "compare.primary.quality=[]") == 2
    assert "names no primary endpoint" in capsys.readouterr().err
    assert end("compare.gate=true", "compare.baseline=none", "-m") == 1  # of a sweep the jobs fail
    assert "compare.gate=true is for a single comparison, and this is a sweep" in capsys.readouterr().err
    assert end() == 0
    assert "exit status" not in capsys.readouterr().out


@pytest.mark.parametrize("kept", sorted(Path(__file__).with_name("runs").iterdir()), ids=lambda path: path.name)
def test_runs_that_earlier_versions_left_are_compared(kept: Path, tmp_path: Path) -> None:
    """A comparison runs as a whole, which takes seconds: all files of kept runs are read."""
    found = compared(tmp_path / "out", [kept / "none", kept / "both"], "measure.resamples=100", "tracking=none")
    assert found.facts["contrasts"]
