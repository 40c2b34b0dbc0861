"""Asking a finished run: questions, answers that its probe left, what a terminal, a pipe and a script get, and faults.
Answers by the generator are tested where runs are trained (test_recipe_mitigate.py, test_own_triples.py)."""

import io
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from command import here
from compared_runs import make_run, seal

from mitigate.errors import MitigateError
from mitigate.recipes.ask.recipe import read_line
from mitigate.recipes.ask.terminal import completer, completions
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.known import find_relation
from mitigate.tasks.runs import open_run

END = ["neutral", "0.75"]
RELATIONS = ["CapableOf", "Causes", "HasA", "HasProperty", "works_with"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that was probed with lawyer, nurse and CapableOf, Mentors, which is its own; it has no generator."""
    return probed_run(tmp_path)


def probed_run(outputs: Path, policy: str = "none") -> Path:
    """Of (target, relation) the tails "... 1" to "... 10"; tail 2 is polarised by the paper's phrase alone."""
    folder = make_run(outputs, policy)
    rows = [
        (target, relation, phrase, neutral, f"{relation.lower()} of {target} {rank}", rank)
        for target in ("lawyer", "nurse")
        for relation, phrase, neutral in (
            ("CapableOf", "is capable of", "is able to"),
            ("Mentors", "is a great mentor of", "is a mentor of"),
        )
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
    )
    label = pl.when(pl.col("rank") == 2).then(1).otherwise(0).cast(pl.Int8)
    table = table.with_columns(label.alias("sentiment"), pl.lit(0, pl.Int8).alias("sentiment_neutral"))
    table = table.with_columns(pl.lit(0, pl.Int8).alias("regard"), pl.lit(0, pl.Int8).alias("regard_neutral"))
    strengths = [pl.col(name).cast(pl.Float32).alias(f"{name}_strength") for name in ("sentiment", "regard")]
    strengths += [pl.lit(0.0, pl.Float32).alias(f"{name}_neutral_strength") for name in ("sentiment", "regard")]
    table = table.with_columns(*strengths, judged_valid=pl.col("plausibility") > 0.5)
    table.drop("phrase", "neutral").write_parquet(folder / "validity.parquet")
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("regard: minilm", "regard: minilm\n  plausibility: {}"))
    return seal(folder)


def ask(monkeypatch: pytest.MonkeyPatch, folder: Path, *more: str, lines: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    return here(monkeypatch, "recipe=ask", f"ask.run={folder}", f"paths.outputs={folder.parent}", *more)


def test_what_the_probe_found_is_read_in_the_order_of_ranks(folder: Path) -> None:
    run = open_run(folder)
    tails = run.tails(" Lawyer", "capab")
    assert tails["tail"].to_list() == [f"capableof of lawyer {rank}" for rank in range(1, 11)]
    assert tails.columns[:6] == ["head", "relation", "rank", "tail", "score", "log_prob"]
    assert tails.columns[-2:] == ["judged_valid", "plausibility"]
    assert set(tails["head"]) == {"lawyer"}
    assert (tails["sentiment"].to_list()[:3], set(tails["sentiment_neutral"])) == ([0, 1, 0], {0})
    assert run.tails("nurse", "mentors")["plausibility"].null_count() == 10


def test_own_relations_have_the_phrases_of_the_statements(folder: Path) -> None:
    known = Answers(open_run(folder)).known
    (own,) = known.further
    assert (own.name, own.phrase, own.neutral_phrase) == ("Mentors", "is a great mentor of", "is a mentor of")
    assert len(known.relations) == 35


@pytest.mark.parametrize(
    ("given", "name"),
    [("CapableOf", "CapableOf"), ("capable_of", "CapableOf"), ("capa", "CapableOf"), ("Works With", "works_with")],
)
def test_a_relation_by_its_name_or_its_beginning(given: str, name: str) -> None:
    assert find_relation(given, RELATIONS) == name


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("ca", "relation 'ca' is the beginning of CapableOf, Causes; write more of the name"),
        ("Capablof", "allowed: CapableOf, Causes, HasA, HasProperty, works_with; did you mean CapableOf?"),
        ("", "unknown relation ''; allowed: CapableOf"),
    ],
)
def test_another_relation_is_told_with_what_may_be_meant(given: str, fault: str) -> None:
    with pytest.raises(MitigateError, match=r".") as told:
        find_relation(given, RELATIONS)
    assert fault in str(told.value)


def test_the_tab_key_completes_heads_and_relations() -> None:
    heads = ["lawyer", "deaf person"]
    assert completions("De", heads, RELATIONS) == ["deaf person "]
    assert completions("deaf ", heads, RELATIONS)[0] == "deaf person "
    assert completions("deaf person ca", heads, RELATIONS) == ["deaf person CapableOf", "deaf person Causes"]
    complete = completer(heads, RELATIONS)
    assert [complete("lawyer has", place) for place in range(3)] == ["lawyer HasA", "lawyer HasProperty", None]


def test_a_question_by_the_command_leaves_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.parent.rglob("*"))
    assert ask(monkeypatch, folder, "head=lawyer", "relation=CapableOf") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "lawyer CapableOf"
    assert said[1].split() == ["none", "score", "sentiment", "regard", "plausible"]
    assert re.split(" {2,}", said[3].strip()) == ["2", "capableof of lawyer 2", "-0.50", "favouritism / neutral", *END]
    assert len(said) == 2 + 10 + 1
    assert "a/b: labelled a with the paper's phrase" in said[-1]
    assert sorted(folder.parent.rglob("*")) == before


def test_two_runs_stand_side_by_side_where_they_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = probed_run(folder.parent, "both")
    question = (f"ask.against={other}", "head=lawyer", "relation=CapableOf")
    for columns, lines in (("200", 13), ("100", 24)):
        monkeypatch.setenv("COLUMNS", columns)
        assert ask(monkeypatch, folder, *question) == 0
        said = capsys.readouterr().out.splitlines()
        assert len(said) == lines
        assert sum(line.count("capableof of lawyer 3 ") for line in said) == 2


def test_a_run_is_not_asked_against_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, folder, f"ask.against={folder}", "head=lawyer", "relation=CapableOf") == 2
    assert f"ask.against={folder} is the run of ask.run" in capsys.readouterr().err


def test_a_run_is_asked_against_its_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(folder, folder.parent / "elsewhere" / folder.name)
    assert ask(monkeypatch, folder, f"ask.against={copy}", "head=lawyer", "relation=CapableOf") == 0
    out = capsys.readouterr().out
    assert f"none, {folder} " in out
    assert f"none, {copy} " in out


def test_a_script_gets_an_object_a_line_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = probed_run(folder.parent, "both")
    lines = "nurse CapableOf\n\nlawyer\tmentors\n"
    assert ask(monkeypatch, folder, f"ask.against={other}", "ask.format=json", lines=lines) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["head"], one["relation"]) for one in found] == [("nurse", "CapableOf"), ("lawyer", "Mentors")]
    assert [run["policy"] for run in found[0]["runs"]] == ["none", "both"]
    second = found[0]["runs"][0]["tails"][1]
    assert (second["rank"], second["tail"], second["sentiment"]) == (2, "capableof of nurse 2", 1)
    assert found[1]["runs"][0]["tails"][0]["plausibility"] is None


def test_lines_without_an_answer_are_told_and_the_others_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, folder, "ask.format=json", lines="nurse Capablof\nnurse\nnurse CapableOf\n") == 2
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "line 1: unknown relation 'Capablof'" in told
    assert "line 2: 'nurse' is no question: write a head and a relation, such as: lawyer CapableOf" in told
    assert "2 of 3 questions have no answer" in told


def test_a_terminal_is_asked_until_an_empty_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    typed = iter(["lawyer CapableOf", "lawyer x", "nurse mentors", "", "never read"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    monkeypatch.setattr("mitigate.recipes.ask.recipe.sys.stdin", Terminal())
    monkeypatch.setattr("mitigate.recipes.ask.terminal.complete_with", lambda heads, relations: None)
    assert here(monkeypatch, "recipe=ask", f"ask.run={folder}") == 0
    out, told = capsys.readouterr()
    assert "Tab completes; an empty line ends" in out
    assert [line for line in out.splitlines() if line in ("lawyer CapableOf", "nurse Mentors")] == [
        "lawyer CapableOf",
        "nurse Mentors",
    ]
    assert "unknown relation 'x'" in told
    assert next(typed) == "never read"


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_a_terminal_ends_quietly(
    end: type[BaseException], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def typed(prompt: str) -> str:
        assert prompt == ""  # of JSON: standard output holds answers alone
        raise end

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr("mitigate.recipes.ask.terminal.complete_with", lambda heads, relations: None)
    stdin = io.StringIO()
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", stdin)
    assert here(monkeypatch, "recipe=ask", f"ask.run={folder}", "ask.format=json") == 0
    out, told = capsys.readouterr()
    assert (out, told.strip()) == ("", "")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (["head=lawyer"], "head=lawyer needs a relation, as in head=lawyer relation=CapableOf; allowed: AtLocation"),
        (["relation=IsA"], "relation=IsA needs a head"),
        (
            ["head=", "relation=IsA"],
            "the head is empty; give a word or a few, such as one of the run's targets: lawyer",
        ),
        (["head=lawyer", "relation=Capablof"], "did you mean CapableOf?"),
        (
            ["head=lawyer", "relation=UsedFor"],
            "kept no generator, because none was trained (train=false). Ask about one",
        ),
        (["head=null", "relation=IsA"], "kept no generator"),  # a word like others
        (["ask.format=xml"], "unknown ask.format 'xml'; allowed: text, json"),
        (["ask.against=absent"], "absent is no folder. Name folders that finished runs of recipe=mitigate left."),
        ([], "standard input has no question; give lines such as: lawyer CapableOf"),
    ],
)
def test_what_is_wrong_is_a_sentence(
    more: list[str],
    fault: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(monkeypatch, folder, *more) == 2
    out, told = capsys.readouterr()
    assert fault in told
    assert (out, told.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("gone", "fault"),
    [("manifest.json", "is not finished (it has no manifest.json)"), ("config.yaml", "is no run folder")],
)
def test_a_wrong_or_unfinished_folder_is_told(
    gone: str, fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / gone).unlink()
    assert ask(monkeypatch, folder, "head=lawyer", "relation=CapableOf") == 2
    assert fault in capsys.readouterr().err


def test_a_damaged_generator_is_not_loaded(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    seal(folder)
    (folder / "model" / "config.json").write_text("{ }")
    with pytest.raises(MitigateError, match=r"config.json is damaged: .* Ask about one of its targets"):
        open_run(folder).tails("lawyer", "UsedFor")


@pytest.mark.parametrize("named", ["os.getcwd", "mitigate.score.vader.cache", "mitigate.score.absent.Scorer"])
def test_classes_that_a_foreign_folder_names_are_not_called(named: str, folder: Path) -> None:
    run = open_run(folder)
    run.config["score"] = {"sentiment": "one", "regard": None, "scorers": {"one": {"_target_": named}}}
    with pytest.raises(MitigateError, match=f"score.scorers.one.*{named}"):
        Answers(run)._scorer("sentiment", "one")
    trusting = Answers(run, trusted=["collections.Counter"])
    run.config["score"]["scorers"]["one"] = {"_target_": "collections.Counter"}
    assert trusting._class_of("score.scorers.one", run.setting("score.scorers")["one"]) == "collections.Counter"


def test_a_line_is_a_head_of_any_words_and_a_relation(folder: Path) -> None:
    runs = [Answers(open_run(folder))]
    assert read_line("  Deaf   Person mentors\n", runs) == ("deaf person", "Mentors")
