"""What a policy costs: quality figures of the runs, with intervals where both sides were asked the same."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
import polars as pl

from mitigate import metrics
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.paired import Difference, weighted_difference
from mitigate.measure.quality import sentence_bleu2
from mitigate.measure.seeds import of_seeds
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.metrics import PLAUSIBLE, quality_key
from mitigate.targets import clusters
from mitigate.tasks.compare.arms import Contrast, likelihood_of, statements_of
from mitigate.tasks.compare.figures import asked
from mitigate.tasks.quality import probed_parts, relation_parts, subsets
from mitigate.tasks.runs import FinishedRun

TRIPLE = ["row", "head", "relation", "tail"]
OF_THE_PROBE = (metrics.DISTINCT_TAILS, metrics.SHARED_TAILS, *metrics.NOVELTY)
COSTS = [metrics.quality(measure).key for measure in (*metrics.QUALITY, PLAUSIBLE)]
DIFFERENCE, RATIO = "difference", "ratio"
SCHEMA = {
    "contrast": pl.String,
    "figure": pl.String,  # as in metrics.json
    "items": pl.Int64,  # test triples, questions or targets that an interval rests on; null where there is none
    "baseline": pl.Float64,
    "value": pl.Float64,
    "as": pl.String,  # how the two are set against each other: DIFFERENCE, or RATIO (value / baseline)
    "change": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def quality_differences(contrasts: Sequence[Contrast], relations: Sequence[str], bootstrap: Bootstrap) -> pl.DataFrame:
    """A row for each contrast and figure. Figures of several seeds are means over seeds, of perplexity geometric."""
    rows = []
    for contrast in contrasts:
        of_statements = _valid(contrast, relations, bootstrap)
        found = {row["figure"]: row for row in [*_of_triples(contrast, bootstrap), *of_statements]}
        found |= {row["figure"]: row for row in _without_intervals(contrast) if row["figure"] not in found}
        rows += [{"contrast": contrast.name, **row} for row in found.values()]
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _of_triples(contrast: Contrast, bootstrap: Bootstrap) -> Iterator[dict[str, Any]]:
    """Perplexity, bits per character and BLEU-2 of the held-out triples, paired triple by triple, of each relation's
    perplexity alone; triples about one head belong together. Nothing where the runs were tested on other triples, or
    cut them into other tokens."""
    sides = [[likelihood_of(run) for run in side] for side in (contrast.before, contrast.after)]
    first = sides[0][0]
    if any(
        not table.select(TRIPLE, "tokens").equals(first.select(TRIPLE, "tokens")) for side in sides for table in side
    ):
        return
    overall = subsets()
    for part, condition in (overall | relation_parts(first)).items():
        kept = first.select(condition).to_series()
        if not kept.any():
            continue
        parts = [[table.filter(kept) for table in side] for side in sides]
        yield _perplexity(part, parts, bootstrap)
        if part in overall:
            yield _bits_per_char(part, parts, bootstrap)
            yield _bleu2(part, parts, bootstrap)


def _perplexity(part: str, sides: Sequence[Sequence[pl.DataFrame]], bootstrap: Bootstrap) -> dict[str, Any]:
    """The ratio of perplexities per token; sides have a table a seed."""
    surprise = _surprise(sides, sides[0][0]["tokens"].to_numpy(), bootstrap)
    return _row(quality_key("perplexity", part), sides[0][0].height, RATIO, *map(math.exp, surprise))


def _bits_per_char(part: str, sides: Sequence[Sequence[pl.DataFrame]], bootstrap: Bootstrap) -> dict[str, Any]:
    """Of the tails that have characters."""
    some = [[table.filter(pl.col("characters") > 0) for table in side] for side in sides]
    characters = some[0][0]["characters"].to_numpy()
    found = [nats / math.log(2) for nats in _surprise(some, characters, bootstrap)]
    return _row(quality_key("bits_per_char", part), len(characters), DIFFERENCE, *found)


def _surprise(sides: Sequence[Sequence[pl.DataFrame]], sizes: np.ndarray, bootstrap: Bootstrap) -> Difference:
    """In nats for each token, or each of whatever sizes, (triples,), count."""
    before, after = (np.stack([table["nll"].to_numpy() for table in side], axis=1) / sizes[:, None] for side in sides)
    return weighted_difference(before, after, sizes, _numbers(sides[0][0]["head"].to_numpy()), bootstrap)


def _bleu2(subset: str, sides: Sequence[Sequence[pl.DataFrame]], bootstrap: Bootstrap) -> dict[str, Any]:
    """Of the first tail that each model generates for each head and relation."""
    tables = [
        [
            table.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
            for table in side
        ]
        for side in sides
    ]
    heads = tables[0][0]["head"].to_numpy()
    before, after = (np.stack([100 * _sentence_scores(table) for table in side], axis=1) for side in tables)
    found = weighted_difference(before, after, np.ones(len(heads)), _numbers(heads), bootstrap)
    return _row(quality_key("bleu2", subset), len(heads), DIFFERENCE, *found)


def _sentence_scores(asked: pl.DataFrame) -> np.ndarray:
    rows = asked.select("generated", "tail").iter_rows()
    return np.array([sentence_bleu2(said.split(), [tail.split() for tail in tails]) for said, tails in rows])


def _valid(contrast: Contrast, relations: Sequence[str], bootstrap: Bootstrap) -> Iterator[dict[str, Any]]:
    """The share of the statements about each target that is accepted as plausible, paired by target."""
    runs = [*contrast.before, *contrast.after]
    if not all("judged_valid" in statements_of(run).columns for run in runs):
        return
    first = asked(runs[0], relations)
    for part, condition in (probed_parts(first) | relation_parts(first)).items():
        table = _valid_shares(runs, relations, condition)
        if table.is_empty():
            continue
        shares = table.select("^run_.*$").to_numpy()
        before, after = shares[:, : len(contrast.before)], shares[:, len(contrast.before) :]
        numbers = cluster_numbers(table, clusters())
        found = weighted_difference(before, after, np.ones(table.height), numbers, bootstrap)
        yield _row(quality_key(PLAUSIBLE, part), table.height, DIFFERENCE, *found)


def _valid_shares(runs: Sequence[FinishedRun], relations: Sequence[str], condition: pl.Expr) -> pl.DataFrame:
    """target, and each run's percentage of plausible statements as run_0, run_1 ..., of the targets that all have."""
    joined: pl.DataFrame | None = None
    for number, run in enumerate(runs):
        said = asked(run, relations).filter(condition).group_by("target", maintain_order=True)
        share = said.agg((100 * pl.col("judged_valid").mean()).alias(f"run_{number}"))
        joined = share if joined is None else joined.join(share, on="target", maintain_order="left")
    assert joined is not None
    return joined


def _without_intervals(contrast: Contrast) -> Iterator[dict[str, Any]]:
    """What the runs' metrics hold besides; means over seeds, of perplexity geometric as where there are intervals. An
    interval of these rests on the seeds alone."""
    for key in contrast.before[0].metrics:
        known = metrics.find(key)
        if known is None or known.variant or known.end or not (known.stem in COSTS or key in OF_THE_PROBE):
            continue
        if any(run.metrics.get(key) is None for run in (*contrast.before, *contrast.after)):
            continue
        first, second = ([run.metrics[key] for run in side] for side in (contrast.before, contrast.after))
        if known.stem == metrics.quality("perplexity").key:
            means = geometric_mean(first), geometric_mean(second)
            yield _row(key, None, RATIO, *means, means[1] / means[0])
        else:
            yield _row(key, None, DIFFERENCE, fmean(first), fmean(second), *of_seeds(first, second))


def _row(
    figure: str,
    items: int | None,
    how: str,
    baseline: float,
    value: float,
    change: float,
    low: float | None = None,
    high: float | None = None,
) -> dict[str, Any]:
    found = {"figure": figure, "items": items, "baseline": baseline, "value": value, "as": how}
    return found | {"change": change, "low": low, "high": high}


def _numbers(names: np.ndarray) -> np.ndarray:
    """A number for each distinct name, from 0 without gaps."""
    return np.unique(names, return_inverse=True)[1]
