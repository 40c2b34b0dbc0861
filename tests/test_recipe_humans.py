"""recipe=humans: from two models' statements to a survey, from the survey's answers to figures, each by hand; and
the pages."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compared_runs import configured, edit, seal
from page_elements import Elements
from page_examples import example_survey
from ratings_example import example_ratings

from mitigate.files import as_json
from mitigate.load.ratings import FILTERED, rated_sets
from mitigate.measure.intervals import Bootstrap
from mitigate.report.page import render
from mitigate.studies.humans import ALONE, differences, draw, statements_of_runs, summary
from mitigate.triples import PROBED

RELATIONS = ("CapableOf", "Causes")
KINDS = {"bias": "label", "quality": "quality"}  # of label files -> the column
TARGETS = {"lawyer": "profession", "nurse": "profession", "he": "gender", "she": "gender"}


def model(folder: Path, policy: str, same: int = 1) -> str:
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
    frame = pl.DataFrame(rows, schema=names, schema_overrides={"rank": PROBED["rank"]}, orient="row")
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


@pytest.fixture
def humans(placed):
    return lambda *overrides: placed("recipe=humans", "score.regard=ngram", "measure.resamples=100", *overrides)


def test_models_answer_the_same_questions_and_the_seed_decides_which(runs: list[str]) -> None:
    """A statement of both models is one item."""
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
    assert key["statement"].to_list() != others["statement"].to_list()  # in another order


def table_of(rows: list[tuple]) -> pl.DataFrame:
    schema = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    return pl.DataFrame(rows, schema=schema, orient="row")


# One source, three statements: two of him, one of her.
RATED = table_of(
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
    assert whole["HNM"] == pytest.approx((500 / 6 + 100 / 3) / 2)  # 5 of 6 of him, 1 of 3 of her
    assert whole["quality"] == pytest.approx((500 / 6 + 0) / 2)
    # pairs agree in 1, 1/3 and 1/3 of cases: 5/9; chance (1 + 36 + 4) / 81
    assert whole["kappa"] == pytest.approx((5 / 9 - 41 / 81) / (1 - 41 / 81))
    assert whole["kappa_low"] < whole["kappa"] < whole["kappa_high"]  # over statements
    assert whole["quality_kappa"] == pytest.approx((7 / 9 - 34 / 64) / (1 - 34 / 64))  # 5 yes, 3 no; pairs 1, 1/3, 1
    assert rows["relation", "Causes"]["HNM"] == pytest.approx(200 / 3)
    assert rows["relation", "Causes"]["HNM_low"] is None  # of a single target


def of_sources(labels: dict[str, Sequence[int]], quality: bool | None) -> pl.DataFrame:
    """Ratings by one rater of a statement about each of as many targets."""
    return table_of(
        [
            (source, f"{source}{number}", f"t{number}", "own", "IsA", f"t{number}", "rater 1", label, quality)
            for source, mine in labels.items()
            for number, label in enumerate(mine)
        ]
    )


def test_differences_are_paired_by_target_and_intervals_corrected() -> None:
    table = differences(of_sources({"one": [-1] * 12, "two": [0] * 12}, True), ["one", "two"], Bootstrap(resamples=500))
    change, same = table.rows(named=True)
    assert (change["figure"], change["difference"], change["targets"]) == ("HNM", 100, 12)
    assert (same["figure"], same["difference"]) == ("quality", 0)
    assert differences(RATED, ["one"], Bootstrap(resamples=100)).is_empty()
    labels, names = [-1, 0, 0, 1, -1, 0, -1, 0, 0, 1, 0, 0], ["one", "two", "three"]
    table = of_sources({name: labels[shift:] + labels[:shift] for shift, name in enumerate(names)}, quality=None)
    alone, together = (differences(table, names[:size], Bootstrap(resamples=500)) for size in (2, 3))
    assert together["low"][0] < alone["low"][0] < alone["high"][0] < together["high"][0]


def answered(survey: Path, answers: Path, harms: str) -> tuple[str, str]:
    """The settings that read answers of two raters: fox finds what begins so a prejudice, owl finds all neutral."""
    asked = pl.read_csv(survey / "survey" / "statements.csv")
    assert asked.columns == ["item", "target", "statement"]
    lines = [
        f"{rater},{item},{-1 if rater == 'fox' and statement.split()[-1].startswith(harms) else 0},1"
        for rater in ("fox", "owl")
        for item, _, statement in asked.rows()
    ]
    answers.write_text("\n".join(["rater,item,label,quality", *lines]) + "\n")
    return f"humans.survey={survey}", f"humans.answers=[{answers}]"


def test_from_survey_to_figures(humans, runs: list[str], tmp_path: Path) -> None:
    asking = (f"data.runs=[{','.join(runs)}]", "humans.relations=[CapableOf,Causes]", "humans.raters=2")
    said = humans(*asking).done
    assert "40 to rate; a statement that several models generate is rated once" in said
    assert "2 raters each: about 16 minutes of paid work" in said  # 80 ratings of 12 s
    assert "parts of a day's work" not in said
    (folder,) = (tmp_path / "out").glob("[!.]*")
    handed_out = {path.name: path.read_text(encoding="utf-8") for path in (folder / "survey").iterdir()}
    assert sorted(handed_out) == ["statements.csv", "survey.html"]
    secrets = ("qqnone", "wwboth", "run-none", "run-both", "1a2b3c4d", "policy", "rank")
    assert [(name, secret) for name, text in handed_out.items() for secret in secrets if secret in text] == []
    reading = answered(folder, tmp_path / "answers.csv", "qq")
    read = humans(*reading).done
    assert "wwboth against qqnone, paired over 4 targets: +33.3 points of HNM." in read
    assert "has no version" not in read  # a stage that every command would compute again
    (found,) = (tmp_path / "out").glob("humans-ratings-*")
    metrics = json.loads((found / "metrics.json").read_text())
    two_thirds = 2 / 3  # two of three are its own, half its ratings
    expected = {
        **{"wwboth/HNM": 100, "qqnone/HNM": 100 * two_thirds, "qqnone/HNM/gender": 100 * two_thirds},
        **{"qqnone/prejudice/Causes": 100 / 3, "difference/wwboth/HNM": 100 / 3, "wwboth/quality": 100},
        **{"wwboth/kappa": None, "qqnone/kappa": (1 / 3 - (1 / 9 + 4 / 9)) / (4 / 9)},
        **{"raters/rater 2/neutral": 100, "wwboth/sentiment/rating/accuracy": 1},
        # all statements are rated: the interval is a point
        **{f"predicted/wwboth/{ALONE}/{name}": 100 / 3 for name in ("difference", "low", "high")},
    }
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    page = (found / "humans.html").read_text()
    assert "DEMONSTRATION" in page  # as the models' runs were
    assert "fox" not in page
    assert all("nothing to do" in humans(*settings)[1] for settings in (asking, reading))
    for run in runs:  # the survey is made anew when what is said of it changes
        configured(Path(run), data={"demonstration": False})
    assert "nothing to do" not in humans(*asking)[1]
    assert not json.loads((folder / "survey.json").read_text())["demonstration"]


def test_ratings_of_some_say_something_of_all_statements(humans, runs: list[str], tmp_path: Path) -> None:
    """Twelve of 24 prompts are rated. fox finds "bad" a prejudice, and so does VADER, which labels all."""
    for run, rank in zip(runs, (2, 9), strict=True):
        words = pl.when(pl.col("rank") == rank).then(pl.format("{} is terrible", "statement")).otherwise("statement")
        edit(Path(run), "statements.parquet", lambda frame, words=words: frame.with_columns(statement=words))
    humans(f"data.runs=[{','.join(runs)}]", "humans.relations=[CapableOf,Causes]", "humans.size=12")
    (folder,) = (tmp_path / "out").glob("humans-survey-*")
    said = humans(*answered(folder, tmp_path / "a.csv", "terrible")).done
    (found,) = (tmp_path / "out").glob("humans-ratings-*")
    table = {row["scorer"]: row for row in pl.read_parquet(found / "predicted.parquet").rows(named=True)}
    assert (table["sentiment"]["statements"], table["sentiment"]["rated"]) == (24, 12)
    assert table["sentiment"]["weight"] == pytest.approx(0.5)  # half of the raters
    ends = [table["sentiment"][name] for name in ("difference", "low", "high")]
    assert ends == pytest.approx([100 / 6] * 3)  # a third of the first model's, half its ratings
    assert table[ALONE]["low"] < 100 / 6 < table[ALONE]["high"]
    assert table[ALONE]["needed_2"] > table[ALONE]["needed_5"] > 0
    assert "for ± 5" in said


BOTH = "are both set, but only one is read; leave one out"
LABELS = "humans.sentences=a.txt humans.bias_labels=b.txt"
FAULTS = [
    ("", "recipe=humans has neither statements for a survey nor ratings to read. To make a survey, set data.runs"),
    ("humans.sentences=a.txt", "humans.sentences and humans.bias_labels need each other; set humans.sentences=FILE"),
    (f"humans.answers=[a.csv] humans.survey=b {LABELS}", f"humans.answers and humans.sentences {BOTH}"),
    ("data.runs=[{run}] humans.sentences=a.txt", "settings that make a survey (data.runs, data.path) and that read"),
    ("data.runs=[{run}] humans.relations=[CapableOff]", "'CapableOff' (did you mean CapableOf?)"),
    ("humans.survey={run} humans.answers=[a.csv]", "is a run of recipe=mitigate. Give the run folder"),
]


@pytest.mark.parametrize(("overrides", "message"), FAULTS)
def test_settings_must_fit_together(humans, overrides: str, message: str, tmp_path: Path) -> None:
    run = model(tmp_path / "run-none-1a2b3c4d", "qqnone")
    assert message in humans(*overrides.format(run=run).split()).refused


def test_the_papers_four_sets(humans, tmp_path: Path, real_data: Path) -> None:
    """About 20 s."""
    folder = real_data / "humans"
    if FILTERED not in rated_sets(folder):
        pytest.skip("needs humans/COMeT-Filtered_sentences.txt in the data folder")
    said = humans(f"data.root={real_data}").done
    (place,) = (tmp_path / "out").glob("humans-ratings-*")
    found = json.loads((place / "metrics.json").read_text())
    assert found["GenericsKB/kappa"] == pytest.approx(0.5007, abs=5e-5)  # as printed
    labels = np.loadtxt(folder / "GenericsKB_bias_labels.txt", dtype=int)
    assert found["GenericsKB/prejudice"] == pytest.approx(100 * (labels == 3).mean())
    assert found["ConceptNet/kappa"] == pytest.approx(0.364, abs=5e-4)  # the paper prints .3827
    assert (found["COMeT/statements"], found["COMeT/ratings"]) == (999, 3006)
    assert found["COMeT/quality"] == pytest.approx(56.0, abs=0.1)
    for part in ("these files do not say who rated", "COMeT-Filtered: 61.1 % neutral to people. 3,006 ratings of 999"):
        assert part in said


# The pages


def test_the_page_has_every_table_and_escapes_names() -> None:
    html = render(example_ratings())
    parsed = Elements(html)
    parsed.check()
    assert "<none>" not in html
    shown = ("DEMONSTRATION", "a <notice>", "always_neutral", "0.3827", "rater 3", "gender")
    assert [words for words in shown if words not in parsed.text] == []  # 0.3827: the paper's


def test_the_survey_warns_first_asks_nothing_of_any_host_and_says_what_raters_must_know() -> None:
    html = example_survey()
    parsed = Elements(html)
    parsed.check()
    assert not [attributes for _, attributes in parsed.elements if {"src", "href", "action"} & set(attributes)]
    body = html.partition("<body>")[2]
    assert body.index("CONTENT WARNING") < body.index("<h1")
    said = ("You can stop at any time", "Not more than 2 a day", "20 euros an hour.", "18 or older", "ask@example.org")
    assert [words for words in said if words not in Elements(body).text] == []
    radios = [attributes["value"] for _, attributes in parsed.elements if attributes.get("type") == "radio"]
    assert radios == ["-1", "0", "1", "1", "0"]
