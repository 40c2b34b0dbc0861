"""The average of two plausibility networks, and the compact form of the one that reads words."""

from pathlib import Path

import numpy as np
import pytest
import torch

from models.minilm import locate
from models.plausibility.average import COMPACT, MEMBERS, Average, load_compact, load_network, save_compact
from models.plausibility.bilinear import Bilinear

RELATIONS = ("IsA", "UsedFor", "HasA")
TRIPLES = (["dog", "a very old car", "dog"], RELATIONS, ["animal", "drive to work in the morning", "tail"])


@pytest.fixture(scope="module")
def members() -> list[Bilinear]:
    torch.manual_seed(0)
    return [Bilinear(locate(), RELATIONS, name, width=8, dropout=0.1).eval() for name in MEMBERS]


def saved(members: list[Bilinear], folder: Path) -> Average:
    """Their average, saved in folder/average beside the members."""
    for name, member in zip(MEMBERS, members, strict=True):
        member.save(folder / name)
    network = Average(members, by=0.25)
    network.save(folder / "average", made_of=folder)
    return network


def test_it_says_the_mean_and_can_be_shifted(members):
    first, second = (member.logits(*TRIPLES) for member in members)
    network = Average(members)
    assert network.logits(*TRIPLES) == pytest.approx((first + second) / 2, abs=1e-5)
    network.shift(0.5)
    assert network.logits(*TRIPLES) == pytest.approx((first + second) / 2 + 0.5, abs=1e-5)
    assert network.logits([], [], []).shape == (0,)


def test_saved_it_gives_the_same_logits(members, tmp_path: Path):
    network = saved(members, tmp_path)
    again = load_network(tmp_path / "average", locate())
    assert isinstance(again, Average)
    assert again.relations == RELATIONS
    assert again.logits(*TRIPLES) == pytest.approx(network.logits(*TRIPLES), abs=0.03)


def test_words_in_eight_bits_say_nearly_the_same(members, tmp_path: Path):
    words = members[MEMBERS.index("words")]
    save_compact(words, tmp_path)
    again = load_compact(tmp_path, locate())
    assert again.logits(*TRIPLES) == pytest.approx(words.logits(*TRIPLES), abs=0.03)
    assert not np.allclose(again.logits(*TRIPLES), 0, atol=0.1)  # nearly the same as nothing would not do
    vocabulary, width = words.phrases.words.num_embeddings, 8
    assert (tmp_path / COMPACT).stat().st_size < 1.3 * vocabulary * (width + 2)  # a byte a number, and a scale


def test_a_folder_of_one_network_is_opened_as_such(members, tmp_path: Path):
    members[1].save(tmp_path)
    assert isinstance(load_network(tmp_path, locate()), Bilinear)


def test_an_average_of_another_encoder_is_refused(members, tmp_path: Path):
    saved(members, tmp_path)
    config = tmp_path / "average" / "words" / "config.json"
    config.write_text(config.read_text().replace(members[0].facts["encoder_sha256"], "0" * 64))
    with pytest.raises(ValueError, match="was trained on the encoder 000"):
        load_network(tmp_path / "average", locate())
