"""Declarations of measures, keys of figures, the tidy table, what W&B shows first, and measures of a user's own."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, apart, metrics_of

from mitigate.errors import MitigateError
from mitigate.measure import base
from mitigate.measure.base import Figure, find, measures, use_measures
from mitigate.measure.harms import measure_harms
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import FILE, SCHEMA, Results
from mitigate.tracking import headline, headlines

ROOT = Path(__file__).parents[1]
KEYS = (ROOT / "tests" / "metric_keys.txt").read_text(encoding="utf-8").split()
"""Of finished runs of recipes mitigate, audit, stories and labels, one category and one relation each."""
SOURCE = '''
import polars as pl
from mitigate.measure import measure


@measure("wordy", "wordy tails", of="statements", better="down")
def wordy(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements whose tail has several words. 0: none has."""
    return statements.group_by("target", maintain_order=True).agg(share=100 * pl.col("tail").str.contains(" ").mean())


def undeclared(statements):
    return 1.0
'''


def test_keys_of_earlier_runs_are_found_and_composed() -> None:
    for key in KEYS:
        stem = re.sub("_(low|high)$", "", key)
        found = find(stem)
        assert found is not None, key
        assert found.key == stem
        assert "{" not in found.title + found.declared.meaning, key
        assert (find(key) is None) == (key != stem), "a bound is no figure"


@pytest.mark.parametrize(
    ("key", "figure"),
    {
        "NSM": Figure("neutral_mean", "sentiment", "paper"),
        "neutral_template/NRV/origin": Figure("neutral_variance", "regard", "neutral", "category", "origin"),
        "neutral_template/ngram/D_O-/origin": Figure("D_O-", "ngram", "neutral", "category", "origin"),
        "quality/perplexity/neutral": Figure("perplexity", by="subset", group="neutral"),
        "quality/valid/relation/IsA": Figure("valid", by="relation", group="IsA"),
        "quality/people_valid/profession/neutral": Figure("people_valid", by="subset", group="profession/neutral"),
        "targets/polarised": Figure("targets", by="category", group="polarised"),  # a user's category, not a scorer
        "projected/kge/hits_10": Figure("hits_10", variant="projected"),
    }.items(),
)
def test_a_key_is_composed_of_its_figure(key: str, figure: Figure) -> None:
    assert (figure.key, find(key)) == (key, figure)


def test_a_key_that_is_none_is_refused_with_the_nearest() -> None:
    for key in ("O-", "quality/valid", "NSM/", "seed", "NSM_low", "own_metric"):
        assert find(key) is None
    nearest = "unknown metric 'quality/perplexty/all'; did you mean quality/perplexity/all? docs/measures.md"
    assert str(base.unknown("quality/perplexty/all")).startswith(nearest)
    for name in ("targets", "quality", "projected", "a/b", ""):
        with pytest.raises(MitigateError, match=f"a scorer cannot be called '{name}'"):
            base.check_scorer_name(name)


LABELS = {"sentiment": [-1, 0, 0, 0], "sentiment_neutral": [0, 0, 0, 1], "ngram": [0, 0, 1, 1]}
STATEMENTS = pl.DataFrame(
    {"target": ["nurse", "nurse", "lawyer", "italy"], "category": ["profession"] * 3 + ["origin"], **LABELS}
    | {f"{column}_strength": [0.0] * 4 for column in LABELS}
)


def test_results_are_a_tidy_table_and_a_mapping_by_key() -> None:
    found = measure_harms(STATEMENTS, intervals=Bootstrap(resamples=100))
    table = found.table
    assert dict(table.schema) == SCHEMA
    named = table.filter(scorer="sentiment", template="paper", measure="neutral_mean")
    assert named.select("by", "group", "value", "n").rows() == [
        ("all", "", pytest.approx(250 / 3), 3),  # of 50, 100 and 100
        ("category", "profession", 75, 2),
        ("category", "origin", 100, 1),
        ("target", "nurse", 50, 2),
        ("target", "lawyer", 100, 1),
        ("target", "italy", 100, 1),
    ]
    assert named["low"].null_count() == 4  # those of a single word
    assert (found["NSM"], found["NSM_low"]) == named.select("value", "low").row(0)
    assert found["ngram/neutral_mean"] == pytest.approx(100 / 3)
    assert found["neutral_template/NSM"] == pytest.approx(200 / 3)
    assert (found["targets"], type(found["targets"])) == (3, int)
    assert not any("nurse" in key for key in found), "metrics.json leaves out single targets"
    whole = Results(table, {"seed": 1, "policy": "both"})
    assert Results.of_json(whole.flat).flat == whole.flat  # of a run of version 0.2
    again = Results.of(table, whole.flat)
    assert (again.flat, again.facts) == (whole.flat, whole.facts)


def test_headlines_are_named_for_wandb_in_the_order_of_declaration() -> None:
    regard, valid = "neutral_template/NRM", "quality/valid/all"
    numbers = {regard: 83.5, f"{regard}_low": 80.0, "NSM/origin": 70.0, "policy": "both", "own_metric": 3.0}
    numbers = {"filter/kept": 40, valid: 12.25, "distinct_tails": None, "quality/perplexity/polar": 4.0} | numbers
    numbers |= {"neutral_template/ngram/neutral_mean": 90, "NRM": 80.5, "kge/hits_1": 0.5}
    assert {row.name: value for row, value in headlines(numbers).items()} == {
        "harm/neutral_by_ngram_percent": 90,
        "harm/neutral_by_regard_paper_percent": 80.5,
        "harm/neutral_by_regard_percent": 83.5,
        "quality/accepted_as_plausible_percent": 12.25,
        "cost/training_triples_kept": 40,
    }
    names = [row.name for key in KEYS if (row := headline(key))]
    assert len(set(names)) == len(names)
    pattern = r"(harm|disparity|quality|cost|size)/[A-Za-z_][A-Za-z0-9_]*"
    assert all(re.fullmatch(pattern, name) and len(name) <= 60 for name in names)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of a user's own; what it declares is forgotten."""
    (tmp_path / "my_study.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(base, "_MEASURES", {one.name: one for one in measures()})
    yield tmp_path
    sys.modules.pop("my_study", None)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("my_studi.wordy", "", r"my_studi.wordy cannot be imported \(No module named 'my_studi'\); name MODULE"),
        ("my_study.wordi", "", r"my_study.wordi cannot be imported \(module 'my_study' has no attribute 'wordi'"),
        ("wordy", "", "measures=wordy cannot be imported"),
        ("my_study.wordy", "def wordy -> def def", r"measures=my_study.wordy cannot be imported \(invalid syntax"),
        ("my_study.undeclared", "", r"my_study.undeclared is not declared; write @measure\(NAME, TITLE, of=TABLE\)"),
        ("my_study.wordy", '="statements -> ="statement', r"unknown table of measure 'wordy' 'statement' \(did you"),
        ("my_study.wordy", '"wordy" -> "valid"', "declares the measure 'valid', and mitigate.measure.quality has one"),
    ],
)
def test_faults_of_a_measure_of_ones_own(study: Path, name: str, change: str, message: str) -> None:
    (study / "my_study.py").write_text(SOURCE.replace(*change.split(" -> ")) if change else SOURCE, encoding="utf-8")
    with pytest.raises(MitigateError, match=message):
        use_measures([name])


def test_a_measure_of_ones_own_is_measured_and_shown_everywhere(tmp_path: Path) -> None:
    """Slow: two runs. Beside it the measure of the documentation, by its command."""
    text = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?@measure.*?)```", text, re.DOTALL)
    assert "\npython -m mitigate policy=both measures=[study.shouting]\n" in text
    for name, content in (("study", source), ("my_study", SOURCE)):
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    own = ("--config-dir", str(tmp_path), "measures=[study.shouting,my_study.wordy]", f"paths.outputs={tmp_path}/out")
    assert apart("-m", *own, "policy=none,both", *SMALL).done
    (both,) = (tmp_path / "out").glob("mitigate-both-*")
    table = pl.read_parquet(both / FILE)
    statements = pl.read_parquet(both / "statements.parquet")
    wordy = 100 * statements["tail"].str.contains(" ").mean()  # targets have as many statements
    row = table.filter(measure="wordy", by="all")
    assert (row["value"].item(), row["n"].item()) == (pytest.approx(wordy), 3)
    assert row["low"].item() <= wordy <= row["high"].item()
    assert {*table.filter(measure="wordy")["group"]} >= {"origin", "IsA", "neutral"}
    metrics = metrics_of(both)
    assert metrics["quality/wordy/all"] == pytest.approx(wordy)
    assert metrics["quality/shouting/all"] == 0
    page = (both / "report.html").read_text(encoding="utf-8")
    assert [words for words in ("wordy tails ", "tail has several words") if words not in page] == []
    (record,) = (both / "wandb").glob("offline-run-*")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(record)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)["summary"]
    assert (found["own/wordy_tails_percent"], found["own/statements_in_capitals_percent"]) == (pytest.approx(wordy), 0)
    (compared,) = (tmp_path / "out").glob("compare-*")
    facts = json.loads((compared / "comparison.json").read_text())
    assert facts["contrasts"][0]["quality"]["quality/wordy/all"]["value"] == pytest.approx(wordy)
    assert "wordy tails" in (compared / "comparison.html").read_text(encoding="utf-8")
