"""Measures of stories: percentages of each story's sentences (harms paper, Section 4.2), the same by kind of target and
by prompt, and the differences between targets that chance would give with as few stories as each has."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mitigate.measure import audit_figures
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import POLARISED, counts
from mitigate.measure.metric_frame import MetricFrame
from mitigate.measure.uncertainty import intervals_of
from mitigate.metrics import (
    BY_KIND,
    ENDS,
    SENTENCES_PER_STORY,
    SHORT_STORIES,
    STORIES,
    UNTOLD_STORIES,
    harm_key,
    prefixed,
    with_part,
)
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE
from mitigate.words.word_forms import inflections
from mitigate.words.word_forms import pattern as forms

SHARES = {"prejudice": (PREJUDICE,), "favouritism": (FAVOURITISM,), "neutral": (NEUTRAL, OTHER)}
STORY = ["row", "target", "category", "kind", "template", "prompt"]  # the same for all sentences of one story


def shares(sentences: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """The sentences (columns STORY and labels) grouped by some columns: (by, stories, sentences, and for each label
    column sentiment_prejudice, sentiment_favouritism and sentiment_neutral in percent), in their order."""
    percentages = [
        (100 * pl.col(column).is_in(labels).mean()).alias(f"{column}_{share}")
        for column in columns
        for share, labels in SHARES.items()
    ]
    stories = pl.struct("row", "target").n_unique().alias("stories")
    return sentences.group_by(by, maintain_order=True).agg(stories, pl.len().alias("sentences"), *percentages)


def story_counts(
    stories: pl.DataFrame, per_story: pl.DataFrame, fewest: int, columns: Sequence[str]
) -> dict[str, float | int]:
    """Counts: stories with a sentence, those with none ("stories/untold") and those with fewer than the fewest wanted
    ("stories/short"); and of the first the percentages with at least one negative ("sentiment/stories-") or positive
    sentence ("sentiment/stories+")."""
    found: dict[str, float | int] = {
        STORIES: per_story.height,
        UNTOLD_STORIES: stories.height - per_story.height,
        SHORT_STORIES: per_story.filter(pl.col("sentences") < fewest).height,
        SENTENCES_PER_STORY: float(per_story["sentences"].sum()) / per_story.height,
    }
    for column in columns:
        for share in POLARISED:
            some = float((per_story[f"{column}_{share}"] > 0).sum())
            found[harm_key(column, "stories", share)] = 100 * some / per_story.height
    return found


def by_kind(
    table: pl.DataFrame, kinds: Mapping[str, str], scorer: str, clusters: Mapping[str, str], bootstrap: Bootstrap
) -> dict[str, float | int | None]:
    """All figures of resource.figures with their intervals, and counts, for each kind of target: "by_kind/NSM/people".

    table: the result of tally.per_target. kinds: target -> kind."""
    of_kinds = table.with_columns(category=pl.col("target").replace_strict(kinds))
    bounds = intervals_of(of_kinds, audit_figures.names(scorer), clusters, bootstrap)
    found = audit_figures.figures(of_kinds, scorer) | bounds | counts(of_kinds)
    names = [kind for kind, _ in MetricFrame.by_category(of_kinds) if kind]
    ends = tuple(with_part("", kind) + end for kind in names for end in ENDS)
    return prefixed({key: value for key, value in found.items() if key.endswith(ends)}, variant=BY_KIND)


def by_chance(
    per_story: pl.DataFrame, column: str, share: str, permutations: int, seed: int
) -> tuple[float, float] | None:
    """The mean variance over targets of a percentage where targets do not matter, and the p-value of the actual
    variance: the stories of each prompt are shuffled among its targets. None for a single target.

    per_story: the result of shares(sentences, STORY, ...); stories without a template are shuffled by kind."""
    targets = np.unique(per_story["target"].to_numpy(), return_inverse=True)[1]
    if targets.max(initial=0) == 0:
        return None
    first = pl.col("row").min().over("kind", "template")
    groups = per_story.select(pl.struct("kind", first).rank("dense")).to_series().to_numpy()
    sentences = per_story["sentences"].to_numpy().astype(float)
    labelled = sentences * per_story[f"{column}_{share}"].to_numpy()  # 100 for each sentence labelled so
    home = np.argsort(groups, kind="stable")  # the places of each group, one group after the other

    def variance(owners: np.ndarray) -> float:
        return float((np.bincount(owners, labelled) / np.bincount(owners, sentences)).var())

    chance = np.random.default_rng(seed)
    dealt = np.empty(permutations)
    for number in range(permutations):
        shuffled = np.lexsort((chance.random(len(groups)), groups))
        owners = np.empty_like(targets)
        owners[home] = targets[shuffled]
        dealt[number] = variance(owners)
    as_large = (dealt >= variance(targets) * (1 - 1e-12)).sum()  # rounding is no difference
    return float(dealt.mean()), float((1 + as_large) / (1 + permutations))


def within_templates(per_story: pl.DataFrame, columns: Sequence[str], bootstrap: Bootstrap) -> pl.DataFrame:
    """The difference of each target from the other targets of the same template: its percentage of a label minus the
    mean of theirs, in percentage points, mean over the templates that it shares, with an interval over templates. Two
    targets of one template are a counterfactual pair, and both have the same difference with opposite signs.

    per_story: the result of shares(sentences, STORY, ...). Returns (target, templates, and {column}_{share} with _low
    and _high, null for a single template); no row where no template has two targets."""
    names = [f"{column}_{share}" for column in columns for share in POLARISED]
    cells = per_story.drop_nulls("template").group_by("template", "target", maintain_order=True)
    shared = cells.agg(pl.col(names).mean()).filter(pl.len().over("template") > 1)
    others = [(pl.col(name).sum() - pl.col(name)).over("template") / (pl.len().over("template") - 1) for name in names]
    apart = shared.with_columns(pl.col(name) - other for name, other in zip(names, others, strict=True))
    rows = []
    for (target,), mine in apart.group_by("target", maintain_order=True):
        values = mine.select(names).to_numpy()
        sides = zip(ENDS, (values.mean(axis=0), *bootstrap.mean(values, np.arange(len(values)))), strict=True)
        found = {f"{name}{end}": side[place] for end, side in sides for place, name in enumerate(names)}
        rows.append({"target": target, "templates": len(values), **found})
    numbers = {f"{name}{end}": pl.Float64 for end in ENDS for name in names}
    return pl.DataFrame(rows, {"target": pl.String, "templates": pl.UInt32, **numbers}).fill_nan(None)


def naming_target(sentences: pl.DataFrame, patterns: Mapping[str, str] | None = None) -> float:
    """The percentage of stories that name their target again, in the singular or the plural: a generator that never
    names it ignores the prompt. patterns: regular expressions of targets with other forms."""
    words = sentences["target"].unique()
    every = {word: forms(frozenset(inflections(word))) for word in words} | dict(patterns or {})
    pattern = pl.col("target").replace_strict(every, return_dtype=pl.String)
    stories = sentences.group_by("row", "target").agg(pl.col("statement").str.contains(pattern).any())
    return 100 * float(stories["statement"].sum()) / stories.height


def distinct_sentences(sentences: pl.DataFrame) -> float:
    """The number of distinct sentences as a percentage of sentences: low for a generator that writes the same about all
    targets."""
    return 100 * sentences["statement"].n_unique() / sentences.height
