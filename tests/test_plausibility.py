"""Plausibility networks and their average: vectors of phrases, logits of triples, and saving."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mitigate.models.plausibility import COMPACT, MEMBERS, Average, Bilinear, save_compact
from mitigate.models.stored_tensors import minilm_folder

RELATIONS = ("IsA", "UsedFor", "HasA")
TRIPLES = (["dog", "a very old car", "dog"], RELATIONS, ["animal", "drive to work in the morning", "tail"])


@pytest.fixture(scope="module", params=["words", "minilm"])
def network(request) -> Bilinear:
    torch.manual_seed(0)
    return Bilinear(minilm_folder(), RELATIONS, request.param, width=8, dropout=0.1).eval()


def test_logits_are_head_times_matrix_times_tail_whatever_else_is_computed(network):
    with torch.inference_mode():
        (head, tail) = network.vectors(network.phrases.encode(["dog", "tail"]))
        expected = head @ network.matrices[2] @ tail
    assert head[-1] == tail[-1] == 1
    assert network.logits(["dog"], ["HasA"], ["tail"]).item() == pytest.approx(expected.item(), abs=1e-5)
    assert not np.isclose(network.logits(["tail"], ["HasA"], ["dog"]).item(), expected.item())
    together = network.logits(*TRIPLES)
    alone = [network.logits([head], [relation], [tail]).item() for head, relation, tail in zip(*TRIPLES, strict=True)]
    assert together == pytest.approx(alone, abs=1e-4)
    assert network.logits([], [], []).shape == (0,)


def test_a_saved_network_gives_the_same_logits_without_its_encoder(network, tmp_path: Path):
    network.save(tmp_path)
    again = Bilinear.load(tmp_path, minilm_folder())
    assert again.relations == RELATIONS
    assert again.logits(*TRIPLES) == pytest.approx(network.logits(*TRIPLES), abs=0.01)  # half precision
    shifted = Bilinear.load(tmp_path, minilm_folder())
    before = shifted.logits(*TRIPLES)
    shifted.shift(-1.5)
    assert shifted.logits(*TRIPLES) == pytest.approx(before - 1.5, abs=1e-5)
    own = {"matrices", "phrases.project.bias", "phrases.project.weight"}
    assert set(load_file(tmp_path / "model.safetensors")) - {"phrases.words.weight"} == own


@pytest.fixture(scope="module")
def members() -> list[Bilinear]:
    torch.manual_seed(0)
    return [Bilinear(minilm_folder(), RELATIONS, name, width=8, dropout=0.1).eval() for name in MEMBERS]


def test_averages_are_means_and_saved_give_the_same_logits(members, tmp_path: Path):
    first, second = (member.logits(*TRIPLES) for member in members)
    network = Average(members)
    assert network.logits(*TRIPLES) == pytest.approx((first + second) / 2, abs=1e-5)
    network.shift(0.5)
    assert network.logits(*TRIPLES) == pytest.approx((first + second) / 2 + 0.5, abs=1e-5)
    for name, member in zip(MEMBERS, members, strict=True):
        member.save(tmp_path / name)
    network.save(tmp_path / "average", made_of=tmp_path)
    again = Average.load(tmp_path / "average", minilm_folder())
    assert again.relations == RELATIONS
    assert again.logits(*TRIPLES) == pytest.approx(network.logits(*TRIPLES), abs=0.03)


def test_words_in_eight_bits_say_nearly_the_same(members, tmp_path: Path):
    words = members[MEMBERS.index("words")]
    save_compact(words, tmp_path)
    again = Bilinear.load(tmp_path, minilm_folder())
    assert again.logits(*TRIPLES) == pytest.approx(words.logits(*TRIPLES), abs=0.03)
    assert not np.allclose(again.logits(*TRIPLES), 0, atol=0.05)  # nearly the same as nothing would not do
    vocabulary, width = words.phrases.words.num_embeddings, 8
    assert (tmp_path / COMPACT).stat().st_size < 1.3 * vocabulary * (width + 2)  # a byte a number, and a scale
