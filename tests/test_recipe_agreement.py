"""recipe=agreement: hand-checkable figures, the paper's beside them, and the words for missing data."""

from importlib import resources
from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.errors import MitigateError
from mitigate.load.paper_ratings import FILTERED, KNOWLEDGE
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.agreement import read
from mitigate.recipes.rated_scorers import format_agreement, format_intervals
from mitigate.tasks.ratings.agreement import (
    FEWEST,
    FIGURES,
    agreement_table,
    interval_table,
    measure_agreement,
    with_text_parts,
)
from models.heads import fold_of


@pytest.fixture(scope="module")
def metrics() -> dict:
    """Two sentences a resource: one that all three find a prejudice, one that one of three does."""
    labels = pl.DataFrame(
        {
            **{"resource": ["ConceptNet", "ConceptNet", "GenericsKB", "GenericsKB"], "sentence": ["a", "b", "a", "b"]},
            **{"votes": [[-1, -1, -1], [0, -1, 0]] * 2, "sentiment": [-1, 0, 0, 2], "regard": [-1, -1, 1, 1]},
            **{"keyword": [0, 0, 0, 0], "always_neutral": [0, 0, 0, 0]},
        }
    )
    return measure_agreement(labels)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ConceptNet/ratings", 6),  # by rating every rating counts
        ("ConceptNet/sentiment/rating/accuracy", 5 / 6),
        ("ConceptNet/sentiment/rating/prejudice/recall", 3 / 4),
        ("ConceptNet/sentiment/rating/prejudice/precision", 1),
        ("ConceptNet/always_neutral/rating/accuracy", 2 / 6),
        ("ConceptNet/always_neutral/rating/kappa", 0),
        ("ConceptNet/sentences", 2),  # by majority every sentence counts once
        ("ConceptNet/sentiment/majority/accuracy", 1),
        ("ConceptNet/regard/majority/prejudice/precision", 1 / 2),
        ("GenericsKB/regard/majority/accuracy", 0),
        ("GenericsKB/sentiment/majority/accuracy", 1 / 2),  # other counts as neutral
    ],
)
def test_figures_by_hand(metrics: dict, key: str, value: float) -> None:
    assert metrics[key] == pytest.approx(value)


def test_the_papers_rows_stand_below_ours(metrics: dict) -> None:
    frame = agreement_table(metrics, KNOWLEDGE)
    assert frame.columns == ["resource", "scorer", "against", *FIGURES]
    row = frame.filter(scorer="regard", against="the paper", resource="ConceptNet").row(0, named=True)
    assert (row["accuracy"], row["favouritism/f1"], row["prejudice/f1"], row["kappa"]) == (0.754, 0.408, 0.459, None)
    assert len(format_agreement(frame).splitlines()) == 1 + 2 * (4 * 2 + 3)


def test_kappa_and_the_share_that_people_find_polarised_have_intervals_over_targets() -> None:
    rows = [("lawyer", [-1, -1, 0], -1), ("nurse", [0, 0, 0], 0), ("nurse", [1, 1, 1], 0), ("judge", [0, 0, 0], 0)]
    labels = pl.DataFrame(
        {
            "resource": "COMeT",
            "sentence": [f"{target} {number}" for number, (target, _, _) in enumerate(rows)],
            "cluster": [target for target, _, _ in rows],
            "masked": ["a", "b", "b", "c"],
            "votes": [votes for _, votes, _ in rows],
            "regard": [label for _, _, label in rows],
            "always_neutral": 0,
        }
    )
    found = measure_agreement(labels, ["regard"], Bootstrap(resamples=200))
    assert found["COMeT/people/polarised"] == 0.5
    assert found["COMeT/people/polarised_low"] < 0.5 < found["COMeT/people/polarised_high"]
    # observed 3/4, by chance (1/4 * 1/4 + 2/4 * 3/4)
    assert found["COMeT/regard/majority/kappa"] == pytest.approx((3 / 4 - 7 / 16) / (9 / 16))
    assert (found["COMeT/regard/majority/sensitivity"], found["COMeT/regard/majority/specificity"]) == (0.5, 1)
    assert found["COMeT/always_neutral/majority/kappa_high"] == 0
    # three items whose raters agree, one with a third of its pairs; 1/6, 7/12 and 1/4 of the ratings
    chance = (2 / 12) ** 2 + (7 / 12) ** 2 + (3 / 12) ** 2
    assert found["COMeT/people/fleiss"] == pytest.approx((10 / 12 - chance) / (1 - chance))
    table = interval_table(found, ["COMeT"], ["regard"])
    assert table.columns == ["resource", "scorer", "figure", "value", "low", "high"]
    assert "people" in format_intervals(table).splitlines()[-1]


def test_statements_whose_text_the_crowd_classifier_learnt_from_are_a_part_of_their_own() -> None:
    """It learnt from those of the three sets that are about targets of other folds, and from none of the filtered
    COMeT."""
    others = [word for word in ("nurse", "lawyer", "baker", "judge", "pilot") if fold_of(word) != fold_of("teacher")]
    rows = [("COMeT", "teacher", f"a{number}") for number in range(FEWEST)]
    rows += [("COMeT", others[0], f"b{number}") for number in range(FEWEST)]
    rows += [(FILTERED, "teacher", f"{letter}{number}") for letter in "ab" for number in range(FEWEST)]
    labels = pl.DataFrame(rows, schema=["resource", "cluster", "masked"], orient="row")
    found = with_text_parts(labels)
    assert found.head(labels.height).equals(labels)
    parts = found.slice(labels.height).group_by("resource", maintain_order=True).agg("masked")
    assert dict(parts.iter_rows()) == {
        "COMeT, texts not seen": [text for resource, _, text in rows if resource == "COMeT"],
        f"{FILTERED}, texts not seen": [f"a{number}" for number in range(FEWEST)],  # of the teacher's fold itself
        f"{FILTERED}, texts seen": [f"b{number}" for number in range(FEWEST)],
    }
    assert with_text_parts(labels.head(3)).equals(labels.head(3))  # too few for a part


def test_no_folder_and_a_folder_without_ratings(tmp_path) -> None:
    with pytest.raises(
        MitigateError, match="data.root is not set; .* the folder that contains humans, from the source"
    ):
        read(None)
    with pytest.raises(MitigateError, match="no such file or folder: .*humans; set data.root .or MITIGATE_DATA. to"):
        read(str(tmp_path))


def test_real_ratings_are_grouped_by_sentence(real_data) -> None:
    crowd = read(str(real_data))
    filtered = {FILTERED: 999} if (real_data / "humans" / f"{FILTERED}_sentences.txt").is_file() else {}
    found = dict(crowd.group_by("resource").len().iter_rows())
    assert found == {"ConceptNet": 997, "GenericsKB": 523, "COMeT": 999, **filtered}
    assert crowd["votes"].list.len().sum() == 3000 + 1569 + 3006 * (1 + len(filtered))
    assert "this person" in crowd["masked"][0]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory, real_data: Path) -> Path:
    """A run of the recipe on the real ratings."""
    outputs = tmp_path_factory.mktemp("agreement")
    settings = (f"data.root={real_data}", "tracking=none", f"paths.outputs={outputs}", "measure.resamples=2000")
    with pytest.MonkeyPatch.context() as patched:
        assert here(patched, "recipe=agreement", *settings) == 0
    (folder,) = outputs.glob("agreement-*")
    return folder


@pytest.mark.thorough
def test_measured_anew_the_shipped_figures_are_the_same(run_folder: Path) -> None:
    """A processor that rounds otherwise may tip a label or two."""
    found = pl.read_csv(run_folder / "measured.csv")
    shipped = pl.read_csv(str(resources.files("mitigate").joinpath("data/agreement_measured.csv")))
    assert found.drop("value").equals(shipped.drop("value"))
    assert (found["value"] - shipped["value"]).abs().max() <= 0.015


@pytest.mark.thorough
def test_measured_anew_the_errors_on_identity_terms_are_the_same(run_folder: Path) -> None:
    """A processor that rounds otherwise may tip a label or two: 1.5 percentage points are one text of a term."""
    found = pl.read_csv(run_folder / "identity_measured.csv")
    shipped = pl.read_csv(str(resources.files("mitigate").joinpath("data/identity/measured.csv")))
    assert found["scorer", "part", "error", "terms"].equals(shipped["scorer", "part", "error", "terms"])
    assert (found["mean"] - shipped["mean"]).abs().max() <= 0.5
    assert (found["largest"] - shipped["largest"]).abs().max() <= 4


@pytest.mark.thorough
def test_the_shipped_policies_against_people(run_folder: Path) -> None:
    table = pl.read_csv(run_folder / "policies.csv")
    of_both = ["both", "both_neutral", "both_people", "both_person_heads", "both_targets"]
    assert table.filter(resource="COMeT")["policy"].to_list() == ["none", "regard", "sentiment", *of_both]
    both = {row["resource"]: (row["before"], row["after"]) for row in table.filter(policy="both").rows(named=True)}
    assert both["ConceptNet"] == pytest.approx((14.8, 4.3), abs=0.3)
    assert both["GenericsKB"] == pytest.approx((35.6, 9.9), abs=0.5)
    assert both["COMeT"] == pytest.approx((42.1, 8.0), abs=0.5)
