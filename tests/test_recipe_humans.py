"""recipe=humans: from two models' statements to a survey, from the survey's answers to figures, each by hand."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import here

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap
from mitigate.store import as_json, digest_of
from mitigate.target_list import PAPER, list_of
from mitigate.tasks.rating_figures import differences, flat, raters, summary
from mitigate.tasks.survey import draw, statements_of_file, statements_of_runs
from mitigate.triples import PROBED

RELATIONS = ("CapableOf", "Causes")
TARGETS = {"lawyer": "profession", "nurse": "profession", "he": "gender", "she": "gender"}


def model(folder: Path, policy: str, same: int = 1, rank_type: type[pl.DataType] = PROBED["rank"]) -> Path:
    """A run folder whose model says its own things but for the first `same` of each relation, which any would say."""
    rows = [
        {
            **{"target": target, "category": category, "relation": relation, "tail": "" if rank == 5 else "t"},
            **{"rank": rank, "statement": f"{target} {relation} {'x' if rank <= same else policy[:2]}{rank}"},
        }
        for target, category in TARGETS.items()
        for relation in (*RELATIONS, "IsA")
        for rank in range(1, 6)
    ]
    folder.mkdir()
    pl.DataFrame(rows, schema_overrides={"rank": rank_type}).write_parquet(folder / "statements.parquet")
    facts = {"policy": policy, "seed": 1, "fingerprint": "of it"}
    (folder / "metrics.json").write_bytes(as_json(facts))
    finish(folder, demonstration=True, policy=policy)
    return folder


def finish(folder: Path, demonstration: bool = True, policy: str = "qqnone") -> None:
    """Write settings and manifest, as the end of a run does."""
    settings = {"recipe": {"name": "mitigate"}, "policy": {"name": policy}, "model": {"name": "m"}, "seed": 1}
    settings["data"] = {"name": "sample", "demonstration": demonstration}
    (folder / "config.yaml").write_bytes(as_json(settings))
    files = {path.name: digest_of(path.read_bytes()) for path in folder.iterdir() if path.name != "manifest.json"}
    (folder / "manifest.json").write_bytes(as_json({"files": files}))


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two of them, with policies that no page would mention by chance."""
    return [str(model(tmp_path / "run-none-1a2b3c4d", "qqnone")), str(model(tmp_path / "run-both-5e6f7a8b", "wwboth"))]


def test_models_answer_the_same_questions_and_the_best_are_drawn_from(runs: list[str]) -> None:
    pool = statements_of_runs(runs, RELATIONS, top=3)
    assert pool.group_by("source", maintain_order=True).len().rows() == [("qqnone", 24), ("wwboth", 24)]
    key = draw(pool, 8, seed=1)
    cells = key.partition_by("source", as_dict=True)
    one, other = (cells[name,].select("target", "relation", "rank").sort(pl.all()) for name in ("qqnone", "wwboth"))
    assert one.equals(other)
    assert one.group_by("target", "relation").len()["len"].to_list() == [1] * 8  # every target with every relation
    first = draw(pool, 4, seed=1).filter(source="qqnone")
    assert sorted(first["target"]) == sorted(TARGETS)
    assert first["relation"].value_counts()["count"].to_list() == [2, 2]
    assert draw(pool, 1000, seed=1).height == 48


def test_a_run_of_earlier_code_had_ranks_of_another_type(runs: list[str], tmp_path: Path) -> None:
    earlier = str(model(tmp_path / "earlier", "qqnone", rank_type=pl.UInt8))
    assert statements_of_runs([earlier, runs[1]], RELATIONS, top=300).equals(statements_of_runs(runs, RELATIONS, top=4))


def test_what_both_say_is_one_item(runs: list[str]) -> None:
    key = draw(statements_of_runs(runs, RELATIONS, top=3), 24, seed=1)
    assert key["item"].n_unique() == 48 - 8  # the best of 4 targets and 2 relations
    shared = key.filter(pl.len().over("item") > 1)
    assert shared["rank"].unique().to_list() == [1]


def test_the_seed_decides_what_is_drawn_and_in_what_order(runs: list[str]) -> None:
    pool = statements_of_runs(runs, RELATIONS, top=3)
    assert draw(pool, 6, seed=1).equals(draw(pool, 6, seed=1))
    assert not draw(pool, 6, seed=1)["statement"].equals(draw(pool, 6, seed=2)["statement"])
    everything = [draw(pool, 100, seed=seed).unique("item", maintain_order=True) for seed in (1, 2)]
    assert sorted(everything[0]["statement"]) == sorted(everything[1]["statement"])
    assert not everything[0]["statement"].equals(everything[1]["statement"])


def test_a_file_of_statements_has_some_of_each_target() -> None:
    statements = pl.DataFrame(
        {
            "target": ["he"] * 5 + ["she"],
            "category": ["gender"] * 6,
            "statement": [*"abcdd", "e"],
        }
    )
    pool = statements_of_file(statements, "mine", top=2, seed=1)
    assert pool["target"].value_counts().sort("target").rows() == [("he", 2), ("she", 1)]
    key = draw(pool, 10, seed=1)
    assert key.height == 3
    assert key["relation"].null_count() == 3


def said_again(folder: str, rows: dict[tuple[str, str, int], str]) -> None:
    """Let the model of a run say these (target, relation, rank) in these words."""
    path = Path(folder) / "statements.parquet"
    frame = pl.read_parquet(path)
    cells = frame.select("target", "relation", "rank").rows()
    words = [rows.get(cell, said) for cell, said in zip(cells, frame["statement"], strict=True)]
    frame.with_columns(statement=pl.Series(words)).reverse().write_parquet(path)
    finish(Path(folder))


def test_what_a_model_says_twice_of_a_target_is_asked_once_where_it_ranks_best(runs: list[str]) -> None:
    again = {("he", "Causes", 3): "he Causes qq2", ("he", "CapableOf", 3): "he Causes qq2"}  # phrases may be the same
    said_again(runs[0], again)
    pool = statements_of_runs(runs, RELATIONS, top=3)
    assert pool.filter(statement="he Causes qq2").select("relation", "rank").rows() == [("Causes", 2)]
    key = draw(pool, 1000, seed=1)
    assert key.height == 48 - 2 * 2  # the other model's two go too: it is compared in the same cells
    assert key.select("source", "item").is_unique().all()


def test_runs_that_were_not_asked_the_same(runs: list[str]) -> None:
    tables = [Path(run) / "statements.parquet" for run in runs]
    everything = [pl.read_parquet(table) for table in tables]
    for conditions, lacking in (
        ((pl.col("target") == "he", pl.col("target") != "he"), "target"),
        ((pl.col("relation") == "Causes", pl.col("relation") != "Causes"), "target and relation"),
        ((pl.col("rank") == 1, pl.col("rank") == 2), "target and relation and rank"),
    ):
        for table, frame, condition in zip(tables, everything, conditions, strict=True):
            frame.filter(condition).write_parquet(table)
            finish(table.parent)
        with pytest.raises(MitigateError, match=f"run-none-1a2b3c4d, .*run-both-5e6f7a8b have no {lacking} in common"):
            statements_of_runs(runs, RELATIONS, top=3)


def test_a_run_and_another_of_its_name_in_another_place_are_two(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = model(tmp_path / "other" / Path(runs[0]).name, "qqnone")
    found = statements_of_runs([runs[0], str(other)], RELATIONS, top=3)["source"].unique(maintain_order=True)
    assert found.to_list() == [f"qqnone, {runs[0]}", f"qqnone, {other}"]


def test_runs_that_are_none_or_not_finished(runs: list[str], tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="data.runs names a run twice"):
        statements_of_runs([runs[0], runs[0]], RELATIONS, 3)
    with pytest.raises(MitigateError, match="data.runs: .*nowhere is no folder. Name folders that finished runs of"):
        statements_of_runs([runs[0], str(tmp_path / "nowhere")], RELATIONS, 3)
    (Path(runs[1]) / "manifest.json").unlink()
    with pytest.raises(MitigateError, match="run-both-5e6f7a8b is not finished .it has no manifest.json"):
        statements_of_runs(runs, RELATIONS, 3)
    finish(Path(runs[1]))
    with pytest.raises(MitigateError, match="has no statements of the relations Desires; choose others"):
        statements_of_runs(runs, ["Desires"], 3)


def rated(rows: list[tuple]) -> pl.DataFrame:
    schema = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    return pl.DataFrame(rows, schema=schema, orient="row")


# One source, three statements: two of him, one of her.
RATED = rated(
    [
        ("one", item, target, "gender", relation, item, f"rater {number}", label, quality)
        for item, target, relation, labels, qualities in (
            ("a", "he", "CapableOf", (0, 0, 0), (True, True, True)),
            ("b", "he", "Causes", (0, 0, -1), (True, True, False)),
            ("c", "she", "CapableOf", (1, 1, 0), (False, False, None)),
        )
        for number, (label, quality) in enumerate(zip(labels, qualities, strict=True), start=1)
    ]
)


def test_figures_of_a_source_by_hand() -> None:
    rows = summary(RATED, ["one"], Bootstrap(resamples=100)).rows_by_key(["by", "part"], named=True, unique=True)
    assert list(rows) == [("all", ""), ("category", "gender"), ("relation", "CapableOf"), ("relation", "Causes")]
    whole = rows["all", ""]
    assert (whole["statements"], whole["ratings"], whole["targets"]) == (3, 9, 2)
    shares = [whole[name] for name in ("prejudice", "neutral", "favouritism")]
    assert shares == pytest.approx([100 / 9, 600 / 9, 200 / 9])
    most = [whole[f"majority_{name}"] for name in ("prejudice", "neutral", "favouritism")]
    assert most == pytest.approx([0, 200 / 3, 100 / 3])
    assert whole["HNM"] == pytest.approx((500 / 6 + 100 / 3) / 2)  # 5 of 6 of him, 1 of 3 of her
    assert whole["quality"] == pytest.approx((500 / 6 + 0) / 2)
    # pairs agree in 1, 1/3 and 1/3 of cases: 5/9; chance (1 + 36 + 4) / 81
    assert whole["kappa"] == pytest.approx((5 / 9 - 41 / 81) / (1 - 41 / 81))
    assert whole["quality_kappa"] == pytest.approx((7 / 9 - 34 / 64) / (1 - 34 / 64))  # 5 yes, 3 no; pairs 1, 1/3, 1
    assert rows["relation", "Causes"]["HNM"] == pytest.approx(200 / 3)
    assert rows["relation", "Causes"]["HNM_low"] is None  # of a single target


def test_inflections_of_an_own_target_are_one_word_in_intervals(tmp_path: Path) -> None:
    """By rule, or as a file says."""
    own = RATED.with_columns(pl.col("target").replace({"he": "enby", "she": "queer person"}))
    (tmp_path / "own.csv").write_text("target,cluster\nenby,queer person\nqueer person,\n")
    few = Bootstrap(resamples=100)
    for table, target_list, is_one in (
        (own, PAPER, False),
        (own, list_of(tmp_path / "own.csv"), True),
        (own.with_columns(pl.col("target").replace("enby", "queer people")), PAPER, True),
    ):
        assert (summary(table, ["one"], few, target_list)["HNM_low"][0] is None) == is_one
    twice = pl.concat([own, own.with_columns(source=pl.lit("two"), label=pl.lit(0, pl.Int64))])
    low = [differences(twice, ["one", "two"], few, known)["low"][0] for known in (PAPER, list_of(tmp_path / "own.csv"))]
    assert [value is None for value in low] == [False, True]


def test_each_rater_beside_the_others() -> None:
    rows = raters(RATED).rows_by_key("rater", named=True, unique=True)
    assert rows["rater 1"]["same"] == pytest.approx(100 * 4 / 6)  # a: both, b: one, c: one
    assert rows["rater 3"]["same"] == pytest.approx(100 * 2 / 6)
    assert rows["rater 3"]["prejudice"] == pytest.approx(100 / 3)
    assert rows["rater 3"]["sense"] == 50
    assert rows["rater 1"]["same_quality"] == pytest.approx(100 * 4 / 5)
    assert raters(RATED.with_columns(rater=pl.lit(None, pl.String))).is_empty()


def test_differences_are_paired_by_target() -> None:
    words = [f"t{number}" for number in range(12)]
    rows = [
        (source, f"{source}{word}", word, "own", "IsA", word, "rater 1", label, True)
        for source, label in (("one", -1), ("two", 0))
        for word in words
    ]
    table = differences(rated(rows), ["one", "two"], Bootstrap(resamples=500))
    change, same = table.rows(named=True)
    assert (change["figure"], change["difference"], change["targets"]) == ("HNM", 100, 12)
    assert change["p"] < 0.02  # Holm's, of two
    assert (same["figure"], same["difference"], same["p"]) == ("quality", 0, 1)
    found = flat(pl.DataFrame(), pl.DataFrame(), table)
    assert found["difference/two/HNM"] == 100
    assert differences(RATED, ["one"], Bootstrap(resamples=100)).is_empty()


def test_intervals_beside_corrected_p_values_are_corrected_too() -> None:
    labels = [-1, 0, 0, 1, -1, 0, -1, 0, 0, 1, 0, 0]
    rows = [
        (source, f"{source}{number}", f"t{number}", "own", "IsA", f"t{number}", "rater 1", label, True)
        for source, shift in (("one", 0), ("two", 1), ("three", 2))
        for number, label in enumerate(labels[shift:] + labels[:shift])
    ]
    alone = differences(rated(rows).with_columns(quality=None), ["one", "two"], Bootstrap(resamples=500))
    together = differences(rated(rows).with_columns(quality=None), ["one", "two", "three"], Bootstrap(resamples=500))
    assert together["difference"][0] == alone["difference"][0]
    assert together["low"][0] < alone["low"][0] < alone["high"][0] < together["high"][0]


@pytest.fixture
def humans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status and what was printed."""

    def run(*overrides: str) -> tuple[int, str, str]:
        places = (f"paths.outputs={tmp_path}/out", "tracking=none", "score.regard=ngram", "measure.resamples=100")
        status = here(monkeypatch, "recipe=humans", *places, *overrides)
        return (status, *capsys.readouterr())

    return run


def test_from_survey_to_figures(humans, runs: list[str], tmp_path: Path) -> None:
    asking = (f"data.runs=[{','.join(runs)}]", "humans.relations=[CapableOf,Causes]", "humans.raters=2")
    status, said, told = humans(*asking)
    assert status == 0, told
    assert "40 to rate, each once" in said
    (folder,) = (tmp_path / "out").iterdir()

    handed_out = sorted((folder / "survey").iterdir())
    assert [path.name for path in handed_out] == ["statements.csv", "survey.html"]
    for path in handed_out:
        text = path.read_text(encoding="utf-8")
        for secret in ("qqnone", "wwboth", "run-none", "run-both", "1a2b3c4d", "policy", "rank"):
            assert secret not in text, f"{path.name} tells of models: {secret}"

    asked = pl.read_csv(folder / "survey" / "statements.csv")
    assert asked.columns == ["item", "target", "statement"]
    answers = tmp_path / "answers.csv"
    lines = [  # fox finds what the first model alone says a prejudice; owl finds all neutral
        f"{rater},{item},{-1 if rater == 'fox' and statement.split()[-1].startswith('qq') else 0},1"
        for rater in ("fox", "owl")
        for item, _, statement in asked.rows()
    ]
    answers.write_text("\n".join(["rater,item,label,quality", *lines]) + "\n")
    reading = (f"humans.survey={folder}", f"humans.answers=[{answers}]")
    status, said, told = humans(*reading)
    assert status == 0, told

    (found,) = (tmp_path / "out").glob("humans-ratings-*")
    metrics = json.loads((found / "humans.json").read_text())
    assert metrics["wwboth/HNM"] == 100
    assert metrics["qqnone/HNM"] == pytest.approx(100 * (1 - 1 / 3))  # two of three are its own, half its ratings
    assert metrics["qqnone/HNM/gender"] == pytest.approx(100 * 2 / 3)
    assert metrics["qqnone/prejudice/Causes"] == pytest.approx(100 / 3)
    assert metrics["difference/wwboth/HNM"] == pytest.approx(100 / 3)
    assert metrics["wwboth/quality"] == 100
    assert metrics["wwboth/kappa"] is None
    assert metrics["qqnone/kappa"] == pytest.approx((1 / 3 - (1 / 9 + 4 / 9)) / (4 / 9))
    assert metrics["raters/rater 2/neutral"] == 100
    assert metrics["wwboth/sentiment/rating/accuracy"] == 1
    assert {path.stem for path in (found / "tables").iterdir()} == {"summary", "raters", "differences", "scorers"}
    page = (found / "humans.html").read_text()
    assert "DEMONSTRATION" in page  # as the models' runs were
    assert "fox" not in page
    assert "difference" in (found / "tables" / "differences.tex").read_text()
    assert "nothing is left to do" in humans(*asking)[1]
    assert "nothing is left to do" in humans(*reading)[1]


def test_a_survey_is_made_anew_when_its_page_or_what_is_said_of_it_changes(
    humans, runs: list[str], tmp_path: Path
) -> None:
    asking = (f"data.runs=[{','.join(runs)}]", "humans.relations=[CapableOf,Causes]")
    humans(*asking)
    (folder,) = (tmp_path / "out").iterdir()
    assert json.loads((folder / "survey.json").read_text())["demonstration"]
    for run in runs:
        finish(Path(run), demonstration=False)
    humans(*asking)
    assert not json.loads((folder / "survey.json").read_text())["demonstration"]
    assert "nothing is left to do" in humans(*asking)[1]


def test_what_is_asked_for_must_fit_together(humans, runs: list[str]) -> None:
    for overrides, told in (
        ((), "recipe=humans makes a survey or reads ratings. Make one: data.runs"),
        (("humans.answers=[a.csv]",), "give both humans.answers=[FILE.csv,...] and humans.survey=DIR"),
        (("humans.sentences=a.txt",), "give both humans.sentences=FILE and humans.bias_labels=FILE"),
        (
            ("humans.answers=[a.csv]", "humans.survey=b", "humans.sentences=a.txt", "humans.bias_labels=b.txt"),
            "humans.answers and humans.sentences are both given, and only one of them would be read; leave one out",
        ),
        (
            (f"data.runs=[{runs[0]}]", "data=statements", "data.path=a.tsv"),
            "data.runs and data.path are both given, and only one of them would be read; leave one out",
        ),
        ((f"data.runs=[{runs[0]}]", "humans.sentences=a.txt"), "either make a survey (data.runs or data.path) or read"),
        ((f"data.runs=[{runs[0]}]", "humans.top=0"), "humans.top=0 must be a whole number from 1 to 1,000"),
        (
            (f"data.runs=[{runs[0]}]", "humans.relations=[CapableOff]"),
            "unknown relation in humans.relations 'CapableOff'; allowed: ",
        ),
        ((f"data.runs=[{runs[0]}]", "humans.relations=[CapableOff]"), "did you mean CapableOf?"),
        (
            (f"humans.survey={runs[0]}", "humans.answers=[a.csv]"),
            "is a run of recipe=mitigate. Give the run folder",
        ),
    ):
        status, _, error = humans(*overrides)
        assert status == 2
        assert told in error


def test_the_harms_paper_s_raters(humans, real_data: Path, tmp_path: Path) -> None:
    files = [real_data / "humans" / f"GenericsKB_{kind}.txt" for kind in ("sentences", "bias_labels")]
    status, said, told = humans(f"humans.sentences={files[0]}", f"humans.bias_labels={files[1]}")
    assert status == 0, told
    (found,) = (tmp_path / "out").iterdir()
    metrics = json.loads((found / "humans.json").read_text())
    assert metrics["GenericsKB/kappa"] == pytest.approx(0.5007, abs=5e-5)  # as printed
    assert metrics["GenericsKB/statements"] == 523
    labels = np.loadtxt(files[1], dtype=int)
    assert metrics["GenericsKB/neutral"] == pytest.approx(100 * (labels == 2).mean())
    assert metrics["GenericsKB/prejudice"] == pytest.approx(100 * (labels == 3).mean())
    assert "these files do not say who rated" in said


@pytest.mark.parametrize(("lines", "share"), [("1\n1\n0\n", 2 / 3), ("1\n1\n2\n", 2 / 3), ("2\n2\n1\n", 1 / 3)])
def test_validity_labels_in_either_form(humans, tmp_path: Path, lines: str, share: float) -> None:
    """1 makes sense; what does not is 0, or 2 as in the paper's release."""
    (tmp_path / "a_sentences.txt").write_text("the lawyer is kind\n" * 3)
    (tmp_path / "labels.txt").write_text("1\n2\n3\n")
    (tmp_path / "quality.txt").write_text(lines)
    files = [f"humans.sentences={tmp_path}/a_sentences.txt", f"humans.bias_labels={tmp_path}/labels.txt"]
    status, _, error = humans(*files, f"humans.quality_labels={tmp_path}/quality.txt")
    assert status == 0, error
    (found,) = (tmp_path / "out").iterdir()
    assert json.loads((found / "humans.json").read_text())["a/quality"] == pytest.approx(100 * share)
    (tmp_path / "quality.txt").write_text("1\n0\n2\n")
    status, _, error = humans(*files, f"humans.quality_labels={tmp_path}/quality.txt")
    assert status == 2
    assert "quality.txt:2: '0'" in error


def test_the_papers_validity_labels(humans, real_data: Path, tmp_path: Path) -> None:
    """On COMeT: 999 statements, 56.0 % of votes valid."""
    folder = real_data / "humans"
    if not (folder / "COMeT_quality_labels.txt").is_file():
        pytest.skip("needs humans/COMeT_quality_labels.txt in the data folder")
    names = ("sentences", "bias_labels", "quality_labels")
    status, _, error = humans(*(f"humans.{name}={folder}/COMeT_{name}.txt" for name in names))
    assert status == 0, error
    (found,) = (tmp_path / "out").iterdir()
    metrics = json.loads((found / "humans.json").read_text())
    assert (metrics["COMeT/statements"], metrics["COMeT/ratings"]) == (999, 3006)
    votes = np.loadtxt(folder / "COMeT_quality_labels.txt", dtype=int)
    assert (votes == 1).mean() == pytest.approx(0.560, abs=5e-4)
    assert metrics["COMeT/quality"] == pytest.approx(56.0, abs=0.1)
