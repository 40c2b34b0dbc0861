"""The recipe that trains the regard classifiers, on a few made-up lines; and the figures on their cards."""

import json

import numpy as np
import polars as pl
import pytest
from classifier_data import REGARD, write_regard
from command import here
from few_terms import use_few_terms

from mitigate.targets import targets
from mitigate.tasks.regard import teacher
from mitigate.tasks.regard.copies import terms
from mitigate.tasks.regard.figures import figures
from mitigate.train.regard_data import part_of


class AllNegative:
    """Says negative of everything."""

    def probabilities(self, texts: list[str]) -> np.ndarray:
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(texts), 1))


def test_figures_tell_apart_the_votes_and_their_majority():
    labelled = pl.DataFrame({"text": ["a", "b", "c"], "label": [-1, 2, 1], "part": ["test", "test", "people"]})
    crowd = pl.DataFrame(
        {"resource": ["ConceptNet"], "statement": ["lawyer is a"], "masked": ["a"], "votes": [[-1, -1, 0]]}
    )
    found = figures(AllNegative(), labelled, crowd)
    assert (found["test/accuracy"], found["people/accuracy"]) == (0.5, 0)
    assert (found["test/always_neutral"], found["people/always_neutral"]) == (0.5, 0)  # other counts as neutral
    assert found["ConceptNet/vote/accuracy"] == 0.6667
    assert found["ConceptNet/majority/accuracy"] == 1
    assert "ConceptNet/unseen/accuracy" not in found  # "lawyer" is in part train


def test_statements_about_targets_that_training_never_saw_have_figures_of_their_own():
    """The targets of part test are those that BERT's labels are tested on, and no copy of a text names them."""
    unseen = next(target for target in targets() if part_of(target) == "test")
    statements = ["lawyer is a liar", f"{unseen} is a liar"]
    crowd = pl.DataFrame(
        {"resource": ["COMeT"] * 2, "statement": statements, "masked": ["a", "b"], "votes": [[-1, -1], [0, 0]]}
    )
    labelled = pl.DataFrame({"text": ["a", "b"], "label": [-1, 1], "part": ["test", "people"]})
    found = figures(AllNegative(), labelled, crowd)
    assert (found["COMeT/majority/accuracy"], found["COMeT/unseen/accuracy"]) == (0.5, 0)
    assert found["COMeT/unseen/texts"] == 1
    assert all(part_of(target) != "test" for target, _ in terms()[1])


def test_a_seed_decides_how_the_teacher_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(teacher.training, "fit", lambda *_, **__: None)
    labelled = pl.DataFrame({"text": ["a"], "label": [1]})
    written = []
    for seed in (1, 1, 2):
        teacher.train_teacher(labelled, {}, seed=seed, folder=tmp_path, log=lambda values, step: None)
        written.append((tmp_path / teacher.FILE).read_bytes())
    assert written[0] == written[1] != written[2]


@pytest.mark.thorough
def test_the_recipe_leaves_two_classifiers_with_cards_and_their_figures(tmp_path, monkeypatch, capsys):
    use_few_terms(monkeypatch)
    command = [
        "recipe=regard",
        f"data.root={write_regard(tmp_path)}",
        *REGARD,
        f"paths.outputs={tmp_path / 'runs'}",
        "tracking.mode=none",
    ]
    assert here(monkeypatch, *command) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"teacher/test/macro_f1", "minilm/test/macro_f1", "ngram/ConceptNet/majority/prejudice/f1"} <= set(metrics)
    for name in ("minilm", "ngram"):
        assert (folder / name / "model.safetensors").is_file()
        card = (folder / name / "README.md").read_text(encoding="utf-8")
        assert f"{metrics[f'{name}/test/accuracy']:.3f}" in card
        mean, term = (metrics[f"{name}/identity/unseen/false_positives{end}"] for end in ("", "_farthest"))
        assert f"neutral or kind, labelled prejudice | {mean:.1f} | " in card
        assert f"| {term} | " in card
    assert (folder / "manifest.json").is_file()
    assert here(monkeypatch, *command) == 0
    assert "complete: nothing is left to do" in capsys.readouterr().out
