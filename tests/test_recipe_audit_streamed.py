"""recipe=audit of resources of any size: the same figures as in memory, whatever the chunks, also after a kill; all
texts scored; what is left out is told."""

import gzip
import importlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import here

from mitigate import store
from mitigate.files import write
from mitigate.load import stream
from mitigate.load.files import load as load_statements
from mitigate.tasks import statements as audit_statements
from mitigate.tasks.audit import count as counting

SETTINGS = ("recipe=audit", "score.regard=null", "measure.resamples=50", "tracking=none")
SENTENCES = "nurses are kind.\nthe nurse is a thief.\na lawyer is late.\ncats are awful.\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe in a folder of outputs; returns the exit status, all that was printed, and the run folder."""
    monkeypatch.setattr("mitigate.report.audit.Audit.pictures", [])  # they take seconds

    def run_audit(*overrides: str, outputs: str = "outputs") -> tuple[int, str, Path]:
        places = (f"paths.outputs={tmp_path / outputs}", f"paths.cache={tmp_path}/cache")
        status = here(monkeypatch, *SETTINGS, *places, *overrides)
        folders = sorted((tmp_path / outputs).glob("audit-*"), key=lambda folder: folder.stat().st_mtime_ns)
        return status, "".join(capsys.readouterr()), folders[-1] if folders else tmp_path

    return run_audit


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", 30_000)
    monkeypatch.setattr(stream, "PEEKED", 30_000)
    monkeypatch.setattr(counting, "CHUNK", 400)


def figures(folder: Path) -> dict:
    metrics = json.loads((folder / "metrics.json").read_text())
    return {key: value for key, value in metrics.items() if key not in ("data", "fingerprint")}


def sample_edges(tmp_path: Path) -> str:
    """The sample corpus as a file whose columns have other names."""
    lines = files("mitigate").joinpath("data/sample/train.txt").read_text(encoding="utf-8").splitlines()
    content = "\n".join(["what\twho\twhom", *("\t".join(line.split("\t")[:3]) for line in dict.fromkeys(lines))])
    path = tmp_path / "mine.tsv"
    path.write_text(content + "\n", encoding="utf-8")
    return str(path)


def test_a_streamed_audit_finds_what_one_in_memory_finds(run, small_blocks, tmp_path: Path) -> None:
    _, _, held = run("data=sample", outputs="held")
    columns = "data.columns={head: who, relation: what, tail: whom}"
    status, said, streamed = run("data=triples", f"data.path={sample_edges(tmp_path)}", columns, outputs="streamed")
    assert status == 0, said
    assert len(list((streamed / "rows").iterdir())) > 3
    assert figures(streamed) == figures(held)
    for name in ("relations.csv", "targets_sentiment.csv", "measures.csv"):
        assert (streamed / "tables" / name).read_text() == (held / "tables" / name).read_text()


class Killed(BaseException):
    """What no code catches."""


@pytest.mark.parametrize("place", ["read.about", "count.label"])
def test_a_killed_audit_goes_on_from_the_finished_chunks(
    run, small_blocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Ended in its third chunk, whether reading or labelling, it asks only for those that are not there."""
    asked, last = [0], [2]
    module, name = place.rsplit(".", 1)
    original = getattr(importlib.import_module(f"mitigate.tasks.audit.{module}"), name)

    def counted(*values: Any, **more: Any) -> pl.DataFrame:
        if asked[0] == last[0]:
            raise Killed
        asked[0] += 1
        return original(*values, **more)

    monkeypatch.setattr(f"mitigate.tasks.audit.{place}", counted)
    arguments = (
        "data=triples",
        f"data.path={sample_edges(tmp_path)}",
        "data.columns={head: who, relation: what, tail: whom}",
    )
    with pytest.raises(Killed):
        run(*arguments, outputs="ended")
    numbers = []
    last[0] = -1
    for outputs in ("ended", "never"):
        asked[0] = 0
        status, said, folder = run(*arguments, outputs=outputs)
        assert status == 0, said
        numbers.append((asked[0], figures(folder)))
    (later, ended), (whole, never) = numbers
    assert later == whole - 2
    assert ended == never
    assert not (folder / "counted").exists()


@pytest.mark.parametrize("stage", ["read", "tally"])
def test_a_kill_between_the_last_part_and_the_record_loses_no_row(
    run, small_blocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """All parts of the stage are there, and nothing says so yet."""
    columns = "data.columns={head: who, relation: what, tail: whom}"
    arguments = ("data=triples", f"data.path={sample_edges(tmp_path)}", columns)
    _, _, whole = run(*arguments, outputs="whole")

    def dying(path: Path, content: bytes | str) -> Path:
        if path.parts[-2:] == ("stages", f"{stage}.json"):
            raise Killed
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(store, "write", dying)
        with pytest.raises(Killed):
            run(*arguments, outputs="killed")
    left = {"read": "rows", "tally": "statements"}[stage]
    (killed,) = (tmp_path / "killed").glob("audit-*")
    there = {path.name: path.stat().st_mtime_ns for path in (killed / left).glob("*.parquet")}
    assert set(there) == {path.name for path in (whole / left).iterdir()}
    status, said, folder = run(*arguments, outputs="killed")
    assert status == 0, said
    assert figures(folder) == figures(whole)
    assert {path.name: path.stat().st_mtime_ns for path in (folder / left).iterdir()} == there  # not written again
    for name in ("rows", "statements"):
        parts = (pl.read_parquet(place / name) for place in (folder, whole))
        assert next(parts).equals(next(parts))
    assert not (folder / "counted").exists()


def test_a_part_that_is_damaged_or_lost_after_a_kill_is_made_again(
    run, small_blocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "data.columns={head: who, relation: what, tail: whom}"
    arguments = ("data=triples", f"data.path={sample_edges(tmp_path)}", columns)
    _, _, whole = run(*arguments, outputs="whole")

    def dying(*values: Any, **more: Any) -> pl.DataFrame:
        raise Killed

    for place in ("read._check_found", "count.total"):
        with monkeypatch.context() as patched:
            patched.setattr(f"mitigate.tasks.audit.{place}", dying)
            with pytest.raises(Killed):
                run(*arguments, outputs="killed")
        (killed,) = (tmp_path / "killed").glob("audit-*")
        first, second, *_ = sorted((killed / ("rows" if "read" in place else "statements")).glob("*.parquet"))
        first.write_bytes(first.read_bytes()[:-1] + b"?")
        second.unlink()
    status, said, folder = run(*arguments, outputs="killed")
    assert status == 0, said
    assert figures(folder) == figures(whole)


def test_all_texts_are_scored_when_wished(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(SENTENCES)
    _, _, folder = run("data=sentences", f"data.path={path}", "measure.texts=all", "score.regard=ngram")
    found = figures(folder)
    assert (found["rows"], found["rows_about_a_target"], found["statements"]) == (4, 2, 2)  # "nurses" is none
    assert found["NSM"] == 50  # nurse 0, lawyer 100
    assert found["all_texts/sentiment/statements"] == 4
    assert found["all_texts/sentiment/polarised"] == 75  # kind, thief and awful, of four
    assert found["all_texts/sentiment/prejudice"] == 50
    said = pl.read_parquet(folder / "statements")
    assert said.select("row", "target").rows() == [(1, None), (2, "nurse"), (3, "lawyer"), (4, None)]
    assert said["regard"].null_count() == 2  # classifiers are asked of statements about a target only
    assert "all_texts/regard/statements" not in found
    page = (folder / "audit.html").read_text()
    assert (
        "Of all 4 texts, with a target or without, 75.0 % are not neutral by sentiment: 50.0 % negative, 25.0 %" in page
    )
    assert "awful" not in page
    exported = load_statements(str(folder / "statements.tsv")).statements  # as people are asked about them
    assert exported.select("target", "statement").rows() == [
        ("nurse", "the nurse is a thief."),
        ("lawyer", "a lawyer is late."),
    ]


def test_a_sentence_about_two_targets_counts_for_both_and_as_one_text(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("a nurse and a lawyer are kind.\nhi.\n")
    _, _, folder = run("data=sentences", f"data.path={path}", "measure.texts=all")
    assert (figures(folder)["statements"], figures(folder)["all_texts/sentiment/statements"]) == (2, 2)


def test_a_term_is_what_a_sentence_is_about_or_what_stands_in_it(run, tmp_path: Path) -> None:
    path = tmp_path / "GenericsKB-Best.tsv"
    path.write_text("SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tnurse\t\tA nurse helps a lawyer.\t1\n")
    for match, statements in (("exact", 1), ("contains", 2)):
        _, _, folder = run("data=genericskb", f"data.path={path}", f"measure.match={match}", outputs=match)
        assert figures(folder)["statements"] == statements


def test_more_statements_than_a_page_needs_are_chosen_from(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("head\trelation\ttail\n" + "".join(f"nurse\tIsA\tthief {i}\n" for i in range(1000)))
    monkeypatch.setattr(audit_statements, "MOST", 100)
    _, said, folder = run("data=triples", f"data.path={path}")
    assert figures(folder)["statements"] == 1000
    chosen = int(said.partition("word clouds are of ")[2].split()[0])
    assert 60 < chosen < 140  # about 100
    assert "chosen by chance from 1,000; figures are of all of them" in (folder / "audit.html").read_text()
    assert "1000" in (folder / "tables" / "relations.csv").read_text()


@pytest.mark.parametrize("name", ["conceptnet", "genericskb", "atomic", "triples", "sentences"])
def test_every_resource_needs_a_file(run, name: str) -> None:
    status, said, _ = run(f"data={name}")
    assert status == 2
    assert f"data={name} needs a file: give data.path=FILE" in said


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        ("nurse\tIsA\tx\nnurse\tIsA\n", [], "1 bad line:"),
        (
            "cat\tIsA\tx\n",
            [],
            "nothing in mine.tsv (1 rows) is about any of the 329 targets; measure.match=contains finds",
        ),
        ("nurse\tIsA\tx\n", ["recipe.targets=data"], "recipe.targets=data needs a resource that is read whole"),
        ("nurse\tIsA\tx\n", ["measure.texts=some"], "unknown measure.texts 'some'; allowed: targets, all"),
        ("nurse\tIsA\tx\n", ["score.sentiment=null"], "name no scorer; at least one must label"),
        ("nurse\tIsA\tx\n", ["data.on_bad_line=drop"], "unknown data.on_bad_line 'drop'; allowed: error, skip"),
    ],
)
def test_faults_are_told_before_anything_is_labelled(
    run, tmp_path: Path, content: str, overrides: list[str], message: str
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(content)
    status, said, folder = run(
        "data=triples", f"data.path={path}", "data.columns={head: 1, relation: 2, tail: 3}", *overrides
    )
    assert status == 2
    assert message in said
    assert "Traceback" not in said
    assert not (folder / "statements").exists()
    assert not (tmp_path / "cache").exists()


def test_what_is_left_out_of_assertions_is_told_and_a_damaged_file_is(run, tmp_path: Path) -> None:
    rows = [("en/nurse", "en/thief"), ("en/nurse", "fr/voleur"), ("fr/infirmière", "fr/voleur")]
    lines = [f'/a/x\t/r/IsA\t/c/{head}\t/c/{tail}\t{{"weight": 1.0}}\n' for head, tail in rows]
    packed = gzip.compress("".join(lines).encode() * 2000)
    path = tmp_path / "assertions.csv.gz"
    path.write_bytes(packed[:-9])
    status, said, folder = run("data=conceptnet", f"data.path={path}")
    assert status == 2
    assert "assertions.csv.gz is damaged or was cut short after line" in said
    assert not (folder / "statements").exists()
    path.write_bytes(packed)
    status, said, folder = run("data=conceptnet", f"data.path={path}")
    assert status == 0
    assert figures(folder)["statements"] == 2000
    for count in ("neither end is English", "one end is not English (another language, or an address)"):
        assert f"note: 2,000 rows left out: {count}" in said
        assert f"2,000 rows left out: {count}" in (folder / "audit.html").read_text()


def test_all_statements_are_about_a_target_where_their_file_says_so(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("nurse\tcares\n")
    status, said, _ = run("data=statements", f"data.path={path}", "measure.texts=all")
    assert status == 2
    assert "each statement of this file is about one; leave it out" in said
