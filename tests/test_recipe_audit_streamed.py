"""recipe=audit of resources of any size: the same figures as in memory, whatever the chunks, also after a kill; all
texts scored; what is left out is told."""

import importlib
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import UNDRAWN, here
from polars.testing import assert_frame_equal

from mitigate import stages
from mitigate.load import table
from mitigate.load.statements import load as load_statements
from mitigate.measure import statements as audit_statements
from mitigate.tasks.audit import read as counting

SETTINGS = ("recipe=audit", "score.regard=null", "measure.resamples=50", "tracking=none")
SENTENCES = "nurses are kind.\nthe nurse is a thief.\na lawyer is late.\ncats are awful.\n"


def small(patch: pytest.MonkeyPatch) -> None:
    """Small blocks and chunks, and no pictures, which take seconds."""
    patch.setattr(*UNDRAWN)
    patch.setattr(table, "BLOCK", 30_000)
    patch.setattr(table, "PEEKED", 30_000)
    patch.setattr(counting, "CHUNK", 400)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe in a folder of outputs; returns the exit status, all that was printed, and the run folder."""
    monkeypatch.setattr(*UNDRAWN)

    def run_audit(*overrides: str, outputs: str = "outputs") -> tuple[int, str, Path]:
        places = (f"paths.outputs={tmp_path / outputs}", f"paths.cache={tmp_path}/cache")
        status = here(monkeypatch, *SETTINGS, *places, *overrides)
        folders = sorted((tmp_path / outputs).glob("audit-*"), key=lambda folder: folder.stat().st_mtime_ns)
        return status, "".join(capsys.readouterr()), folders[-1] if folders else tmp_path

    return run_audit


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """The settings of a file with this content."""

    def write_file(data: str, content: str, name: str = "mine.tsv") -> tuple[str, str]:
        (tmp_path / name).write_text(content)
        return f"data={data}", f"data.path={tmp_path / name}"

    return write_file


def figures(folder: Path) -> dict:
    metrics = json.loads((folder / "metrics.json").read_text())
    return {key: value for key, value in metrics.items() if key not in ("data", "fingerprint")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an audit of `edges` that nothing interrupted."""
    place = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        places = (f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}")
        assert here(patch, *SETTINGS, *places, *edges(place)) == 0
    (folder,) = (place / "out").glob("audit-*")
    return folder


def edges(place: Path) -> tuple[str, ...]:
    """The settings of the sample corpus as a file whose columns have other names."""
    lines = files("mitigate").joinpath("data/sample/train.txt").read_text(encoding="utf-8").splitlines()
    content = "\n".join(["what\twho\twhom", *("\t".join(line.split("\t")[:3]) for line in dict.fromkeys(lines))])
    path = place / "mine.tsv"
    path.write_text(content + "\n", encoding="utf-8")
    return "data=triples", f"data.path={path}", "data.columns={head: who, relation: what, tail: whom}"


def test_a_streamed_audit_finds_what_one_in_memory_finds(run, whole: Path) -> None:
    _, _, held = run("data=sample")
    assert len(list((whole / "rows").iterdir())) > 3
    assert figures(whole) == pytest.approx(figures(held), abs=1e-6)
    for name in ("relations.csv", "targets_sentiment.csv", "measures.csv"):
        assert_frame_equal(*(pl.read_csv(place / "tables" / name) for place in (whole, held)), abs_tol=1e-6)


def unfinished(place: Path, left: str) -> Path:
    """The parts that a killed audit has left."""
    (found,) = (place / "outputs" / stages.STORE).glob(f"{'read' if left == 'rows' else 'tally'}-*/{left}")
    return found


class Killed(BaseException):
    """What no code catches."""


def dying(*values: Any, **more: Any) -> Any:
    raise Killed


@pytest.mark.parametrize("place", ["read.about", "read.label"])
def test_a_killed_audit_goes_on_from_the_finished_chunks(
    run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Ended in its third chunk, whether reading or labelling, it computes only those that are not there."""
    small(monkeypatch)
    asked, last = [0], [2]
    module, name = place.rsplit(".", 1)
    original = getattr(importlib.import_module(f"mitigate.tasks.audit.{module}"), name)

    def counted(*values: Any, **more: Any) -> pl.DataFrame:
        if asked[0] == last[0]:
            raise Killed
        asked[0] += 1
        return original(*values, **more)

    monkeypatch.setattr(f"mitigate.tasks.audit.{place}", counted)
    with pytest.raises(Killed):
        run(*edges(tmp_path))
    last[0] = -1
    left = {"about": "rows", "label": "statements"}[name]
    there = {path.name: path.stat().st_mtime_ns for path in unfinished(tmp_path, left).glob("*.parquet")}
    assert 0 < len(there) < len(list((whole / left).iterdir()))
    status, said, folder = run(*edges(tmp_path))
    assert status == 0, said
    assert {name: (folder / left / name).stat().st_mtime_ns for name in there} == there  # not written again
    assert figures(folder) == pytest.approx(figures(whole), abs=1e-6)
    assert not (folder / "counted").exists()


def test_a_part_that_is_damaged_or_lost_after_a_kill_is_made_again(
    run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    for place, left in (("read.repeats", "rows"), ("read.total", "statements")):
        with monkeypatch.context() as patched:
            patched.setattr(f"mitigate.tasks.audit.{place}", dying)
            with pytest.raises(Killed):
                run(*edges(tmp_path))
        first, second, *_ = sorted(unfinished(tmp_path, left).glob("*.parquet"))
        first.write_bytes(first.read_bytes()[:-1] + b"?")
        second.unlink()
    status, said, folder = run(*edges(tmp_path))
    assert status == 0, said
    assert figures(folder) == pytest.approx(figures(whole), abs=1e-6)


def test_all_texts_are_scored_when_wished(run, mine) -> None:
    """A sentence about two targets counts for both, and as one text."""
    mine_all = ("measure.texts=all", "score.regard=ngram")
    _, _, folder = run(*mine("sentences", SENTENCES, "mine.txt"), *mine_all)
    found = figures(folder)
    expected = {
        **{"rows": 4, "rows_about_a_target": 3, "statements": 3, "NSM": 50},  # nurse 0, lawyer 100
        **{"all_texts/sentiment/statements": 4, "all_texts/sentiment/prejudice": 50},
        "all_texts/sentiment/polarised": 75,  # kind, thief and awful, of four
    }
    assert {key: found[key] for key in expected} == expected
    said = pl.read_parquet(folder / "statements")
    assert said.select("row", "target").rows() == [(1, "nurse"), (2, "nurse"), (3, "lawyer"), (4, None)]
    assert said["regard"].null_count() == 1  # classifiers are asked of statements about a target only
    assert "all_texts/regard/statements" not in found
    page = (folder / "audit.html").read_text()
    assert "Of all texts, with a target or without" in page
    assert "awful" not in page
    exported = load_statements(str(folder / "statements.tsv")).rows  # as people are asked about them
    about = [("nurse", "nurses are kind."), ("nurse", "the nurse is a thief."), ("lawyer", "a lawyer is late.")]
    assert exported.select("target", "statement").rows() == about
    two = mine("sentences", "a nurse and a lawyer are kind.\nhi.\n", "two.txt")
    found = figures(run(*two, "measure.texts=all", outputs="two")[2])
    assert (found["statements"], found["all_texts/sentiment/statements"]) == (2, 2)


def test_a_term_is_the_topic_of_a_sentence_or_a_word_in_it(run, mine) -> None:
    content = "SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tnurse\t\tA nurse helps a lawyer.\t1\n"
    for match, statements in (("exact", 1), ("contains", 2)):
        settings = mine("genericskb", content, "GenericsKB-Best.tsv")
        assert figures(run(*settings, f"measure.match={match}", outputs=match)[2])["statements"] == statements


def test_more_statements_than_a_page_needs_are_chosen_from(run, mine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_statements, "MOST", 100)
    lines = "".join(f"nurse\tIsA\tthief {i}\n" for i in range(1000))
    _, said, folder = run(*mine("triples", f"head\trelation\ttail\n{lines}"))
    assert figures(folder)["statements"] == 1000
    chosen = int(said.partition("Examples are of ")[2].split()[0])
    assert 60 < chosen < 140  # about 100
    assert "chosen by chance from 1,000; figures are of all of them" in (folder / "audit.html").read_text()
    assert "1000" in (folder / "tables" / "relations.csv").read_text()


@pytest.mark.parametrize("name", ["conceptnet", "genericskb", "atomic", "generations", "statements"])
def test_every_resource_needs_a_file(run, name: str) -> None:
    status, said, _ = run(f"data={name}")
    assert status == 2
    assert f"data={name} needs data.path, which is not set; set data.path=FILE" in said


COLUMNS = "data.columns={head: 1, relation: 2, tail: 3}"


@pytest.mark.parametrize(
    ("content", "override", "message"),
    [
        ("nurse\tIsA\tx\nnurse\tIsA\n", COLUMNS, "1 bad line:"),
        ("nurse\tIsA\tx\n", "measure.texts=some", "unknown measure.texts 'some'; allowed: targets, all"),
    ],
)
def test_faults_are_named_before_anything_is_labelled(
    run, mine, tmp_path: Path, content: str, override: str, message: str
) -> None:
    status, said, folder = run(*mine("triples", content), COLUMNS, override)
    assert status == 2
    assert message in said
    assert "Traceback" not in said
    assert not (folder / "statements").exists()
    assert not (tmp_path / "cache").exists()
