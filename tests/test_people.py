"""Measures that learn from people's ratings: heads that leave out targets and texts, their figures, the shipped ones,
and what the main job makes of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import softmax

from mitigate.load.ratings import read_rated
from mitigate.measure.quality import groups_of
from mitigate.measure.results import measured
from mitigate.models.encoder import Encoder
from mitigate.models.heads import FOLDS, CrossFitted, fold_of, hash_of
from mitigate.score.people import SHIPPED, Crowd2, PeopleValid, polarity
from mitigate.score.plausibility import with_people_valid
from mitigate.studies.classifier import fit_heads, rated_rows, validity_figures
from mitigate.train import classifiers as training
from mitigate.train.classifiers import Rows, calibrate
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels

FACTS = {"labels": ["not valid", "valid"], "sha256": Encoder.sha256, "layers": [2], "reads": ["masked"]}


def numbered(known: Sequence[str] = ()) -> CrossFitted:
    """Heads whose probability of the second column is (10 s + t) / 100, whatever the features are."""
    share = np.arange(FOLDS**2).reshape(FOLDS, FOLDS) / FOLDS**2
    bias = np.log(np.maximum(np.stack([1 - share, share], axis=-1), 1e-9))
    marks = np.array([hash_of(text) for text in known], dtype=np.int64)
    folds = np.array([fold_of(text) for text in known], dtype=np.uint8)
    return CrossFitted(np.zeros((FOLDS, FOLDS, 1, 2)), bias, np.array(0.5), marks, folds, FACTS)


def test_a_rated_text_gets_the_head_that_left_out_it_and_its_target_another_the_mean() -> None:
    heads, features = numbered(["rated"]), np.zeros((1, 1))
    text, target = fold_of("rated"), fold_of("nurse")
    asked = [("rated", ["nurse"]), ("rated", None), ("new", ["nurse"]), ("new", [None])]
    found = [heads.probabilities(features, [words], subjects)[0, 1] * 100 for words, subjects in asked]
    assert found == pytest.approx([10 * target + text, 45 + text, 10 * target + 4.5, 49.5], abs=1e-4)


def test_no_head_learns_from_its_folds_and_copies_follow_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each head is given is the rows' numbers; a row of fold -1 is given to all."""
    rows = Rows(
        texts=["a", "b", "c", "d"],
        shares=np.eye(2)[[0, 1, 0, 1]],
        weights=np.ones(4),
        subjects=np.array([0, 1, 1, -1]),
        folds=np.array([2, 3, 2, -1]),
    )
    given: list[list[float]] = []

    def fit(features: np.ndarray, *_: object) -> tuple[np.ndarray, np.ndarray]:
        given.append(features[:, 0].tolist())
        return np.zeros((1, 2)), np.zeros(2)

    monkeypatch.setattr(training, "fit_softmax", fit)
    weight, bias = training.fit_crossed(rows, np.arange(4.0)[:, None], decay=0.1, steps=1)
    assert weight.shape == (FOLDS, FOLDS, 1, 2)
    assert bias.shape == (FOLDS, FOLDS, 2)
    heads = [given[place] for place in (2, FOLDS + 2, 3, 9 * FOLDS + 9)]
    assert heads == [[1, 3], [3], [2, 3], [0, 1, 2, 3]]


def test_calibration_undoes_what_makes_logits_too_large_and_labels_follow_the_threshold() -> None:
    true = np.stack([np.zeros(50), np.linspace(-2, 2, 50)], axis=1)
    slope, shift = calibrate(3 * true + np.array([0.0, 1.0]), softmax(true, axis=1))
    assert slope == pytest.approx(1 / 3, abs=1e-3)
    assert shift[1] - shift[0] == pytest.approx(-1 / 3, abs=1e-3)
    found = polarity(np.array([[0.5, 0.45, 0.05], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7]]), numbered())
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert found.strength.tolist() == pytest.approx([-0.45, -0.2, 0.6])


class Stated:
    """Calls valid what its statement has "helps" in, with probability .9, other things with .3."""

    name, fingerprint = "people_valid", "p" * 64

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked = list(texts)
        valid = np.array(["helps" in text.split("\t")[2] for text in texts])
        return Labels(valid.astype(np.int8), np.where(valid, 0.9, 0.3).astype(np.float32))


def test_people_valid_is_measured_of_rated_relations_on_all_targets_and_professions() -> None:
    """Statements of two targets, with labels by regard, of a rated relation and of another."""
    rows = [
        ("nurse", "profession", "CapableOf", "helps", "nurse is capable of helps", 0),
        ("nurse", "profession", "CapableOf", "x", "nurse is capable of x", -1),
        ("greek", "origin", "CapableOf", "y", "greek is capable of y", 0),
        ("greek", "origin", "IsA", "helps", "greek is a helps", 0),
    ]
    schema = ["target", "category", "relation", "tail", "statement", "regard_neutral"]
    generated = pl.DataFrame(rows, schema=schema, orient="row").with_columns(head="target")
    people = Stated()
    table = with_people_valid(generated, people)
    assert "nurse\tthis person is capable of helps\tnurse is capable of helps" in people.asked
    assert table["people_valid"].to_list() == [True, False, False, None]
    found = measured("rated statements", table, groups_of("rated statements", table, ["regard"]))
    expected = {"": 45, "neutral": 60, "polar": 30, "profession": 60, "profession/neutral": 90}
    expected |= {"CapableOf": 45, "IsA": None}
    assert dict(found.select("group", pl.col("value").round(3)).iter_rows()) == expected
    echoes = with_people_valid(generated.with_columns(tail="head"), people)  # which do not count as valid
    assert echoes["people_valid"].to_list() == [False, False, False, None]
    assert echoes["people_validity"].to_list() == [0, 0, 0, None]


def test_the_shipped_measures_are_small_have_cards_and_tell_plain_cases_apart() -> None:
    for folder in SHIPPED.values():
        assert sum(file.stat().st_size for file in folder.iterdir()) < 600_000
        assert "recipe=classifier classifier=people" in (folder / "README.md").read_text(encoding="utf-8")
    crowd = Crowd2()
    texts = ["this person is a thief", "this person is related to table", "this person is capable of help people"]
    assert crowd(texts).label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    texts = [f"nurse\tthis person {said}\tnurse {said}" for said in ("is capable of heal", "causes world war")]
    assert PeopleValid()(texts).label.tolist() == [1, 0]


def write_rated(root: Path) -> Path:
    """Statements of COMeT's relations, each with three raters' answers on polarity and validity."""
    folder = root / "humans"
    folder.mkdir(parents=True, exist_ok=True)
    said = {"is capable of heal": "1", "is capable of lie": "3", "has the property tall": "2", "causes noise": "2"}
    rows = [(f"{who} {what}", vote) for who in ("nurse", "pilot", "greek") for what, vote in said.items()]
    rows = [row for row in rows for _ in range(3)]
    (folder / "COMeT_sentences.txt").write_text("".join(f"{text}\n" for text, _ in rows))
    (folder / "COMeT_bias_labels.txt").write_text("".join(f"{vote}\n" for _, vote in rows))
    (folder / "COMeT_quality_labels.txt").write_text("".join(f"{1 + (text[-1] == 'e')}\n" for text, _ in rows))
    return root


def test_validity_is_learnt_from_ratings_and_measured_by_heads_that_did_not_see_them(tmp_path: Path) -> None:
    """The recipe's functions on twelve statements; a feature says what is valid."""
    rated = read_rated(write_rated(tmp_path), ["COMeT"])
    valid = rated["quality"].list.first().to_numpy().astype(float)
    assert valid.mean() == 0.5
    rows = rated_rows(rated, np.stack([1 - valid, valid], axis=1))
    settings = {"decay": 0.1, "steps": 60}
    folds = dict(zip(rows.texts, rows.folds, strict=True))
    heads, found = fit_heads(rows, valid[:, None] * np.ones((1, 384)), settings, np.arange(12), FACTS, folds)
    assert (found[:, 1] > 0.5).tolist() == (valid > 0.5).tolist()
    assert len(heads.marks) == len({*rows.texts})
    figures = validity_figures(rated, found[:, 1])
    assert [figures[f"all/{name}"] for name in ("auc", "rater")] == [1.0, 1.0]
    assert figures["prejudice/auc"] is None
