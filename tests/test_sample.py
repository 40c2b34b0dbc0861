from collections import Counter

import polars as pl

from mitigate.load.sample import load
from mitigate.relations import comet_relations
from mitigate.targets import targets

TRIPLE = ["relation", "head", "tail"]


def test_what_the_sample_promises() -> None:
    loaded = load()
    triples = loaded.triples
    assert loaded.notices == []
    assert Counter(triples["split"]) == {"train": 5838, "dev": 300, "dev2": 300, "test": 600}
    assert triples.select(TRIPLE).is_unique().all()
    train = triples.filter(split="train")
    assert set(train["relation"]) == {relation.name for relation in comet_relations()}
    spoken_of = {word for word in [*train["head"], *train["tail"]] if word in targets()}
    assert len(spoken_of) == 144
    assert {targets()[word] for word in spoken_of} == {"origin", "gender", "religion", "profession"}


def test_half_of_dev_and_test_is_corrupted() -> None:
    shares = load().triples.group_by("split").agg(pl.col("valid").mean())
    assert dict(shares.iter_rows()) == {"train": 1.0, "dev": 0.5, "dev2": 0.5, "test": 0.5}
