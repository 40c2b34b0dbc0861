"""Asking a finished run: questions, answers that its probe left, what a terminal, a pipe and a script get, and faults.
Answers by the generator are tested where runs are trained (test_recipe_mitigate.py, test_own_triples.py)."""

import io
import json
import re
import shutil
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest
from compared_runs import make_run, seal
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.probe.answers import Answers, find_relation, open_run
from mitigate.recipes.ask import read_line

RELATIONS = ["CapableOf", "Causes", "HasA", "HasProperty", "works_with"]
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
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("regard: minilm", "regard: minilm\n  plausibility: {}"))
    return seal(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probed_run(tmp_path_factory.mktemp("ask"))


@pytest.fixture(scope="module")
def other(folder: Path) -> Path:
    return probed_run(folder.parent, "both")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """The run, for a test to change."""
    return Path(shutil.copytree(folder, tmp_path / folder.name))


@pytest.fixture
def ask(ran, monkeypatch: pytest.MonkeyPatch):
    def run(folder: Path, *more: str, lines: str = ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return ran("recipe=ask", f"ask.run={folder}", f"paths.outputs={folder.parent}", *more)

    return run


def test_answers_of_the_probe_in_the_order_of_ranks_with_own_relations(folder: Path) -> None:
    run = open_run(folder)
    tails = run.tails(" Lawyer", "capab")
    assert tails["tail"].to_list() == [f"capableof of lawyer {rank}" for rank in range(1, 11)]
    assert tails.columns[:6] == ["head", "relation", "rank", "tail", "score", "log_prob"]
    assert (tails["sentiment"].to_list()[:3], set(tails["sentiment_neutral"])) == ([0, 1, 0], {0})
    assert run.tails("nurse", "mentors")["plausibility"].null_count() == 10
    answers = Answers(run)
    (own,) = answers.index.further
    assert (own.name, own.phrase, own.neutral_phrase) == ("Mentors", "is a great mentor of", "is a mentor of")
    assert len(answers.index.relations) == 35
    assert read_line("  Deaf   Person mentors\n", [answers]) == ("deaf person", "Mentors")


def test_a_relation_by_its_name_or_its_beginning() -> None:
    for given, found in (("capable_of", "CapableOf"), ("capa", "CapableOf"), ("Works With", "works_with")):
        assert find_relation(given, RELATIONS) == found
    for given, fault in (
        ("ca", "ambiguous relation 'ca': CapableOf, Causes; write more of the name"),
        ("Capablof", "did you mean CapableOf.*allowed: CapableOf, Causes, HasA, HasProperty, works_with"),
        ("", "unknown relation ''; allowed: CapableOf"),
    ):
        refuses(MitigateError, fault, find_relation, given, RELATIONS)


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


def test_two_runs_stand_below_each_other(folder: Path, other: Path, copy: Path, ask) -> None:
    """A run may stand beside its copy, each named by its folder."""
    status, out, _ = ask(folder, f"ask.against={other}", *QUESTION)
    assert (status, len(out.splitlines()), out.count("capableof of lawyer 3 ")) == (0, 24, 2)
    out = ask(folder, f"ask.against={copy}", *QUESTION).done
    assert all(f"none, {place} " in out for place in (folder, copy))


def test_a_script_gets_an_object_a_line_and_nothing_else(folder: Path, other: Path, ask) -> None:
    questions = "nurse CapableOf\n\nlawyer\tmentors\n"
    status, out, _ = ask(folder, f"ask.against={other}", "ask.format=json", lines=questions)
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["head"], one["relation"]) for one in found] == [("nurse", "CapableOf"), ("lawyer", "Mentors")]
    assert (status, [run["policy"] for run in found[0]["runs"]]) == (0, ["none", "both"])
    second = found[0]["runs"][0]["tails"][1]
    assert (second["rank"], second["tail"], second["sentiment"]) == (2, "capableof of nurse 2", 1)
    assert found[1]["runs"][0]["tails"][0]["plausibility"] is None


def test_lines_without_an_answer_are_named_and_the_others_answered(folder: Path, ask) -> None:
    status, out, err = ask(folder, "ask.format=json", lines="nurse Capablof\nnurse\nnurse CapableOf\n")
    assert (status, len(out.splitlines())) == (2, 1)
    assert "line 1: unknown relation 'Capablof'" in err
    assert "line 2: 'nurse' is not a question; write a head and a relation, such as: lawyer CapableOf" in err
    assert "2 of 3 questions failed" in err


def test_a_terminal_is_asked_until_an_empty_line_or_its_end(folder: Path, ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Mock(isatty=lambda: True))
    typed = Mock(side_effect=["lawyer CapableOf", "lawyer x", "nurse mentors", "", "never read"])
    monkeypatch.setattr("builtins.input", typed)
    status, out, err = ran("recipe=ask", f"ask.run={folder}")
    answered = ["lawyer CapableOf", "nurse Mentors"]
    assert (status, [line for line in out.splitlines() if line in answered]) == (0, answered)
    assert ("unknown relation 'x'" in err, typed.call_count) == (True, 4)
    for end in (EOFError, KeyboardInterrupt):
        typed.side_effect = end
        status, out, err = ran("recipe=ask", f"ask.run={folder}", "ask.format=json")
        assert (status, out) == (0, "")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (["head=lawyer"], "head=lawyer needs a relation, as in head=lawyer relation=CapableOf; allowed: AtLocation"),
        (["relation=IsA"], "relation=IsA needs a head"),
        (["head=", "relation=IsA"], "the head is empty; give a word or a few, such as one of the run's targets: t0"),
        (["head=lawyer", "relation=UsedFor"], "has no generator: it was not trained (train=false). Questions"),
        (["head=null", "relation=IsA"], "has no generator"),  # a word like others
        (["ask.format=xml"], "unknown ask.format 'xml'; allowed: text, json"),
        (["ask.against=absent"], "absent is not a folder. Set it to folders of finished runs of recipe=mitigate."),
        (["ask.against={folder}", *QUESTION], "ask.against={folder} is the same run as ask.run"),
        ([], "standard input is empty; write lines such as: lawyer CapableOf"),
    ],
)
def test_each_fault_is_one_sentence(more: list[str], fault: str, folder: Path, ask) -> None:
    status, out, err = ask(folder, *(part.format(folder=folder) for part in more))
    assert status == 2
    assert fault.format(folder=folder) in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_damaged_generator_is_not_loaded(copy: Path) -> None:
    (copy / "model").mkdir()
    (copy / "model" / "config.json").write_text("{}")
    seal(copy)
    (copy / "model" / "config.json").write_text("{ }")
    with pytest.raises(MitigateError, match=r"config.json is damaged: .* Questions about its targets"):
        open_run(copy).tails("lawyer", "UsedFor")


@pytest.mark.parametrize("named", ["os.getcwd", "mitigate.score.vader.cache", "mitigate.score.absent.Scorer"])
def test_classes_that_a_foreign_folder_names_are_not_called(named: str, folder: Path) -> None:
    run = open_run(folder)
    run.config["score"] = {"sentiment": "one", "regard": None, "scorers": {"one": {"_target_": named}}}
    with pytest.raises(MitigateError, match=f"score.scorers.one.*{named}"):
        Answers(run)._scorer("sentiment", "one")
    trusting = Answers(run, trusted=["collections.Counter"])
    run.config["score"]["scorers"]["one"] = {"_target_": "collections.Counter"}
    assert trusting._class_of("score.scorers.one", run.setting("score.scorers")["one"]) == "collections.Counter"
