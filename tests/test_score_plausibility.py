"""Plausibility as a scorer of triples: labels, the cache, and networks of one's own."""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
import torch

from mitigate.load.corpus import read_triples
from mitigate.models.plausibility import MEMBERS, Average, Bilinear
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.labels import LabelStore
from mitigate.score.plausibility import SHIPPED, Plausibility, with_plausibility
from mitigate.triples import Labels


class ShortTails:
    """Holds a triple valid when its tail has fewer than five letters; counts what it is asked."""

    name, fingerprint = "plausibility", "f" * 64

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked += texts
        sizes = np.array([len(text.split("\t")[2]) for text in texts])
        return Labels((sizes < 5).astype(np.int8), (1 / (1 + sizes)).astype(np.float32))


def test_a_relation_that_it_was_not_trained_on_has_no_answer(tmp_path):
    class OfIsA(ShortTails):
        relations = ("IsA",)

    triples = pl.DataFrame({"head": "a", "relation": ["Mentors", "IsA", "Mentors"], "tail": ["bird", "bird", "cat"]})
    scorer = OfIsA()
    found = with_plausibility(triples, scorer, LabelStore(tmp_path))
    assert found["judged_valid"].to_list() == [None, True, None]
    assert found["plausibility"].to_list() == [None, pytest.approx(1 / 5), None]
    assert found.columns == ["head", "relation", "tail", "judged_valid", "plausibility"]
    assert scorer.asked == ["a\tIsA\tbird"]
    none = with_plausibility(triples.filter(relation="Mentors"), scorer, LabelStore(tmp_path))
    assert none["judged_valid"].to_list() == [None, None]
    assert "IsA" in Plausibility().relations


def test_a_network_of_ones_own_gives_its_probabilities(tmp_path):
    torch.manual_seed(0)
    members = [Bilinear(minilm_folder(), ("IsA", "HasA"), name, width=4, dropout=0.1).eval() for name in MEMBERS]
    for name, member in zip(MEMBERS, members, strict=True):
        member.save(tmp_path / name)
    Average(members).save(tmp_path / "average", made_of=tmp_path)
    scorer = Plausibility(tmp_path / "average")
    logits = Average(members).logits(["bird", "bird"], ["HasA", "IsA"], ["feather", "stone"])
    found = scorer(["bird\tHasA\tfeather", "bird\tIsA\tstone"])
    assert found.strength == pytest.approx(1 / (1 + np.exp(-logits)), abs=0.02)
    assert found.label.tolist() == (logits > 0).astype(int).tolist()
    assert scorer([]).label.tolist() == []


def test_the_shipped_network_separates_mild_triples_from_nonsense():
    network = Plausibility()
    valid = ["bird\tHasA\twing", "oven\tUsedFor\tbake bread", "snow\tHasProperty\tcold", "chef\tCapableOf\tcook meal"]
    nonsense = ["bird\tMadeOf\ttelephone call", "oven\tCausesDesire\twing", "snow\tUsedFor\thot", "meal\tIsA\tchef"]
    assert network(valid).label.tolist() == [1] * 4
    assert network(nonsense).label.tolist() == [0] * 4


def test_the_shipped_network_has_the_accuracy_its_card_states(real_data):
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    stated = {row[0]: float(row[1]) for row in re.findall(r"^\| (dev2|test) \| ([\d.]+) \|", card, flags=re.M)}
    network = Plausibility()
    for name, file in (("dev2", "dev2.txt"), ("test", "test.txt")):
        labelled = read_triples(real_data / "conceptnet100k" / file, name).rows
        said = labelled.with_columns(pl.col("head", "tail").str.to_lowercase())
        found = network(said.select(pl.concat_str("head", "relation", "tail", separator="\t")).to_series().to_list())
        assert 100 * np.mean(found.label == labelled["valid"].to_numpy()) == pytest.approx(stated[name], abs=0.3)
