"""Training regard: which text is in which part, batches, offsets, and two small trainings."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from mitigate.errors import MitigateError
from mitigate.train.regard import (
    NEGATIVE,
    NEUTRAL,
    OTHER,
    POSITIVE,
    Batches,
    best_offsets,
    certain,
    columns_of,
    fit,
)
from mitigate.train.regard_data import part_of, read_labelled
from mitigate.train.regard_ngram import fit_ngram
from models.minilm import locate
from models.regard.minilm import MiniLMClassifier


def write_labels(folder: Path, rows: list[tuple[str, int, str]]) -> Path:
    lines = [f"{target}\t{label}\t{text}\n" for target, label, text in rows]
    (folder / "bert_labels_conceptnet.tsv").write_text("".join(lines))
    (folder / "nlgbias_train_other.tsv").write_text("2\tXYZ was of two minds\n")
    (folder / "nlgbias_dev.tsv").write_text("-1\tXYZ stole from XYZ\n")
    (folder / "nlgbias_test.tsv").write_text("1\tXYZ was kind\n")
    return folder


def target_in(part: str) -> str:
    """A made-up target that its name puts into a part."""
    return next(name for name in map("target{}".format, range(100)) if part_of(name) == part)


def test_no_text_is_in_two_parts_and_a_tested_target_takes_all_its_texts(tmp_path):
    train, valid, test = map(target_in, ("train", "valid", "test"))
    folder = write_labels(
        tmp_path,
        [
            *[(train, 0, text) for text in "abca"],
            *[(valid, 0, "b"), (valid, -1, "d"), (test, 0, "c"), (test, 1, "d"), (test, 0, "e")],
        ],
    )
    found = read_labelled(folder, kept_out=["e"])
    people = {"this person was of two minds": "train", "this person stole from this person": "train"}
    parts = {"a": "train", "b": "valid", "c": "test", "d": "test", "this person was kind": "people"}
    assert dict(found.select("text", "part").iter_rows()) == parts | people
    assert columns_of(found.filter(part="train")).tolist() == [NEUTRAL, NEGATIVE, OTHER]  # by text


def test_missing_files_are_named_together(tmp_path):
    (write_labels(tmp_path, []) / "nlgbias_dev.tsv").unlink()
    (tmp_path / "bert_labels_conceptnet.tsv").unlink()
    with pytest.raises(MitigateError, match=r"lacks bert_labels_conceptnet.tsv, nlgbias_dev.tsv; data.root must"):
        read_labelled(tmp_path)


def test_batches_hold_every_text_that_is_not_plainly_neutral_and_a_share_of_the_others():
    rows = [[number] * (1 + number % 3) for number in range(20)]
    wanted = certain(np.array([NEGATIVE] + [NEUTRAL] * 19))
    wanted[1] = [0.0, 0.8, 0.2, 0.0]
    batches = Batches(rows, wanted, size=4, neutral_share=0.5, seed=0)
    epochs = [[tokens[:, 0].tolist() for tokens, _, _ in batches] for _ in range(2)]
    for epoch in epochs:
        seen = [number for batch in epoch for number in batch]
        assert len(seen) == len(set(seen)) == 2 + 9
        assert {0, 1} <= set(seen)
        assert len(epoch) == len(batches) == 3
    assert epochs[0] != epochs[1]
    again = [tokens[:, 0].tolist() for tokens, _, _ in Batches(rows, wanted, size=4, neutral_share=0.5, seed=0)]
    assert again == epochs[0]


def test_offsets_bring_a_rare_class_to_light():
    # All three negatives are given .4, just below neutral's .5: raising negative finds them; positive needs nothing.
    probabilities = np.array(
        [[0.4, 0.5, 0.05, 0.05]] * 3 + [[0.05, 0.9, 0.03, 0.02]] * 5 + [[0.02, 0.08, 0.9, 0.0]] * 2
    )
    columns = np.array([NEGATIVE] * 3 + [NEUTRAL] * 4 + [OTHER] + [POSITIVE] * 2)
    offsets = best_offsets(probabilities, columns)
    assert (np.log(probabilities + 1e-9) + offsets).argmax(1).tolist() == [0] * 3 + [1] * 5 + [2] * 2
    assert offsets[[NEUTRAL, OTHER]].tolist() == [0, 0]


@pytest.fixture(scope="module")
def labelled() -> pl.DataFrame:
    """Two words that decide, in texts that differ by a number."""
    said = [("thief", -1), ("table", 0), ("hero", 1)] * 12
    rows = [(f"this person is a {word} of {number}", label) for number, (word, label) in enumerate(said)]
    parts = ["train"] * 30 + ["valid"] * 6
    return pl.DataFrame(rows, schema={"text": pl.String, "label": pl.Int8}, orient="row").with_columns(
        part=pl.Series(parts)
    )


def test_minilm_learns_and_a_seed_repeats_it(labelled):
    settings = {"learning_rate": 0.003, "epochs": 6, "batch_size": 8, "neutral_share": 1.0}
    learnt, wanted = labelled["text"].to_list(), certain(columns_of(labelled))
    losses: list[float] = []

    def fitted() -> MiniLMClassifier:
        torch.manual_seed(0)
        classifier = MiniLMClassifier(locate(), rank=4)
        rows = classifier.encode(learnt)
        fit(classifier, rows, wanted, seed=3, log=lambda values, _: losses.append(values["loss"]), **settings)
        return classifier

    classifier = fitted()
    texts = ["this person is a thief of 99", "this person is a table of 98", "this person is a hero of 97"]
    assert classifier.probabilities(texts).argmax(1).tolist() == [NEGATIVE, NEUTRAL, POSITIVE]
    assert len(losses) == 2  # 27 steps: the mean of the first twenty, and of the last
    assert torch.equal(classifier.head.weight, fitted().head.weight)


def test_ngrams_learn_from_labels_and_from_what_they_are_taught(labelled):
    taught = [f"{word} was related to this person" for word in ("saint", "crook")]
    probabilities = np.array([[0.0, 0.1, 0.9, 0.0], [0.9, 0.1, 0.0, 0.0]], dtype=np.float32)
    settings = {"buckets": 2**12, "learning_rate": 0.1, "decay": 1e-6, "epochs": 30, "batch_size": 8}
    classifier = fit_ngram(labelled, taught * 4, np.tile(probabilities, (4, 1)), seed=3, **settings)
    texts = ["this person is a thief of 99", "this person is a table of 98", "saint", "crook"]
    assert classifier.probabilities(texts).argmax(1).tolist() == [NEGATIVE, NEUTRAL, POSITIVE, NEGATIVE]
