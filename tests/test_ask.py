"""Asking a finished run: questions, answers that its probe left, what a terminal, a pipe and a script get, and faults.
Answers by the generator are tested where runs are trained (test_recipe_mitigate.py, test_own_triples.py)."""

import io
import re
from pathlib import Path

import polars as pl
import pytest
from compared_runs import make_run, seal
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.finished import open_run
from mitigate.probe.answers import Answers

QUESTION = ("head=lawyer", "relation=CapableOf")


def probed_run(outputs: Path, policy: str = "none") -> Path:
    """A run without a generator, probed with lawyer, nurse and CapableOf, Mentors (its own): of each pair the tails
    "... 1" to "... 10"; tail 2 is polarised by the paper's phrase alone."""
    folder = make_run(outputs, policy)
    phrases = {"CapableOf": ("is capable of", "is able to"), "Mentors": ("is a great mentor of", "is a mentor of")}
    rows = [
        (target, relation, *phrases[relation], f"{relation.lower()} of {target} {rank}", rank)
        for target in ("lawyer", "nurse")
        for relation in phrases
        for rank in range(1, 11)
    ]
    names = ["target", "relation", "phrase", "neutral", "tail", "rank"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        head="target",
        category=pl.lit("profession"),
        rank=pl.col("rank").cast(pl.UInt8),
        score=-pl.col("rank") / 4,
        log_prob=-pl.col("rank") / 2,
        statement=pl.format("{} {} {}", "target", "phrase", "tail"),
        masked=pl.format("this person {} {}", "phrase", "tail"),
        masked_neutral=pl.format("this person {} {}", "neutral", "tail"),
        plausibility=pl.when(pl.col("relation") == "CapableOf").then(0.75),
        sentiment=(pl.col("rank") == 2).cast(pl.Int8),
    )
    columns = ("sentiment", "sentiment_neutral", "regard", "regard_neutral")
    table = table.with_columns(pl.lit(0, pl.Int8).alias(name) for name in columns[1:])
    strengths = [pl.col(name).cast(pl.Float32).alias(f"{name}_strength") for name in columns]
    table = table.with_columns(*strengths, judged_valid=pl.col("plausibility") > 0.5)
    table.drop("phrase", "neutral").write_parquet(folder / "validity.parquet")
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "targets.csv").write_text("target,category\nlawyer,profession\nnurse,profession\n")
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("regard: minilm", "regard: minilm\n  plausibility: {}"))
    return seal(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probed_run(tmp_path_factory.mktemp("ask"))


@pytest.fixture
def ask(ran, monkeypatch: pytest.MonkeyPatch):
    def run(folder: Path, *more: str, lines: str = ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return ran("recipe=ask", f"ask.run={folder}", f"paths.outputs={folder.parent}", *more)

    return run


def test_answers_of_the_probe_in_the_order_of_ranks_with_own_relations(folder: Path) -> None:
    run = Answers(open_run(folder))
    tails = run.tails(" Lawyer", "capable_of")
    assert tails["tail"].to_list() == [f"capableof of lawyer {rank}" for rank in range(1, 11)]
    assert tails.columns[:6] == ["head", "relation", "rank", "tail", "score", "log_prob"]
    assert (tails["sentiment"].to_list()[:3], set(tails["sentiment_neutral"])) == ([0, 1, 0], {0})
    assert run.tails("nurse", "mentors")["plausibility"].null_count() == 10
    assert len(run.relations) == 35
    refuses(MitigateError, "did you mean CapableOf.*allowed: AtLocation", run.tails, "nurse", "Capablof")


def test_a_question_by_the_command_leaves_no_folder(folder: Path, ask) -> None:
    before = sorted(folder.parent.rglob("*"))
    status, out, _ = ask(folder, *QUESTION)
    said = out.splitlines()
    assert (status, said[0]) == (0, "lawyer CapableOf")
    assert said[1].split() == ["none", "score", "sentiment", "regard", "plausible"]
    second = ["2", "capableof of lawyer 2", "-0.50", "favouritism / neutral", "neutral", "0.75"]
    assert re.split(" {2,}", said[3].strip()) == second
    assert len(said) == 2 + 10 + 1
    assert "a/b: labelled a with the paper's phrase" in said[-1]
    assert sorted(folder.parent.rglob("*")) == before


def test_lines_without_an_answer_are_named_and_the_others_answered(folder: Path, ask) -> None:
    status, out, err = ask(folder, lines="nurse Capablof\n\nnurse CapableOf\nnurse mentors\n")
    assert (status, out.count("nurse CapableOf\n"), out.count("nurse Mentors\n")) == (2, 1, 1)
    assert "line 1: unknown relation 'Capablof'" in err
    assert "1 of 3 questions failed; write a head and a relation, such as: lawyer CapableOf" in err


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (["head=lawyer"], "head=lawyer needs a relation, as in head=lawyer relation=CapableOf; allowed: AtLocation"),
        (["head=", "relation=IsA"], "the head is empty; write a head and a relation"),
        (["head=lawyer", "relation=UsedFor"], "has no generator: it was not trained (train=false). Questions"),
        (["head=null", "relation=IsA"], "has no generator"),  # a word like others
        (["ask.run=absent"], "absent is not a folder. Set it to folders of finished runs of recipe=mitigate."),
        (["relation=IsA"], "relation=IsA needs a head, as in head=lawyer relation=CapableOf"),
        ([], "standard input has no question; write a head and a relation"),
    ],
)
def test_each_fault_is_one_sentence(more: list[str], fault: str, folder: Path, ask) -> None:
    status, out, err = ask(folder, *(part.format(folder=folder) for part in more))
    assert status == 2
    assert fault.format(folder=folder) in err
    assert (out, err.count("\n")) == ("", 1)


def test_classes_and_addresses_that_a_foreign_folder_names_are_not_used(folder: Path) -> None:
    run, named = open_run(folder), "os.getcwd"
    run.config["score"] = {"sentiment": "one", "regard": None, "scorers": {"one": {"_target_": named}}}
    refuses(MitigateError, f"score.scorers.one.*{named}", lambda: Answers(run)._labeller)
    assert Answers(run, trusted=["collections.Counter"])._build("x", {"_target_": "collections.Counter"}) == {}
    url, judge = "http://localhost:1/v1", "mitigate.score.judge.Judge"
    node = {"_target_": judge, "url": url, "name": "mine", "key": "HOME"}
    refuses(MitigateError, f"x of .* sends texts and a key to {url}", Answers(run, [judge])._build, "x", node)
    assert Answers(run, trusted=[url])._build("x", node).sends
