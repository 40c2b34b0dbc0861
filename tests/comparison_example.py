"""A made-up comparison for the tests of pages: one policy with several seeds, one with a single one."""

import polars as pl

from mitigate.report.comparison import Comparison
from mitigate.report.pair import Moved, Pair

UNTRUSTED = "<script>alert(1)</script>"


def example_comparison() -> Comparison:
    said = pl.DataFrame({"statement": [f"lawyer is {UNTRUSTED}"], "label": [-1]})
    moved = [Moved("lawyer", "profession", 60.0, 90.0, {"none": said, "both": said.clear()})]
    return Comparison(
        name="compare-mine-1a2b3c4d",
        command="python -m mitigate recipe=compare compare.runs=[a,b,c]",
        demonstration=True,
        pairs=[
            _pair("both", (2, 2), moved),
            _pair("sentiment, trainer.max_steps=40, seed 1", (1, 1), []),
        ],
        models=pl.DataFrame(
            {
                "policy": ["none", "none", "both", "both"],
                "seed": [1, 2, 1, 2],
                "run": [f"mitigate-none-mine-comet_minilm-seed{number}-1a2b3c4d" for number in range(4)],
                "neutral_template/NRM": [80.0, 82.0, 95.0, 96.0],
                "neutral_template/NSM": [70.0, 72.0, 85.0, 86.0],
                "quality/perplexity/neutral": [7.0, 7.2, 8.0, 8.1],
            }
        ),
        moves=pl.DataFrame(
            {
                "contrast": "both",
                "scorer": "regard",
                "target": ["lawyer", "she", "muslim"],
                "category": ["profession", "gender", "religion"],
                "before": [60.0, 70.0, 80.0],
                "after": [90.0, 70.0, 79.0],
                "difference": [30.0, 0.0, -1.0],
            }
        ),
        scorers={"sentiment": "vader", "regard": "minilm"},
        facts={"data": "mine"},
        notices=["a <notice>"],
    )


def _pair(name: str, seeds: tuple[int, int], moved: list[Moved]) -> Pair:
    figures = [("regard", "NRM", 80.0, 95.0), ("regard", "NRV", 30.0, 4.0), ("sentiment", "NSM", 70.0, 71.0)]
    rows = [
        {
            **{"contrast": name, "scorer": scorer, "template": "neutral", "measure": measure, "category": category},
            **{
                "figure": measure,
                "targets": 40,
                "baseline": before,
                "value": after,
                "as": "difference",
                "change": after - before,
            },
            **{"low": after - before - 1, "high": after - before + 1, "p": 0.0001, "detectable": 1.5},
            **{"p_holm": 0.5 if scorer == "sentiment" else 0.0008},
            **{"low_corrected": after - before - 2, "high_corrected": after - before + 2},
            **{"drawn": "seeds and targets", "fixed_low": None, "fixed_high": None, "fixed_p": None},
        }
        for scorer, measure, before, after in figures
        for category in ("", "gender", "religion")
    ]
    statistics = pl.DataFrame(rows).filter(pl.col("scorer") == "regard", figure="NRM", category="")
    return Pair(
        name=name,
        primary=statistics.with_columns(
            endpoint=pl.lit("harm"), level=pl.lit(97.5), fixed_low_corrected="low", fixed_high_corrected="high"
        ),
        within=pl.DataFrame(
            {
                "figure": ["quality/perplexity/neutral"],
                **{"margin": [1.03], "as": ["ratio"], "change": [1.14], "low": [1.1], "high": [1.2]},
                "copy_passes": [43.2],
            }
        ),
        against="none",
        seeds=seeds,
        is_same=False,
        filtered_by=["sentiment"],
        harms=pl.DataFrame(rows),
        quality=pl.DataFrame(
            {
                "figure": ["quality/perplexity/neutral", "quality/bleu2/all", "distinct_tails"],
                "items": [900, 1000, None],
                "baseline": [7.0, 12.0, 40.0],
                "value": [8.0, 11.0, 41.0],
                "as": ["ratio", "difference", "difference"],
                "change": [1.14, -1.0, 1.0],
                "low": [1.1, -2.0, None],
                "high": [1.2, 0.5, None],
                "p": [0.001, 0.2, None],
            }
        ),
        moved={"regard": moved, "sentiment": []},
        chance={"regard": 1.2, "sentiment": None},
    )
