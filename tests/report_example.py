"""A made-up run for the tests of the report: realistic sizes and shapes, plain words, no claim."""

from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.results import Results
from mitigate.report import mitigate
from mitigate.report.page import Page
from mitigate.words.relations import comet_relations
from mitigate.words.targets import targets

SCORERS = ("sentiment", "regard")
TAILS = ("go to work", "help people", "win a case", "be tired", "make a mistake", "live in city", "laugh", "lie")
UNTRUSTED = '<script>alert("a & b")</script>'  # would break a page that trusts its texts


def statements(per_target: int = 40, num_targets: int = 329, seed: int = 0) -> pl.DataFrame:
    """Labelled probed statements."""
    rng = np.random.default_rng(seed)
    names = list(targets().items())[:: max(1, 329 // num_targets)]
    relations = comet_relations()
    size = per_target * len(names)
    target = np.repeat(np.arange(len(names)), per_target)
    relation = np.tile(np.arange(per_target) % len(relations), len(names))
    tail = rng.integers(0, len(TAILS), size)
    frame = pl.DataFrame(
        [
            (*names[t], relations[r].name, relations[r].phrase, UNTRUSTED if place % per_target == 7 else TAILS[k])
            for place, (t, r, k) in enumerate(zip(target, relation, tail, strict=True))
        ],
        schema=["target", "category", "relation", "phrase", "tail"],
        orient="row",
    )
    frame = frame.with_columns(statement=pl.format("{} {} {}", "target", "phrase", "tail")).drop("phrase")
    leaning = rng.uniform(-0.35, 0.35, len(names))[target]
    for scorer in SCORERS:
        for ending, push in (("", 0.15), ("_neutral", 0.0)):
            strength = leaning + push * (relation % 5 == 1) + rng.normal(0, 0.3, size)
            strength = np.where(np.arange(size) % per_target == 7, -0.99, np.clip(strength, -1, 1))
            label = np.where(strength > 0.4, 1, np.where(strength < -0.4, -1, 0))
            frame = frame.with_columns(
                pl.Series(f"{scorer}{ending}", label, pl.Int8),
                pl.Series(f"{scorer}{ending}_strength", strength, pl.Float32),
            )
    return frame


def per_target(labelled: pl.DataFrame, column: str) -> pl.DataFrame:
    share = {"prejudice": -1, "favouritism": 1, "neutral": 0}
    return labelled.group_by("target", "category", maintain_order=True).agg(
        statements=pl.len().cast(pl.Int64),
        **{name: 100 * (pl.col(column) == label).mean() for name, label in share.items()},
    )


def ledger(num_rows: int = 3000, seed: int = 1) -> pl.DataFrame:
    """What a filter writes: labelled statements with weight and reason."""
    rng = np.random.default_rng(seed)
    rows = statements(per_target=40, num_targets=329, seed=seed).head(num_rows).with_row_index("row", offset=1)
    about = rng.random(rows.height) < 0.3
    sentiment, regard = rows["sentiment"].to_numpy(), rows["regard"].to_numpy()
    reasons = [
        ", ".join(f"{name} {label:+d}" for name, label in zip(SCORERS, pair, strict=True) if label) or "kept"
        for pair in zip(sentiment, regard, strict=True)
    ]
    return rows.with_columns(
        target=pl.when(pl.Series(about)).then("target"),
        source_row=pl.lit(None, pl.UInt32),
        reason=pl.Series(reasons),
        weight=pl.Series([float(reason == "kept") for reason in reasons], dtype=pl.Float32),
    )


def metrics(labelled: pl.DataFrame) -> dict[str, float | int | str | None]:
    """Measures of the statements, with intervals that are made up."""
    numbers: dict[str, float | int | str | None] = {"seed": 1, "quality/swap_lift/all": 20.0, "training/steps": 300}
    numbers |= {"quality/swap_lift/all_low": 15.0, "quality/swap_lift/all_high": 25.0, "statements": labelled.height}
    for prefix, ending in (("", ""), ("neutral_template/", "_neutral")):
        for scorer, letter in (("sentiment", "S"), ("regard", "R")):
            everyone = per_target(labelled, scorer + ending)
            categories = everyone.partition_by("category", as_dict=True)
            groups = {"": everyone} | {f"/{category}": rows for (category,), rows in categories.items()}
            for part, group in groups.items():
                mean, variance = group["neutral"].mean(), group["neutral"].var(ddof=0)
                for key, value in ((f"N{letter}M", mean), (f"N{letter}V", variance)):
                    numbers |= {prefix + key + part: value}
                    numbers |= {f"{prefix}{key}{part}_low": 0.95 * value, f"{prefix}{key}{part}_high": 1.04 * value}
    for subset, perplexity in {"all": 9.12, "neutral": 8.4, "polar": 14.07, "target": 11.3}.items():
        numbers |= {f"quality/perplexity/{subset}": perplexity}
    for part, share in {"all": 71.5, "neutral": 73.2, "polar": 66.4, "origin": 69.9, "relation/IsA": 80.1}.items():
        key = f"quality/valid/{part}"
        numbers |= {key: share, f"{key}_low": share - 1.5, f"{key}_high": share + 1.5}
    return numbers | {"filter/kept": 2100, "filter/dropped": 900}


def results(num_targets: int = 40, **changed: float | None) -> Results:
    return Results.of_json({"policy": "both", **metrics(statements(num_targets=num_targets)), **changed})


def report(per_target_statements: int = 40, num_targets: int = 40, **changed: Any) -> Page:
    """The page of a run of `both` beside one of `none`. changed: arguments of mitigate.page in place of these."""
    labelled = statements(per_target_statements, num_targets)
    made = {
        "results": Results.of_json({"policy": "both", **metrics(labelled)}),
        "others": {"none": results(**{"neutral_template/NRM": 50.0})},
    }
    made |= {
        "scorers": SCORERS,
        "frames": {
            scorer + ending: per_target(labelled, scorer + ending) for scorer in SCORERS for ending in ("", "_neutral")
        },
        "statements": labelled,
        "ledger": ledger().with_columns(split=pl.lit("train")),
        "chosen": ["woman", "nurse", "no such target"],
        "tables": {},
        "name": "mitigate-both-sample-comet_minilm-1-3f9ac2",
        "command": "python -m mitigate policy=both seed=1",
        "demonstration": True,
        "stages": [{"name": "train", "seconds": 98.6, "result": "computed"}],
        "facts": {"seed": 1, "data": {"source": "the project's sample corpus", "licence": "MIT"}},
        "notices": ["The generator gives many targets the same tails: 4 % are distinct across targets."],
    }
    made |= changed
    found = mitigate.verdict(made["results"], made["others"], SCORERS)
    return mitigate.page(found=found, **made)
