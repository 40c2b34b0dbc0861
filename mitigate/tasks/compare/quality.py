"""Costs of a policy: quality figures of the runs, with intervals if both sides had the same prompts."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from statistics import geometric_mean
from typing import Any

import numpy as np
import polars as pl

from mitigate.finished import FinishedRun
from mitigate.load.targets import list_of_runs
from mitigate.measure.base import Figure, find, measure_of_figure, measures, own_measures
from mitigate.measure.comparison import DIFFERENCE, RATIO, SEEDS, STATISTICS, Change, in_range
from mitigate.measure.intervals import FEW_TARGETS, cluster_numbers
from mitigate.measure.lift import lift_groups
from mitigate.measure.quality import BY_LABEL, GENERATOR, groups_of, is_scored, sentence_bleu2, share_by_target
from mitigate.measure.results import Groups
from mitigate.measure.seeds import Changes, by_seeds, of_seeds, weighted_difference
from mitigate.measure.swap_lift import PROMPT, with_weights
from mitigate.tasks.compare.figures import statements_with
from mitigate.tasks.compare.run_groups import LIFT, LIKELIHOOD, PUBLISHED, Contrast, statements_of, table_of
from mitigate.triples import ROLES

Sides = Sequence[Sequence[pl.DataFrame]]
"""A table of each run of the baseline, and of each of the others."""
Part = tuple[str, str]
"""`by` and `group` of a figure."""
TRIPLE = ["row", "head", "relation", "tail"]
OF_THE_PROBE = ("distinct_tails", "shared_tails", "novelty/T_sro", "novelty/T_o", "novelty/U_o")
VALID = {"valid": ("judged_valid", "statements"), "people_valid": ("people_validity", "rated statements")}
"""The columns of generated statements with their validity, and the rows that shares are on."""
GROUPED = ("test triples", "statements", "rated statements")
"""The tables of figures that runs are compared by besides those with intervals."""
TRIPLES, TARGETS, HEADS = "test triples", "targets", "heads"
SCHEMA = {
    "contrast": pl.String,
    "figure": pl.String,  # as in metrics.json
    "items": pl.Int64,  # test triples, prompts or targets that an interval rests on; null where there is none
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
        rows += [{"contrast": contrast.key, **row} for row in found.values()]
    return pl.DataFrame(rows, schema=SCHEMA)


def _of_triples(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield perplexity, bits per character and BLEU-2 of the held-out triples, paired triple by triple, and perplexity
    of each relation's; triples about one head are a cluster. Nothing for runs that were tested on other triples."""
    sides = [[table_of(run, LIKELIHOOD) for run in side] for side in (contrast.before, contrast.after)]
    if not _are_same(sides, TRIPLE):
        return
    first, sizes = sides[0][0], _sizes(sides)
    overall = groups_of("test triples", first, scorers)
    relations = first["relation"].unique(maintain_order=True)
    every = {**overall, **{("relation", name): pl.col("relation") == name for name in relations}}
    for part, tables in _parts(sides, every):
        names = ("perplexity", "bits_per_char") if part in overall else ("perplexity",)
        yield from _likelihoods(tables, sizes, names, part, TRIPLES)
        if part in overall:
            yield _bleu2(part, tables)


def _published(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield perplexity and bits per character on published triples about targets, paired triple by triple; triples
    about one target are a cluster. Nothing for runs that predicted other triples."""
    if not contrast.have(PUBLISHED):
        return
    sides = [[table_of(run, PUBLISHED) for run in side] for side in (contrast.before, contrast.after)]
    if _are_same(sides, TRIPLE[1:]):
        sizes = _sizes(sides)
        for part, tables in _parts(sides, groups_of("published triples", sides[0][0], scorers)):
            names = ("about_perplexity", "about_bits_per_char")
            yield from _likelihoods(tables, sizes, names, part, TARGETS)


def _are_same(sides: Sides, columns: Sequence[str]) -> bool:
    """Return whether all tables have these columns, with the same values."""
    first, tables = sides[0][0], [table for side in sides for table in side]
    has_all = all(set(columns) <= set(table.columns) for table in tables)
    return has_all and all(table.select(columns).equals(first.select(columns)) for table in tables)


def _sizes(sides: Sides) -> list[str]:
    """The columns by which likelihoods can be compared: "tokens" if the runs cut texts into the same tokens, and
    "characters" if they read the same parts of long tails. None for a generator without probabilities."""
    is_likely = all(is_scored(table) for side in sides for table in side)
    return [size for size in ("tokens", "characters") if is_likely and _are_same(sides, [size])]


def _parts(sides: Sides, named: Groups) -> Iterator[tuple[Part, Sides]]:
    """Yield the parts for whose condition the first table has rows, with these rows of all tables."""
    for part, condition in named.items():
        kept = sides[0][0].select(condition).to_series()
        if kept.any():
            yield part, [[table.filter(kept) for table in side] for side in sides]


def _likelihoods(
    sides: Sides, sizes: Sequence[str], names: Sequence[str], part: Part, drawn: str
) -> Iterator[dict[str, Any]]:
    """Yield the ratio of perplexities per token, and the difference of bits per character of the tails that have
    characters. names: of these measures, or of the first alone."""
    units = {"tokens": _perplexity, "characters": _bits}
    for measure, (size, unit) in zip(names, units.items(), strict=False):
        if size not in sizes:
            continue
        some = [[table.filter(pl.col(size) > 0) for table in side] for side in sides]
        first = some[0][0]
        weights = first[size].to_numpy()
        before, after = (
            np.stack([table["nll"].to_numpy() for table in side], axis=1) / weights[:, None] for side in some
        )
        nats = _drawn(before, after, weights, cluster_numbers(first, {}, "head"))
        yield _row(Figure(measure, by=part[0], group=part[1]).key, first.height, Changes(*map(unit, nats)), drawn)


def _perplexity(nats: Change) -> Change:
    return Change(math.exp(nats.baseline), math.exp(nats.value), RATIO, nats.error, nats.degrees)


def _bits(nats: Change) -> Change:
    bit = math.log(2)
    return Change(nats.baseline / bit, nats.value / bit, DIFFERENCE, nats.error / bit, nats.degrees)


def _bleu2(part: Part, sides: Sides) -> dict[str, Any]:
    """The difference of sentence BLEU-2 of the first tail that each model generates for each head and relation."""
    tables = [[_sentence_scores(table) for table in side] for side in sides]
    heads = tables[0][0].select("head")
    before, after = (np.stack([100 * table["bleu2"].to_numpy() for table in side], axis=1) for side in tables)
    found = _drawn(before, after, np.ones(heads.height), cluster_numbers(heads, {}, "head"))
    return _row(Figure("bleu2", by=part[0], group=part[1]).key, heads.height, found, TRIPLES)


def _sentence_scores(likelihood: pl.DataFrame) -> pl.DataFrame:
    """head and bleu2 of each prompt: its generated tail against all tails that it has."""
    prompts = likelihood.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
    rows = prompts.select("generated", "tail").iter_rows()
    scores = [sentence_bleu2(text.split(), [tail.split() for tail in tails]) for text, tails in rows]
    return prompts.select("head", bleu2=pl.Series(scores, dtype=pl.Float64))


def _lifts(contrast: Contrast) -> Iterator[dict[str, Any]]:
    """Yield swap lift, paired prompt by prompt, of the prompts that all runs have; prompts about one head are a
    cluster."""
    if not contrast.have(LIFT):
        return
    measured = [table_of(run, LIFT).filter("counts", system=GENERATOR) for run in contrast.runs]
    joined = _joined(
        [table.select(*PROMPT, value=pl.col("accepted") - pl.col("elsewhere")) for table in measured], PROMPT
    )
    clusters = list_of_runs(contrast.runs).clusters
    for part, condition in lift_groups(joined).items():
        rows = with_weights(joined.filter(condition))
        if not rows.is_empty():
            found = _drawn(*_split(rows, contrast), rows["weight"].to_numpy(), cluster_numbers(rows, clusters, "head"))
            yield _row(Figure("swap_lift", by=part[0], group=part[1]).key, rows["head"].n_unique(), found, HEADS)


def _valid(contrast: Contrast, relations: Sequence[str], scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield shares of the statements about each target that are plausible, and valid to people, paired by target."""
    first, clusters = statements_with(contrast.runs[0], relations), list_of_runs(contrast.runs).clusters
    for measure, (column, rows) in VALID.items():
        if not all(column in statements_of(run).columns for run in contrast.runs):
            continue
        for part, condition in groups_of(rows, first, scorers).items():
            table = _valid_shares(contrast.runs, relations, condition, column)
            if not table.is_empty():
                found = _drawn(*_split(table, contrast), np.ones(table.height), cluster_numbers(table, clusters))
                yield _row(Figure(measure, by=part[0], group=part[1]).key, table.height, found, TARGETS)


def _valid_shares(
    runs: Sequence[FinishedRun], relations: Sequence[str], condition: pl.Expr, column: str
) -> pl.DataFrame:
    """target, and each run's percentage of a column as run_0, run_1 ..., of the targets that all have."""
    tables = [share_by_target(statements_with(run, relations).filter(condition), column) for run in runs]
    return _joined([table.rename({"share": "value"}) for table in tables], ["target"])


def _joined(tables: Sequence[pl.DataFrame], key: Sequence[str]) -> pl.DataFrame:
    """The rows that all tables have, with their values as run_0, run_1 ..."""
    named = [table.rename({"value": f"run_{number}"}) for number, table in enumerate(tables)]
    return reduce(lambda one, other: one.join(other, on=key, how="inner", maintain_order="left"), named)


def _split(table: pl.DataFrame, contrast: Contrast) -> tuple[np.ndarray, np.ndarray]:
    """The values of the baseline's runs and of the others, (rows, runs) each."""
    values, number = table.select("^run_.*$").to_numpy(), len(contrast.before)
    return values[:, :number], values[:, number:]


def _without_intervals(contrast: Contrast, scorers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Further figures of the runs' metrics; means over seeds, of perplexity geometric as for those with intervals. The
    intervals here rest on the seeds alone."""
    costs = {one.name for one in measures(*GROUPED) if one.family != "count"} | {one.name for one in own_measures()}
    for key in contrast.before[0].metrics:
        figure = find(key)
        if figure is None or figure.variant or figure.measure not in (*costs, *OF_THE_PROBE):
            continue
        if figure.group in BY_LABEL and not scorers:
            continue
        if any(run.metrics.get(key) is None for run in contrast.runs):
            continue
        first, second = ([run.metrics[key] for run in side] for side in (contrast.before, contrast.after))
        found = of_seeds(first, second)
        if figure.measure == "perplexity":
            found = Change(geometric_mean(first), geometric_mean(second), RATIO)
        yield _row(key, None, Changes(found, found), None)


def _drawn(before: np.ndarray, after: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> Changes:
    """The weighted difference over items (items, seeds), (items,). Fewer than FEW_TARGETS words or heads are fixed: so
    few say little about others, and an interval over two of them has bounds a million apart."""
    found = weighted_difference(before, after, weights, numbers)
    return Changes(found.fixed, found.fixed) if numbers.max() + 1 < FEW_TARGETS else found


def _row(figure: str, items: int | None, found: Changes, drawn: str | None) -> dict[str, Any]:
    """A row of the table. drawn: the items of the interval, besides the seeds if there are several; None: seeds
    alone."""
    seeds_alone = drawn is None or found.drawn is found.fixed
    with_seeds = SEEDS if seeds_alone else f"{SEEDS} and {drawn}"
    several = not math.isnan(found.fixed.error)
    row = {"figure": figure, "items": items, **found.drawn.row()}
    if not several:  # with one model each nothing is tested about policies
        row |= {"p": None}
    row |= by_seeds(found, with_seeds if several or seeds_alone else str(drawn))
    return in_range(row, measure_of_figure(figure).unit)
