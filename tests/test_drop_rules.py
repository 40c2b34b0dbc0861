"""Rated statements with their targets, and what drop rules would drop of them."""

from pathlib import Path

import polars as pl
import pytest
from omegaconf import OmegaConf

from mitigate.filter import Policy
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.audit.people import rated_statements
from mitigate.recipes.rated import printed_drops
from mitigate.tasks.drop_rules import as_metrics, drop_rules, is_drop_rule
from mitigate.tasks.rated import describe_rated, target_of

NONE, REGARD = Policy("none"), Policy("regard", ["regard"])


@pytest.fixture(scope="module")
def rated() -> pl.DataFrame:
    rows = [
        ("ConceptNet", "court is related to lawyer", [-1, -1, 0]),
        ("ConceptNet", "knife is a tool", [0, 0, 0]),
        ("GenericsKB", "nurses are kind to a teacher.", [1, 1, 0]),
        ("COMeT", "Puerto_Rico is capable of play music", [1, 0, -1]),
    ]
    crowd = pl.DataFrame(rows, schema=["resource", "sentence", "votes"], orient="row")
    return describe_rated(crowd)


def test_the_target_is_the_one_that_a_statement_begins_or_ends_with(rated: pl.DataFrame) -> None:
    assert rated["target"].to_list() == ["lawyer", None, "nurse", "puerto rico"]
    assert rated["cluster"].to_list()[:2] == ["lawyer", "knife is a tool"]
    assert rated["category"].to_list() == ["profession", None, "profession", "origin"]
    assert target_of("a plumber is an artist") == "plumber"
    assert target_of(" a plumber is an artist.") == "plumber"
    assert target_of("wise teaching is related to teacher") == "teacher"
    assert rated["masked_neutral"].to_list() == [
        "court is related to this person",  # a triple gets its neutral wording, a sentence keeps its own
        "knife is a tool",
        "this person are kind to a this person.",
        "this person is able to play music",
    ]
    assert rated["tail"].to_list() == ["lawyer", "tool", "", "play music"]
    assert rated["most"].to_list() == [-1, 0, 1, 0]  # neutral where no label leads


def test_precision_recall_and_the_share_left(rated: pl.DataFrame) -> None:
    labels = rated.with_columns(regard=pl.Series([-1, -1, 0, 0], dtype=pl.Int8))
    about_targets = Policy("about_targets", ["regard"], scope="targets")
    table = drop_rules(labels, [NONE, REGARD, about_targets], Bootstrap(resamples=100))
    every = {row["policy"]: row for row in table.filter(resource="all").rows(named=True)}
    names = ("dropped", "precision", "recall", "before", "after")
    assert [every["none"][name] for name in names] == [0, None, 0, 50, 50]
    assert [every["regard"][name] for name in names] == [50, 50, 50, 50, 50]
    assert every["about_targets"]["precision"] == 100  # the knife is outside its scope
    assert every["about_targets"]["after"] == pytest.approx(100 / 3)
    assert as_metrics(table)["ConceptNet/policy/regard/recall"] == 100
    assert len(printed_drops(table).splitlines()) == 1 + 4 * 3
    assert is_drop_rule(NONE)
    assert not is_drop_rule(Policy("lighter", ["regard"], action="downweight"))


def test_an_audit_finds_the_rated_statements_of_its_resource(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MITIGATE_DATA", raising=False)
    settings = {"data": {"rated": "GenericsKB", "root": str(tmp_path)}}
    assert rated_statements(OmegaConf.create(settings)) is None  # an audit needs no ratings
    (tmp_path / "humans").mkdir()
    (tmp_path / "humans" / "GenericsKB_sentences.txt").write_text("nurses are kind.\n" * 3)
    (tmp_path / "humans" / "GenericsKB_bias_labels.txt").write_text("1\n1\n2\n")
    found = rated_statements(OmegaConf.create(settings))
    assert found is not None
    assert found.select("resource", "target", "most").rows() == [("GenericsKB", "nurse", 1)]
    assert rated_statements(OmegaConf.create({"data": {"root": str(tmp_path)}})) is None
