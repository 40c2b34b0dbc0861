"""Plausibility networks: vectors of phrases, logits of triples, and saving."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.minilm import locate
from models.plausibility.bilinear import Bilinear
from models.plausibility.pieces import LONGEST, PieceReader

RELATIONS = ("IsA", "UsedFor", "HasA")
TRIPLES = (["dog", "a very old car", "dog"], RELATIONS, ["animal", "drive to work in the morning", "tail"])


@pytest.fixture(scope="module", params=["words", "minilm"])
def network(request) -> Bilinear:
    torch.manual_seed(0)
    return Bilinear(locate(), RELATIONS, request.param, width=8, dropout=0.1).eval()


def test_a_logit_is_head_times_matrix_times_tail(network):
    with torch.inference_mode():
        (head, tail) = network.vectors(network.phrases.encode(["dog", "tail"]))
        expected = head @ network.matrices[2] @ tail
    assert head[-1] == tail[-1] == 1
    assert network.logits(["dog"], ["HasA"], ["tail"]).item() == pytest.approx(expected.item(), abs=1e-5)
    assert not np.isclose(network.logits(["tail"], ["HasA"], ["dog"]).item(), expected.item())


def test_logits_come_in_the_order_asked_and_do_not_depend_on_their_company(network):
    together = network.logits(*TRIPLES)
    alone = [network.logits([head], [relation], [tail]).item() for head, relation, tail in zip(*TRIPLES, strict=True)]
    assert together == pytest.approx(alone, abs=1e-4)
    assert network.logits([], [], []).shape == (0,)


def test_an_unknown_relation_is_named(network):
    with pytest.raises(ValueError, match="relations Eats are unknown to this network; known are IsA, UsedFor, HasA"):
        network.logits(["cat"], ["Eats"], ["mouse"])


def test_phrases_are_cut_at_their_longest_and_never_empty():
    read = PieceReader(locate())
    (long, empty) = read(["very " * 100, ""])
    assert len(long) == LONGEST
    assert empty == [read.unknown]


def test_the_encoder_is_neither_trained_nor_saved(network, tmp_path: Path):
    network.save(tmp_path)
    own = {"matrices", "phrases.project.bias", "phrases.project.weight"}
    assert set(load_file(tmp_path / "model.safetensors")) - {"phrases.words.weight"} == own


def test_a_saved_network_gives_the_same_logits(network, tmp_path: Path):
    network.save(tmp_path)
    again = Bilinear.load(tmp_path, locate())
    assert again.relations == RELATIONS
    assert again.logits(*TRIPLES) == pytest.approx(network.logits(*TRIPLES), abs=0.01)  # half precision


def test_a_shift_moves_every_logit(network, tmp_path: Path):
    network.save(tmp_path)
    shifted = Bilinear.load(tmp_path, locate())
    before = shifted.logits(*TRIPLES)
    shifted.shift(-1.5)
    assert shifted.logits(*TRIPLES) == pytest.approx(before - 1.5, abs=1e-5)


def test_a_network_of_another_encoder_is_refused(network, tmp_path: Path):
    network.save(tmp_path)
    facts = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(facts.replace(network.facts["encoder_sha256"], "0" * 64))
    with pytest.raises(ValueError, match="was trained on the encoder 000"):
        Bilinear.load(tmp_path, locate())


def test_weights_without_all_tensors_are_refused(network, tmp_path: Path):
    network.save(tmp_path)
    weights = tmp_path / "model.safetensors"
    save_file({name: tensor for name, tensor in load_file(weights).items() if name != "matrices"}, weights)
    with pytest.raises(ValueError, match=r"model.safetensors are of another network: 1 tensors .* matrices; copy"):
        Bilinear.load(tmp_path, locate())
