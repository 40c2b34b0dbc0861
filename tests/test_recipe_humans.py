"""recipe=humans: from two models' statements to a survey, from the survey's answers to figures, each by hand."""

import json
from collections.abc import Sequence
from operator import methodcaller
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compared_runs import configured, edit, seal

from mitigate.errors import MitigateError
from mitigate.files import as_json
from mitigate.load.ratings import FILTERED, rated_sets
from mitigate.measure.base import ENDS
from mitigate.measure.intervals import Bootstrap
from mitigate.tasks.ratings.anchors import AS_THEY_ARE, EQUALLY, PARTS
from mitigate.tasks.ratings.figures import differences, flat, raters, summary
from mitigate.tasks.ratings.survey import draw, statements_of_file, statements_of_runs
from mitigate.triples import PROBED
from mitigate.words.targets import PAPER, list_of

RELATIONS = ("CapableOf", "Causes")
TARGETS = {"lawyer": "profession", "nurse": "profession", "he": "gender", "she": "gender"}


def model(folder: Path, policy: str, same: int = 1, rank_type: type[pl.DataType] = PROBED["rank"]) -> str:
    """A run folder whose model generates tails of its own but for the first `same` of each relation."""
    rows = [
        (target, category, relation, "" if rank == 5 else "t", rank, f"{target} {relation} {own}{rank}")
        for target, category in TARGETS.items()
        for relation in (*RELATIONS, "IsA")
        for rank in range(1, 6)
        for own in ["x" if rank <= same else policy[:2]]
    ]
    names = ["target", "category", "relation", "tail", "rank", "statement"]
    folder.mkdir(parents=True)
    frame = pl.DataFrame(rows, schema=names, schema_overrides={"rank": rank_type}, orient="row")
    frame.write_parquet(folder / "statements.parquet")
    settings = {"recipe": {"name": "mitigate"}, "policy": {"name": policy}, "model": {"name": "m"}, "seed": 1}
    settings["data"] = {"name": "sample", "demonstration": True}
    metrics = {"policy": policy, "seed": 1, "fingerprint": "of it"}
    for name, content in (("metrics.json", metrics), ("config.yaml", settings), ("manifest.json", {})):
        (folder / name).write_bytes(as_json(content))
    return str(seal(folder))


def pool_of(*runs: str, top: int = 3) -> pl.DataFrame:
    return statements_of_runs(runs, RELATIONS, top=top)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two of them, with policies that no page would mention by chance."""
    return [model(tmp_path / "run-none-1a2b3c4d", "qqnone"), model(tmp_path / "run-both-5e6f7a8b", "wwboth")]


def test_models_answer_the_same_questions_and_the_seed_decides_which(runs: list[str], tmp_path: Path) -> None:
    """A statement of both models is one item. A run of earlier code had ranks of another type."""
    pool = pool_of(*runs)
    assert pool.group_by("source", maintain_order=True).len().rows() == [("qqnone", 24), ("wwboth", 24)]
    cells = draw(pool, 8, seed=1).partition_by("source", as_dict=True)
    one, other = (cells[name,].select("target", "relation", "rank").sort(pl.all()) for name in ("qqnone", "wwboth"))
    assert one.equals(other)
    assert one.group_by("target", "relation").len()["len"].to_list() == [1] * 8  # every target with every relation
    first = draw(pool, 4, seed=1).filter(source="qqnone")
    assert sorted(first["target"]) == sorted(TARGETS)
    assert first["relation"].value_counts()["count"].to_list() == [2, 2]
    key, again, others = (draw(pool, 1000, seed=seed) for seed in (1, 1, 2))
    assert (key.height, key["item"].n_unique()) == (48, 48 - 8)  # the best of 4 targets and 2 relations
    assert key.filter(pl.len().over("item") > 1)["rank"].unique().to_list() == [1]
    assert key.equals(again)
    assert not draw(pool, 6, seed=1)["statement"].equals(draw(pool, 6, seed=2)["statement"])
    orders = [table.unique("item", maintain_order=True)["statement"].to_list() for table in (key, others)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    earlier = model(tmp_path / "earlier", "qqnone", rank_type=pl.UInt8)
    assert pool_of(earlier, runs[1], top=300).equals(pool_of(*runs, top=4))


def test_a_file_of_statements_has_some_of_each_target() -> None:
    columns = {"target": ["he"] * 5 + ["she"], "category": ["gender"] * 6, "statement": [*"abcdd", "e"]}
    pool = statements_of_file(pl.DataFrame(columns), "mine", top=2, seed=1)
    assert pool["target"].value_counts().sort("target").rows() == [("he", 2), ("she", 1)]
    key = draw(pool, 10, seed=1)
    assert (key.height, key["relation"].null_count()) == (3, 3)


def test_a_statement_that_a_model_repeats_is_asked_once_where_it_ranks_best(runs: list[str]) -> None:
    cell = pl.concat_str("target", "relation", "rank", separator=" ").is_in(["he Causes 3", "he CapableOf 3"])
    words = pl.when(cell).then(pl.lit("he Causes qq2")).otherwise("statement")  # phrases may be the same
    edit(Path(runs[0]), "statements.parquet", lambda frame: frame.with_columns(statement=words).reverse())
    pool = pool_of(*runs)
    assert pool.filter(statement="he Causes qq2").select("relation", "rank").rows() == [("Causes", 2)]
    key = draw(pool, 1000, seed=1)
    assert key.height == 48 - 2 * 2  # the other model's two go too: it is compared in the same cells
    assert key.select("source", "item").is_unique().all()


UNLIKE = [
    ("target", (pl.col("target") == "he", pl.col("target") != "he")),
    ("target and relation", (pl.col("relation") == "Causes", pl.col("relation") != "Causes")),
    ("target and relation and rank", (pl.col("rank") == 1, pl.col("rank") == 2)),
]


@pytest.mark.parametrize(("lacking", "conditions"), UNLIKE)
def test_runs_that_were_not_asked_the_same(runs: list[str], lacking: str, conditions: tuple) -> None:
    for run, condition in zip(runs, conditions, strict=True):
        edit(Path(run), "statements.parquet", methodcaller("filter", condition))
    with pytest.raises(MitigateError, match=f"run-none-1a2b3c4d, .*run-both-5e6f7a8b have no {lacking} in common"):
        pool_of(*runs)


def test_runs_that_are_none_or_not_finished(runs: list[str], tmp_path: Path) -> None:
    """A run and another of its name in another place are two."""
    other = model(tmp_path / "other" / Path(runs[0]).name, "qqnone")
    found = pool_of(runs[0], other)["source"].unique(maintain_order=True)
    assert found.to_list() == [f"qqnone, {runs[0]}", f"qqnone, {other}"]
    with pytest.raises(MitigateError, match="has no statements of the relations Desires; choose others"):
        statements_of_runs(runs, ["Desires"], 3)
    (Path(runs[1]) / "manifest.json").unlink()
    for second, message in {
        runs[0]: "data.runs names a run twice",
        str(tmp_path / "nowhere"): "data.runs: .*nowhere is not a folder. Set it to folders of finished runs of",
        runs[1]: "run-both-5e6f7a8b is not finished .it has no manifest.json",
    }.items():
        with pytest.raises(MitigateError, match=message):
            pool_of(runs[0], second)


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
    shares, most = (
        [whole[f"{kind}{name}"] for name in ("prejudice", "neutral", "favouritism")] for kind in ("", "majority_")
    )
    assert shares == pytest.approx([100 / 9, 600 / 9, 200 / 9])
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
    own, few = (
        RATED.with_columns(pl.col("target").replace({"he": "enby", "she": "queer person"})),
        Bootstrap(resamples=100),
    )
    (tmp_path / "own.csv").write_text("target,cluster\nenby,queer person\nqueer person,\n")
    listed = list_of(tmp_path / "own.csv")
    plural = own.with_columns(pl.col("target").replace("enby", "queer people"))
    for table, target_list, is_one in ((own, PAPER, False), (own, listed, True), (plural, PAPER, True)):
        assert (summary(table, ["one"], few, target_list)["HNM_low"][0] is None) == is_one
    twice = pl.concat([own, own.with_columns(source=pl.lit("two"), label=pl.lit(0, pl.Int64))])
    low = [differences(twice, ["one", "two"], few, known)["low"][0] for known in (PAPER, listed)]
    assert [value is None for value in low] == [False, True]


def test_each_rater_beside_the_others() -> None:
    rows = raters(RATED).rows_by_key("rater", named=True, unique=True)
    assert rows["rater 1"]["same"] == pytest.approx(100 * 4 / 6)  # a: both, b: one, c: one
    assert rows["rater 1"]["same_quality"] == pytest.approx(100 * 4 / 5)
    third = [rows["rater 3"][name] for name in ("same", "prejudice", "sense")]
    assert third == pytest.approx([100 * 2 / 6, 100 / 3, 50])
    assert raters(RATED.with_columns(rater=pl.lit(None, pl.String))).is_empty()


def of_sources(labels: dict[str, Sequence[int]], quality: bool | None) -> pl.DataFrame:
    """Ratings by one rater of a statement about each of as many targets."""
    return rated(
        [
            (source, f"{source}{number}", f"t{number}", "own", "IsA", f"t{number}", "rater 1", label, quality)
            for source, mine in labels.items()
            for number, label in enumerate(mine)
        ]
    )


def test_differences_are_paired_by_target_and_intervals_corrected_as_p_values_are() -> None:
    table = differences(of_sources({"one": [-1] * 12, "two": [0] * 12}, True), ["one", "two"], Bootstrap(resamples=500))
    change, same = table.rows(named=True)
    assert (change["figure"], change["difference"], change["targets"]) == ("HNM", 100, 12)
    assert change["p"] < 0.02  # Holm's, of two
    assert (same["figure"], same["difference"], same["p"]) == ("quality", 0, 1)
    assert flat(pl.DataFrame(), pl.DataFrame(), table)["difference/two/HNM"] == 100
    assert differences(RATED, ["one"], Bootstrap(resamples=100)).is_empty()
    labels = [-1, 0, 0, 1, -1, 0, -1, 0, 0, 1, 0, 0]
    names = ["one", "two", "three"]
    table = of_sources({name: labels[shift:] + labels[:shift] for shift, name in enumerate(names)}, quality=None)
    alone, together = (differences(table, names[:size], Bootstrap(resamples=500)) for size in (2, 3))
    assert together["difference"][0] == alone["difference"][0]
    assert together["low"][0] < alone["low"][0] < alone["high"][0] < together["high"][0]


@pytest.fixture
def humans(placed):
    return lambda *overrides: placed("recipe=humans", "score.regard=ngram", "measure.resamples=100", *overrides)


def test_from_survey_to_figures(humans, runs: list[str], tmp_path: Path) -> None:
    asking = (f"data.runs=[{','.join(runs)}]", "humans.relations=[CapableOf,Causes]", "humans.raters=2")
    assert "40 to rate; a" in humans(*asking).done
    (folder,) = (tmp_path / "out").glob("[!.]*")
    handed_out = {path.name: path.read_text(encoding="utf-8") for path in (folder / "survey").iterdir()}
    assert sorted(handed_out) == ["statements.csv", "survey.html"]
    secrets = ("qqnone", "wwboth", "run-none", "run-both", "1a2b3c4d", "policy", "rank")
    assert [(name, secret) for name, text in handed_out.items() for secret in secrets if secret in text] == []

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
    assert "wwboth against qqnone, paired over 4 targets: +33.3 points of HNM, p " in humans(*reading).done
    (found,) = (tmp_path / "out").glob("humans-ratings-*")
    metrics = json.loads((found / "humans.json").read_text())
    two_thirds = 2 / 3  # two of three are its own, half its ratings
    expected = {
        **{"wwboth/HNM": 100, "qqnone/HNM": 100 * two_thirds, "qqnone/HNM/gender": 100 * two_thirds},
        **{"qqnone/prejudice/Causes": 100 / 3, "difference/wwboth/HNM": 100 / 3, "wwboth/quality": 100},
        **{"wwboth/kappa": None, "qqnone/kappa": (1 / 3 - (1 / 9 + 4 / 9)) / (4 / 9)},
        **{"raters/rater 2/neutral": 100, "wwboth/sentiment/rating/accuracy": 1},
    }
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    assert {path.stem for path in (found / "tables").iterdir()} == {"summary", "raters", "differences", "scorers"}
    page = (found / "humans.html").read_text()
    assert "DEMONSTRATION" in page  # as the models' runs were
    assert "fox" not in page
    assert all("nothing to do" in humans(*settings)[1] for settings in (asking, reading))
    assert json.loads((folder / "survey.json").read_text())["demonstration"]
    for run in runs:  # the survey is made anew when what is said of it changes
        configured(Path(run), data={"demonstration": False})
    assert "nothing to do" not in humans(*asking)[1]
    assert not json.loads((folder / "survey.json").read_text())["demonstration"]


BOTH = "are both set, but only one is read; leave one out"
LABELS = "humans.sentences=a.txt humans.bias_labels=b.txt"
FAULTS = [
    ("", "recipe=humans has neither statements for a survey nor ratings to read. To make a survey, set data.runs"),
    ("humans.answers=[a.csv]", "humans.answers and humans.survey need each other; set humans.answers=[FILE.csv,...]"),
    ("humans.sentences=a.txt", "humans.sentences and humans.bias_labels need each other; set humans.sentences=FILE"),
    (f"humans.answers=[a.csv] humans.survey=b {LABELS}", f"humans.answers and humans.sentences {BOTH}"),
    ("data.runs=[{run}] data=statements data.path=a.tsv", f"data.runs and data.path {BOTH}"),
    ("data.runs=[{run}] humans.sentences=a.txt", "settings that make a survey (data.runs, data.path) and that read"),
    ("data.runs=[{run}] humans.size=0", "humans.size=0 must be a whole number from 1 to "),
    ("data.runs=[{run}] humans.relations=[CapableOff]", "'CapableOff' (did you mean CapableOf?)"),
    ("humans.survey={run} humans.answers=[a.csv]", "is a run of recipe=mitigate. Give the run folder"),
]


@pytest.mark.parametrize(("overrides", "message"), FAULTS)
def test_settings_must_fit_together(humans, overrides: str, message: str, tmp_path: Path) -> None:
    run = model(tmp_path / "run-none-1a2b3c4d", "qqnone")
    assert message in humans(*overrides.format(run=run).split()).refused


def test_the_papers_four_sets(humans, tmp_path: Path, real_data: Path) -> None:
    """COMeT and its filtered model have anchors; the other pairs have too few (about 20 s)."""
    folder = real_data / "humans"
    if FILTERED not in rated_sets(folder):
        pytest.skip("needs humans/COMeT-Filtered_sentences.txt in the data folder")
    said = humans(f"data.root={real_data}").done
    (place,) = (tmp_path / "out").glob("humans-ratings-*")
    found = json.loads((place / "humans.json").read_text())
    assert found["GenericsKB/kappa"] == pytest.approx(0.5007, abs=5e-5)  # as printed
    labels = np.loadtxt(folder / "GenericsKB_bias_labels.txt", dtype=int)
    for name, label in (("neutral", 2), ("prejudice", 3)):
        assert found[f"GenericsKB/{name}"] == pytest.approx(100 * (labels == label).mean())
    assert (found["COMeT/statements"], found["COMeT/ratings"]) == (999, 3006)
    assert found["COMeT/quality"] == pytest.approx(56.0, abs=0.1)
    for part in ("these files do not say who rated", "COMeT-Filtered: 61.1 % neutral to people. 3,006 ratings of 999"):
        assert part in said
    expected = {
        f"polarised/{AS_THEY_ARE}": [(-4.8, -7.1, -2.4), (-3.9, -6.1, -1.7), (-0.8, -3.8, 2.1)],
        f"polarised/{EQUALLY}": [(-4.8, -7.1, -2.4), (-4.9, -7.6, -2.3), (0.2, -3.0, 3.4)],
        f"valid/{AS_THEY_ARE}": [(-6.0, -8.4, -3.6), (-2.3, -5.6, 1.0), (-3.7, -6.8, -0.6)],
        f"valid/{EQUALLY}": [(-6.0, -8.4, -3.6), (-3.4, -6.7, -0.1), (-2.6, -5.8, 0.6)],
    }
    for place, figures in expected.items():
        start = f"drift/{FILTERED}/COMeT/{place}"
        assert found[f"{start}/anchors"] == 290
        for part, bounds in zip(PARTS, figures, strict=True):
            assert [found[f"{start}/{part}{end}"] for end in ENDS] == pytest.approx(bounds, abs=0.06)
    assert found[f"drift/COMeT/ConceptNet/polarised/{AS_THEY_ARE}/drift"] is None
    assert not any(key.startswith("drift/COMeT/ConceptNet/valid") for key in found)  # nobody rated its validity
