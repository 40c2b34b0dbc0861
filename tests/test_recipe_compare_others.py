"""recipe=compare of two audits and of two runs of recipe=kge, and what cannot be set side by side."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import here
from compared_runs import configured
from kge_graphs import SMALL, planted, write_graph
from omegaconf import OmegaConf

from mitigate.measure.kge import between_trainings
from mitigate.report.compared_embeddings import verdict
from mitigate.tracking.record import Tracking

TARGETS = ("lawyer", "nurse", "woman", "man", "italy", "muslim", "teacher", "she")
RUDE, PLAIN = "is a terrible <b>thing</b>", "is at home"


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders: "calm.tsv" has a rude statement of each target in four, "loud.tsv" three; "triples.tsv" is of
    triples, and says of each target that it can do a wonderful thing, and that it is at home."""
    calm = "".join(f"{target}\tthe {target} {said}\n" for target in TARGETS for said in (RUDE, PLAIN, PLAIN, PLAIN))
    loud = "".join(f"{target}\tthe {target} {said}\n" for target in TARGETS[:-1] for said in (RUDE, RUDE, RUDE, PLAIN))
    triples = "".join(f"{target}\tCapableOf\twalk\n{target}\tAtLocation\thome\n" for target in TARGETS)
    texts = {"calm": calm, "loud": loud + "doctor\tthe doctor is late\n", "triples": "head\trelation\ttail\n" + triples}
    outputs = tmp_path_factory.mktemp("audits")
    return {name: audited(outputs, name, text) for name, text in texts.items()}


def audited(outputs: Path, name: str, text: str) -> Path:
    """The run folder of an audit."""
    (outputs / f"{name}.tsv").write_text(text)
    data = "triples" if name == "triples" else "statements"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mitigate.report.audit.Audit.pictures", [])
        places = (f"paths.outputs={outputs}/{name}", f"paths.cache={outputs}/cache", "tracking=none")
        small = ("measure.resamples=100", "score.regard=null", f"data={data}", f"data.path={outputs}/{name}.tsv")
        assert here(patched, "recipe=audit", *places, *small) == 0
    return next(outputs.glob(f"{name}/audit-*"))


@pytest.fixture
def compare(tmp_path: Path, placed):
    """Runs the recipe; returns the exit status, what was printed on both streams, and the run folder if any."""

    def run(*folders: Path) -> tuple[int, str, Path]:
        named = f"compare.runs=[{','.join(map(str, folders))}]"
        status, said, complaint = placed("recipe=compare", "measure.resamples=200", named)
        return status, said + complaint, next(tmp_path.glob("out/compare-*"), tmp_path)

    return run


@pytest.fixture
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mitigate.report.compared_audits.Resources.pictures", [])


def facts(folder: Path) -> dict:
    return json.loads((folder / "comparison.json").read_text())


@pytest.mark.usefixtures("_no_pictures")
def test_two_resources_side_by_side(compare, audits: dict[str, Path]) -> None:
    status, said, folder = compare(audits["calm"], audits["loud"])
    assert status == 0
    found = facts(folder)
    assert [(side["title"], side["targets"]) for side in found["resources"]] == [("calm.tsv", 8), ("loud.tsv", 8)]
    assert found["targets"] == 7  # she is in one alone, doctor in the other
    row = found["figures"]["sentiment/O-"]
    assert (row["targets"], row["baseline"], row["value"], row["change"]) == (7, 25, 75, 50)
    assert (row["low"], row["p"]) == (None, None)  # seven gains that are all the same show nothing of other words
    assert row["second_alone"] == pytest.approx(7 * 75 / 8)  # with doctor, of whom nothing bad is said
    assert found["figures"]["sentiment/polarised/gender"]["value"] == 75
    assert found["figures"]["D_R"]["change"] == 1
    assert not any(key.startswith("neutral_template/") for key in found["figures"])
    assert found["lines"][0] in said
    page = (folder / "comparison.html").read_text()
    assert "25.0\u00a0% of the statements in calm.tsv about the 7 targets found in both" in page
    assert "<b>" not in page
    assert page.index("No target has that many statements in both.") > 0
    assert (folder / "tables" / "figures.tex").is_file()
    assert pl.read_csv(folder / "tables" / "targets.csv").height == 7
    settings = OmegaConf.load(folder / "config.yaml")
    assert (settings.data.name, settings.policy.name) == ("statements-statements", "calm.tsv, loud.tsv")


@pytest.mark.usefixtures("_no_pictures")
def test_a_sentence_has_no_phrase_to_neutralise(compare, audits: dict[str, Path]) -> None:
    """ "is capable of" praises, "is able to" does not; the sentences are the same beside both."""
    _, _, folder = compare(audits["triples"], audits["calm"])
    figures = facts(folder)["figures"]
    assert (figures["sentiment/O+"]["baseline"], figures["neutral_template/sentiment/O+"]["baseline"]) == (50, 0)
    for key in ("sentiment/O-", "neutral_template/sentiment/O-"):
        assert (figures[key]["value"], figures[key]["second_alone"]) == (25, 25)


def test_the_page_shows_both_in_pictures_and_statements_behind_a_warning(
    compare, audits: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mitigate.tasks.compare.audits.FEWEST_STATEMENTS", 2)
    recorded: list[str] = []
    monkeypatch.setattr(Tracking, "table", lambda self, name, frame: recorded.append(name))
    monkeypatch.setattr(Tracking, "pictures", lambda self, rows: recorded.extend(name for name, *_ in rows))
    _, _, folder = compare(audits["calm"], audits["loud"])
    page = (folder / "comparison.html").read_text()
    assert page.index("content warning") < page.index("&lt;b&gt;thing")
    without_targets = {"boxes-sentiment-negative", "boxes-sentiment-positive", "counts"}  # which are a user's own
    categories = ("origin", "gender", "religion", "profession")
    regions = {f"regions-{category}-{side}" for category in categories for side in (1, 2)}
    pictures = {*without_targets, *regions, "bars-sentiment"}
    assert {path.stem for path in (folder / "plots").iterdir()} == {*pictures, "captions"}
    assert page.count("<svg") == len(pictures)
    assert "Median over targets, calm.tsv and loud.tsv: gender 25.0 % and 75.0 %" in page
    assert set(recorded) == {"differences", "figures", *without_targets}


@pytest.mark.usefixtures("_no_pictures")
def test_a_resource_beside_its_copy_has_the_same_numbers(compare, audits: dict[str, Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(audits["calm"], tmp_path / "copy"))
    _, said, folder = compare(audits["calm"], copy)
    found = facts(folder)
    assert {row["verdict"] for row in found["figures"].values()} == {"the same numbers"}
    assert [side["title"] for side in found["resources"]] == [audits["calm"].name, "copy"]
    assert "note: Both audits have the same numbers: it is one resource, or a copy of it." in said


def test_what_cannot_be_set_side_by_side(compare, audits: dict[str, Path], tmp_path: Path) -> None:
    calm, loud, triples = audits.values()
    masked = configured(Path(shutil.copytree(calm, tmp_path / "masked")), measure={"masking": "paper"})
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.yaml").write_text("recipe: {name: mitigate}")
    of_mitigate = f"{model} is a run of recipe=mitigate. Set it to folders of finished runs of recipe=audit."
    faults = [
        ((calm, masked), "were measured in different ways (measure.masking=token and paper)"),
        ((calm, model), of_mitigate),
        ((model, calm), of_mitigate),
        ((calm, loud, triples), "compare.runs must name 2 different audits; it names 3"),
        ((calm, calm), "compare.runs must name 2 different audits; it names 1"),
    ]
    for name in ("tally.parquet", "statements/*.parquet", "tables/targets_sentiment.csv"):
        damaged = Path(shutil.copytree(loud, tmp_path / name.split(".")[0]))
        path = next(damaged.glob(name))
        path.write_bytes(path.read_bytes()[:-20])
        damage = "is damaged: its content is not that in manifest.json; run the command"
        faults.append(((calm, damaged), f"compare.runs: {path} {damage}"))
    for folders, fault in faults:
        status, said, _ = compare(*folders)
        assert status == 2
        assert fault in said


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders of recipe=kge with two models."""
    outputs = tmp_path_factory.mktemp("kge")
    asked = ("recipe=kge", "kge.sensitive=gender", "kge.values=[male,female]", "kge.seeds=2", "kge.permuted=0", *SMALL)
    graph = write_graph(outputs / "graph", planted(people=240))
    for name, more in {"transe": (), "complex": ("model=complex",)}.items():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("mitigate.report.kge.Results.pictures", [])
            assert here(patched, *asked, *graph, *more, f"paths.outputs={outputs}/{name}", "tracking=none") == 0
    return {name: next(outputs.glob(f"{name}/kge-*")) for name in ("transe", "complex")}


def test_two_models_stand_side_by_side_and_are_named_where_they_are(models, compare, tmp_path: Path) -> None:
    """Also once they have moved; runs that ask something else are not compared. Slow: two small models are
    trained."""
    status, said, folder = compare(*models.values())
    assert status == 0, said
    assert "complex compared with transe" in said
    found = json.loads((folder / "comparison.json").read_text())
    assert [run["run"] for run in found["runs"]] == [str(path) for path in models.values()]
    metrics = {name: json.loads((path / "metrics.json").read_text()) for name, path in models.items()}
    for key in ("kge/mrr", "kge/hits_10", "kge/parity", "kge/leakage_linear", "kge/rank_correlation"):
        row = found["figures"][key]
        assert row["first"] == pytest.approx(metrics["transe"][key])
        assert row["second"] == pytest.approx(metrics["complex"][key])
        assert row["change"] == pytest.approx(row["second"] - row["first"])
        assert row["low"] <= row["change"] <= row["high"]
    professions = pl.read_csv(folder / "tables" / "professions.csv")
    assert sorted(professions["first_place"]) == [1, 2, 3, 4, 5, 6] == sorted(professions["second_place"])
    assert -1 <= found["agreement"]["ranked_alike"] <= 1
    (caption,) = pl.read_csv(folder / "plots" / "captions.csv")["caption"]
    assert "Scatter plot of 6 professions, transe across and complex upwards" in caption
    page = (folder / "comparison.html").read_text()
    for words in ("midwife", "at least five of each", "Welch", "place, complex"):
        assert words in page
    moved = [Path(shutil.copytree(path, tmp_path / "moved" / path.name)) for path in models.values()]
    status, said, folder = compare(*moved)
    assert status == 0, said
    found = json.loads((folder / "comparison.json").read_text())  # in the same folder, as the runs are the same
    assert len(list(folder.parent.glob("compare-*"))) == 1
    assert [run["run"] for run in found["runs"]] == [str(path) for path in moved]
    fewest = configured(Path(shutil.copytree(models["transe"], tmp_path / "fewest")), kge={"fewest": 10})
    for folders, fault in (
        ((models["transe"], fewest), "answer different questions (kge.fewest=20 and 10)"),
        ((fewest,), "compare.runs must name 2 different runs of recipe=kge; it names 1"),
    ):
        status, said, _ = compare(*folders)
        assert status == 2
        assert fault in said


def test_the_difference_of_trainings_by_hand() -> None:
    found = between_trainings(np.array([1.0, 3.0]), np.array([5.0, 7.0]))
    # Each mean has a variance of 2 / 2 = 1, so that the error is sqrt(2), with 2 degrees of freedom: t = 4.3027.
    assert found.change == 4
    assert (found.low, found.high) == pytest.approx((4 - 4.3027 * 2**0.5, 4 + 4.3027 * 2**0.5), abs=1e-3)
    assert between_trainings(np.array([1.0]), np.array([5.0, 7.0])) == (5, None, None)
    assert between_trainings(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == (1, None, None)


@pytest.mark.parametrize(
    ("key", "first", "second", "half", "best", "said"),
    [
        ("kge/mrr", 0.1, 0.2, 0.05, None, "better"),
        ("kge/rank_correlation", 0.1, 0.3, 0.1, None, "higher"),
        ("kge/mrr", 0.1, 0.2, None, None, "unknown: no interval"),
        ("kge/mrr", 0.2000, 0.2004, 0.0001, None, "no difference shown"),  # 0.000 as shown
        ("kge/amplification", 1.6, -20.9, 2.0, (0, 0), "worse"),  # lower, and further from 0
        ("kge/amplification", 8.0, -1.0, 2.0, (0, 0), "better"),
        ("kge/amplification", 1.6, -1.6, 0.5, (0, 0), "no difference shown"),
        ("kge/parity", 10.0, 4.0, 1.0, (6.0, 6.5), "better"),  # 4 from chance, then 2.5
        ("kge/parity", 10.0, 4.0, 2.0, (6.0, 6.5), "no difference shown"),
        ("kge/leakage_linear", 0.55, 0.75, 0.1, (0.5, 0.5), "worse"),
    ],
)
def test_verdicts_follow_the_interval_and_the_direction_or_the_distance_from_what_is_best(
    key, first, second, half, best, said
) -> None:
    change = second - first
    low, high = (None, None) if half is None else (change - half, change + half)
    row = {"key": key, "first": first, "second": second, "change": change, "low": low, "high": high}
    assert verdict(row, best) == said
