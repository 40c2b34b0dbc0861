"""No conclusion where a generator cannot be said to have learnt: the same sentence on the terminal, the page, the card,
in the record and in the service. Generators are formulas, but for one that is trained for a step."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from command import ROOT, UNDRAWN, here
from compared_runs import edit, make_run
from test_cards import CARD

from mitigate.measure import compare
from mitigate.measure.filtered import untrained
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.lift import lift_groups
from mitigate.measure.quality import GENERATOR, with_known
from mitigate.measure.results import Results, measured
from mitigate.package_data import rows_of
from mitigate.recipes import reporting
from mitigate.report import cards, mitigate
from mitigate.tracking.record import Tracking
from mitigate.train.comet import Settings

TARGETS = ("nurse", "lawyer", "farmer", "teacher", "judge", "pilot")
RELATIONS = ("CapableOf", "AtLocation", "UsedFor", "HasProperty")
MEASURES = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8")
LEARNT = {"steps": 240, "passes": 640.0}


def figures(tail: Callable[[str, str, int], str], *, lift: float = 40.0, training: dict | None = None) -> dict:
    """The metrics of a generator whose tails are a formula of target, relation and place, with this swap lift of each
    head but for a few points."""
    rows = [(head, name, tail(head, name, place)) for head in TARGETS for name in RELATIONS for place in range(10)]
    said = pl.DataFrame(rows, schema=["target", "relation", "tail"], orient="row").unique(maintain_order=True)
    said = said.with_columns(head="target")
    ledger = pl.DataFrame({"relation": RELATIONS, "weight": 1.0, "split": "train"} | {"source_row": None})
    lifts = pl.DataFrame(
        {"system": GENERATOR, "group": "profession", "head": TARGETS, "relation": "CapableOf", "counts": True}
        | {"accepted": [50.0 + lift + place for place in range(6)], "elsewhere": [50.0] * 6}
    )
    missing = 100 * len(untrained(ledger, RELATIONS)) / len(RELATIONS)
    found = [measured("tails", with_known(said, said.clear()))]
    found.append(measured("heads", lifts, lift_groups(lifts), intervals=Bootstrap(resamples=200)))
    found += [measured("training", {**training, "untrained_relations": missing})] if training else []
    whole = {"policy": "both", "targets": 6, "statements": said.height, "filter/kept": 20, "filter/dropped": 4}
    return whole | {"neutral_template/NRM": 94.8, "neutral_template/NSM": 90.0} | Results(pl.concat(found)).flat


def of_target(head: str, name: str, place: int) -> str:
    """Tails of each target's own."""
    return f"{name} of {head} {place}"


def shared(head: str, name: str, place: int) -> str:
    """Seven tails in ten the same for all targets, and a third of the others the same for half of them."""
    return f"{name} {place}" if place < 7 else f"{name} of {head} {place}"


CASES = {
    "learnt": (figures(of_target, training=LEARNT), ""),
    "the study of 24 triples": (
        figures(shared, training={"steps": 1, "passes": 2.7}),
        "No conclusion. 1 training step, the same tails for 70 % of targets.",
    ),
    "constants": (
        figures(lambda head, name, place: f"{name} {place}", lift=-2.5),
        "No conclusion. The same tails for 100 % of targets, 1.0 times the distinct tails of constants, a swap lift of "
        "0.0 points that is not shown to be above 1.",
    ),
    "one step": (figures(of_target, training={"steps": 1, "passes": 0.01}), "No conclusion. 1 training step"),
    "empty tails": (
        figures(
            lambda head, name, place: "." * (place + 1) if place < 6 else of_target(head, name, place), training=LEARNT
        ),
        "No conclusion. The same tails for 60 % of targets, 60 % of the tails empty.",
    ),
}


def lede(html: str) -> str:
    """The state of a page, and the sentence below it."""
    (found,) = re.findall(r'<h1 class="lede">(.*?)</h1>\s*<p>(.*?)</p>', html, flags=re.DOTALL)[:1]
    return unescape(". ".join(found)).strip()


def bold(text: str) -> str:
    """The first sentence of a card."""
    return re.findall(r"^\*\*(.*)\*\*$", text, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("row", rows_of("learnt_bounds.csv"), ids=lambda row: row["check"])
def test_a_bound_separates_what_passes_from_what_does_not(row: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "DERIVED", {})  # of which the figures are made is tested below
    figure, end, bound = row["figure"], row["end"], float(row["bound"])
    step = 0.5 if row["better"] == "up" else -0.5
    value = {figure: 3.0} if end else {}
    assert compare.fault(row, {**value, figure + end: bound + step}) == ""
    assert compare.fault(row, {**value, figure + end: bound - step})
    assert bool(compare.fault(row, {**value, figure + end: bound})) == bool(end)  # above it, not at it
    assert compare.fault(row, {}) == compare.fault(row, {figure: None}) == ""
    side = "its lower bound is not above" if end else "below" if row["better"] == "up" else "above"
    assert f"| {row['check']} | `{figure}` | {side} {bound:g} |\n" in MEASURES


def test_derived_figures() -> None:
    assert compare.DERIVED["distinct_lists"]({"distinct_tails": 20.0, "targets": 40}) == 8
    assert compare.DERIVED["distinct_lists"]({"distinct_tails": 100.0, "targets": 1}) is None
    assert compare.faults({"stories": 1, "stories/untold": 15}) == ["no whole sentence in 94 % of the stories"]
    assert compare.DERIVED["naming_target_alone"]({"naming_target": 3.0, "sentiment/p_D_O-": 0.2}) == 3
    assert compare.DERIVED["naming_target_alone"]({"naming_target": 3.0, "sentiment/p_D_O-": 0.01}) is None
    assert compare.DERIVED["sentences"]({"statements": 7}) is None  # of a run, whose statements are no stories


def test_a_swap_lift_without_an_interval_shows_nothing() -> None:
    assert compare.faults({"quality/swap_lift/all": 30.0}) == [
        "a swap lift of 30.0 points that is not shown to be above 1"
    ]


@pytest.mark.parametrize("case", CASES)
def test_page_card_and_terminal_begin_with_the_same_sentence(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, expected = CASES[case]
    found = mitigate.verdict(Results.of_json(metrics), {}, ["sentiment", "regard"])
    assert found.sentence.startswith(expected or "94.8 % neutral by regard, nothing compared. Run policy=none")
    said = found.sentence
    assert bold(cards.generator(replace(CARD, metrics=metrics, verdict=said))) == said
    lines: list[str] = []
    monkeypatch.setattr(reporting, "say", lines.append)
    reporting.say_verdict(said, found.cost)
    assert lines[0] == f"  verdict     {said}"
    baseline = Results.of_json(CASES["learnt"][0] | {"policy": "none", "neutral_template/NRM": 85.0})
    beside = mitigate.verdict(Results.of_json(metrics), {"none": baseline}, ["sentiment", "regard"]).sentence
    assert beside == said if expected else beside.startswith("Exploratory: 9.8 points more neutral. One run of each")


def test_a_baseline_that_has_not_learnt_allows_no_conclusion() -> None:
    baseline = CASES["one step"][0] | {"policy": "none"}
    said = mitigate.verdict(
        Results.of_json(CASES["learnt"][0]), {"none": Results.of_json(baseline)}, ["sentiment", "regard"]
    )
    assert said.sentence.startswith("No conclusion. “none” with 1 training step, ")


def test_steps_that_are_trained_and_what_ends_them() -> None:
    small = Settings(max_epochs=4, min_steps=120, batch_size=64)
    for settings, triples, steps, planned, ended in (
        (small, 24, 120, 120, "min_steps"),
        (small, 5838, 365, 365, "max_epochs"),
        (replace(small, max_steps=60), 24, 60, 120, "max_steps"),
        (replace(small, max_steps=60), 5838, 60, 365, "max_steps"),
        (replace(small, max_steps=365), 5838, 365, 365, "max_epochs"),
        (replace(small, min_steps=1), 24, 2, 2, "max_epochs"),
    ):
        found = settings.num_steps(triples), settings.planned_steps(triples), settings.ends_by(triples)
        assert found == (steps, planned, ended)


def compared(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, runs: list[Path], *more: str, status: int = 0
) -> tuple[Path, dict, dict]:
    """The folder of a comparison, what it found, and what it recorded."""
    recorded: dict = {}
    monkeypatch.setattr(*UNDRAWN)
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.update(metrics))
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
    sentence = "No conclusion. “both” (1 of 5 runs) with 1 training step, the same tails for 73 % of targets."
    sentence += " Train longer (trainer.max_steps), or on more triples."
    said = capsys.readouterr().out
    assert f"  verdict     {sentence}\n" in said
    assert said.endswith("  gate        not enough evidence: exit status 3\n")
    assert contrast["sentence"] == lede((folder / "comparison.html").read_text()) == sentence
    assert (recorded["verdict"], recorded["gate"]) == (sentence, "not enough evidence")
    assert {row["verdict"] for row in contrast["primary"].values()} == {"no conclusion"}
    assert contrast["quality_kept"] is None
    assert "points more neutral" not in said
