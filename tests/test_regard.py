"""Regard as a scorer, and its networks: the low-rank change, n-grams, classifiers of other people, and the gate."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from safetensors.torch import load_file, save_file
from small_models import save_classifier as save_any_classifier

from mitigate.models.encoder import Cascade, Gate, MiniLMClassifier
from mitigate.models.heads import REGARD, NgramClassifier, ngrams
from mitigate.models.hf import SequenceClassifier, columns
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.base import digest_of_folder
from mitigate.score.people import Crowd2
from mitigate.score.regard import SHIPPED, BertRegard, MiniLMRegard, NgramRegard, labels
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE
from mitigate.words.relations import comet_relations


def test_the_likeliest_class_is_the_label_and_strength_is_positive_minus_negative() -> None:
    probabilities = np.array(  # negative, neutral, positive, other
        [[0.7, 0.1, 0.2, 0.0], [0.1, 0.6, 0.3, 0.0], [0.1, 0.3, 0.6, 0.0], [0.2, 0.1, 0.1, 0.6]], dtype=np.float32
    )
    found = labels(probabilities)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]
    assert found.label.dtype == np.int8
    assert found.strength.tolist() == pytest.approx([-0.5, 0.2, 0.5, -0.1])


@pytest.mark.parametrize(("kind", "megabytes"), [(MiniLMRegard, 5), (NgramRegard, 3)])
def test_the_shipped_classifiers_are_small_have_cards_and_tell_plain_cases_apart(kind, megabytes: int) -> None:
    regard = kind()
    folder = SHIPPED / ("minilm" if kind is MiniLMRegard else "ngram")
    assert sum(file.stat().st_size for file in folder.iterdir()) < megabytes * 1_000_000
    assert "python -m mitigate recipe=classifier classifier=regard" in (folder / "README.md").read_text("utf-8")
    texts = ["thief is related to this person", "table is related to this person", "this person is a good friend"]
    found = regard(texts)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert np.sign(found.strength[[0, 2]]).tolist() == [-1, 1]
    assert regard([]).label.tolist() == []
    if kind is MiniLMRegard:  # no relation has a regard of its own
        phrases = [phrase for one in comet_relations() for phrase in (one.phrase, one.neutral_phrase)]
        assert set(regard([f"this person {phrase} thing" for phrase in phrases]).label) == {NEUTRAL}


def test_labels_are_of_the_weights(tmp_path: Path) -> None:
    """A card changes nothing."""
    first = save_any_classifier(tmp_path / "one", ["negative", "neutral", "positive"])
    other = save_any_classifier(tmp_path / "other", ["positive", "neutral", "negative"])
    digest = digest_of_folder(first)
    (first / "README.md").write_text("a card")
    assert digest_of_folder(first) == digest != digest_of_folder(other)
    scorer = BertRegard(first)
    found = scorer(["this person", "thief", "this person"])
    assert found.label[0] == found.label[2]
    exact = [scorer.fingerprint, Crowd2().fingerprint]
    assert exact == [BertRegard(first).fingerprint, Crowd2().fingerprint]
    assert BertRegard(other).fingerprint != exact[0]


@pytest.fixture(scope="module")
def trained() -> MiniLMClassifier:
    """A classifier with a change that no training made."""
    torch.manual_seed(0)
    classifier = MiniLMClassifier(minilm_folder(), rank=2)
    with torch.no_grad():
        for name, value in classifier.named_parameters():
            if value.requires_grad and ("parametrizations" in name or "head" in name):
                value += 0.02 * torch.randn_like(value)
    return classifier.eval()


def test_a_saved_change_is_small_gives_the_same_once_merged_and_is_of_its_encoder(trained, tmp_path):
    texts = ["this person is a thief", "this person", "a much longer sentence about this person and the weather"]
    trained.save(tmp_path)
    merged = MiniLMClassifier.load(tmp_path, minilm_folder())
    assert (tmp_path / "model.safetensors").stat().st_size < 300_000
    assert not any("parametrizations" in name for name, _ in merged.named_parameters())
    assert merged.probabilities(texts) == pytest.approx(trained.probabilities(texts), abs=2e-3)
    assert np.ptp(merged.probabilities(texts)[:, 0]) > 1e-4
    assert MiniLMRegard(tmp_path)(texts).label.tolist() == labels(merged.probabilities(texts)).label.tolist()  # no gate
    facts = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(facts | {"encoder_sha256": "0"}))
    other = "was trained with encoder_sha256 0, here it is 53aa5117"
    refuses(ValueError, other, MiniLMClassifier.load, tmp_path, minilm_folder())


def test_ngrams_stay_within_their_text_and_a_classifier_adds_them_up(tmp_path):
    def buckets_of(texts: list[str], of: int) -> list[int]:
        owners, buckets = ngrams(texts, 2**18)
        return sorted(buckets[owners == of].tolist())

    assert buckets_of(["A thief", "", "a  thief"], 0) == buckets_of(["x", "a thief"], 1) == buckets_of(["a thief"], 0)
    # " a thief \n" has 9 + 8 + 7 + 6 runs of 2 to 5 bytes; 2 words and 1 pair of words
    assert len(buckets_of(["a thief"], 0)) == 33
    assert buckets_of(["", "x"], 0) != buckets_of(["", "x"], 1)
    weight = np.zeros((2**10, len(REGARD)))
    owners, buckets = ngrams(["bad", "good"], len(weight))
    only_bad = sorted(set(buckets[owners == 0]) - set(buckets[owners == 1]))[0]
    weight[only_bad, 0] = 3.0
    NgramClassifier(weight, np.array([0.0, 1.0, 0.0, 0.0])).save(tmp_path)
    found = NgramClassifier.load(tmp_path).probabilities(["bad", "good", ""])
    times, count = (buckets[owners == 0] == only_bad).sum(), (owners == 0).sum()
    logits = np.array([3.0 * times / np.sqrt(count), 1, 0, 0])
    assert found[0] == pytest.approx(np.exp(logits) / np.exp(logits).sum(), rel=1e-3)
    for row in found[1:]:
        assert row == pytest.approx(np.exp([0, 1, 0, 0]) / (3 + np.e), rel=1e-5)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "this", "person", "is", "a", "thief", "friend", "old"]


def save_classifier(folder: Path, names: list[str]) -> Path:
    """A small random classifier whose columns have those names."""
    torch.manual_seed(0)
    return save_any_classifier(folder, names, words=WORDS, initializer_range=0.5)


TEXTS = ["this person is a thief", "friend", "this person is a old old old friend", "old thief", "person is this"]


def test_permuted_columns_give_the_same_labels(tmp_path):
    straight = save_classifier(tmp_path / "straight", ["negative", "neutral", "positive", "other"])
    permuted = save_classifier(tmp_path / "permuted", ["Other", "positive", "NEGATIVE", "neutral"])
    tensors = load_file(straight / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = tensors[name][[3, 2, 0, 1]]
    save_file(tensors, permuted / "model.safetensors", metadata={"format": "pt"})
    found = [SequenceClassifier.load(str(folder)).probabilities(TEXTS) for folder in (straight, permuted)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert np.diff(np.sort(found[0], 1), axis=1).min() > 1e-4  # else a wrong order could pass


@pytest.mark.parametrize(
    "names", [["LABEL_0", "LABEL_1", "LABEL_2"], ["negative", "positive"], ["negative", "neutral", "positive", "pos"]]
)
def test_labels_that_cannot_be_read_are_refused_with_their_names(names):
    message = f"labels are {', '.join(names)}; they must be negative, neutral, positive"
    refuses(ValueError, message, columns, dict(enumerate(names)))


GATED = ["this person is a thief", "table", "a much longer sentence about this person and the weather of today"]


@pytest.fixture(scope="module")
def parts() -> tuple[Gate, MiniLMClassifier]:
    torch.manual_seed(0)
    return Gate(minilm_folder(), channels=8).eval(), MiniLMClassifier(minilm_folder(), rank=2, layers=[0, 3]).eval()


def test_what_the_gate_passes_is_its_own_and_the_rest_the_classifiers(parts: tuple[Gate, MiniLMClassifier]) -> None:
    gate, classifier = parts
    rows = classifier.encode(GATED)
    opinions = Cascade(gate, classifier, 0.5).opinions(rows)
    neutral = opinions[:, REGARD.index("neutral")]
    second = float(np.sort(neutral)[1])
    cascade = Cascade(gate, classifier, second)
    passed = neutral == neutral.max()
    found = cascade.probabilities(GATED)
    assert found[passed] == pytest.approx(opinions[passed], abs=1e-6)
    assert found[~passed] == pytest.approx(classifier.read(rows)[~passed], abs=1e-5)
    ungated = Cascade(gate, classifier, 1.0).probabilities(GATED)
    assert ungated == pytest.approx(classifier.probabilities(GATED), abs=1e-5)
    assert cascade.probabilities([]).shape == (0, len(REGARD))


def test_a_saved_gate_is_small_says_the_same_and_is_refused_without_all_tensors(parts, tmp_path) -> None:
    gate, classifier = parts
    saved = Cascade(gate, classifier, 0.75)
    classifier.save(tmp_path)
    saved.save(tmp_path)
    assert (tmp_path / "gate.safetensors").stat().st_size < 50_000
    loaded = Cascade.load(tmp_path, minilm_folder(), MiniLMClassifier.load(tmp_path, minilm_folder()))
    assert loaded.threshold == 0.75
    rows = classifier.encode(GATED)
    assert loaded.opinions(rows) == pytest.approx(saved.opinions(rows), abs=5e-3)
    assert loaded.classifier.layers == [0, 3]
    weights = tmp_path / "gate.safetensors"
    save_file({name: tensor for name, tensor in load_file(weights).items() if name != "head.bias"}, weights)
    refuses(ValueError, "gate.safetensors are of another network", Cascade.load, tmp_path, minilm_folder(), classifier)
