"""The experiment of benchmarks/plan.md on made-up rows whose answers one can work out by hand, and the comparison of
stories."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl
import pytest
from command import SMALL
from scipy import stats

from benchmarks import experiment
from benchmarks import experiment_effects as effects
from benchmarks import experiment_stories as stories
from benchmarks import experiment_tables as tables
from benchmarks.experiment_plan import BASE, EXPERIMENTS, Job, arms, command, jobs, third_of
from benchmarks.experiment_row import (
    RUN,
    by_relation,
    clusters,
    heads,
    keys,
    of_category,
    pack,
    professions,
    read,
    row_of,
    schema,
    shares,
    unpack,
    valid,
)
from mitigate.measure.confusion import Accuracy
from mitigate.tasks.crowd.accuracy import known_accuracy
from mitigate.tasks.quality import is_neutral

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


def random_and_both(both: tuple[float, float] = (30, 49), **more: tuple[float, float]) -> pl.DataFrame:
    return rows(random_both=(40, 50), both=both, **more)


def test_effects_by_hand() -> None:
    made = random_and_both()
    of_labels = effects.harm(made, "random_both", "both", corrected=False)
    assert (of_labels.value, of_labels.error, of_labels.degrees) == pytest.approx((10, 1, 8))
    assert of_labels.bounds() == pytest.approx((10 - 2.306, 10 + 2.306), abs=1e-3)
    of_lift = effects.lift(made, "random_both", "both")
    assert (of_lift.value, of_lift.error, of_lift.degrees) == pytest.approx((-1, 1, 8))
    assert of_lift.p(-3) == pytest.approx(2 * stats.t.sf(2, 8))  # two errors above the margin
    assert of_lift.bounds()[0] < -3  # and so not shown
    assert of_lift.power(0, -3) == pytest.approx(stats.t.cdf(3 - 2.306, 8), abs=1e-4)
    over_seeds = effects.over_seeds(made, "random_both", "both", tables.HELD_OUT)
    assert over_seeds is not None
    assert (over_seeds.value, over_seeds.error, over_seeds.degrees) == pytest.approx((-1, 1, 8))
    assert effects.over_seeds(made, "random_both", "both", tables.PROFESSIONS) is None  # these rows have none


def test_corrections_widen_and_a_bound_above_the_limit_is_not_yet_success() -> None:
    found = effects.corrected_effect(effects.Effect(10, 1, 8), Accuracy(0.9, 0.03, 0.6, 0.04))
    assert found.value == pytest.approx(20)  # 10 / (0.9 + 0.6 - 1)
    assert found.error == pytest.approx((2**2 + (20 * 0.05 / 0.5) ** 2) ** 0.5)
    exact = effects.corrected_effect(effects.Effect(10, 1, 8), Accuracy(1.0, 0.0, 1.0, 0.0))
    assert (exact.value, exact.error) == (10, 1)
    # Where neither p is below the limit of Holm's method, no policy succeeds, whatever its own interval says.
    made = random_and_both((38, 50), none_short=(42, 50), random_both_neutral=(40, 50), both_neutral=(38, 50))
    first, second = tables.tested(made, arms())
    weak = replace(second, p_holm=0.06, level=0.9)
    assert tables.line_of(weak, "harm", replace(first.harm, error=0.1), 0.0)[-3:] == ["yes", "0.060", "no"]


def test_a_policy_succeeds_by_three_tests_and_holm() -> None:
    made = random_and_both((30, 51), none_short=(42, 50), random_both_neutral=(40, 50), both_neutral=(30, 49))
    found = {one.policy: one for one in tables.tested(made, arms())}
    good, bad = found["both"], found["both_neutral"]
    assert good.harm.value == pytest.approx(10 / GAIN, abs=0.01)
    worst = 2 * stats.t.sf(4, 8)  # quality: one point more, four errors above the margin
    assert (good.p, good.p_holm) == (pytest.approx(max(worst, good.harm.p())), pytest.approx(2 * good.p))
    assert (good.level, good.succeeds) == (0.975, True)
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


def test_no_claim_of_few_seeds_of_a_random_filter_or_without_a_control() -> None:
    (same,) = tables.tested(random_and_both((40, 50), none_short=(42, 50)), arms())
    assert (same.harm.value, same.p, same.succeeds) == (0, 1.0, False)
    (few,) = tables.tested(random_and_both((10, 60), none_short=(42, 50)).filter(pl.col("seed") < 5), arms())
    assert few.harm.p() < 0.001
    assert (few.p, few.succeeds) == (1.0, False)
    made, known = random_and_both((30, 51), none_short=(42, 50)), arms()
    assert [one.policy for one in tables.tested(made, known)] == ["both"]
    other = {"both": replace(known["both"], control="random_both_neutral")}
    assert tables.tested(made, known | other) == []


def test_runs_of_other_targets_or_scorers_are_not_compared() -> None:
    made = random_and_both()
    others = made.with_columns(clusters=pl.when(arm="both").then(pl.lit("9-z")).otherwise("clusters"))
    with pytest.raises(effects.MitigateError, match="different clusters and not compared: 4-a, 9-z"):
        effects.harm(others, "random_both", "both")
    with pytest.raises(effects.MitigateError, match="of different scorers and not compared: both, random_both"):
        effects.lift(made.with_columns(scorers=pl.col("arm")), "random_both", "both")


def test_the_worst_tenth_is_chosen_by_other_models() -> None:
    """Of twelve clusters the two with most polarised statements of `none`, whatever the others generate."""
    most = pl.when(arm="none").then(pl.lit(pack([*range(11), 90]))).otherwise(pl.lit(pack([*[50] * 11, 20])))
    made = rows(none=(0, 50), both=(0, 50)).with_columns(statements=pl.lit(pack([100] * 12)), polarised=most)
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


def test_all_tables_and_pictures_of_a_made_up_file(tmp_path: Path, monkeypatch, capsys) -> None:
    """Takes over 3 s: all pictures of the page are drawn."""
    made = random_and_both((30, 51), none=(41, 52), none_short=(42, 50))
    made.write_csv(tmp_path / "runs.csv")
    page, runs = tmp_path / "page.md", tmp_path / "runs.md"
    runs.write_text("<!-- runs -->\n<!-- end of runs -->\n")
    given = ["--csv", str(tmp_path / "runs.csv"), "--page", str(page), str(runs), "--pictures", str(tmp_path / "p")]
    monkeypatch.setattr(sys, "argv", ["experiment_tables.py", *given])
    tables.main()
    assert "| `both` | 1, 2, 3, 4, 5 | 100 | 64 | 2.50 | abc |" in runs.read_text()
    assert "20 runs, 10.0 hours of one thread." in runs.read_text()
    assert "<!-- runs -->" not in page.read_text()
    drawn = {"harm-against-quality.png", "by-category.png", "by-relation.png"}
    assert {path.name for path in (tmp_path / "p").glob("*.png")} == drawn
    points = tables.harm_against_quality(made, ["both"]).axes[0].collections[-1].get_offsets().tolist()
    assert points == [[51, 30]]
    assert "The test is computed when all are." in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--final"])
    tables.main()
    assert "Shown by the plan's rule: `both`." in capsys.readouterr().out
    assert "| `random_both` | `none_short` | 5 |" in page.read_text()


def test_counts_of_a_run_by_hand() -> None:
    said = pl.DataFrame(
        {
            "target": ["she", "her", "lawyer", "lawyer"],  # she and her are one cluster
            "category": ["gender", "gender", "profession", "profession"],
            "relation": ["CapableOf", "IsA", "CapableOf", "CapableOf"],
            "crowd_neutral": [-1, 1, 0, 2],
            "keyword_neutral": [0, 0, 1, 0],
            "crowd2_neutral": [-1, 0, 1, 1],
        }
    )
    found = clusters(said)
    assert (found["polarised_by_keyword_neutral"], found["polarised_CapableOf"]) == (pack([1, 0]), pack([0, 1]))
    assert (found["polarised_by_crowd2_neutral"], found["prejudice_by_crowd2"]) == (pack([2, 1]), pack([0, 1]))
    assert found["statements"] == pack([2, 2])
    assert found["polarised"] == pack([0, 2])  # lawyer, she
    assert (found["statements_alike"], found["polarised_alike"]) == (pack([2, 1]), pack([0, 1]))
    assert shares(said) == {"polarised/all": 50, "polarised/gender": 100, "polarised/profession": 0}
    likelihood = pl.DataFrame({"relation": ["IsA"], "nll": [0.0], "tokens": [2]})
    polarised = {"by_relation/CapableOf/polarised": 33.3333, "by_relation/IsA/polarised": 100.0}
    assert by_relation(said, likelihood) == polarised | {"by_relation/IsA/perplexity": 1.0}


def test_swap_lift_of_a_head_is_summed_in_units_of_two_and_a_half_points() -> None:
    made = [
        ("generator", "held_out", "dog", 100.0, 10.0),
        ("generator", "held_out", "dog", 50.0, 2.5),
        ("generator", "held_out", "cat", 10.0, 10.0),
        ("echo", "held_out", "dog", 0.0, 100.0),
        ("generator", "profession", "lawyer", 0.0, 0.0),
    ]
    lift = pl.DataFrame(made, schema=["system", "group", "head", "accepted", "elsewhere"], orient="row")
    found = heads(lift.with_columns(counts=True))
    assert [crc32(head) % 100 for head in (b"cat", b"dog")] == [32, 65]  # each is a group of its own
    assert unpack(found["lift"]) == [0, 36 + 19]  # cat; dog: 90 and 47.5 points
    assert unpack(found["prompts"]) == [1, 2]


def test_valid_statements_are_counted_among_neutral_ones_of_three_relations() -> None:
    """Lawyer, then she, whose only neutral statement is of a relation that nobody rated."""
    said = pl.DataFrame(
        {
            "target": ["she", "her", "lawyer", "lawyer", "lawyer"],
            "relation": ["CapableOf", "IsA", "CapableOf", "Causes", "HasProperty"],
            "sentiment_neutral": [-1, 0, 0, 0, 0],
            "regard_neutral": [0, 0, 0, 2, -1],
            "people_valid": [True, None, True, False, True],
        }
    )
    assert valid(said) == {"valid": "1 0", "neutral": "2 0"}
    assert valid(said.drop("people_valid")) == {}


def test_swap_lift_of_professions_is_kept_by_cluster() -> None:
    made = [
        ("generator", "profession", "lawyer", 50.0, 10.0),
        ("generator", "profession", "lawyer", 10.0, 5.0),
        ("generator", "profession", "nurse", 5.0, 0.0),
        ("generator", "held_out", "dog", 100.0, 10.0),
    ]
    lift = pl.DataFrame(made, schema=["system", "group", "head", "accepted", "elsewhere"], orient="row")
    found = professions(lift.with_columns(counts=True))
    assert (found["lift_professions"], found["prompts_professions"]) == ("18 2", "2 1")


def test_the_arms_of_the_second_plan_have_a_base_a_control_and_as_many_steps() -> None:
    known = arms(EXPERIMENTS["plan2"].arms)
    assert {arm.steps_of for arm in known.values()} == {"none"}
    assert known == EXPERIMENTS["plan2"].known() | EXPERIMENTS["plan2_lm"].known()
    assert [job.seed for job in jobs(known, ["screening"])][::14] == [11, 12, 13]
    for arm in known.values():
        assert {arm.control, arm.base} <= {None, *known}
        assert (arm.base is None) == (BASE not in " ".join(arm.settings))
        tuning = [setting for setting in arm.settings if setting.startswith("policy.tuning_steps=")]
        assert tuning == [f"policy.tuning_steps={known['none_before'].fewer}"] * (arm.base == "none_before")
        names = [
            setting for setting in command(Job(arm, 11), 1285, [], Path("/run")) if not setting.startswith("score.")
        ]
        assert sum(name.startswith("experiment=") for name in names) == 1
    told = command(Job(known["replace"], 11), 1485, [], Path("/runs/none"), EXPERIMENTS["plan2"].settings)
    assert told[-5:-3] == ["policy=replace", "policy.generator=/runs/none/model"]
    shares = [sum(third_of(f"group {number}") == part for number in range(100)) for part in range(3)]
    assert sum(shares) == 100
    assert min(shares) > 20


def test_the_plan_orders_runs_and_gives_each_its_command() -> None:
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
    known = arms()
    told = command(Job(known["both"], 3), 1660, ["data.root=/data"])
    assert told[-4:] == ["policy=both", "trainer.max_epochs=1000", "trainer.max_steps=1660", "seed=3"]
    told = command(Job(known["rerank"], 3), 1922, [], Path("/runs/none"))
    own = ["policy=rerank", "train=false", "model=comet", "model.base=/runs/none/model"]
    assert told[-7:] == [*own, "trainer.max_epochs=1000", "trainer.max_steps=1922", "seed=3"]
    assert experiment.split_arguments(["--hours", "2", "--", "data=sample"]) == (["--hours", "2"], ["data=sample"])
    assert experiment.split_arguments(["--list"]) == (["--list"], [])


class Pretending(experiment.Runner):
    """A runner whose processes print where their folder would be, or fail."""

    fails: tuple[str, ...] = ()

    def start(self, job: Job) -> experiment.Started:
        log = self.outputs / f"{job.name}.log"
        self.started = [*getattr(self, "started", []), job.name]
        with log.open("wb") as said:
            line = f"echo '  run folder  /runs/{job.name}'; exit {int(job.name in self.fails)}"
            process = subprocess.Popen(["sh", "-c", line], stdout=said)
        return experiment.Started(job, process, log, "abc")


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    known, csv = arms(), tmp_path / "runs.csv"

    def made(folder: Path, about: dict[str, Any], cache: Path) -> dict[str, Any]:
        if about["arm"] == "random_both":
            raise FileNotFoundError("no lift.parquet")
        return row(about["arm"], about["seed"], 40, 50) | {"steps": about["steps"], "folder": folder.name}

    monkeypatch.setattr(experiment, "row_of", made)
    return lambda names, **more: Pretending(
        tmp_path, csv, [], dict.fromkeys(known, 7), [Job(known[name], 1) for name in names], **more
    )


def test_runs_are_done_once_and_one_waits_for_its_base(tmp_path: Path, pretend) -> None:
    runner = pretend(["rerank", "both", "none_short"], at_once=1)
    assert runner.run(pause=0.01) == []
    assert runner.started == ["both-seed1", "none_short-seed1", "rerank-seed1"]
    found = read(tmp_path / "runs.csv")
    assert found.select("arm", "steps", "folder").rows()[0] == ("both", 7, "both-seed1")
    (tmp_path / "both-seed1").mkdir()
    done = experiment.finished(tmp_path / "runs.csv", tmp_path)
    assert done["rerank", 1] == tmp_path / "seed1" / "rerank-seed1"
    assert done["both", 1] == tmp_path / "both-seed1" / "both-seed1"
    again = pretend(["both"], done=done)
    again.waiting = [job for job in again.waiting if (job.arm.name, job.seed) not in done]
    too_late = pretend(["none"], deadline=0.0)
    for runner in (again, too_late):
        assert runner.run(pause=0.01) == []
        assert not hasattr(runner, "started")


def test_a_run_that_fails_twice_or_cannot_be_read_does_not_stop_the_others(tmp_path: Path, pretend, capsys) -> None:
    runner = pretend(["none", "random_both", "both"], at_once=1)
    runner.fails = ("none-seed1",)
    assert sorted(runner.run(pause=0.01)) == ["none-seed1", "random_both-seed1"]
    assert runner.started.count("none-seed1") == 2
    assert read(tmp_path / "runs.csv")["arm"].to_list() == ["both"]
    said = capsys.readouterr().out
    assert "FAILED none-seed1: status 1, see " in said
    assert "could not be read: FileNotFoundError: no lift.parquet" in said


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


def test_a_finished_run_fills_its_row(tmp_path: Path, job) -> None:
    """Takes over 3 s: a job, of which all figures are read."""
    small = [value for value in SMALL if not value.startswith("probe.relations")]
    asked = ["probe.relations=[IsA,CapableOf,HasProperty,UsedFor]", "score.extra=[crowd,ngram,keyword]"]
    folder = job("policy=both", *small, *asked).folder
    about = {"arm": "both", "seed": 1, "steps": 6, "commit": "abc"}
    found, metrics = row_of(folder, about, tmp_path / "labels"), json.loads((folder / "metrics.json").read_text())
    assert found["kept"] == metrics["filter/kept"]
    of_people = pl.read_parquet(folder / "validity.parquet").filter("people_valid", is_neutral())
    assert sum(unpack(found["valid"])) == of_people.height
    assert [name for name in RUN if found[name] is None] == []
    # No published triples; three professions are too few to swap.
    absent = ("about_perplexity", "swap_lift/", "gender", "religion")
    assert [name for name in keys() if name not in metrics and not any(part in name for part in absent)] == []
    assert found["quality/swap_lift/held_out"] == metrics["quality/swap_lift/held_out"]
    assert sum(unpack(found["lift"])) * 2.5 / sum(unpack(found["prompts"])) == pytest.approx(found[tables.HELD_OUT])
    assert sum(unpack(found["statements"])) == metrics["statements"]
    neutral = metrics["neutral_template/crowd/neutral_mean"]  # three targets with as many statements each
    assert sum(unpack(found["polarised"])) / sum(unpack(found["statements"])) == pytest.approx(1 - neutral / 100)
    assert row_of(folder, about, tmp_path / "labels") == found  # labels from the cache


def stories_of(**polarised: int) -> pl.DataFrame:
    """Three seeds of each arm; of 100 sentences about each of four words so many are polarised."""
    alike = {"hours": 0.1, "commit": "abc", "folder": "run", "clusters": "4-a", "statements": pack([100] * 4)}
    alike |= dict.fromkeys(stories.FIGURES, 50.0)
    found = [
        alike | {"arm": arm, "seed": seed, "polarised": pack([share + off] * 4)}
        for arm, share in polarised.items()
        for seed, off in enumerate((-1, 0, 1), start=1)
    ]
    return pl.DataFrame(found, stories.SCHEMA)


def test_effects_and_the_table_of_stories() -> None:
    made = stories_of(none_short=30, both_neutral=20, random_both_neutral=25)
    found = stories.effect(made, "random_both_neutral")
    assert found.value == pytest.approx(5)
    assert found.error == pytest.approx((2 / 3) ** 0.5)  # of two means of three seeds with variance 1; words are alike
    assert found.bounds()[0] < 5 < found.bounds()[1]
    said = stories.table(made)
    assert "| `both_neutral` | 3 | 20.0 | 50 |" in said
    assert "Less polarised than `random_both_neutral`: 5.0 points [" in said
    assert "Less polarised than `none_short`: 10.0 points [" in said
    assert "points" not in stories.table(stories_of(none_short=30))


def test_the_row_of_a_run_of_stories(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps({stories.STORIES: 3, stories.NAMING_TARGET: 50.0}))
    (tmp_path / "manifest.json").write_text(json.dumps({"stages": [{"seconds": 3600}, {"seconds": 1800}]}))
    said = {"target": ["she", "hers", "lawyer", "lawyer"], "crowd": [-1, 0, 1, 0]}
    pl.DataFrame(said).write_parquet(tmp_path / "score.parquet")
    row = stories.row_of(tmp_path)
    assert (row["polarised"], row["statements"], row["hours"]) == ("1 1", "2 2", 1.5)  # lawyer; she with hers
    assert row["clusters"].startswith("2-")
    assert (row[stories.STORIES], row[stories.DISTINCT_SENTENCES]) == (3, None)
    path = tmp_path / "some.csv"
    pl.DataFrame([row | {"arm": "none_short", "seed": 1, "commit": "abc"}], stories.SCHEMA).write_csv(path)
    assert stories.read(path).filter(arm="none_short", seed=1).height == 1


def test_the_results_in_readme_are_those_of_the_file() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.split("\n## Results\n")[1].splitlines() if line[:1] == "|"]
    found, control, policy = read(tables.CSV), "random_both_neutral", "both_neutral"
    assert lines[0][1:4] == ["`none`", "control", f"`{policy}`"]
    less, more = effects.harm(found, control, policy, "", corrected=False), effects.lift(found, control, policy)
    perplexity = "independent_perplexity/neutral"
    worse = effects.over_seeds(found, control, policy, perplexity)
    assert worse is not None
    for column, effect, sign, line in (
        (of_category(""), less, -1, lines[2]),
        (tables.HELD_OUT, more, 1, lines[3]),
        (perplexity, worse, 1, lines[4]),
    ):
        means = [effects.of_arm(found, arm)[column].cast(pl.Float64).mean() for arm in ("none", control, policy)]
        low, high = sorted(sign * bound for bound in effect.bounds())
        cells = [f"{mean:.1f}" for mean in means] + [f"{sign * effect.value:+.1f} [{low:.1f}, {high:.1f}]"]
        assert line[1:] == [cell.replace("-", "−") for cell in cells]
