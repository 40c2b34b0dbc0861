"""A made-up comparison for the tests of pages: one policy with several seeds, one with a single one."""

from typing import Any

import polars as pl

from mitigate.report import compare
from mitigate.report.page import Page
from mitigate.tasks.compare.pairs import Pair

UNTRUSTED = "<script>alert(1)</script>"


def pairs() -> list[Pair]:
    return [
        _pair("both", (2, 2), MOVES.head(1).with_columns(target=pl.lit(UNTRUSTED))),
        _pair("sentiment, trainer.max_steps=40, seed 1", (1, 1), MOVES.clear()),
    ]


def example_comparison(chosen: list[Pair] | None = None, **about: Any) -> Page:
    """The page of these pairs, by default of both."""
    figures = ["neutral_template/NRM", "neutral_template/NSM", "quality/perplexity/neutral"]
    models = pl.DataFrame(MODELS, schema=["policy", "seed", *figures], orient="row")
    runs = pl.format("mitigate-none-mine-comet_minilm-seed{}-1a2b3c4d", pl.int_range(4))
    moves = MOVES.with_columns(contrast=pl.lit("both"), scorer=pl.lit("regard"))
    fields: dict[str, Any] = {"name": "compare-mine-1a2b3c4d", "command": "python -m mitigate recipe=compare"}
    fields |= {"demonstration": True, "facts": {"data": "mine"}, "notices": ["a <notice>"], **about}
    return compare.page(chosen or pairs(), models.with_columns(run=runs), moves, {}, **fields)


MODELS = [
    ("none", 1, 80.0, 70.0, 7.0),
    ("none", 2, 82.0, 72.0, 7.2),
    ("both", 1, 95.0, 85.0, 8.0),
    ("both", 2, 96.0, 86.0, 8.1),
]
MOVES = pl.DataFrame(
    [("lawyer", "profession", 60.0, 90.0), ("she", "gender", 70.0, 70.0), ("muslim", "religion", 80.0, 79.0)],
    schema=["target", "category", "before", "after"],
    orient="row",
).with_columns(difference=pl.col("after") - pl.col("before"))


def _pair(name: str, seeds: tuple[int, int], moved: pl.DataFrame) -> Pair:
    figures = [("regard", "NRM", 80.0, 95.0), ("regard", "NRV", 30.0, 4.0), ("sentiment", "NSM", 70.0, 71.0)]
    names = {"NRM": "neutral_mean", "NRV": "neutral_variance", "NSM": "neutral_mean"}
    rows = [
        {
            **{
                "contrast": name,
                "scorer": scorer,
                "template": "neutral",
                "measure": names[measure],
                "category": category,
            },
            **{"figure": measure, "targets": 40, "baseline": before, "value": after, "as": "difference"},
            **{"change": after - before, "low": after - before - 1, "high": after - before + 1},
            **{"p": 0.0001, "detectable": 1.5, "p_holm": 0.5 if scorer == "sentiment" else 0.0008},
            **{"low_corrected": after - before - 2, "high_corrected": after - before + 2},
            **{"drawn": "seeds and targets", "fixed_low": None, "fixed_high": None, "fixed_p": None},
        }
        for scorer, measure, before, after in figures
        for category in ("", "gender", "religion")
    ]
    quality = [
        ("quality/perplexity/neutral", 900, 7.0, 8.0, "ratio", 1.14, 1.1, 1.2, 0.001),
        ("quality/bleu2/all", 1000, 12.0, 11.0, "difference", -1.0, -2.0, 0.5, 0.2),
        ("distinct_tails", None, 40.0, 41.0, "difference", 1.0, None, None, None),
    ]
    columns = ["figure", "items", "baseline", "value", "as", "change", "low", "high", "p"]
    margins = pl.DataFrame(quality[:1], schema=columns, orient="row").select(
        "figure", pl.lit(1.03).alias("margin"), "as", "change", "low", "high", pl.lit(43.2).alias("copy_passes")
    )
    statistics = pl.DataFrame(rows).filter(pl.col("scorer") == "regard", figure="NRM", category="")
    return Pair(
        name=name,
        primary=statistics.with_columns(
            endpoint=pl.lit("harm"), level=pl.lit(97.5), fixed_low_corrected="low", fixed_high_corrected="high"
        ),
        within=margins,
        against="none",
        seeds=seeds,
        is_same=False,
        filtered_by=["sentiment"],
        harms=pl.DataFrame(rows),
        quality=pl.DataFrame(quality, schema=columns, orient="row"),
        moved={"regard": moved, "sentiment": moved.clear()},
    )
