"""The crowd classifier: what it learns from, its folds and thresholds, and the one that comes with the project."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.crowd import RESOURCES
from mitigate.load.frames import read_frames
from mitigate.measure.bootstrap import Bootstrap
from mitigate.score.crowd import SHIPPED, Crowd
from mitigate.tasks.crowd.figures import accuracy_table, as_metrics, one_rater, passed_table
from mitigate.tasks.crowd.texts import fold_of, implied_statements, masked, read_texts
from mitigate.tasks.crowd.unseen import FOLDS_FILE, folds_of_targets
from mitigate.tasks.regard.texts import read_texts as read_regard_texts
from mitigate.train.crowd import Learnt, fit_heads, fit_softmax
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


def test_frames_are_read_with_their_groups(tmp_path: Path) -> None:
    folder = save_frames(tmp_path, ("a", ["Elves  are small", "are small"], ["Elves"]), ("b", [], ["dwarfs"]))
    assert read_frames(folder).rows() == [(0, "elves are small", ["elves"]), (0, "are small", ["elves"])]
    assert implied_statements(folder) == ["this person are small"]


def test_faults_of_frames_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        MitigateError, match="lacks frames_test_posts.csv; data.root must name the folder that has sbic/"
    ):
        read_frames(tmp_path)
    with pytest.raises(MitigateError, match="frames_test_posts.csv:2: targetStereotype '7' is no list of texts"):
        read_frames(save_frames(tmp_path, ("a", 7, ["elves"])))


def test_groups_and_targets_are_masked() -> None:
    assert masked("lawyers and elves like dwarfs", ["elves", "elves and"]) == "this person and this person like dwarfs"
    assert masked("should be quiet", ["elves"]) == "this person should be quiet"


def test_the_softmax_is_the_share_of_raters_without_decay() -> None:
    """One feature that is always 0: only the bias learns, and its softmax is the mean share."""
    shares = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0.5, 0.5]])
    weight, bias = fit_softmax(np.zeros((4, 1)), shares, np.ones(4), decay=0.0)
    powers = np.exp(bias)
    assert powers / powers.sum() == pytest.approx([0.25, 0.625, 0.125], abs=1e-3)
    assert weight.tolist() == [[0, 0, 0]]


@pytest.fixture(scope="module")
def learnt() -> Learnt:
    """Three folds; a feature says prejudice, another favouritism; the text of statement 0 is in two folds."""
    sign = np.tile([0, 1, 2, 1], 9)
    return Learnt(
        features=np.eye(3, dtype=np.float32)[sign],
        shares=np.eye(3)[sign],
        neutral=sign == 1,
        fold=np.repeat([0, 1, 2], 12),
        texts=np.array(["same" if number in (0, 12) else str(number) for number in range(36)]),
        negative=np.eye(3, dtype=np.float32)[[0]],
        negative_weight=0.5,
        decay=0.1,
        false_alarms=0.15,
    )


def test_a_head_learns_neither_from_its_fold_nor_from_the_same_text(learnt: Learnt) -> None:
    assert learnt.kept(frozenset()).all()
    kept = learnt.kept(frozenset([1]))
    assert not kept[12:24].any()
    assert not kept[0]  # its text is in fold 1 too
    assert kept[1:12].all()


def test_heads_are_one_of_all_and_one_without_each_fold(learnt: Learnt, tmp_path: Path) -> None:
    heads = fit_heads(learnt)
    assert heads.weight.shape == (4, 3, 3)
    probabilities = heads.probabilities(np.eye(3, dtype=np.float32), 0)
    assert heads.columns(probabilities, 0).tolist() == [0, 1, 2]
    heads.save(tmp_path)
    assert Heads.load(tmp_path).threshold == pytest.approx(heads.threshold)
    (tmp_path / "config.json").write_text('{"labels": ["a"]}')
    with pytest.raises(ValueError, match="holds heads for {'labels': \\['a'\\]}; here they are for"):
        Heads.load(tmp_path)


def test_polar_is_what_is_above_the_threshold() -> None:
    heads = Heads(np.zeros((1, 1, 3)), np.zeros((1, 3)), np.array([0.4]))
    probabilities = np.array([[0.3, 0.55, 0.15], [0.1, 0.65, 0.25], [0.15, 0.55, 0.3]])
    assert [LABELS[column] for column in heads.columns(probabilities, 0)] == ["negative", "neutral", "positive"]


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd()


def test_the_shipped_classifier_tells_plain_cases_apart(crowd: Crowd) -> None:
    found = crowd(
        ["this person is a thief", "this person is related to table", "this person is capable of help people"]
    )
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert found.strength[0] < 0 < found.strength[2]
    assert found.label.dtype == np.int8
    assert crowd([]).label.tolist() == []


def test_one_that_has_not_seen_a_fold_is_another_scorer(crowd: Crowd) -> None:
    assert Crowd(unseen=0).fingerprint != crowd.fingerprint == Crowd().fingerprint


def test_what_comes_with_the_project_is_small_and_has_a_card_and_its_folds() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 100_000
    assert "python -m mitigate recipe=crowd" in (SHIPPED / "README.md").read_text(encoding="utf-8")
    shipped = pl.read_csv(SHIPPED / FOLDS_FILE)
    assert shipped.height == 329
    assert shipped.equals(folds_of_targets()), "the clusters have changed: train the classifier again"
    assert fold_of("nurse") == fold_of("nurse")


def test_sensitivity_and_specificity_by_source_and_group() -> None:
    labels = pl.DataFrame(
        {
            "resource": ["COMeT"] * 4,
            "category": ["gender", "gender", "origin", None],
            "cluster": ["a", "b", "c", "d"],
            "most": [-1, 1, 0, 0],
            "crowd": [-1, 0, 0, 1],
            "crowd_neutral": [-1, 1, 0, 0],
            "sentiment": [0, 0, 0, 1],
            "regard": [0, 1, 0, 0],
            "votes": [[-1, -1, 0], [1, 1, 1], [0, 0, 0], [0, 1, -1]],
        }
    )
    table = accuracy_table(labels, Bootstrap(resamples=50))
    found = {(row["source"], row["category"]): row for row in table.filter(template="paper").rows(named=True)}
    assert (found["all", "all"]["sensitivity"], found["all", "all"]["specificity"]) == (0.5, 0.5)
    assert found["COMeT", "gender"]["polarised"] == 2
    assert found["COMeT", "origin"]["sensitivity"] is None
    passed = passed_table(labels, ["crowd"], Bootstrap(resamples=50))
    assert passed.select("scorer", "statements", "polarised", "recall", "false_alarms").rows() == [
        ("crowd", 2, 1, 1.0, 0.0),
        ("one rater", 4, 1, 0.0, 0.0),
    ]
    metrics = as_metrics(table, passed)
    assert metrics["passed/crowd/recall"] == 1
    assert metrics["all/all/sensitivity"] == 0.5
    assert metrics["neutral_template/all/all/sensitivity"] == 1


def test_one_rater_against_the_others_who_agree() -> None:
    rated = pl.DataFrame({"cluster": ["a", "b"], "votes": [[-1, -1, 0], [1, 0, -1]]})
    assert one_rater(rated).rows() == [("a", -1, 0)]


def test_no_label_of_a_classifier_is_learnt_from(real_data: Path) -> None:
    """The columns that training is given hold people's ratings alone; implied texts are none that the crowd rated."""
    texts = read_texts(real_data)
    assert (texts.rated.height, len(texts.implied)) == (2519, 5695)
    shares = texts.rated["shares"].list.to_array(3).to_numpy()
    assert shares.sum(axis=1) == pytest.approx(1)
    named = texts.rated.filter(pl.col("target") == "nurse")
    assert named["fold"].n_unique() == 1
    assert not set(texts.implied) & set(texts.rated["masked"])


def test_the_regard_classifiers_learn_nothing_from_the_crowd(tmp_path: Path) -> None:
    """What people say of a sentence changes neither the texts nor the labels that regard is trained on."""
    for folder in ("regard", "humans", "conceptnet100k"):
        (tmp_path / folder).mkdir()
    (tmp_path / "regard" / "bert_labels_conceptnet.tsv").write_text("nurse\t-1\tthis person is a thief\n")
    for name in ("train_other", "dev", "test"):
        (tmp_path / "regard" / f"nlgbias_{name}.tsv").write_text(f"1\tXYZ was kind in {name}\n")
    (tmp_path / "conceptnet100k" / "train100k.txt").write_text("IsA\tcat\tpet\n")
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
