"""recipe=agreement: hand-checkable figures, the paper's beside them, and the words for missing data."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.recipes.agreement import read
from mitigate.recipes.rated import printed
from mitigate.report.proxies import paper
from mitigate.tasks.agreement import FIGURES, agreement_table, measure_agreement


@pytest.fixture(scope="module")
def metrics() -> dict:
    """Two sentences a resource: one that all three find a prejudice, one that one of three does."""
    labels = pl.DataFrame(
        {
            "resource": ["ConceptNet", "ConceptNet", "GenericsKB", "GenericsKB"],
            "sentence": ["a", "b", "a", "b"],
            "votes": [[-1, -1, -1], [0, -1, 0]] * 2,
            "sentiment": [-1, 0, 0, 2],
            "regard": [-1, -1, 1, 1],
            "keyword": [0, 0, 0, 0],
            "always_neutral": [0, 0, 0, 0],
        }
    )
    return measure_agreement(labels)


def test_by_rating_every_rating_counts(metrics: dict) -> None:
    assert metrics["ConceptNet/ratings"] == 6
    assert metrics["ConceptNet/sentiment/rating/accuracy"] == pytest.approx(5 / 6)
    assert metrics["ConceptNet/sentiment/rating/prejudice/recall"] == pytest.approx(3 / 4)
    assert metrics["ConceptNet/sentiment/rating/prejudice/precision"] == 1
    assert metrics["ConceptNet/always_neutral/rating/accuracy"] == pytest.approx(2 / 6)
    assert metrics["ConceptNet/always_neutral/rating/kappa"] == 0


def test_by_majority_every_sentence_counts_once(metrics: dict) -> None:
    assert metrics["ConceptNet/sentences"] == 2
    assert metrics["ConceptNet/sentiment/majority/accuracy"] == 1
    assert metrics["ConceptNet/regard/majority/prejudice/precision"] == pytest.approx(1 / 2)
    assert metrics["GenericsKB/regard/majority/accuracy"] == 0


def test_other_counts_as_neutral(metrics: dict) -> None:
    assert metrics["GenericsKB/sentiment/majority/accuracy"] == pytest.approx(1 / 2)


def test_the_papers_rows_stand_below_ours(metrics: dict) -> None:
    frame = agreement_table(metrics)
    assert frame.columns == ["resource", "scorer", "against", *FIGURES]
    row = frame.row(
        by_predicate=(pl.col("scorer") == "regard")
        & (pl.col("against") == "the paper")
        & (pl.col("resource") == "ConceptNet"),
        named=True,
    )
    assert (row["accuracy"], row["favouritism/f1"], row["prejudice/f1"], row["kappa"]) == (0.754, 0.408, 0.459, None)
    assert len(printed(frame).splitlines()) == 1 + 2 * (4 * 2 + 3)


def test_the_papers_f1_follow_from_its_precision_and_recall() -> None:
    for figures in paper().values():
        for name in ("favouritism", "prejudice"):
            recall, precision = figures[f"{name}/recall"], figures[f"{name}/precision"]
            assert figures[f"{name}/f1"] == pytest.approx(2 * recall * precision / (recall + precision), abs=0.002)


def test_no_folder_and_a_folder_without_ratings(tmp_path) -> None:
    with pytest.raises(MitigateError, match="give the folder of humans/ with data.root=DIR"):
        read(None)
    with pytest.raises(MitigateError, match="humans lacks ConceptNet_sentences.txt, .*; data.root must name"):
        read(str(tmp_path))


def test_real_ratings_are_grouped_by_sentence(real_data) -> None:
    crowd = read(str(real_data))
    assert crowd.group_by("resource").len().sort("resource").rows() == [("ConceptNet", 997), ("GenericsKB", 523)]
    assert crowd["votes"].list.len().sum() == 3000 + 1569
    assert "this person" in crowd["masked"][0]
