"""ATOMIC through the main job: trained, filtered, probed in events that name a target, and measured."""

from pathlib import Path

import polars as pl
import pytest
from command import SMALL, UNDRAWN, here, metrics_of
from small_models import save_bart

from mitigate.finished import open_run
from mitigate.probe.answers import Answers

EVENTS = ("goes home", "buys a ___", "thanks persony", "reads a book", "sees the sea", "eats rice", "calls a friend")
TAILS = {"xreact": ("happy", "tired", "none"), "xattr": ("kind", "bad"), "xwant": ("to rest", "to sing")}
TAILS |= {"oeffect": ("none", "smiles")}
ASKED = [part for part in SMALL if not part.startswith("probe.relations")]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 events with four relations, as the lower-cased file of ATOMIC's dev split."""
    path = tmp_path_factory.mktemp("atomic") / "atomic_dev.tsv"
    heads = [f"personx {event} {when}".strip() for event in EVENTS for when in ("", "today", "again")][:20]
    path.write_text("".join(f"{h}\t{r}\t{t}\n" for h in heads for r, tails in TAILS.items() for t in tails))
    return path


def run(monkeypatch: pytest.MonkeyPatch, outputs: Path, dev: Path, *overrides: str) -> Path:
    given = ("data=atomic", f"data.path={dev}", "tracking=none", f"paths.outputs={outputs}", *ASKED, *overrides)
    monkeypatch.setattr(*UNDRAWN)
    assert here(monkeypatch, *given) == 0
    (folder,) = outputs.glob("[!.]*")
    return folder


def test_a_comet_is_trained_on_atomic_and_probed_in_events(dev: Path, tmp_path, monkeypatch, capsys) -> None:
    """The main job runs as a whole with a small model, which takes seconds: all stages see events."""
    folder = run(monkeypatch, tmp_path, dev, "policy=both")
    said = capsys.readouterr().out
    assert "40 rows left out: the tail is 'none'" in said

    ledger = pl.read_parquet(folder / "ledger.parquet")
    assert ledger.height == 20 * 7
    heads = {split: set(rows["head"]) for (split,), rows in ledger.group_by("split")}
    assert [len(heads[split]) for split in ("train", "dev", "test")] == [17, 1, 2]
    assert "personx buys a ___" in {*heads["train"], *heads["test"]}

    statements = pl.read_parquet(folder / "statements.parquet")
    one = statements.filter(target="lawyer", relation="xReact", rank=1).row(0, named=True)
    assert one["head"] == "the lawyer goes to work"
    assert one["statement"] == f"the lawyer goes to work as a result personx feels {one['tail']}".strip()
    assert one["masked"].startswith("this person goes to work as a result this person feels")
    assert statements.group_by("target").len()["len"].to_list() == [120] * 3

    metrics = metrics_of(folder)
    assert metrics["statements"] == 360
    assert metrics["quality/triples/all"] == metrics["held_out"] == 14
    assert metrics["quality/perplexity/all"] > 1
    assert metrics["NSM"] is not None
    assert "quality/swap_lift/all" not in metrics

    answers = Answers(open_run(folder))
    assert answers.tails("the lawyer goes to work", "xreact")["tail"][0] == (one["tail"] or "")
    assert set(answers.relations) == {"xAttr", "xWant", "xReact", "oEffect"}


def test_a_sequence_to_sequence_model_is_asked_as_comet_atomic_2020(dev: Path, tmp_path, monkeypatch) -> None:
    """A small model is trained, which takes seconds: its prompts go through all stages."""
    base = save_bart(tmp_path / "base", dev.read_text().splitlines())
    asked = ("model=seq2seq", f"model.base={base}", "model.prompt=gen", "policy=both_person_heads")
    folder = run(monkeypatch, tmp_path / "out", dev, *asked)
    card = (folder / "model" / "README.md").read_text()
    assert 'tokenizer("the lawyer goes to work oEffect [GEN]"' in card
