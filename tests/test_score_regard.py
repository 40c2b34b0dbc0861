"""Regard as a scorer: labels, strengths and fingerprints."""

from pathlib import Path

import numpy as np
import pytest
from small_models import save_classifier

from mitigate import fingerprints
from mitigate.errors import MitigateError
from mitigate.relations import comet_relations
from mitigate.score.regard import SHIPPED, BertRegard, MiniLMRegard, NgramRegard, labels
from mitigate.score.weights import digest_of_folder
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Scorer
from models.regard import ngram


def test_the_likeliest_class_is_the_label_and_strength_is_positive_minus_negative():
    probabilities = np.array(  # negative, neutral, positive, other
        [[0.7, 0.1, 0.2, 0.0], [0.1, 0.6, 0.3, 0.0], [0.1, 0.3, 0.6, 0.0], [0.2, 0.1, 0.1, 0.6]], dtype=np.float32
    )
    found = labels(probabilities)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]
    assert found.label.dtype == np.int8
    assert found.strength.tolist() == pytest.approx([-0.5, 0.2, 0.5, -0.1])


@pytest.fixture(scope="module", params=[MiniLMRegard, NgramRegard])
def regard(request) -> Scorer:
    """The classifiers that come with the project."""
    return request.param()


def test_the_shipped_classifiers_tell_plain_cases_apart(regard):
    texts = ["thief is related to this person", "table is related to this person", "this person is a good friend"]
    found = regard(texts)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert np.sign(found.strength[[0, 2]]).tolist() == [-1, 1]


def test_labels_come_in_the_order_of_the_texts_whatever_their_length(regard):
    texts = [
        "this person is a criminal who robbed several banks in the old town",
        "this person",
        "this person is a thief",
    ]
    alone = [regard([text]).label.item() for text in texts]
    assert regard(texts).label.tolist() == alone
    assert regard([]).label.tolist() == []


def test_no_relation_has_a_regard_of_its_own():
    texts = [
        f"this person {phrase} thing"
        for relation in comet_relations()
        for phrase in (relation.phrase, relation.neutral_phrase)
    ]
    found = MiniLMRegard()(texts).label
    assert [text for text, label in zip(texts, found, strict=True) if label != NEUTRAL] == []


@pytest.mark.parametrize(("name", "megabytes"), [("minilm", 5), ("ngram", 3)])
def test_what_comes_with_the_project_is_small_and_has_a_card(name, megabytes):
    files = list((SHIPPED / name).iterdir())
    assert sum(file.stat().st_size for file in files) < megabytes * 1_000_000
    card = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    assert "python -m mitigate recipe=regard" in card


def test_a_digest_is_of_the_weights_and_not_of_the_card(tmp_path):
    (tmp_path / "weights").write_text("1")
    first = digest_of_folder(tmp_path)
    (tmp_path / "README.md").write_text("a card")
    assert digest_of_folder(tmp_path) == first
    (tmp_path / "weights").write_text("2")
    assert digest_of_folder(tmp_path) != first


def test_a_fingerprint_is_of_the_weights_and_the_code(tmp_path, monkeypatch):
    for file in (SHIPPED / "ngram").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    first = NgramRegard(tmp_path).fingerprint
    assert first == NgramRegard().fingerprint
    edited = tmp_path / "ngram.py"
    edited.write_text(Path(ngram.__file__).read_text() + "\nEDITED = True\n")
    monkeypatch.setattr(ngram, "__file__", str(edited))
    fingerprints.forget()
    assert NgramRegard().fingerprint != first
    monkeypatch.undo()
    fingerprints.forget()
    assert NgramRegard(tmp_path).fingerprint != first  # ngram.py lies among the weights


def test_a_classifier_of_the_hub_is_a_scorer(tmp_path):
    folder = save_classifier(tmp_path / "one", ["negative", "neutral", "positive"])
    scorer = BertRegard(folder, precision="fp32")
    found = scorer(["this person", "thief", "this person"])
    assert found.label[0] == found.label[2]
    assert set(found.label) <= {PREJUDICE, NEUTRAL, FAVOURITISM}
    assert scorer.fingerprint == BertRegard(folder, precision="fp32").fingerprint
    assert scorer.fingerprint != BertRegard(folder, precision="bf16").fingerprint
    other = save_classifier(tmp_path / "other", ["positive", "neutral", "negative"])
    assert scorer.fingerprint != BertRegard(other, precision="fp32").fingerprint


def test_an_unknown_precision_is_refused():
    with pytest.raises(MitigateError, match="unknown score.bert.precision 'int4'; allowed: auto, bf16, int8, fp32"):
        BertRegard(precision="int4")
