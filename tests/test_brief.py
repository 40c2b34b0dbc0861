"""The verdict of a run and of a comparison, its cost and four figures, from numbers one can check by hand."""

from dataclasses import replace

import polars as pl
import pytest
from comparison_example import example_comparison

from mitigate.report import brief, contrast_findings
from mitigate.report.verdicts import FEWEST_SEEDS

ROLES = ["sentiment", "regard"]
PERPLEXITY, LIFT = "quality/perplexity/neutral", "quality/swap_lift/all"
NONE = {
    **{"policy": "none", "NSM": 60.0, "NRM": 80.0, "neutral_template/NSM": 70.0, "neutral_template/NRM": 85.0},
    **{"neutral_template/NSV": 30.0, "neutral_template/NRV": 12.5, LIFT: 34.0, f"{LIFT}_low": 30.0},
    **{PERPLEXITY: 50.0, "filter/kept": 200, "filter/dropped": 0},
}
BOTH = NONE | {"policy": "both", "neutral_template/NRM": 94.8, LIFT: 27.2, PERPLEXITY: 60.0}
BOTH |= {"filter/kept": 150, "filter/dropped": 50}
ONE_SEED = "but with one seed each a training with another seed could differ"


def test_the_brief_of_a_run() -> None:
    assert brief.of_run(NONE, ROLES) == (
        "Of 100 statements about a target 85.0 are neutral in regard, 70.0 in sentiment.",
        "0 of 200 training triples dropped; swap lift 34.0 points (0: no knowledge of the head); perplexity 50.0 on "
        "neutral test triples.",
    )
    assert brief.of_run(BOTH, ROLES, NONE) == (
        f"9.8 points more neutral in regard than “none”, {ONE_SEED} as much.",
        "50 of 200 training triples dropped (25 %); swap lift 27.2 points, −6.8 (0: no knowledge of the head); "
        "perplexity 60.0, × 1.20 on neutral test triples.",
    )
    said, _ = brief.of_run(NONE | {"neutral_template/NRM": 85.04}, ROLES, NONE)
    assert said == f"As neutral in regard as “none”, to within 0.1 points, {ONE_SEED}."
    own, _ = brief.of_run({"rude/neutral_mean": 91.0}, ["rude"])
    assert own == "Of 100 statements about a target 91.0 are neutral by rude."
    ignoring, _ = brief.of_run(NONE | {f"{LIFT}_low": -0.5}, ROLES)
    assert ignoring == "No conclusion: a swap lift of 34.0 points that is not shown to be above 1."
    assert brief.of_run({}, ROLES) == ("", "")


MORE = "15.0 points more neutral in regard than “none”"


@pytest.mark.parametrize(
    ("seeds", "p_holm", "words"),
    [
        ((1, 1), None, f"{MORE}, but with one seed each a training with another seed could"),
        ((3, 2), 0.01, f"{MORE}, but with 3 and 2 seeds, variation between trainings could explain it."),
        ((1, 5), None, f"{MORE}, but with 1 and 5 seeds a training with another seed could"),
        ((FEWEST_SEEDS, FEWEST_SEEDS), 0.01, f"{MORE}, shown with 5 seeds each."),
        ((2, 2), 0.2, "not shown to be more or less neutral in regard than “none” (+15.0 points; 2 seeds each)."),
    ],
)
def test_a_comparison_says_what_its_seeds_allow(seeds, p_holm, words) -> None:
    pair = example_comparison().pairs[0]
    primary = pair.primary.with_columns(p_holm=pl.lit(p_holm, pl.Float64))
    assert words in contrast_findings.verdict(replace(pair, seeds=seeds, primary=primary))
    less = primary.with_columns(value=pl.lit(79.0), change=pl.lit(-1.0), low_corrected=-2.0, high_corrected=-0.5)
    said = contrast_findings.verdict(replace(pair, seeds=seeds, primary=less))
    assert ("1 point less" in said) == ("15.0 points more" in words)
