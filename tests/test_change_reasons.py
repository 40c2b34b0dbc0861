"""A comparison says why a figure, an interval or a p-value is missing, and what a run lacks is not compared."""

import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from compared_runs import make_run, seal

from mitigate.report.change_reasons import not_compared, why_no_change, why_no_interval, why_no_p, why_not_fixed
from mitigate.report.comparison import Comparison, render
from mitigate.tasks.compare import findings
from mitigate.tasks.compare.compared import compare_runs
from mitigate.tasks.compare.endpoints import HARMS, Endpoints, of_places
from mitigate.tasks.compare.figures import harm_differences, moves
from mitigate.tasks.compare.plan import ComparePlan, make_plan, read_compared
from mitigate.tasks.compare.quality import _valid_shares, quality_differences
from mitigate.tasks.runs import open_run


def row(**known: object) -> dict[str, object]:
    return {
        "value": 5.0,
        "change": 1.0,
        "low": None,
        "high": None,
        "error": None,
        "items": 40,
        "drawn": "targets",
    } | known


@pytest.mark.parametrize(
    ("known", "seeds", "reason"),
    [
        ({"low": 0.5, "high": 2.0}, 1, ""),
        ({"value": None, "change": None}, 1, ""),  # there is no change either
        ({}, 1, "too few different words, a single seed"),
        ({"items": None, "drawn": "seeds"}, 1, "a single seed"),
        ({"drawn": "test triples"}, 1, "too few different heads"),
        ({"error": 0.0}, 3, "nothing varied"),
        ({}, 3, "one of the two does not vary"),
    ],
)
def test_why_there_is_no_interval(known: dict, seeds: int, reason: str) -> None:
    assert why_no_interval(row(**known), seeds) == reason


def test_why_there_is_no_change_and_no_p() -> None:
    assert why_no_change(row()) == ""
    assert why_no_change(row(value=None, change=None)) == "one target only"
    assert why_no_change(row(change=None)) == "the baseline does not vary"
    assert (why_no_p(0.2, 1), why_no_p(None, 1), why_no_p(None, 3)) == ("", "a single seed", "nothing varied")
    assert (why_not_fixed(row(), 1), why_not_fixed(row(fixed_error=0.0), 2)) == ("a single seed", "nothing varied")


def test_what_is_not_compared_is_named_by_reason() -> None:
    missing = {
        "quality/perplexity/polar": "no polarised test triples",
        "quality/bleu2/polar": "no polarised test triples",
        "quality/bleu2/target": "no polarised test triples",
        "quality/valid/relation/mentors": "unknown",
        "shared_tails": "one target only",
    }
    assert not_compared(missing) == {
        "no polarised test triples": [
            "perplexity (those with a polarised label)",
            "BLEU-2 (those with a polarised label; those about a target)",
        ],
        "one target only": ["tails shared between targets"],
    }


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs; the second was asked about fewer targets, and nothing of its first target's was classified."""
    none, both = make_run(tmp_path, "none", valid=0.5), make_run(tmp_path, "both", num_targets=39, valid=0.5)
    validity = pl.read_parquet(both / "validity.parquet")
    is_first = pl.col("target") == "t0"
    validity = validity.with_columns(judged_valid=pl.when(~is_first).then("judged_valid"))
    validity.write_parquet(both / "validity.parquet")
    metrics = (none / "metrics.json").read_text()
    (none / "metrics.json").write_text(metrics.replace("{", '{"quality/first_valid/all": 4.0, ', 1))
    return [seal(none), seal(both)]


def test_a_target_that_a_run_lacks_is_left_out_of_plausible_shares(runs: list[Path]) -> None:
    shares = _valid_shares([open_run(run) for run in runs], ["IsA", "CapableOf"], pl.lit(True))
    assert shares["target"].to_list() == [f"t{number}" for number in range(1, 39)]
    assert shares.null_count().sum_horizontal().item() == 0
    found = compare_runs(runs).quality.filter(figure="quality/valid/all").row(0, named=True)
    assert found["items"] == 38
    assert found["baseline"] == pytest.approx(shares["run_0"].mean())
    assert found["low"] < found["change"] < found["high"]


def test_own_targets_that_are_inflections_of_one_word_are_one_word_of_a_comparison(tmp_path: Path) -> None:
    """As the runs' tables of targets say."""
    lows = {}
    for cluster in ("", "t0"):
        runs = []
        for policy in ("none", "both"):
            folder = make_run(tmp_path / f"cluster {cluster}", policy)
            rows = [f"t{number},{'gender' if number < 20 else 'origin'}" for number in range(40)]
            rows = [f"{row},{cluster if 'gender' in row else ''}" for row in rows]
            (folder / "tables").mkdir()
            (folder / "tables" / "targets.csv").write_text("\n".join(["target,category,cluster", *rows]))
            runs.append(seal(folder))
        found = compare_runs(runs).harms
        lows[cluster] = dict(found.filter(template="paper", scorer="sentiment").select("figure", "low").rows())
    assert None not in (lows[""]["NSM/gender"], lows[""]["NSM/origin"], lows["t0"]["NSM/origin"])
    assert lows["t0"]["NSM/gender"] is None


def page(plan: ComparePlan) -> tuple[Comparison, str]:
    """The page's facts, and its words."""
    values = plan.contrasts, plan.labellings, plan.relations
    quality = quality_differences(plan.contrasts, plan.relations, plan.deciding)
    pairs = findings.pairs(plan, harm_differences(*values), quality, moves(*values), Endpoints())
    about = Comparison(
        name="x",
        command="",
        demonstration=False,
        pairs=pairs,
        models=findings.models(plan),
        moves=moves(*values),
        scorers=plan.scorers,
    )
    return about, " ".join(unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", render(about), flags=re.DOTALL)).split())


def test_the_page_says_what_is_not_compared_and_why(runs: list[Path]) -> None:
    about, words = page(make_plan(*read_compared([str(run) for run in runs], None)))
    assert about.pairs[0].missing == {"quality/first_valid/all": "not measured (in 1 of 2 runs)"}
    assert "Not compared, not measured (in 1 of 2 runs): plausible first tails (all held-out triples)." in words
    assert "p a single seed" not in words
    assert not re.search(
        r"– (?!a single seed|too few|nothing|not |no )", words.split("Limits")[0].split("Summary", 1)[1]
    )


def test_a_scorer_of_ones_own_in_regards_place_is_the_endpoint_of_harm() -> None:
    own = of_places(Endpoints(), ["sentiment", "rude"])
    assert own.harm == [*HARMS, "neutral_template/rude/neutral_mean", "rude/neutral_mean"]
    assert of_places(Endpoints(), ["sentiment", "regard"]).harm == list(HARMS)
    named = Endpoints(harm=["NSM"])
    assert of_places(named, ["sentiment", "rude"]) is named
