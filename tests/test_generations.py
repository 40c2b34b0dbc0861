"""Generations from elsewhere: read, labelled, measured and compared as triples are."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import here

from mitigate.errors import MitigateError
from mitigate.load import generations
from mitigate.probe.tails import GivenTails
from mitigate.tasks.tails import open_tails

PUBLISHED = {
    "head": "PersonX helps the lawyer",
    "relation": "xReact",
    "tails": ["proud", "none"],  # what people wrote
    "generations": ["happy", "none", "kind", ""],
    "greedy": "happy",
}
KOGITO = {"head": "the nurse buys ___", "relation": "xNeed", "tails": ["to find money"]}
FACT = {
    "fact": {"head": "lawyer", "relation": "ObjectUse", "tails": ["x"]},
    "prompt": "lawyer is for",
    "generations": ["lawyer is for a case"],
}
ONE = {"head": "lawyer", "relation": "CapableOf", "tail": "win"}


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in records))
    return path


def test_published_forms_are_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "some.jsonl", PUBLISHED, KOGITO, "", FACT, ONE, ONE | {"relation": "xMood"})
    resource = generations.load(str(path))
    assert resource.triples.select("row", "head", "relation", "tail").rows() == [
        (1, "personx helps the lawyer", "xReact", "happy"),
        (1, "personx helps the lawyer", "xReact", "kind"),
        (2, "the nurse buys ___", "xNeed", "to find money"),
        (4, "lawyer", "UsedFor", "a case"),
        (5, "lawyer", "CapableOf", "win"),
    ]
    assert resource.notices == [
        "1 blank line",
        "1 row left out: the generation is 'none'",
        "1 row left out: the generation is empty",
        "1 triple left out, whose relation has no phrase: xMood 1",
    ]
    assert generations.load(str(path), top=1).triples["tail"].to_list() == ["happy", "to find money", "a case", "win"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"head": "a", "rela', "not JSON (Unterminated string starting at at column 15)"),
        ("[1]", "no object"),
        ('{"head": "a", "generations": ["b"]}', "no 'relation'"),
        ('{"head": " ", "relation": "IsA", "tail": ["b", true]}', '["b", true] is no text or list of texts'),
        ('{"head": "a", "relation": "IsA", "generations": [1]}', "[1] is no text or list of texts"),
        ('{"source": "a IsA [GEN]", "generations": ["b"]}', "no 'head'"),
    ],
)
def test_a_damaged_line_is_named_with_what_it_holds(tmp_path: Path, line: str, told: str) -> None:
    path = lines(tmp_path / "some.jsonl", ONE, line)
    with pytest.raises(MitigateError) as raised:
        _ = generations.load(str(path)).triples
    message = str(raised.value)
    assert f"{path}:2: {told}" in message
    assert f"found {line[:80]!r}, expected {{" in message
    assert "Mend the file, or leave such lines out with data.on_bad_line=skip." in message
    assert generations.load(str(path), "skip").triples.height == 1


def test_a_file_of_something_else_and_wrong_settings(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="has no line that can be read; expected lines"):
        generations.load(str(lines(tmp_path / "a.jsonl", "head,relation")))
    with pytest.raises(MitigateError, match="data=generations needs a file"):
        generations.load(None)
    with pytest.raises(MitigateError, match="data.top=0 must be at least 1"):
        generations.load(str(lines(tmp_path / "b.jsonl", ONE)), top=0)


def system(path: Path, tail: str) -> Path:
    """What a system says of two targets in two events, a tail of its own for the lawyer."""
    heads = [
        ("the lawyer goes to work", [tail, "tired", "late"]),
        ("the nurse goes to work", ["kind", "tired", "late"]),
    ]
    return lines(
        path,
        *({"head": h, "relation": r, "generations": g} for h, g in heads for r in ("xReact", "xAttr")),
    )


def test_two_systems_are_measured_over_targets_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mitigate.report.audit.Audit.pictures", [])  # tested by themselves, and take seconds
    outputs = f"paths.outputs={tmp_path / 'out'}"
    common = ("tracking=none", outputs, "measure.resamples=100", "recipe.targets=[lawyer,nurse]", "score.regard=null")
    folders = []
    for name, tail in (("one", "horrible"), ("other", "busy")):
        path = system(tmp_path / f"{name}.jsonl", tail)
        given = ("recipe=audit", "data=generations", f"data.path={path}", "measure.match=contains", *common)
        assert here(monkeypatch, *given) == 0
        (folder,) = [place for place in (tmp_path / "out").iterdir() if place not in folders]
        folders.append(folder)
    found = [json.loads((folder / "metrics.json").read_text()) for folder in folders]
    assert [metrics["statements"] for metrics in found] == [12, 12]
    # of the lawyer's six statements two are "horrible", or "busy" in its place
    low = [pl.read_csv(folder / "tables" / "targets_sentiment.csv") for folder in folders]
    shares = [table.filter(pl.col("target") == "lawyer")["prejudice"][0] for table in low]
    assert shares[0] - shares[1] == pytest.approx(100 * 2 / 6, abs=0.01)  # the table has four decimals
    named = ",".join(map(str, folders))
    assert here(monkeypatch, "recipe=compare", f"compare.runs=[{named}]", "tracking=none", outputs) == 0
    (page,) = (tmp_path / "out").glob("compare*/comparison.html")
    assert "one.jsonl" in page.read_text()


def test_model_tails_reads_lists_too(tmp_path: Path) -> None:
    generator = open_tails(
        lines(tmp_path / "some.jsonl", {"head": "lawyer", "relation": "IsA", "generations": ["b", "a"]})
    )
    assert isinstance(generator, GivenTails)
    (found,) = generator.search(generator.prompts(["lawyer"], ["<IsA>"]))
    assert [generator.decode(beam.tokens) for beam in found] == ["b", "a"]
