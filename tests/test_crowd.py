"""The crowd classifier: its training texts, folds and thresholds, the shipped one, and the recipe."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from classifier_data import write_crowd, write_regard
from command import apart
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.ratings import RESOURCES
from mitigate.load.sbic import read_implied
from mitigate.measure.intervals import Bootstrap
from mitigate.score.crowd import SHIPPED, Crowd
from mitigate.tasks.crowd.accuracy import accuracy_table, as_metrics, one_rater, passed_table
from mitigate.tasks.crowd.training import (
    FOLDS_FILE,
    folds_of_targets,
    implied_statements,
    masked,
    rated_rows,
    read_texts,
    vote_shares,
)
from mitigate.tasks.regard.texts import read_texts as read_regard_texts
from mitigate.train.crowd import Rows, fit_heads, fit_softmax
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from models.heads import LABELS, Heads


def save_frames(folder: Path, *rows: tuple[str, object, object]) -> Path:
    folder.mkdir(exist_ok=True)
    frame = pl.DataFrame(
        [(post, json.dumps(said), json.dumps(groups)) for post, said, groups in rows],
        schema=["post", "targetStereotype", "targetMinority"],
        orient="row",
    )
    frame.write_csv(folder / "frames_test_posts.csv")
    return folder


def test_frames_are_read_with_their_groups_which_are_masked_and_faults_are_named(tmp_path: Path) -> None:
    folder = save_frames(tmp_path, ("a", ["Elves  are small", "are small"], ["Elves"]), ("b", [], ["dwarfs"]))
    assert read_implied(folder) == [("elves are small", ["elves"]), ("are small", ["elves"])]
    assert implied_statements(folder) == ["this person are small"]
    (folder / "frames_test_posts.csv").unlink()
    refuses(MitigateError, "has no frames_test_posts.csv; set data.root to the folder", read_implied, tmp_path)
    fault = "frames_test_posts.csv:2: targetStereotype '7' is not a list of texts"
    refuses(MitigateError, fault, read_implied, save_frames(tmp_path, ("a", 7, ["elves"])))
    assert masked("lawyers and elves like dwarfs", ["elves", "elves and"]) == "this person and this person like dwarfs"
    assert masked("should be quiet", ["elves"]) == "this person should be quiet"


def test_a_softmax_without_decay_is_the_share_of_raters_and_polar_is_above_the_threshold() -> None:
    """One feature that is always 0: only the bias learns, and its softmax is the mean share."""
    shares = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0.5, 0.5]])
    weight, bias = fit_softmax(np.zeros((4, 1)), shares, np.ones(4), decay=0.0)
    powers = np.exp(bias)
    assert powers / powers.sum() == pytest.approx([0.25, 0.625, 0.125], abs=1e-3)
    assert weight.tolist() == [[0, 0, 0]]
    heads = Heads(np.zeros((1, 1, 3)), np.zeros((1, 3)), np.array([0.4]))
    probabilities = np.array([[0.3, 0.55, 0.15], [0.1, 0.65, 0.25], [0.15, 0.55, 0.3]])
    assert [LABELS[column] for column in heads.columns(probabilities, 0)] == ["negative", "neutral", "positive"]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Three folds and a row of none; a feature says prejudice, another favouritism; the text of row 0 is in two
    folds."""
    sign = np.append(np.tile([0, 1, 2, 1], 9), 0)
    return Rows(
        texts=["same" if number in (0, 12) else str(number) for number in range(37)],
        shares=np.eye(3)[sign],
        weights=np.append(np.ones(36), 0.5),
        subjects=np.append(np.repeat([0, 1, 2], 12), -1),
        folds=np.full(37, -1),
    )


def test_a_head_learns_neither_from_its_fold_nor_from_the_same_text(rows: Rows, tmp_path: Path) -> None:
    """There is one head of all folds, and one without each."""
    assert rows.outside([]).all()
    kept = rows.outside([1])
    assert not kept[12:24].any()
    assert not kept[0]  # its text is in fold 1 too
    assert kept[1:12].all()
    assert kept[36]
    heads = fit_heads(
        rows, rows.shares.astype(np.float32), np.append(np.tile([False, True], 18), False), false_alarms=0.15, decay=0.1
    )
    assert heads.weight.shape == (4, 3, 3)
    probabilities = heads.probabilities(np.eye(3, dtype=np.float32), 0)
    assert heads.columns(probabilities, 0).tolist() == [0, 1, 2]
    heads.save(tmp_path)
    assert Heads.load(tmp_path).threshold == pytest.approx(heads.threshold)


def test_the_shipped_classifier_tells_plain_cases_apart() -> None:
    """One that has not seen a fold is another scorer."""
    crowd = Crowd()
    found = crowd([f"this person is {end}" for end in ("a thief", "related to table", "capable of help people")])
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert found.strength[0] < 0 < found.strength[2]
    assert found.label.dtype == np.int8
    assert crowd([]).label.tolist() == []
    assert Crowd(unseen=0).fingerprint != crowd.fingerprint == Crowd().fingerprint


def test_what_comes_with_the_project_is_small_and_has_a_card_and_its_folds() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 100_000
    assert "recipe=classifier classifier=crowd" in (SHIPPED / "README.md").read_text(encoding="utf-8")
    shipped = pl.read_csv(SHIPPED / FOLDS_FILE)
    assert shipped.height == 329
    assert shipped.equals(folds_of_targets()), "the clusters have changed: train the classifier again"


def test_sensitivity_and_specificity_by_source_and_group_and_of_one_rater() -> None:
    labels = pl.DataFrame({"category": ["gender", "gender", "origin", None], "cluster": ["a", "b", "c", "d"]})
    said = {"most": [-1, 1, 0, 0], "crowd": [-1, 0, 0, 1], "crowd_neutral": [-1, 1, 0, 0], "sentiment": [0, 0, 0, 1]}
    votes = [[-1, -1, 0], [1, 1, 1], [0, 0, 0], [0, 1, -1]]
    labels = labels.with_columns(
        *pl.DataFrame(said | {"regard": [0, 1, 0, 0], "votes": votes}), resource=pl.lit("COMeT")
    )
    table = accuracy_table(labels, Bootstrap(resamples=50))
    found = {(row["source"], row["category"]): row for row in table.filter(template="paper").rows(named=True)}
    assert (found["all", "all"]["sensitivity"], found["all", "all"]["specificity"]) == (0.5, 0.5)
    assert found["COMeT", "gender"]["polarised"] == 2
    assert found["COMeT", "origin"]["sensitivity"] is None
    one_text = labels.with_columns(masked=pl.lit("this person helps"))
    crossed = accuracy_table(one_text, Bootstrap(resamples=50), over_texts=True).row(0, named=True)
    assert (crossed["kappa"], crossed["kappa_low"]) == (found["all", "all"]["kappa"], None)
    passed = passed_table(labels, ["crowd"], Bootstrap(resamples=50))
    assert passed.select("scorer", "statements", "polarised", "recall", "false_alarms").rows() == [
        ("crowd", 2, 1, 1.0, 0.0),
        ("one rater", 4, 1, 0.0, 0.0),
    ]
    metrics = as_metrics(table, passed)
    assert metrics["passed/crowd/recall"] == 1
    assert metrics["all/all/sensitivity"] == 0.5
    assert metrics["neutral_template/all/all/sensitivity"] == 1
    rated = pl.DataFrame({"cluster": ["a", "b"], "votes": [[-1, -1, 0], [1, 0, -1]]})
    assert one_rater(rated).rows() == [("a", -1, 0)]


def test_no_label_of_a_classifier_is_learnt_from(real_data: Path) -> None:
    """The columns that training is given hold people's ratings alone; implied texts are none that the crowd rated. Real
    texts are read, which takes seconds."""
    texts = read_texts(real_data)
    assert (texts.rated.height, len(texts.implied)) == (2519, 5695)
    shares = vote_shares(texts.rated)
    assert shares.sum(axis=1) == pytest.approx(1)
    rows = rated_rows(texts.rated, shares)
    assert len(set(rows.subjects[(texts.rated["target"] == "nurse").fill_null(False).to_numpy()])) == 1
    assert not set(texts.implied) & set(texts.rated["masked"])


def test_the_regard_classifiers_learn_nothing_from_the_crowd(tmp_path: Path) -> None:
    """What people say of a sentence changes neither the texts nor the labels that regard is trained on."""
    write_regard(tmp_path)
    (tmp_path / "regard" / "bert_labels_conceptnet.tsv").write_text("nurse\t-1\tthis person is a thief\n")
    given = []
    for vote in ("1", "3"):
        for resource in RESOURCES:
            (tmp_path / "humans" / f"{resource}_sentences.txt").write_text("lawyer is a hero\n" * 3)
            (tmp_path / "humans" / f"{resource}_bias_labels.txt").write_text(f"{vote}\n" * 3)
        texts = read_regard_texts(tmp_path)
        given.append((texts.labelled.rows(), texts.unlabelled, texts.crowd["votes"].to_list()))
    (labelled, unlabelled, praise), (again, others, blame) = given
    assert (labelled, unlabelled) == (again, others)
    assert praise != blame
    assert not any("hero" in text for text, _, _ in labelled)


@pytest.mark.thorough
def test_the_recipe_leaves_a_classifier_its_accuracy_and_its_card(tmp_path: Path) -> None:
    places = [f"paths.{name}={tmp_path / place}" for name, place in (("outputs", "runs"), ("cache", "cache"))]
    command = ["recipe=classifier", "classifier=crowd", f"data.root={write_crowd(tmp_path / 'data')}", *places]
    command += ["measure.resamples=50", "tracking.mode=none"]
    done = apart(*command)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").glob("[!.]*")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["passed/crowd/recall"] is not None
    assert {"source", "category", "sensitivity"} <= set(pl.read_csv(folder / "crowd" / "accuracy.csv").columns)
    crowd = Crowd(folder / "crowd")
    assert crowd(["this person is lazy", "this person is in town"]).label.tolist() == [-1, 0]
    assert "complete: nothing to do" in apart(*command).stdout
