"""What a policy costs: quality figures of the runs, with intervals where both sides were asked the same."""

import math
from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np
import polars as pl

from mitigate import metrics
from mitigate.measure.change import DIFFERENCE, RATIO, Change
from mitigate.measure.comparison import SEEDS, STATISTICS
from mitigate.measure.lift import PROMPT, head_numbers, with_weights
from mitigate.measure.quality import is_scored, sentence_bleu2
from mitigate.measure.seeds import Changes, by_seeds, of_seeds, weighted_difference
from mitigate.measure.uncertainty import FEW_TARGETS, cluster_numbers
from mitigate.metrics import ABOUT_BITS, ABOUT_PERPLEXITY, PEOPLE_VALID, PLAUSIBLE, SWAP_LIFT, quality_key
from mitigate.runs.finished import FinishedRun
from mitigate.tasks.compare.figures import asked
from mitigate.tasks.compare.run_groups import Contrast, lift_of, likelihood_of, published_of, statements_of
from mitigate.tasks.generators.lift import GENERATOR, lift_parts
from mitigate.tasks.generators.likelihood import about_parts
from mitigate.tasks.quality import BY_LABEL, people_parts, probed_parts, relation_parts, subsets
from mitigate.tasks.targets import list_of_runs
from mitigate.triples import ROLES

TRIPLE = ["row", "head", "relation", "tail"]
OF_THE_PROBE = (metrics.DISTINCT_TAILS, metrics.SHARED_TAILS, *metrics.NOVELTY)
COSTS = [metrics.quality(measure).key for measure in (*metrics.QUALITY, PLAUSIBLE, PEOPLE_VALID)]
VALID = {PLAUSIBLE: ("judged_valid", probed_parts), PEOPLE_VALID: ("people_validity", people_parts)}
"""The columns of generated statements that shares of valid ones are of, and the parts that these are on."""
TRIPLES, TARGETS, HEADS = "test triples", "targets", "heads"
SCHEMA = {
    "contrast": pl.String,
    "figure": pl.String,  # as in metrics.json
    "items": pl.Int64,  # test triples, questions or targets that an interval rests on; null where there is none
    **STATISTICS,
}


def quality_differences(
    contrasts: Sequence[Contrast], relations: Sequence[str], scorers: Sequence[str] = ROLES
) -> pl.DataFrame:
    """A row for each contrast and figure. Figures of several seeds are means over seeds, of perplexity geometric.
    scorers: those by which triples and statements are neutral or polarised; without any, no figures are of these."""
    rows = []
    for contrast in contrasts:
        of_lists = [*_lifts(contrast), *_published(contrast, scorers), *_of_triples(contrast, scorers)]
        found = {row["figure"]: row for row in [*of_lists, *_valid(contrast, relations, scorers)]}
        found |= {row["figure"]: row for row in _without_intervals(contrast, scorers) if row["figure"] not in found}
        rows += [{"contrast": contrast.name, **row} for row in found.values()]
    return pl.DataFrame(rows, schema=SCHEMA)


def _of_triples(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Perplexity, bits per character and BLEU-2 of the held-out triples, paired triple by triple, of each relation's
    perplexity alone; triples about one head belong together. Nothing where the runs were tested on other triples."""
    sides = [[likelihood_of(run) for run in side] for side in (contrast.before, contrast.after)]
    if not _are_same(sides, TRIPLE):
        return
    first, overall, sizes = sides[0][0], subsets(scorers), _sizes(sides)
    for part, condition in (overall | relation_parts(first)).items():
        kept = first.select(condition).to_series()
        if not kept.any():
            continue
        parts = [[table.filter(kept) for table in side] for side in sides]
        if "tokens" in sizes:
            yield _perplexity(quality_key("perplexity", part), parts, TRIPLES)
        if "characters" in sizes and part in overall:
            yield _bits_per_char(quality_key("bits_per_char", part), parts, TRIPLES)
        if part in overall:
            yield _bleu2(part, parts)


def _published(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Perplexity and bits per character on published triples about targets, paired triple by triple; triples about one
    target belong together. Nothing where the runs predicted other triples."""
    found = [[published_of(run) for run in side] for side in (contrast.before, contrast.after)]
    sides = [[table for table in side if table is not None] for side in found]
    if list(map(len, sides)) != list(map(len, found)) or not _are_same(sides, TRIPLE[1:]):
        return
    first, sizes = sides[0][0], _sizes(sides)
    for part, condition in about_parts(first, scorers).items():
        kept = first.select(condition).to_series()
        if kept.any():
            parts = [[table.filter(kept) for table in side] for side in sides]
            if "tokens" in sizes:
                yield _perplexity(quality_key(ABOUT_PERPLEXITY, part), parts, TARGETS)
            if "characters" in sizes:
                yield _bits_per_char(quality_key(ABOUT_BITS, part), parts, TARGETS)


def _are_same(sides: Sequence[Sequence[pl.DataFrame]], columns: Sequence[str]) -> bool:
    """Whether all tables have these columns, with the same values."""
    first, tables = sides[0][0], [table for side in sides for table in side]
    has_all = all(set(columns) <= set(table.columns) for table in tables)
    return has_all and all(table.select(columns).equals(first.select(columns)) for table in tables)


def _sizes(sides: Sequence[Sequence[pl.DataFrame]]) -> list[str]:
    """The columns by which likelihoods can be compared: "tokens" where the runs cut texts into tokens alike, and
    "characters" where they read the same parts of long tails. None for a generator that gives no probabilities."""
    is_likely = all(is_scored(table) for side in sides for table in side)
    return [size for size in ("tokens", "characters") if is_likely and _are_same(sides, [size])]


def _lifts(contrast: Contrast) -> Iterator[dict[str, Any]]:
    """Swap lift, paired prompt by prompt, of the prompts that all runs have; prompts about one head belong together."""
    tables = [lift_of(run) for run in (*contrast.before, *contrast.after)]
    known = [table.filter("counts", system=GENERATOR) for table in tables if table is not None]
    if len(known) < len(tables):
        return
    joined, clusters = known[0].select(PROMPT), list_of_runs([*contrast.before, *contrast.after]).clusters
    for number, table in enumerate(known):
        lifts = table.select(*PROMPT, (pl.col("accepted") - pl.col("elsewhere")).alias(f"run_{number}"))
        joined = joined.join(lifts, on=PROMPT, how="inner", maintain_order="left")
    for part, condition in lift_parts(joined).items():
        rows = with_weights(joined.filter(condition))
        if rows.is_empty():
            continue
        values, weights = rows.select("^run_.*$").to_numpy(), rows["weight"].to_numpy()
        before, after = values[:, : len(contrast.before)], values[:, len(contrast.before) :]
        numbers = head_numbers(rows, clusters)
        found = _drawn(before, after, weights, numbers)
        yield _row(quality_key(SWAP_LIFT, part), rows["head"].n_unique(), found, HEADS)


def _perplexity(figure: str, sides: Sequence[Sequence[pl.DataFrame]], drawn: str) -> dict[str, Any]:
    """The ratio of perplexities per token; sides have a table a seed."""
    found = map(_exponential, _surprise(sides, sides[0][0]["tokens"].to_numpy()))
    return _row(figure, sides[0][0].height, Changes(*found), drawn)


def _bits_per_char(figure: str, sides: Sequence[Sequence[pl.DataFrame]], drawn: str) -> dict[str, Any]:
    """Of the tails that have characters."""
    some = [[table.filter(pl.col("characters") > 0) for table in side] for side in sides]
    characters = some[0][0]["characters"].to_numpy()
    found = map(_in_bits, _surprise(some, characters))
    return _row(figure, len(characters), Changes(*found), drawn)


def _surprise(sides: Sequence[Sequence[pl.DataFrame]], sizes: np.ndarray) -> Changes:
    """In nats for each token, or each of whatever sizes, (triples,), count."""
    before, after = (np.stack([table["nll"].to_numpy() for table in side], axis=1) / sizes[:, None] for side in sides)
    return _drawn(before, after, sizes, _numbers(sides[0][0]["head"].to_numpy()))


def _bleu2(subset: str, sides: Sequence[Sequence[pl.DataFrame]]) -> dict[str, Any]:
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
    found = _drawn(before, after, np.ones(len(heads)), _numbers(heads))
    return _row(quality_key("bleu2", subset), len(heads), found, TRIPLES)


def _sentence_scores(asked: pl.DataFrame) -> np.ndarray:
    rows = asked.select("generated", "tail").iter_rows()
    return np.array([sentence_bleu2(said.split(), [tail.split() for tail in tails]) for said, tails in rows])


def _valid(contrast: Contrast, relations: Sequence[str], scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The shares of the statements about each target that are plausible, and valid to people, paired by target."""
    runs = [*contrast.before, *contrast.after]
    first, clusters = asked(runs[0], relations), list_of_runs(runs).clusters
    for measure, (column, parts) in VALID.items():
        if not all(column in statements_of(run).columns for run in runs):
            continue
        for part, condition in (parts(first, scorers) | relation_parts(first)).items():
            table = _valid_shares(runs, relations, condition, column)
            if table.is_empty():
                continue
            shares = table.select("^run_.*$").to_numpy()
            before, after = shares[:, : len(contrast.before)], shares[:, len(contrast.before) :]
            found = _drawn(before, after, np.ones(table.height), cluster_numbers(table, clusters))
            yield _row(quality_key(measure, part), table.height, found, TARGETS)


def _valid_shares(
    runs: Sequence[FinishedRun], relations: Sequence[str], condition: pl.Expr, column: str
) -> pl.DataFrame:
    """target, and each run's percentage of a column as run_0, run_1 ..., of the targets that all have."""
    joined: pl.DataFrame | None = None
    for number, run in enumerate(runs):
        classified = asked(run, relations).filter(condition, pl.col(column).is_not_null())
        said = classified.group_by("target", maintain_order=True)
        share = said.agg((100 * pl.col(column).mean()).alias(f"run_{number}"))
        joined = share if joined is None else joined.join(share, on="target", how="inner", maintain_order="left")
    assert joined is not None
    return joined


def _without_intervals(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What the runs' metrics hold besides; means over seeds, of perplexity geometric as where there are intervals. An
    interval of these rests on the seeds alone."""
    for key in contrast.before[0].metrics:
        known = metrics.find(key)
        if known is None or known.variant or known.end or not (known.stem in COSTS or key in OF_THE_PROBE):
            continue
        if known.part in BY_LABEL and not scorers:
            continue
        if any(run.metrics.get(key) is None for run in (*contrast.before, *contrast.after)):
            continue
        first, second = ([run.metrics[key] for run in side] for side in (contrast.before, contrast.after))
        found = of_seeds(first, second)
        if known.stem == metrics.quality("perplexity").key:
            found = Change(geometric_mean(first), geometric_mean(second), RATIO)
        yield _row(key, None, Changes(found, found), None)


def _drawn(before: np.ndarray, after: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> Changes:
    """The weighted difference over items (items, seeds), (items,); of words or heads fewer than FEW_TARGETS with these
    fixed: so few say little about others, and an interval over two of them has bounds a million apart."""
    found = weighted_difference(before, after, weights, numbers)
    return Changes(found.fixed, found.fixed) if numbers.max() + 1 < FEW_TARGETS else found


def _exponential(nats: Change) -> Change:
    return Change(math.exp(nats.baseline), math.exp(nats.value), RATIO, nats.error, nats.degrees)


def _in_bits(nats: Change) -> Change:
    one = math.log(2)
    return Change(nats.baseline / one, nats.value / one, DIFFERENCE, nats.error / one, nats.degrees)


def _row(figure: str, items: int | None, found: Changes, drawn: str | None) -> dict[str, Any]:
    """drawn: what the interval holds, besides the seeds if there are several; None: those alone."""
    seeds_alone = drawn is None or found.drawn is found.fixed
    with_seeds = SEEDS if seeds_alone else f"{SEEDS} and {drawn}"
    several = not math.isnan(found.fixed.error)
    known = {"figure": figure, "items": items, **found.drawn.row()}
    if not several:  # with one model each nothing is tested about policies
        known |= {"p": None}
    return known | by_seeds(found, with_seeds if several or seeds_alone else str(drawn))


def _numbers(names: np.ndarray) -> np.ndarray:
    """A number for each distinct name, from 0 without gaps."""
    return np.unique(names, return_inverse=True)[1]
