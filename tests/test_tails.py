"""A file of tails in a generator's place, and baselines to write into one."""

import math
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.quality import bits_per_char, perplexity
from mitigate.probe.likelihood import likelihood
from mitigate.relations import Relation, asked_with
from mitigate.tasks.baselines import constant_tails, echo_tails, random_tails
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.start import find_start
from mitigate.tasks.tails import locate, open_tails

ASKED = {"IsA": "<IsA>", "HasA": "<HasA>"}
LINES = "head\trelation\ttail\tscore\n\tIsA\tperson\t\nNurse\tIsA\thelper\t1\nnurse\tIsA\tworker\t2\n\tIsA\thelper\t9\n"


def written(folder: Path, text: str, name: str = "tails.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_tails_of_the_head_come_first_then_those_of_all(tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    start = find_start(open_tails, path, relation="token", train=False)
    probed = probe_generator(start, ["nurse", "lawyer"], ASKED, top=2)
    assert probed.select("target", "relation", "tail", "rank").rows() == [
        ("nurse", "IsA", "worker", 1),
        ("nurse", "IsA", "helper", 2),
        ("lawyer", "IsA", "helper", 1),
        ("lawyer", "IsA", "person", 2),
    ]
    assert probed["score"][0] == 2
    assert find_start(open_tails, written(tmp_path, LINES, "other.tsv"), relation="token", train=False) != start
    copy = find_start(
        open_tails, written(tmp_path, LINES.replace("\t", ","), "tails.csv"), relation="token", train=False
    )
    assert copy.weights != start.weights  # known by its name and its content


def test_hundreds_of_tails_are_ranked(tmp_path: Path) -> None:
    lines = "".join(f"nurse\tIsA\ttail {number}\t{-number}\n" for number in range(1, 301))
    start = find_start(
        open_tails, written(tmp_path, f"head\trelation\ttail\tscore\n{lines}"), relation="token", train=False
    )
    probed = probe_generator(start, ["nurse"], ASKED, beams=300, top=300)
    assert probed["rank"].to_list() == list(range(1, 301))


def test_it_gives_no_probabilities(tmp_path: Path) -> None:
    triples = pl.DataFrame({"head": ["nurse"], "relation": ["IsA"], "tail": ["kind helper"]})
    scored = likelihood(open_tails(written(tmp_path, LINES)), triples, asked_with("token"))
    assert math.isnan(scored["nll"][0])
    assert scored["tokens"][0] == 3
    assert perplexity(scored) is None
    assert bits_per_char(scored) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "head\ttail\nnurse\thelper\n",
            r"has no column relation; its first line is head \| tail; it must have relation and tail",
        ),
        ("a.tsv", "relation\ttail\nIsA\t \n", r"1 row has no tail, the first is that of line 2; leave them out"),
        ("a.tsv", "relation\ttail\n", "has no rows; expected head, relation and tail in each"),
        (
            "a.csv",
            "relation,tail,score\nIsA,helper, 2\nIsA,worker,high\n",
            "a.csv:3: the score 'high' is no number; correct it, or leave it empty",
        ),
        ("a.xls", "", r"a.xls is empty"),
        ("a.parquet", "no", "is no Parquet file that can be read"),
    ],
)
def test_faults_of_the_file_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(MitigateError, match=message):
        locate(str(written(tmp_path, text, name)))


def test_blanks_around_a_score_and_one_that_is_not_known_decide_no_place(tmp_path: Path) -> None:
    rows = {"relation": ["IsA"] * 3, "tail": ["person", "worker", "helper"]}
    written(tmp_path, "relation,tail,score\nIsA,person,\nIsA,worker, 2\nIsA,helper,3 \n", "a.csv")
    pl.DataFrame({**rows, "score": [math.nan, 2.0, 3.0]}).write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        start = find_start(open_tails, tmp_path / name, relation="token", train=False)
        probed = probe_generator(start, ["nurse"], ASKED, top=3)
        assert probed["tail"].to_list()[:3] == ["helper", "worker", "person"]


def test_relations_of_the_project_and_of_ones_own_are_known(tmp_path: Path) -> None:
    own = [Relation("works_with", "works with", "works with"), Relation("mentors", "is a mentor of", "is a mentor of")]
    path = written(tmp_path, "relation\ttail\nWorks With\ta team\nmentors\ta friend\nisa\tperson\n")
    start = find_start(open_tails, path, relation="token", train=False, further=own)
    asked = {name: start.asked[name] for name in ("works_with", "mentors", "IsA")}
    assert probe_generator(start, ["nurse"], asked, top=1)["tail"].to_list() == ["a team", "a friend", "person"]
    with pytest.raises(MitigateError) as error:
        find_start(open_tails, path, relation="token", train=False, further=own[:1])
    assert str(error.value).startswith(f"{path}:3: unknown relation 'mentors'; allowed: ")
    assert "works_with" in str(error.value)
    with pytest.raises(
        MitigateError, match=r"a.csv:3: unknown relation 'IsAn'; .*; did you mean IsA\?; those of your own"
    ):
        find_start(
            open_tails, written(tmp_path, "relation,tail\nIsA,x\nIsAn,y\n", "a.csv"), relation="token", train=False
        )


def test_a_file_must_be_given_and_be_there(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match=r"model=tails needs a file: give model.path=FILE.tsv"):
        locate(None)
    with pytest.raises(MitigateError, match="there is no such file"):
        locate(str(tmp_path / "none.tsv"))


@pytest.fixture
def labelled() -> pl.DataFrame:
    """Three neutral tails of IsA, one of them twice, and a polarised one that is the commonest."""
    tails = ["helper", "helper", "worker", "person", "thief", "thief", "thief"]
    frame = pl.DataFrame({"split": "train", "head": "nurse", "relation": "IsA", "tail": tails})
    label = pl.when(pl.col("tail") == "thief").then(-1).otherwise(0)
    return frame.with_columns(sentiment_neutral=label, regard_neutral=pl.lit(0))


def test_constants_are_the_commonest_neutral_tails(labelled: pl.DataFrame) -> None:
    assert constant_tails(labelled, 2).rows() == [("IsA", "helper"), ("IsA", "person")]
    assert constant_tails(labelled.with_columns(split=pl.lit("test"))).is_empty()


def test_echoes_and_random_tails(labelled: pl.DataFrame) -> None:
    prompts = pl.DataFrame({"head": ["nurse", "nurse", "cook"], "relation": ["IsA", "IsA", "HasA"]})
    assert echo_tails(prompts).rows() == [("nurse", "IsA", "nurse"), ("cook", "HasA", "cook")]
    drawn = random_tails(labelled, prompts, seed=2)
    assert set(drawn["tail"]) == {"helper", "worker", "person"}  # of ten draws, without repeats and polarised ones
    assert set(drawn["head"]) == {"nurse"}  # no training triple has HasA
    assert drawn.equals(random_tails(labelled, prompts, seed=2))
