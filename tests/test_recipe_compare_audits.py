"""recipe=compare of audits: two resources side by side, and what cannot be set side by side."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from command import here
from compared_runs import seal
from omegaconf import OmegaConf

from mitigate.tracking import NoTracking

TARGETS = ("lawyer", "nurse", "woman", "man", "italy", "muslim", "teacher", "she")
RUDE, PLAIN = "is a terrible <b>thing</b>", "is at home"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audits")


@pytest.fixture(scope="module")
def audits(outputs: Path) -> dict[str, Path]:
    """Run folders: "calm.tsv" has a rude statement of each target in four, "loud.tsv" three; "triples.tsv" is of
    triples, and says of each target that it can do a wonderful thing, and that it is at home."""
    calm = "".join(f"{target}\tthe {target} {said}\n" for target in TARGETS for said in (RUDE, PLAIN, PLAIN, PLAIN))
    loud = "".join(f"{target}\tthe {target} {said}\n" for target in TARGETS[:-1] for said in (RUDE, RUDE, RUDE, PLAIN))
    triples = "".join(f"{target}\tCapableOf\twalk\n{target}\tAtLocation\thome\n" for target in TARGETS)
    (outputs / "calm.tsv").write_text(calm)
    (outputs / "loud.tsv").write_text(loud + "doctor\tthe doctor is late\n")
    (outputs / "triples.tsv").write_text(f"head\trelation\ttail\n{triples}")
    columns = "data.columns={head: head, relation: relation, tail: tail}"
    return {
        "calm": audited(outputs, "data=statements", f"data.path={outputs}/calm.tsv"),
        "loud": audited(outputs, "data=statements", f"data.path={outputs}/loud.tsv"),
        "triples": audited(outputs, "data=triples", f"data.path={outputs}/triples.tsv", columns),
    }


def audited(outputs: Path, *overrides: str) -> Path:
    """The run folder of an audit."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mitigate.report.audit.Audit.pictures", [])
        before = set(outputs.glob("audit-*"))
        places = (f"paths.outputs={outputs}", f"paths.cache={outputs}/cache", "tracking=none")
        small = ("measure.resamples=100", "score.regard=null")
        assert here(patched, "recipe=audit", *places, *small, *overrides) == 0
    (folder,) = set(outputs.glob("audit-*")) - before
    return folder


@pytest.fixture
def compare(outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status, what was printed on both streams, and the run folder if any."""

    def run(*folders: Path, more: tuple[str, ...] = ()) -> tuple[int, str, Path]:
        named = f"compare.runs=[{','.join(map(str, folders))}]"
        places = (f"paths.outputs={tmp_path}", f"paths.cache={outputs}/cache", "tracking=none")
        status = here(monkeypatch, "recipe=compare", "measure.resamples=200", named, *places, *more)
        return status, "".join(capsys.readouterr()), next(tmp_path.glob("compare-*"), tmp_path)

    return run


@pytest.fixture
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mitigate.report.resources.Resources.pictures", [])


def facts(folder: Path) -> dict:
    return json.loads((folder / "comparison.json").read_text())


@pytest.mark.usefixtures("_no_pictures")
def test_two_resources_side_by_side(compare, audits: dict[str, Path]) -> None:
    status, said, folder = compare(audits["calm"], audits["loud"])
    assert status == 0
    found = facts(folder)
    assert [side["title"] for side in found["resources"]] == ["calm.tsv", "loud.tsv"]
    assert [side["targets"] for side in found["resources"]] == [8, 8]
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
    monkeypatch.setattr("mitigate.tasks.compare.audit_findings.FEWEST_STATEMENTS", 2)
    recorded: list[str] = []
    monkeypatch.setattr(NoTracking, "table", lambda self, name, frame: recorded.append(name))
    monkeypatch.setattr(NoTracking, "pictures", lambda self, rows: recorded.extend(name for name, *_ in rows))
    _, _, folder = compare(audits["calm"], audits["loud"])
    page = (folder / "comparison.html").read_text()
    assert page.index("content warning") < page.index("&lt;b&gt;thing")
    pictures = {"boxes-sentiment-negative", "boxes-sentiment-positive", "bars-sentiment", "counts"}
    pictures |= {
        f"regions-{category}-{side}" for category in ("origin", "gender", "religion", "profession") for side in (1, 2)
    }
    assert {path.stem for path in (folder / "plots").iterdir()} == {*pictures, "captions"}
    assert page.count("<svg") == len(pictures)
    assert "Median over targets, calm.tsv and loud.tsv: gender 25.0 % and 75.0 %" in page
    without_targets = {"boxes-sentiment-negative", "boxes-sentiment-positive", "counts"}  # which are a user's own
    assert set(recorded) == {"differences", "figures", *without_targets}


@pytest.mark.usefixtures("_no_pictures")
def test_a_resource_beside_itself_has_the_same_numbers(compare, audits: dict[str, Path], tmp_path: Path) -> None:
    status, said, _ = compare(audits["calm"], audits["calm"])
    assert status == 2
    assert "compare.runs names 1 audits, and two are set side by side" in said
    copy = Path(shutil.copytree(audits["calm"], tmp_path / "copy"))
    status, said, folder = compare(audits["calm"], copy)
    found = facts(folder)
    assert {row["verdict"] for row in found["figures"].values()} == {"the same numbers"}
    assert [side["title"] for side in found["resources"]] == [audits["calm"].name, "copy"]
    assert "note: Both audits have the very same numbers: it is one resource, or a copy of it." in said


def test_what_cannot_be_set_side_by_side_is_told(compare, audits: dict[str, Path], tmp_path: Path) -> None:
    masked = Path(shutil.copytree(audits["calm"], tmp_path / "masked"))
    config = OmegaConf.load(masked / "config.yaml")
    config.measure.masking = "paper"
    OmegaConf.save(config, masked / "config.yaml")
    seal(masked)
    status, said, _ = compare(audits["calm"], masked)
    assert status == 2
    assert "were measured in different ways (measure.masking=token and paper)" in said
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.yaml").write_text("recipe: {name: mitigate}")
    for more in ((audits["calm"], model), (model, audits["calm"])):
        status, said, _ = compare(*more)
        assert status == 2
        assert f"{model} is a run of recipe=mitigate. Name folders that finished runs of recipe=audit left." in said
    status, said, _ = compare(audits["calm"], audits["loud"], audits["triples"])
    assert "compare.runs names 3 audits, and two are set side by side" in said


@pytest.mark.parametrize("name", ["tally.parquet", "statements/*.parquet", "tables/targets_sentiment.csv"])
def test_a_damaged_audit_is_named(name: str, compare, audits: dict[str, Path], tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(audits["loud"], tmp_path / "damaged"))
    path = next(damaged.glob(name))
    path.write_bytes(path.read_bytes()[:-20])
    status, said, _ = compare(audits["calm"], damaged)
    assert status == 2
    assert f"compare.runs: {path} is damaged: it is not the file that manifest.json names; the command" in said
