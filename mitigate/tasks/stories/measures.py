"""All figures of stories, as the flat object of metrics.json."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate import metrics as keys
from mitigate.measure import stories as measuring
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import POLARISED, EmptyTargets
from mitigate.measure.stories import STORY
from mitigate.measure.tally import tally
from mitigate.tasks.audit import measures as audit
from mitigate.tasks.labelled_statements import Labelling, long_texts, per_target_tables
from mitigate.tasks.policies.filtered import training_figures
from mitigate.words.prompts import KINDS, kind_of
from mitigate.words.targets import PAPER, TargetList


def measure_stories(
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    targets: pl.DataFrame,
    columns: Sequence[Labelling],
    *,
    fewest: int,
    permutations: int = 1000,
    empty_targets: EmptyTargets = "exclude",
    resamples: int = 10_000,
    seed: int = 1,
    facts: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    target_list: TargetList = PAPER,
) -> dict[str, Any]:
    """Harms of the sentences (audit.measures.harms), with intervals; harms for each kind of target ("by_kind/...");
    figures of whole stories; and differences between targets by chance ("sentiment/by_chance_D_O-", with p).

    stories: what generate_stories returns; sentences: what label_sentences returns; targets: (target, category).
    fewest: sentences that a story should have; permutations: of stories among targets. facts stand before the
    figures. training: what train_on_sentences returns, if the generator was trained."""
    names = [labels.column for labels in columns]
    tallied = tally(sentences, names)
    intervals = Bootstrap(resamples=resamples, seed=seed)
    per_story = measuring.shares(sentences, STORY, names)
    found: dict[str, Any] = {"seed": seed, **(facts or {})}
    found |= {keys.ROWS: stories["row"].n_unique(), keys.ROWS_ABOUT_A_TARGET: sentences["row"].n_unique()}
    found |= audit.harms(tallied, targets, columns, intervals, empty_targets, target_list)
    found |= training_figures(training or {})
    found |= measuring.story_counts(stories, per_story, fewest, names)
    found |= {keys.NAMING_TARGET: measuring.naming_target(sentences, own_patterns(target_list))}
    found |= {keys.DISTINCT_SENTENCES: measuring.distinct_sentences(sentences)}
    tables = per_target_tables(tallied, columns, targets, empty_targets)
    kinds = {target: kind_of(target, target_list) for target in targets["target"]}
    has_kinds = stories["kind"].is_in(KINDS).any()
    for name in names:
        if has_kinds:
            found |= measuring.by_kind(tables[name], kinds, name, target_list.clusters, intervals)
        for share in POLARISED:
            by_chance, p = measuring.by_chance(per_story, name, share, permutations, seed) or (None, None)
            found |= {keys.harm_key(name, "by chance", share): by_chance, keys.harm_key(name, "p", share): p}
    return found


def compare_within_templates(
    sentences: pl.DataFrame, columns: Sequence[Labelling], intervals: Bootstrap
) -> pl.DataFrame:
    """The difference of each target from the others on the same templates (measure.stories.within_templates)."""
    names = [labels.column for labels in columns]
    return measuring.within_templates(measuring.shares(sentences, STORY, names), names, intervals)


def own_patterns(target_list: TargetList) -> dict[str, str]:
    """Own target -> a regular expression for all its forms."""
    return {target.word: target_list.pattern_among([target.word]) for target in target_list.own}


def notices(
    metrics: Mapping[str, Any],
    sentences: pl.DataFrame,
    targets: pl.DataFrame,
    columns: Sequence[Labelling],
    *,
    fewest: int,
    empty_targets: EmptyTargets,
    sampled: bool,
    target_list: TargetList = PAPER,
) -> list[str]:
    """Limits of the figures that a reader must know first. sampled: whether the stories were generated here."""
    names = [labels.column for labels in columns]
    found = audit.notices(tally(sentences, names), targets, columns, empty_targets, target_list)
    if untold := metrics[keys.UNTOLD_STORIES]:
        found.append(f"{untold:,} stories have no whole sentence and are left out.")
    if short := metrics[keys.SHORT_STORIES]:
        found.append(f"{short:,} of {metrics[keys.STORIES]:,} stories have fewer than {fewest} whole sentences.")
    found += long_texts(sentences["masked"])
    if sampled:
        found.append("Stories are drawn by chance: with another seed each target has other stories.")
    return found
