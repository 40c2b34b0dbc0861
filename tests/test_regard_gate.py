"""The gate before the regard classifier: the same numbers from tables as from the network, and what it passes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mitigate.score.regard import MiniLMRegard
from mitigate.triples import NEUTRAL
from models.minilm import locate
from models.regard import LABELS
from models.regard.batching import pad
from models.regard.gate import Cascade, Gate
from models.regard.minilm import MiniLMClassifier

TEXTS = ["this person is a thief", "table", "a much longer sentence about this person and the weather of today"]


@pytest.fixture(scope="module")
def parts() -> tuple[Gate, MiniLMClassifier]:
    torch.manual_seed(0)
    return Gate(locate(), channels=8).eval(), MiniLMClassifier(locate(), rank=2, layers=[0, 3]).eval()


def test_the_tables_give_what_the_network_gives(parts: tuple[Gate, MiniLMClassifier]) -> None:
    gate, classifier = parts
    rows = classifier.encode(TEXTS)
    found = Cascade(gate, classifier, 0.5).opinions(rows)
    with torch.no_grad():
        together = gate(*pad(rows, padding=0)).softmax(-1).numpy()
        alone = [gate(*pad([row], padding=0)).softmax(-1).numpy()[0] for row in rows]
    assert found == pytest.approx(together, abs=1e-5)
    assert found == pytest.approx(np.array(alone), abs=1e-5)
    assert np.ptp(found, axis=0).max() > 0.01


def test_what_the_gate_passes_is_its_own_and_the_rest_the_classifiers(parts: tuple[Gate, MiniLMClassifier]) -> None:
    gate, classifier = parts
    rows = classifier.encode(TEXTS)
    opinions = Cascade(gate, classifier, 0.5).opinions(rows)
    neutral = opinions[:, LABELS.index("neutral")]
    second = float(np.sort(neutral)[1])
    cascade = Cascade(gate, classifier, second)
    passed = cascade.passes(opinions)
    assert passed.tolist() == (neutral == neutral.max()).tolist()
    found = cascade.probabilities(TEXTS)
    assert found[passed] == pytest.approx(opinions[passed], abs=1e-6)
    assert found[~passed] == pytest.approx(classifier.read(rows)[~passed], abs=1e-5)
    assert Cascade(gate, classifier, 1.0).probabilities(TEXTS) == pytest.approx(
        classifier.probabilities(TEXTS), abs=1e-5
    )
    assert cascade.probabilities([]).shape == (0, len(LABELS))


def test_a_saved_gate_is_small_and_says_the_same(parts: tuple[Gate, MiniLMClassifier], tmp_path: Path) -> None:
    gate, classifier = parts
    saved = Cascade(gate, classifier, 0.75)
    classifier.save(tmp_path)
    saved.save(tmp_path)
    assert (tmp_path / "gate.safetensors").stat().st_size < 50_000
    loaded = Cascade.load(tmp_path, locate(), MiniLMClassifier.load(tmp_path, locate()))
    assert loaded.threshold == 0.75
    rows = classifier.encode(TEXTS)
    assert loaded.opinions(rows) == pytest.approx(saved.opinions(rows), abs=5e-3)
    assert loaded.classifier.layers == [0, 3]


def test_a_gate_without_all_tensors_is_refused(parts: tuple[Gate, MiniLMClassifier], tmp_path: Path) -> None:
    gate, classifier = parts
    Cascade(gate, classifier, 0.75).save(tmp_path)
    weights = tmp_path / "gate.safetensors"
    save_file({name: tensor for name, tensor in load_file(weights).items() if name != "head.bias"}, weights)
    with pytest.raises(ValueError, match=r"gate.safetensors are of another network: 1 tensors .* head.bias"):
        Cascade.load(tmp_path, locate(), classifier)


def test_whether_the_gate_is_used_is_part_of_the_fingerprint() -> None:
    gated, whole = MiniLMRegard(), MiniLMRegard(gate=False)
    assert gated.fingerprint != whole.fingerprint
    texts = ["this person is a thief", "table is related to this person", "this person is used for writing"]
    assert gated(texts).label.tolist() == whole(texts).label.tolist() == [-1, NEUTRAL, NEUTRAL]


def test_a_folder_without_a_gate_is_read_whole(parts: tuple[Gate, MiniLMClassifier], tmp_path: Path) -> None:
    """As those of earlier versions, whose settings do not name layers either."""
    whole = MiniLMClassifier(locate(), rank=2)
    whole.save(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(
        config.read_text().replace('"layers": [\n    0,\n    1,\n    2,\n    3,\n    4,\n    5\n  ],', "")
    )
    assert "layers" not in config.read_text()
    scorer = MiniLMRegard(tmp_path)
    assert scorer.fingerprint == MiniLMRegard(tmp_path, gate=False).fingerprint
    assert len(scorer(TEXTS).label) == 3
