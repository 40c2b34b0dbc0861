"""recipe=agreement: hand-checkable figures, the paper's beside them, and the words for missing data."""

from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import ROOT, here, metrics_of
from small_models import save_chat_llama, save_classifier

from mitigate.errors import MitigateError
from mitigate.load.ratings import KNOWLEDGE, RESOURCES
from mitigate.measure.agreement import FIGURES, agreement_table, measure_agreement
from mitigate.measure.base import ENDS
from mitigate.measure.intervals import Bootstrap
from mitigate.report.sections import scorers_beside_people
from mitigate.report.table import as_markdown, as_text
from mitigate.studies.agreement import classifiers, read
from mitigate.tracking import Tracking


@pytest.fixture(scope="module")
def metrics() -> dict:
    """Two sentences a resource: one that all three find a prejudice, one that one of three does."""
    labels = {"sentiment": [-1, 0, 0, 2], "regard": [-1, -1, 1, 1], "keyword": [0] * 4}
    rated = {"resource": sorted([*KNOWLEDGE] * 2), "sentence": [*"abab"], "votes": [[-1, -1, -1], [0, -1, 0]] * 2}
    return measure_agreement(pl.DataFrame({**rated, **labels}))


def test_figures_by_hand(metrics: dict) -> None:
    """By rating every rating counts, by majority every sentence counts once; other counts as neutral."""
    expected = {
        **{"ConceptNet/ratings": 6, "ConceptNet/sentences": 2, "ConceptNet/sentiment/rating/accuracy": 5 / 6},
        "ConceptNet/sentiment/rating/prejudice/recall": 3 / 4,
        "ConceptNet/sentiment/rating/prejudice/precision": 1,
        **{"ConceptNet/always_neutral/rating/accuracy": 2 / 6, "ConceptNet/always_neutral/rating/kappa": 0},
        **{"ConceptNet/sentiment/majority/accuracy": 1, "ConceptNet/regard/majority/prejudice/precision": 1 / 2},
        **{"GenericsKB/regard/majority/accuracy": 0, "GenericsKB/sentiment/majority/accuracy": 1 / 2},
    }
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)


def test_the_papers_rows_stand_below_ours(metrics: dict) -> None:
    frame = agreement_table(metrics, KNOWLEDGE)
    assert frame.columns == ["resource", "scorer", "against", *FIGURES]
    row = frame.filter(scorer="regard", against="the paper", resource="ConceptNet").row(0, named=True)
    assert (row["accuracy"], row["favouritism/f1"], row["prejudice/f1"], row["kappa"]) == (0.754, 0.408, 0.459, None)
    assert len(as_text(scorers_beside_people(frame)).splitlines()) == 1 + 2 * (1 + 4 * 2 + 3)


def test_kappa_and_the_share_that_people_find_polarised_have_intervals_over_targets() -> None:
    rows = [("lawyer", "a", [-1, -1, 0], -1, -0.1), ("nurse", "b", [0, 0, 0], 0, 0.0)]
    rows += [("nurse", "b", [1, 1, 1], 0, 0.2), ("judge", "c", [0, 0, 0], 2, -0.3)]
    names = ["cluster", "masked", "votes", "regard", "regard_strength"]
    labels = pl.DataFrame(rows, schema=names, orient="row").with_columns(resource=pl.lit("COMeT"))
    found = measure_agreement(labels, ["regard"], Bootstrap(resamples=200))
    # three items whose raters agree, one with a third of its pairs; 1/6, 7/12 and 1/4 of the ratings
    chance = (2 / 12) ** 2 + (7 / 12) ** 2 + (3 / 12) ** 2
    expected = {
        **{"people/polarised": 0.5, "people/fleiss": (10 / 12 - chance) / (1 - chance)},
        "regard/majority/kappa": (3 / 4 - 7 / 16) / (9 / 16),  # observed 3/4, by chance (1/4 * 1/4 + 2/4 * 3/4)
        **{"regard/majority/sensitivity": 0.5, "regard/majority/specificity": 1},
        "always_neutral/majority/kappa_high": 0,
        "regard/majority/abstained": 1 / 4,  # one of four labels is "other"
    }
    assert {key: found[f"COMeT/{key}"] for key in expected} == pytest.approx(expected)
    assert found["COMeT/people/polarised_low"] < 0.5 < found["COMeT/people/polarised_high"]
    errors = {f"regard/identity/false_positives/mean{end}": 10.0 for end in ENDS}
    shown = classifiers(found | errors, ["COMeT"], {"regard": "labels"})
    assert "people" in as_text(shown).splitlines()[-1]
    head, _, row, _ = as_markdown(shown).splitlines()
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["learnt from |"] == "labels |"
    assert cells["identity false positives, %"] == "10.0 [10.0, 10.0]"


def test_one_table_of_all_scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """A classifier with the names of sasha/regardv3's labels, a language model with a chat template, and a scorer of
    one's own stand beside the project's. The whole recipe takes seconds, of which its encoder is most."""
    bert = save_classifier(tmp_path / "bert", ["negative", "neutral", "other", "positive"])
    (tmp_path / "rubric.txt").write_text("Answers: bad, plain, good\nbad, plain or good? {statement}")
    model = save_chat_llama(tmp_path / "model", ["bad, plain or good? this person is kind"])
    settings = ["--config-dir", str(ROOT / "docs/examples/own"), "score=study", "score.extra=[bert,rude,judge]"]
    settings += [f"score.bert.model={bert}", f"score.judge.model={model}", f"paths.outputs={tmp_path}/outputs"]
    settings += [f"score.scorers.judge.rubric={tmp_path}/rubric.txt", f"paths.cache={tmp_path}/cache"]
    settings += ["recipe.statements=5", "measure.resamples=50", "tracking=none"]
    (tmp_path / "humans").mkdir()
    said = "".join(f"the {who} is kind\n" * 3 for who in ("lawyer", "nurse", "man"))
    for resource in RESOURCES:
        (tmp_path / "humans" / f"{resource}_sentences.txt").write_text(said)
        (tmp_path / "humans" / f"{resource}_bias_labels.txt").write_text("1\n2\n2\n" * 3)
    settings += ["recipe=agreement", f"data.root={tmp_path}"]
    recorded: dict[str, Any] = {}
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.update(metrics))
    assert here(monkeypatch, *settings, "dry_run=true") == 0
    assert here(monkeypatch, *settings) == 0
    (folder,) = (tmp_path / "outputs").glob("agreement-*")
    scorers = {"sentiment", "regard", "keyword", "ngram", "bert", "crowd2", "rude", "judge"}
    assert set(pl.read_csv(folder / "agreement.csv")["scorer"]) == scorers | {"always_neutral"}
    metrics = metrics_of(folder)
    assert recorded == {key: metrics[key] for key in recorded} != {}
    assert [metrics[f"{resource}/judge/majority/abstained"] for resource in RESOURCES] == [1.0, 1.0, 1.0]
    errors = [metrics[f"rude/identity/false_positives/mean{end}"] for end in ENDS]
    assert errors[1] <= errors[0] <= errors[2]
    page = (folder / "classifiers.md").read_text()
    crowd = "ratings (cross-fitted by text), statements with identity terms"
    for scorer, learnt in {"crowd2": crowd, "rude": "not stated"}.items():
        assert sum(f"| {scorer} |" in line and line.endswith(f"| {learnt} |") for line in page.splitlines()) == 3


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (None, "data.root is not set; .* the folder that contains humans, from the source"),
        ("nowhere", "no such file or folder: .*humans; set data.root, or the variable"),
    ],
)
def test_no_folder_and_a_folder_without_ratings(root: str | None, message: str) -> None:
    with pytest.raises(MitigateError, match=message):
        read(root, None, 1)


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
