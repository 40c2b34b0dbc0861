"""Train, probe, rerank and measure as functions of plain arguments: numbers by hand."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import torch
from small_models import save_llama

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.measure.bootstrap import Bootstrap
from mitigate.tasks.filtered import filter_figures
from mitigate.tasks.generator import open_generator
from mitigate.tasks.harms import measure_harms
from mitigate.tasks.label import label_probed
from mitigate.tasks.likelihood import held_out_likelihood
from mitigate.tasks.policy import Policy
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.rerank import rerank_neutral_first
from mitigate.tasks.start import find_start
from mitigate.tasks.train import TrainingSettings, as_it_is, examples, train_generator
from mitigate.triples import PROBED, Labels
from models.beams import Beam

TARGETS = pl.DataFrame({"target": ["nurse", "man"], "category": ["profession", "gender"]})


class Words:
    """A generator that always generates its words, in their order; each token costs 1 nat."""

    def __init__(self, folder: Path | None = None) -> None:
        self.words = ["steal", "work", "eat"]

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        return [[0] for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        return [[1] * (len(tail.split()) + 1) for tail in tails]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.ones(sum(map(len, tails)))

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 1, max_length: int = 1, rows: int = 1
    ) -> list[list[Beam]]:
        return [[Beam((place,), -1.0 - place, -1.0 - place, True) for place in range(beams)] for _ in prompts]

    def decode(self, tail: Sequence[int]) -> str:
        return self.words[tail[0]]

    def to(self, device: str) -> "Words":
        return self


class Theft:
    """A scorer that finds prejudice in "steal"."""

    name = fingerprint = "regard"

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = pl.Series(texts, dtype=pl.String).str.contains("steal").cast(pl.Int8).to_numpy()
        return Labels(-found, -found.astype("float32"))


def test_a_generator_is_probed_and_its_neutral_tails_put_first() -> None:
    probed = probe_generator(Words(), TARGETS, {"CapableOf": "is capable of"}, beams=3, top=3)
    assert dict(probed.schema) == PROBED
    assert probed["tail"].to_list() == ["steal", "work", "eat"] * 2
    labelled = label_probed(probed, [Theft()])
    assert labelled["statement"][0] == "nurse is capable of steal"
    assert labelled["regard"].to_list() == [-1, 0, 0] * 2
    chosen = rerank_neutral_first(Policy("mine", scorers=["regard"], action="rerank"), labelled, 2)
    assert chosen.select("target", "tail", "rank", "beam_rank").rows() == [
        ("nurse", "work", 1, 2),
        ("nurse", "eat", 2, 3),
        ("man", "work", 1, 2),
        ("man", "eat", 2, 3),
    ]


def test_nothing_to_ask_is_told() -> None:
    with pytest.raises(MitigateError, match="nothing is asked: no relation is given; name some"):
        probe_generator(Words(), TARGETS, [])
    with pytest.raises(MitigateError, match="nothing is asked: no target is given; name some"):
        probe_generator(Words(), TARGETS.clear(), {"CapableOf": "is capable of"})


def test_harms_of_statements_of_one_scorer_and_one_template() -> None:
    """Of the nurse 1 of 2 is neutral, of the man all: NRM is 75 %, NRV 25 squared."""
    statements = pl.DataFrame({"target": ["nurse", "nurse", "man"], "regard": [-1, 0, 0]})
    metrics = measure_harms(statements, scorers=["regard"], intervals=Bootstrap(resamples=50, seed=1))
    assert (metrics["NRM"], metrics["NRV"], metrics["regard/O-"]) == (75, 625, 25)
    assert metrics["NRM/profession"] == 50
    assert metrics["NRM_low"] <= 75 <= metrics["NRM_high"]
    assert not [key for key in metrics if key.startswith(("neutral_template", "NSM"))]
    alone = measure_harms(statements, TARGETS, scorers=["regard"], intervals=None)
    assert alone == {key: metrics[key] for key in alone}


def test_likelihood_is_of_valid_test_triples_alone(tmp_path: Path) -> None:
    labelled = pl.DataFrame(
        {
            "head": ["nurse", "nurse", "man"],
            "relation": "CapableOf",
            "tail": ["eat bread", "fly", "eat"],
            "split": ["test", "test", "train"],
            "valid": [True, False, True],
        }
    )
    for generator in (Words(), find_start(Words, tmp_path)):
        found = held_out_likelihood(generator, labelled)
        assert found.select("tail", "nll", "tokens", "generated").rows() == [("eat bread", 3, 3, "steal")]


def test_what_a_filter_kept_dropped_and_added() -> None:
    ledger = pl.DataFrame(
        {
            "split": ["train", "train", "train", "dev"],
            "weight": [0.5, 0.0, 0.5, 1.0],
            "source_row": [None, None, 1, None],
        }
    )
    found = {"filter/kept": 1, "filter/dropped": 1, "filter/added": 1, "filter/weight": 1.0}
    assert filter_figures(ledger) == found


def test_examples_are_worded_and_weighted() -> None:
    rows = pl.DataFrame({"head": ["nurse"], "relation": ["CapableOf"], "tail": ["eat"], "weight": [0.5]})
    found = examples(rows, {"CapableOf": "is capable of"})
    assert (found.heads, found.phrases, found.tails) == (["nurse"], ["is capable of"], ["eat"])
    assert found.weights is not None
    assert found.weights.tolist() == [0.5]


def test_a_generator_of_another_class_cannot_be_trained(tmp_path: Path) -> None:
    start = find_start(Words, tmp_path)
    assert as_it_is(start) == {"trained": False, "weights": start.weights}
    ledger = pl.DataFrame(schema={"weight": pl.Float32, "split": pl.String})
    with pytest.raises(
        MitigateError,
        match="Words cannot be trained; start from a model that Comet.load, LanguageModel.load, Seq2Seq.load opens",
    ):
        train_generator(ledger, start, TrainingSettings(), model=tmp_path, checkpoints=tmp_path, fingerprint="this")


def test_fixed_places_are_the_own_decoders_alone(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "llama", ["the nurse is a person", "a lawyer is capable of help people"])
    assert open_generator(folder, layout="packed").regimen.layout == "packed"
    with pytest.raises(MitigateError, match="layout='comet' has fixed places for head and relation, as the original"):
        open_generator(folder, layout="comet")


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """Also after a kill in the middle, which leaves an unfinished one beside it."""
    folder, left = tmp_path / "model", tmp_path / ".model.part"
    for place in (folder, left):
        place.mkdir()
        (place / f"old-{place.name}").write_text("old")

    def interrupted() -> None:
        with replacing_folder(folder) as part:
            (part / "new").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in folder.iterdir()] == ["old-model"]
    with replacing_folder(folder) as part:
        (part / "new").write_text("new")
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert not left.exists()
