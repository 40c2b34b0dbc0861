"""Triples of one's own with relations of one's own, through the main job and an audit."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, UNDRAWN, here
from polars.testing import assert_frame_equal

from mitigate.errors import MitigateError
from mitigate.finished import open_run
from mitigate.load.corpus import Corpus, corpus_of
from mitigate.probe.answers import Answers
from models.comet import Comet

PEOPLE = ("teacher", "nurse", "lawyer", "farmer", "chef", "pilot", "poet", "baker", "tailor", "clerk") * 3
TAILS = {
    "mentors": ("a colleague", "two students", "a neighbour", "a beginner"),
    "works with": ("a team", "other people", "a rude client"),
    "CapableOf": ("read a map", "win a prize", "make an error"),
}
PHRASES = "relation,phrase,neutral_phrase\nmentors,is a great mentor of,is a mentor of\nworks with,works with,\n"
NAMES = "data.columns={head: who, relation: how, tail: what}"
MINE = (*[part for part in SMALL if not part.startswith("probe.relations")], "tracking=none", "data=triples", NAMES)


def lines(split: Callable[[int], str] | None = None) -> str:
    """300 triples of 30 heads, under names of their own, perhaps with a split."""
    rows = [
        (f"{who} {number // 10}" if number >= 10 else who, how, what)
        for number, who in enumerate(PEOPLE)
        for how, tails in TAILS.items()
        for what in tails
    ]
    named = [("Who", "How", "What", *(["split"] if split else []))]
    named += [(*row, *([split(number)] if split else [])) for number, row in enumerate(rows)]
    return "".join("\t".join(row) + "\n" for row in named)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of the triples and of the relations' phrases."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "mine.tsv").write_text(lines())
    (folder / "phrases.csv").write_text(PHRASES)
    return {"triples": f"data.path={folder / 'mine.tsv'}", "relations": f"data.relations={folder / 'phrases.csv'}"}


@pytest.fixture(scope="module")
def finished(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run folder of policy=both without a licence, and what the terminal showed."""
    outputs, said = tmp_path_factory.mktemp("finished"), []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(*UNDRAWN)
        monkeypatch.setattr("mitigate.progress.print", lambda text, **_: said.append(text), raising=False)
        assert here(monkeypatch, "policy=both", f"paths.outputs={outputs}", *MINE, *files.values()) == 0
    (folder,) = outputs.glob("[!.]*")
    return folder, "\n".join(said)


def test_held_out_heads_licence_and_own_wordings_are_announced(finished: tuple[Path, str]) -> None:
    folder, said = finished
    ledger = pl.read_parquet(folder / "ledger.parquet")
    heads = {split: set(rows["head"]) for (split,), rows in ledger.group_by("split")}
    assert ledger.height == 300
    assert [len(heads[split]) for split in ("train", "dev", "test")] == [26, 1, 3]
    assert len(set.union(*heads.values())) == 30
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["held_out"] == metrics["quality/triples/all"] == 30
    announced = "30 of 300 triples (10.0 %) are held out, all triples of 3 of 30 heads, drawn by chance"
    page = (folder / "report.html").read_text()
    assert announced in said
    assert announced in page
    assert "trained on mine.tsv (licence: not given), from" in (folder / "model" / "README.md").read_text()
    assert "Relations with a single wording, also used as the neutral one: works_with" in page


def test_own_relations_are_verbalised_trained_probed_measured_and_asked_about(finished: tuple[Path, str]) -> None:
    answers = Answers(open_run(finished[0]))
    stored, generated = answers.tails("nurse", "works with"), answers.generated_of([("nurse", "works_with")])
    assert generated["tail"].to_list() == stored["tail"].to_list()
    assert_frame_equal(generated, stored, abs_tol=1e-4)
    folder, _ = finished
    statements = pl.read_parquet(folder / "validity.parquet")
    assert statements["relation"].unique(maintain_order=True).to_list() == ["CapableOf", "mentors", "works_with"]
    one = statements.filter(target="nurse", relation="mentors").row(0, named=True)
    assert one["statement"].startswith("nurse is a great mentor of")
    assert one["masked_neutral"].startswith("this person is a mentor of")
    assert statements.filter(relation="CapableOf")["judged_valid"].null_count() == 0
    assert statements.filter(relation="mentors")["judged_valid"].null_count() == 30
    comet = Comet.load(folder / "model")
    (found,) = comet.search(comet.prompts(["nurse"], ["is a great mentor of"]), max_length=6)
    assert found[0].log_prob == pytest.approx(one["log_prob"], abs=1e-3)


def test_an_audit_counts_own_triples_by_their_split(files: dict[str, str], tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(*UNDRAWN)
    (tmp_path / "mine.tsv").write_text(lines(lambda number: "validation" if number % 10 == 9 else "train"))
    audit = ("recipe=audit", "tracking=none", "score.regard=null", "measure.resamples=50", "data=triples", NAMES)
    mine = (*audit, f"data.path={tmp_path / 'mine.tsv'}", files["relations"])
    assert here(monkeypatch, *mine, f"paths.outputs={tmp_path / 'out'}") == 0
    (folder,) = (tmp_path / "out").glob("[!.]*")
    found = json.loads((folder / "metrics.json").read_text())
    assert (found["rows"], found["statements"]) == (270, 90)  # of ten heads that are targets
    statements = pl.concat(pl.read_parquet(path) for path in sorted((folder / "statements").glob("*.parquet")))
    assert "nurse is a great mentor of a colleague" in statements["statement"].to_list()
    assert (
        "30 rows left out: valid triples of other splits; filter.splits=all counts them too" in capsys.readouterr().out
    )


@pytest.fixture
def read(files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Corpus]:
    """What the main job has read with these settings besides; it is stopped there."""
    found: list[Corpus] = []

    def stop(*values: object, **settings: object) -> None:
        found.append(corpus_of(*values, **settings))
        raise MitigateError("stopped")

    def read(*overrides: str) -> Corpus:
        given = {part.partition("=")[0]: part for part in (*MINE, *files.values(), *overrides)}
        assert here(monkeypatch, *given.values(), f"paths.outputs={tmp_path / 'out'}") == 2
        return found.pop()

    monkeypatch.setattr("mitigate.recipes.mitigate.corpus_of", stop)
    return read


def test_splits_are_those_of_a_column_or_drawn_by_their_own_seed(read: Callable[..., Corpus], tmp_path: Path) -> None:
    assert [relation.name for relation in read("probe.relations=[IsA,mentors,IsA]").relations] == ["IsA", "mentors"]
    path = tmp_path / "mine.tsv"
    path.write_text(lines(lambda number: ("train", "train", "dev", "test")[number % 4]))
    corpus = read(f"data.path={path}")
    assert (corpus.facts["triples by split"], corpus.held_out) == ("dev 75, test 75, train 150", None)
    assert not any("held out" in notice for notice in corpus.notices)

    def held_out(*overrides: str) -> set[str]:
        return set(read(*overrides).triples.filter(split="test")["head"])

    first = held_out()
    assert (len(first), held_out("seed=2")) == (3, first)
    assert len(held_out("data.holdout=0.2")) == 6


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.holdout=1"], "data.holdout=1 must be a number at least 0 and below 1"),
        (["trainer.keep=best", "data.holdout=0"], "trainer.keep=best needs dev triples, and the data has none"),
        (["probe.relations=[mentor]"], "unknown relation 'mentor' (did you mean mentors?); allowed: AtLocation, "),
    ],
)
def test_faults_are_named_before_the_first_stage(overrides, message, files, tmp_path, capsys, monkeypatch) -> None:
    given = [
        part for part in (*MINE, *files.values()) if part.split("=")[0] not in {o.split("=")[0] for o in overrides}
    ]
    assert here(monkeypatch, *given, *overrides, f"paths.outputs={tmp_path / 'out'}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()
