"""No conclusion where a generator cannot be said to have learnt: the same sentence on the terminal, the page and in the
record; and notices of what was dropped, left untrained or is too long."""

import json
import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from command import UNDRAWN, here
from compared_runs import edit, make_run

from mitigate.measure import compare
from mitigate.measure.results import Results
from mitigate.measure.run import untrained, untrained_notices
from mitigate.report import mitigate
from mitigate.score.labels import LONG, long_texts
from mitigate.tracking import Tracking


def lede(html: str) -> str:
    """The state of a page, and the sentence below it."""
    (found,) = re.findall(r'<h1 class="lede">(.*?)</h1>\s*<p>(.*?)</p>', html, flags=re.DOTALL)[:1]
    return unescape(". ".join(found)).strip()


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        ({}, None),
        ({"training/steps": 30, "shared_tails": 50, "empty_tails": 5, "untrained_relations": None}, None),
        ({"training/steps": 29}, "29 training step(s)"),
        ({"empty_tails": 5.6}, "6 % empty tails"),
        ({"distinct_tails": 3.5, "targets": 40}, "only 1.4 times as many distinct tails as constants have"),
        ({"distinct_tails": 100.0, "targets": 1}, None),
        (
            {"quality/perplexity/neutral": 12, "quality/unigram_perplexity/neutral": 10, "training/steps": 99},
            "a perplexity that is 1.20 times",
        ),
        ({"quality/perplexity/neutral": 12, "quality/unigram_perplexity/neutral": 10}, None),
        ({"quality/swap_lift/all": 30.0}, "a swap lift of 30.0 points that is not shown to be above 1"),
        ({"quality/swap_lift/all": 30.0, "quality/swap_lift/all_low": 1.5}, None),
        ({"quality/swap_lift/all": 3.0, "quality/swap_lift/all_low": 1}, "a swap lift of 3.0 points that is not shown"),
        ({"training/passes": 0.05}, "0.05 passes over the training triples"),
        ({"untrained_relations": 51}, "51 % of the relations without a training triple"),
        ({"stories": 1, "stories/untold": 15}, "no whole sentence in 94 % of the stories"),
        ({"sentences_per_story": 1.5}, "1.5 sentences a story"),
        ({"statements": 7}, None),  # of a run, whose statements are no stories
        ({"statements": 7, "stories": 3}, "7 sentences in all"),
        ({"statements": 0}, "no generated statement"),
    ],
)
def test_each_figure_has_a_bound_and_one_that_was_not_measured_is_no_fault(metrics: dict, fault: str | None) -> None:
    found = compare.faults(metrics)
    assert [one.startswith(fault or "") for one in found] == ([True] if fault else [])


def compared(outputs: Path, monkeypatch, runs: list[Path], *more: str, status: int = 0) -> tuple[Path, dict, dict]:
    """The folder of a comparison, what it found, and what it recorded."""
    recorded: dict = {}
    monkeypatch.setattr(*UNDRAWN)
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.update(metrics))
    monkeypatch.setattr(Tracking, "table", lambda self, name, frame: recorded.update({name: frame.height}))
    named = f"compare.runs=[{','.join(map(str, runs))}]"
    assert here(monkeypatch, "recipe=compare", named, f"paths.outputs={outputs}", "tracking=none", *more) == status
    (folder,) = outputs.glob("compare-*")
    return folder, json.loads((folder / "comparison.json").read_text()), recorded


def test_a_comparison_with_a_generator_that_has_not_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = [make_run(tmp_path, "none", seed) for seed in range(5)]
    both = [make_run(tmp_path, "both", seed, neutral=0.9) for seed in range(5)]
    edit(both[3], "metrics.json", lambda metrics: metrics | {"training/steps": 1, "shared_tails": 73.2})
    folder, found, recorded = compared(tmp_path / "out", monkeypatch, none + both, "compare.gate=true", status=3)
    (contrast,) = found["contrasts"]
    sentence = "No conclusion. “both” (1 of 5 runs) with 1 training step(s), the same tails for 73 % of targets."
    sentence += " Train longer (trainer.max_steps), or on more triples."
    said = capsys.readouterr().out
    assert f"  verdict     {sentence}\n" in said
    assert said.endswith("  gate        not enough evidence: exit status 3\n")
    assert contrast["sentence"] == lede((folder / "comparison.html").read_text()) == sentence
    assert (recorded["verdict"], recorded["gate"]) == (sentence, "not enough evidence")
    assert {"policies", "primary"} <= recorded.keys()
    assert recorded["differences"] > 5  # of the headlines
    assert {row["verdict"] for row in contrast["primary"].values()} == {"no conclusion"}
    assert contrast["quality_kept"] is None
    assert "points more neutral" not in said


@pytest.mark.parametrize("who", ["mine", "baseline"])
def test_a_run_or_its_baseline_that_has_not_learnt_allows_no_conclusion(who: str) -> None:
    learnt = {"policy": "both", "training/steps": 240, "neutral_template/NRM": 94.8}
    runs = {"mine": learnt, "baseline": learnt | {"policy": "none", "neutral_template/NRM": 85.0}}
    found = {name: Results.of_json(facts) for name, facts in runs.items()}
    said = mitigate.verdict(found["mine"], {"none": found["baseline"]}, ["sentiment", "regard"]).sentence
    assert said.startswith("Exploratory: 9.8 points more neutral. There is one run of each")
    found[who] = Results.of_json(runs[who] | {"training/steps": 1})
    said = mitigate.verdict(found["mine"], {"none": found["baseline"]}, ["sentiment", "regard"]).sentence
    with_what = "1 training step(s)" if who == "mine" else "“none” with 1 training step(s)"
    assert said.startswith(f"No conclusion. {with_what}")


def ledger(*rows: tuple[str, float, int], added: int = 0) -> pl.DataFrame:
    """(relation, weight, number of triples); the last `added` triples are the policy's."""
    spread = [(relation, weight) for relation, weight, number in rows for _ in range(number)]
    table = pl.DataFrame(spread, schema={"relation": pl.String, "weight": pl.Float32}, orient="row")
    sources = [None] * (table.height - added) + [1] * added
    return table.with_columns(split=pl.lit("train"), source_row=pl.Series(sources, dtype=pl.UInt32))


def test_relations_that_are_asked_about_and_were_never_trained() -> None:
    table = ledger(("IsA", 1.0, 2), ("Desires", 0.0, 3))
    assert untrained(table, ["IsA", "Desires", "MadeOf"]) == {"Desires": 3, "MadeOf": 0}
    statements = pl.DataFrame({"relation": ["IsA", "Desires", "IsA", "Desires"]})
    (found,) = untrained_notices(table, statements)
    assert found == (
        "There is no training triple of 1 probed relation: the policy dropped all of Desires (3). 2 of 4 generated "
        "statements have such a relation, and their labels say nothing about what the generator has learnt."
    )
    assert untrained_notices(ledger(("IsA", 1.0, 1), ("Desires", 1.0, 1)), statements) == []


def test_texts_that_are_longer_than_scorers_are_made_for() -> None:
    assert long_texts(pl.Series(["word " * LONG])) == []
    (said,) = long_texts(pl.Series(["good bad " * 60, "he is kind"]))
    assert said.startswith("1 of 2 texts has more than 40 words, up to 120.")
