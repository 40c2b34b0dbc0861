"""Triples of one's own with relations of one's own, through the main job and an audit."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, UNDRAWN, here, metrics_of
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.finished import open_run
from mitigate.models.comet import Comet
from mitigate.probe.answers import Answers

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
    metrics = metrics_of(folder)
    assert metrics["held_out"] == metrics["quality/triples/all"] == 30
    announced = "30 of 300 triples (10.0 %) are held out, all triples of 3 of 30 heads, drawn by chance"
    page = (folder / "report.html").read_text()
    assert announced in said
    assert announced in page
    assert "trained on mine.tsv (licence: not given), from" in (folder / "model" / "README.md").read_text()
    assert "Relations with a single wording, also used as the neutral one: works_with" in page


def test_own_relations_are_verbalised_trained_probed_measured_and_asked_about(finished: tuple[Path, str]) -> None:
    answers = Answers(open_run(finished[0]))
    assert answers.tails("nurse", "works with").height == 10
    refuses(MitigateError, "has relations in a file of your own", answers.tails, "a tall nurse", "works with")
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


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.holdout=1"], "data.holdout=1 must be a number at least 0 and below 1"),
        (["probe.relations=[mentor]"], "unknown relation 'mentor' (did you mean mentors?); allowed: AtLocation, "),
    ],
)
def test_faults_are_named_before_the_first_stage(overrides, message, files, tmp_path, capsys, monkeypatch) -> None:
    others = {one.split("=")[0] for one in overrides}
    given = [part for part in (*MINE, *files.values()) if part.split("=")[0] not in others]
    assert here(monkeypatch, *given, *overrides, f"paths.outputs={tmp_path / 'out'}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()
