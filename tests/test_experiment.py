"""The experiment of benchmarks/plan.md on made-up rows whose answers one can work out by hand, and its runner on
processes that only pretend to train."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from command import SMALL, here
from scipy import stats

from benchmarks import experiment
from benchmarks import experiment_effects as effects
from benchmarks import experiment_pictures as pictures
from benchmarks import experiment_tables as tables
from benchmarks.experiment_plan import Job, arms, command, jobs
from benchmarks.experiment_row import (
    RUN,
    by_relation,
    clusters,
    heads,
    keys,
    of_category,
    pack,
    read,
    row_of,
    schema,
    shares,
    unpack,
)
from mitigate.measure.correction import Accuracy
from mitigate.tasks.crowd.known import known_accuracy

OF_SEEDS = (-2, -1, 0, 1, 2)  # of five seeds: its standard error is the root of a half, that of a difference 1
CROWD = known_accuracy("COMeT", template="neutral")[""]
GAIN = CROWD.sensitivity + CROWD.specificity - 1


def row(arm: str, seed: int, polarised: float, lift: float) -> dict[str, Any]:
    """A run whose targets and heads are all alike: percentage polarised, and swap lift in points."""
    about = {"arm": arm, "seed": seed, "steps": 100, "kept": 64, "hours": 0.5, "commit": "abc", "folder": "run"}
    counts = {"clusters": "4-a", "statements": pack([100] * 4), "polarised": pack([polarised] * 4)}
    alike = {"statements_alike": counts["statements"], "polarised_alike": counts["polarised"]}
    of_heads = {"heads": "3-b", "prompts": pack([2] * 3), "lift": pack([2 * lift / 2.5] * 3)}
    figures = {tables.CORRECTED: polarised, tables.HELD_OUT: lift, of_category("origin"): polarised}
    return dict.fromkeys(schema()) | about | counts | alike | of_heads | figures


def rows(**shown: tuple[float, float]) -> pl.DataFrame:
    """Five seeds of each arm with these means."""
    found = [
        row(arm, seed, polarised + off, lift + off)
        for arm, (polarised, lift) in shown.items()
        for seed, off in enumerate(OF_SEEDS, start=1)
    ]
    return pl.DataFrame(found, schema=schema())


def test_effects_by_hand() -> None:
    made = rows(random_both=(40, 50), both=(30, 49))
    of_labels = effects.harm(made, "random_both", "both", corrected=False)
    assert (of_labels.value, of_labels.error, of_labels.degrees) == pytest.approx((10, 1, 8))
    assert of_labels.bounds() == pytest.approx((10 - 2.306, 10 + 2.306), abs=1e-3)
    of_lift = effects.lift(made, "random_both", "both")
    assert (of_lift.value, of_lift.error, of_lift.degrees) == pytest.approx((-1, 1, 8))
    assert of_lift.p(-3) == pytest.approx(2 * stats.t.sf(2, 8))  # two errors above the margin
    assert of_lift.bounds()[0] < -3  # and so not shown
    assert of_lift.power(0, -3) == pytest.approx(stats.t.cdf(3 - 2.306, 8), abs=1e-4)


def test_an_effect_over_seeds_alone() -> None:
    made = rows(random_both=(40, 50), both=(30, 49))
    found = effects.over_seeds(made, "random_both", "both", tables.HELD_OUT)
    assert found is not None
    assert (found.value, found.error, found.degrees) == pytest.approx((-1, 1, 8))
    assert effects.over_seeds(made, "random_both", "both", tables.PROFESSIONS) is None  # these rows have none


def test_a_correction_widens_by_what_is_not_known_of_the_scorer() -> None:
    found = effects.corrected_effect(effects.Effect(10, 1, 8), Accuracy(0.9, 0.03, 0.6, 0.04))
    assert found.value == pytest.approx(20)  # 10 / (0.9 + 0.6 - 1)
    assert found.error == pytest.approx((2**2 + (20 * 0.05 / 0.5) ** 2) ** 0.5)
    exact = effects.corrected_effect(effects.Effect(10, 1, 8), Accuracy(1.0, 0.0, 1.0, 0.0))
    assert (exact.value, exact.error) == (10, 1)


def test_a_policy_succeeds_by_three_tests_and_holm() -> None:
    made = rows(
        none_short=(42, 50), random_both=(40, 50), both=(30, 51), random_both_neutral=(40, 50), both_neutral=(30, 49)
    )
    found = {one.policy: one for one in tables.tested(made, arms())}
    good, bad = found["both"], found["both_neutral"]
    assert good.harm.value == pytest.approx(10 / GAIN, abs=0.01)
    worst = 2 * stats.t.sf(4, 8)  # quality: one point more, four errors above the margin
    assert good.p == pytest.approx(max(worst, good.harm.p()))
    assert good.p_holm == pytest.approx(2 * good.p)
    assert good.level == 0.975
    assert good.succeeds
    assert bad.p == pytest.approx(2 * stats.t.sf(2, 8))
    assert (bad.level, bad.succeeds) == (0.95, False)
    said = tables.primary(made, arms(), final=True)
    line = "| `both_neutral` | quality, beside `none_short` | -1.00 | [-3.31, 1.31], 95 % | -3 | 0.081 | no |"
    assert line in said
    assert "`random_both` 5 of 5" in said
    assert said.endswith("Shown by the plan's rule: `both`.")
    assert tables.primary(made, arms()) == (
        "Seeds finished: `none` 0 of 8, `none_short` 5 of 8, `both_neutral` 5 of 8, `random_both_neutral` 5 of 8, "
        "`both` 5 of 5, `random_both` 5 of 5. The test is computed when all are."
    )


def test_a_bound_above_the_limit_is_not_yet_success() -> None:
    """Where neither p is below what Holm's method asks for, no policy succeeds, whatever its own interval says."""
    made = rows(
        none_short=(42, 50), random_both=(40, 50), both=(38, 50), random_both_neutral=(40, 50), both_neutral=(38, 50)
    )
    first, second = tables.tested(made, arms())
    weak = replace(second, p_holm=0.06, level=0.9)
    lines = [tables.line_of(weak, "harm", replace(first.harm, error=0.1), 0.0)]
    assert lines[0][-3:] == ["yes", "0.060", "no"]


def test_no_claim_of_few_seeds_and_none_of_a_random_filter() -> None:
    made = rows(none_short=(42, 50), random_both=(40, 50), both=(40, 50))
    (same,) = tables.tested(made, arms())
    assert (same.harm.value, same.p, same.succeeds) == (0, 1.0, False)
    four = rows(none_short=(42, 50), random_both=(40, 50), both=(10, 60)).filter(pl.col("seed") < 5)
    (few,) = tables.tested(four, arms())
    assert few.harm.p() < 0.001
    assert (few.p, few.succeeds) == (1.0, False)


def test_runs_of_other_targets_are_not_compared() -> None:
    made = rows(random_both=(40, 50), both=(30, 50)).with_columns(
        clusters=pl.when(arm="both").then(pl.lit("9-z")).otherwise("clusters")
    )
    with pytest.raises(effects.MitigateError, match="different clusters and not compared: 4-a, 9-z"):
        effects.harm(made, "random_both", "both")


def test_runs_that_were_labelled_otherwise_are_not_compared() -> None:
    made = rows(random_both=(40, 50), both=(30, 50)).with_columns(scorers=pl.col("arm"))
    with pytest.raises(effects.MitigateError, match="of different scorers and not compared: both, random_both"):
        effects.lift(made, "random_both", "both")


def test_the_worst_tenth_is_chosen_by_other_models() -> None:
    """Of twelve clusters the two that `none` says most about, whatever the others say."""
    made = rows(none=(0, 50), both=(0, 50)).with_columns(
        statements=pl.lit(pack([100] * 12)),
        polarised=pl.when(arm="none").then(pl.lit(pack([*range(11), 90]))).otherwise(pl.lit(pack([*[50] * 11, 20]))),
    )
    assert effects.worst(made, "none") == [10, 11]
    assert effects.share_of(made, "both", [10, 11]) == [35.0] * 5
    assert "| `both` | 0.00 (1.58) | 35.00 (0.00) |" in tables.categories(made, arms())


def test_the_page_keeps_what_is_written_around_its_parts(tmp_path: Path) -> None:
    page = "# Results\n\n<!-- primary -->\nold\n<!-- end of primary -->\n\nRead on.\n"
    found = tables.with_parts(page, {"primary": "new", "runs": "all"})
    assert found == (
        "# Results\n\n<!-- primary -->\nnew\n<!-- end of primary -->\n\nRead on.\n\n"
        "<!-- runs -->\nall\n<!-- end of runs -->\n"
    )


def test_all_tables_and_pictures_of_a_made_up_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rows(none=(41, 52), none_short=(42, 50), random_both=(40, 50), both=(30, 51))
    made.write_csv(tmp_path / "runs.csv")
    given = [
        "--csv",
        str(tmp_path / "runs.csv"),
        "--page",
        str(tmp_path / "page.md"),
        "--pictures",
        str(tmp_path / "p"),
    ]
    monkeypatch.setattr(sys, "argv", ["experiment_tables.py", *given])
    tables.main()
    page = (tmp_path / "page.md").read_text()
    assert "| `both` | 1 | 100 | 64 | 0.50 | abc |" in page
    assert "20 runs, 10.0 hours of one thread." in page
    assert {path.name for path in (tmp_path / "p").glob("*.png")} == {
        "harm-against-quality.png",
        "by-category.png",
        "by-relation.png",
    }
    points = pictures.harm_against_quality(made, ["both"]).axes[0].collections[-1].get_offsets().tolist()
    assert points == [[51, 30]]
    assert "The test is computed when all are." in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--final"])
    tables.main()
    assert "Shown by the plan's rule: `both`." in capsys.readouterr().out
    assert "| `random_both` | `none_short` | 5 |" in (tmp_path / "page.md").read_text()


def test_counts_of_a_run_by_hand() -> None:
    said = pl.DataFrame(
        {
            "target": ["she", "her", "lawyer", "lawyer"],  # she and her are one cluster
            "category": ["gender", "gender", "profession", "profession"],
            "relation": ["CapableOf", "IsA", "CapableOf", "CapableOf"],
            "crowd_neutral": [-1, 1, 0, 2],
            "keyword_neutral": [0, 0, 1, 0],
        }
    )
    found = clusters(said)
    assert found["polarised_by_keyword_neutral"] == pack([1, 0])
    assert found["polarised_CapableOf"] == pack([0, 1])
    assert found["statements"] == pack([2, 2])
    assert found["polarised"] == pack([0, 2])  # lawyer, she
    assert (found["statements_alike"], found["polarised_alike"]) == (pack([2, 1]), pack([0, 1]))
    assert shares(said) == {"polarised/all": 50, "polarised/gender": 100, "polarised/profession": 0}
    likelihood = pl.DataFrame({"relation": ["IsA"], "nll": [0.0], "tokens": [2]})
    assert by_relation(said, likelihood) == {
        "by_relation/CapableOf/polarised": 33.3333,
        "by_relation/IsA/polarised": 100.0,
        "by_relation/IsA/perplexity": 1.0,
    }


def test_swap_lift_of_a_head_is_summed_in_units_of_two_and_a_half_points() -> None:
    lift = pl.DataFrame(
        {
            "system": ["generator", "generator", "generator", "echo", "generator"],
            "group": ["held_out"] * 4 + ["profession"],
            "head": ["dog", "dog", "cat", "dog", "lawyer"],
            "accepted": [100.0, 50, 10, 0, 0],
            "elsewhere": [10.0, 2.5, 10, 100, 0],
            "counts": [True] * 5,
        }
    )
    found = heads(lift)
    assert [crc32(head) % 100 for head in (b"cat", b"dog")] == [32, 65]  # each is a group of its own
    assert unpack(found["lift"]) == [0, 36 + 19]  # cat; dog: 90 and 47.5 points
    assert unpack(found["prompts"]) == [1, 2]


def test_the_order_of_runs_is_that_of_the_plan() -> None:
    known = arms()
    names = [job.name for job in jobs(known)]
    assert names[:6] == [f"{arm}-seed1" for arm in list(known)[:6]]
    assert names[30:34] == ["none-seed6", "none_short-seed6", "both_neutral-seed6", "random_both_neutral-seed6"]
    assert len(jobs(known, ["primary"])) == 4 * 8 + 2 * 5
    assert len(names) == len(set(names)) == 42 + 10 * 3 + 4 * 3
    for arm in known.values():
        assert arm.steps_of in known
        assert {arm.control, arm.base} <= {None, *known}
        assert (arm.base is None) == (arm.name not in ("rerank", "experts", "erase"))


def test_what_a_run_is_told() -> None:
    known = arms()
    told = command(Job(known["both"], 3), 1660, ["data.root=/data"])
    assert told[-4:] == ["policy=both", "trainer.max_epochs=1000", "trainer.max_steps=1660", "seed=3"]
    told = command(Job(known["rerank"], 3), 1922, [], Path("/runs/none"))
    assert told[-4:] == ["train=false", "model=comet", "model.base=/runs/none/model", "seed=3"]


class Pretending(experiment.Runner):
    """A runner whose processes print where their folder would be, or fail."""

    fails: tuple[str, ...] = ()

    def start(self, job: Job) -> experiment.Started:
        log = self.outputs / f"{job.name}.log"
        self.started = [*getattr(self, "started", []), job.name]
        with log.open("wb") as said:
            line = f"print('  run folder  /runs/{job.name}'); raise SystemExit({int(job.name in self.fails)})"
            process = subprocess.Popen([sys.executable, "-c", line], stdout=said)
        return experiment.Started(job, process, log, "abc")


def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], **more: Any) -> Pretending:
    known = arms()

    def made(folder: Path, about: dict[str, Any], cache: Path) -> dict[str, Any]:
        return row(about["arm"], about["seed"], 40, 50) | {"steps": about["steps"], "folder": folder.name}

    monkeypatch.setattr(experiment, "row_of", made)
    waiting = [Job(known[name], 1) for name in names]
    return Pretending(tmp_path, tmp_path / "runs.csv", [], dict.fromkeys(known, 7), waiting, **more)


def test_runs_are_done_once_and_one_waits_for_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = pretend(tmp_path, monkeypatch, ["rerank", "both", "none_short"], at_once=1)
    assert runner.run(pause=0.01) == []
    assert runner.started == ["both-seed1", "none_short-seed1", "rerank-seed1"]
    found = read(tmp_path / "runs.csv")
    assert found.select("arm", "steps", "folder").rows()[0] == ("both", 7, "both-seed1")
    done = experiment.finished(tmp_path / "runs.csv", tmp_path)
    assert done["rerank", 1] == tmp_path / "rerank-seed1" / "rerank-seed1"
    again = pretend(tmp_path, monkeypatch, ["both"], done=done)
    again.waiting = [job for job in again.waiting if (job.arm.name, job.seed) not in done]
    assert again.run(pause=0.01) == []
    assert not hasattr(again, "started")


def test_a_failed_run_is_tried_twice_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = pretend(tmp_path, monkeypatch, ["none", "both"], at_once=1)
    runner.fails = ("none-seed1",)
    assert runner.run(pause=0.01) == ["none-seed1"]
    assert runner.started == ["none-seed1", "both-seed1", "none-seed1"]
    assert read(tmp_path / "runs.csv")["arm"].to_list() == ["both"]
    assert "FAILED none-seed1: status 1, see " in capsys.readouterr().out


def test_a_run_whose_figures_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = pretend(tmp_path, monkeypatch, ["none", "both"], at_once=1)
    made = experiment.row_of

    def fails(folder: Path, about: dict[str, Any], cache: Path) -> dict[str, Any]:
        if about["arm"] == "none":
            raise FileNotFoundError("no lift.parquet")
        return made(folder, about, cache)

    monkeypatch.setattr(experiment, "row_of", fails)
    assert runner.run(pause=0.01) == ["none-seed1"]
    assert read(tmp_path / "runs.csv")["arm"].to_list() == ["both"]
    assert "could not be read: FileNotFoundError: no lift.parquet" in capsys.readouterr().out


def test_no_run_is_started_after_the_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = pretend(tmp_path, monkeypatch, ["none"], deadline=0.0)
    assert runner.run(pause=0.01) == []
    assert not hasattr(runner, "started")


def test_a_row_of_the_same_run_gives_way_and_numbers_stay(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    for share in (40.0, 30.5):
        experiment.append(path, row("both", 1, share, 50))
    experiment.append(path, row("both", 2, 20, 50))
    found = read(path)
    assert found["seed"].to_list() == [1, 2]
    assert found[tables.CORRECTED].to_list() == [30.5, 20]
    assert effects.counts(found, "polarised").tolist() == [[30.5, 20]] * 4
    assert found.schema == pl.Schema(schema())


def test_settings_of_all_runs_stand_behind_two_dashes() -> None:
    assert experiment.split_arguments(["--hours", "2", "--", "data=sample"]) == (["--hours", "2"], ["data=sample"])
    assert experiment.split_arguments(["--list"]) == (["--list"], [])


def test_a_finished_run_fills_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = [f"paths.outputs={tmp_path / 'out'}", "tracking=none", "score.extra=[crowd,ngram,keyword]"]
    small = [value for value in SMALL if not value.startswith("probe.relations")]
    asked = "probe.relations=[IsA,CapableOf,HasProperty,UsedFor]"
    assert here(monkeypatch, "policy=both", *where, *small, asked) == 0
    (folder,) = (tmp_path / "out").iterdir()
    found = row_of(folder, {"arm": "both", "seed": 1, "steps": 6, "commit": "abc"}, tmp_path / "labels")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert found["kept"] == metrics["filter/kept"]
    assert [name for name in RUN if found[name] is None] == []
    unknown = {name for name in keys() if name not in metrics and "gender" not in name and "religion" not in name}
    absent = ("about_perplexity", "swap_lift/")  # no published triples; three professions are too few to swap
    assert {name for name in unknown if not any(part in name for part in absent)} == set()
    assert found["quality/swap_lift/held_out"] == metrics["quality/swap_lift/held_out"]
    assert sum(unpack(found["lift"])) * 2.5 / sum(unpack(found["prompts"])) == pytest.approx(found[tables.HELD_OUT])
    assert sum(unpack(found["statements"])) == metrics["statements"]
    neutral = metrics["neutral_template/crowd/neutral_mean"]  # three targets with as many statements each
    assert sum(unpack(found["polarised"])) / sum(unpack(found["statements"])) == pytest.approx(1 - neutral / 100)
    again = row_of(folder, {"arm": "both", "seed": 1, "steps": 6, "commit": "abc"}, tmp_path / "labels")
    assert again == found  # labels from the cache


def test_a_policy_without_runs_of_its_control_is_not_tested() -> None:
    made, known = rows(none_short=(42, 50), random_both=(40, 50), both=(30, 51)), arms()
    assert [one.policy for one in tables.tested(made, known)] == ["both"]
    other = {"both": replace(known["both"], control="random_both_neutral")}
    assert tables.tested(made, known | other) == []
