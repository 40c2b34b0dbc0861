"""Published triples about targets and what a policy keeps of each. By hand."""

import math
from pathlib import Path

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.statements import harms_triples
from mitigate.measure.quality import groups_of, kept_by_target
from mitigate.measure.results import Results, by_category, measured
from mitigate.probe.corpus import published_file, target_triples

TARGETS = pl.DataFrame({"target": ["nurse", "cook"], "category": ["profession", "profession"]})
FILE = """nurse CapableOf help_people
nurse CapableOf help_people
nurse RelatedTo hospital
nurse IsA woman
nurse IsA Ã©tudiante
hospital AtLocation nurse
cook HasProperty busy
cook ExternalURL http://example.org
"""


@pytest.fixture
def published(tmp_path: Path) -> pl.DataFrame:
    path = tmp_path / "triples.txt"
    path.write_text(FILE, encoding="utf-8")
    return harms_triples(path, "skip").rows


def test_which_published_triples_are_predicted(published: pl.DataFrame) -> None:
    """About a target as the head, stating something, English, new, and each once."""
    corpus = pl.DataFrame({"head": ["Nurse"], "relation": ["IsA"], "tail": ["Woman"]})
    relations = ["CapableOf", "IsA", "RelatedTo", "HasProperty", "AtLocation"]
    found = target_triples(published, corpus, TARGETS, relations, size=10)
    assert found.rows() == [
        ("nurse", "CapableOf", "help people", "nurse", "profession"),
        ("cook", "HasProperty", "busy", "cook", "profession"),
    ]
    one, again = (target_triples(published, corpus, TARGETS, relations, size=1, seed=3) for _ in range(2))
    assert one.height == 1
    assert one.equals(again)


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MITIGATE_DATA", raising=False)
    assert published_file(None, str(tmp_path)) == (None, "")
    missing = f"there is no harms/conceptnet_target_triples.txt in {tmp_path}"
    assert published_file("auto", str(tmp_path)) == (None, missing)
    here = tmp_path / "harms" / "conceptnet_target_triples.txt"
    here.parent.mkdir()
    here.write_text(FILE)
    assert published_file("auto", str(tmp_path)) == (here, "")
    monkeypatch.setenv("MITIGATE_DATA", str(tmp_path))
    assert published_file("auto", None) == (here, "")
    gone = "probe.published=.*gone.txt: no such file; give one of lines"
    refuses(MitigateError, gone, published_file, str(tmp_path / "gone.txt"), None)


def test_perplexity_by_category_and_tone() -> None:
    """Of a nurse two tokens of 1 nat each and 6 characters, neutral; of Italy one of 3 nats and 4, polarised."""
    rows = [("profession", 0, 2, 2.0, 2, 6), ("origin", -1, 0, 3.0, 1, 4)]
    names = ["category", "sentiment_neutral", "regard_neutral", "nll", "tokens", "characters"]
    scored = pl.DataFrame(rows, schema=names, orient="row")
    found = Results(measured("published triples", scored, groups_of("published triples", scored)))
    for group, nats in {"all": 5 / 3, "neutral": 1, "profession": 1, "polar": 3, "origin": 3}.items():
        assert found[f"quality/about_perplexity/{group}"] == pytest.approx(math.exp(nats))
    assert found["quality/about_bits_per_char/all"] == pytest.approx(5 / math.log(2) / 10)
    assert found["quality/about_triples/origin"] == 1


def test_coverage_of_each_target() -> None:
    """Of 12 triples about nurses 3 are kept, with one tail of four; of two about Italy both; one is about nobody."""
    rows = [("nurse", "profession", "train", f"tail {n % 4}", float(n % 4 == 0)) for n in range(12)]
    rows += [("italy", "origin", "train", "land", 1.0), ("italy", "origin", "train", "place", 0.5)]
    rows += [(None, None, "train", "x", 0.0), ("nurse", "profession", "test", "x", 1.0)]
    schema = {"target": pl.String, "category": pl.String, "split": pl.String, "tail": pl.String, "weight": pl.Float32}
    ledger = pl.DataFrame(rows, schema=schema, orient="row")
    ledger = ledger.with_columns(relation=pl.lit("IsA"), source_row=pl.lit(None, pl.UInt32))
    table = kept_by_target(ledger)
    assert table.rows() == [("nurse", "profession", 12, 3, 4, 1), ("italy", "origin", 2, 2, 2, 2)]
    found = Results(measured("training triples", table, by_category(table)))
    assert found["coverage/triples"] == pytest.approx(100 * 5 / 14)
    assert found["coverage/tails"] == pytest.approx(100 * 3 / 6)
    assert (found["coverage/least"], found["coverage/least/profession"]) == (25, 25)
    assert found["coverage/least/origin"] is None  # two triples are too few
