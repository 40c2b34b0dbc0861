"""Networks that judge triples: pairs, batches, saving, and what is merged."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from models.minilm import locate
from models.plausibility.bilinear import Bilinear
from models.plausibility.minilm import MiniLMPairs
from models.plausibility.pairs import LONGEST, in_batches, judge

RELATIONS = ("IsA", "UsedFor", "HasA")
HEADS, TAILS = ["dog", "a very old car", "dog"], ["animal", "drive to work in the morning", "tail"]


class Lengths:
    """A network whose logit of the first relation is the head's number of pieces, of the second the tail's."""

    relations = ("head", "tail")
    read = 0

    def encode(self, phrases: Sequence[str]) -> list[list[int]]:
        return [[0] * len(phrase.split()) for phrase in phrases]

    def __call__(self, heads: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        self.read += len(heads)
        return torch.tensor([[float(len(head)), float(len(tail))] for head, tail in zip(heads, tails, strict=True)])


def test_logits_come_in_the_order_asked_and_a_pair_is_read_once():
    network = Lengths()
    found = judge(network, ["a b", "a", "a b"], ["head", "tail", "tail"], ["c c c", "d d d d", "c c c"])
    assert found.tolist() == [2, 4, 3]
    assert network.read == 2
    assert judge(network, [], [], []).shape == (0,)


def test_an_unknown_relation_is_named():
    with pytest.raises(ValueError, match="relations Eats are not judged; known are head, tail"):
        judge(Lengths(), ["a"], ["Eats"], ["b"])


@pytest.fixture(scope="module", params=["bilinear", "minilm"])
def network(request) -> Bilinear | MiniLMPairs:
    torch.manual_seed(0)
    if request.param == "bilinear":
        return Bilinear(locate(), RELATIONS, width=8).eval()
    small = MiniLMPairs(locate(), RELATIONS, rank=2).eval()
    for name, value in small.named_parameters():
        if name.endswith(".up"):  # 0 before training, and then nothing would be changed
            torch.nn.init.normal_(value, std=0.02)
    return small


def test_a_pairs_logits_do_not_depend_on_its_company(network):
    pieces = network.encode(HEADS), network.encode(TAILS)
    with torch.inference_mode():
        together = in_batches(network, *pieces)
        alone = [in_batches(network, [head], [tail]) for head, tail in zip(*pieces, strict=True)]
    assert together.shape == (3, len(RELATIONS))
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)


def test_head_and_tail_are_told_apart(network):
    there, back = (judge(network, [first], ["HasA"], [second]) for first, second in (("dog", "tail"), ("tail", "dog")))
    assert not np.isclose(there, back)


def test_phrases_are_cut_at_their_longest_and_never_empty(network):
    (long, empty) = network.encode(["very " * 100, ""])
    assert len(long) == LONGEST
    assert empty == [network.tokenizer.token_to_id("[UNK]")]


def test_a_saved_network_judges_as_before(network, tmp_path: Path):
    before = judge(network, HEADS, RELATIONS, TAILS)
    network.save(tmp_path)
    again = type(network).load(tmp_path, locate())
    assert again.relations == RELATIONS
    assert judge(again, HEADS, RELATIONS, TAILS) == pytest.approx(before, abs=0.01)  # half precision


def test_a_shift_moves_every_logit(network, tmp_path: Path):
    network.save(tmp_path)
    shifted = type(network).load(tmp_path, locate())
    before = judge(shifted, HEADS, RELATIONS, TAILS)
    shifted.shift(-1.5)
    assert judge(shifted, HEADS, RELATIONS, TAILS) == pytest.approx(before - 1.5, abs=1e-5)


def test_a_network_of_another_encoder_is_refused(tmp_path: Path):
    network = MiniLMPairs(locate(), RELATIONS, rank=2)
    network.encoder_sha256 = "0" * 64
    network.save(tmp_path)
    with pytest.raises(ValueError, match="was trained on the encoder 000"):
        MiniLMPairs.load(tmp_path, locate())
