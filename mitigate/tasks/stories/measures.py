"""All figures of stories, as the flat object of metrics.json."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate import metrics as keys
from mitigate.measure import stories as measuring
from mitigate.measure.harms import POLARISED
from mitigate.measure.stories import STORY
from mitigate.measure.tally import tally
from mitigate.tasks.audit import measures as audit
from mitigate.tasks.labelled_statements import Measurement, long_texts
from mitigate.tasks.policies.filtered import training_figures
from mitigate.words.prompts import KINDS, kind_of
from mitigate.words.targets import TargetList

NO_FACTS: Mapping[str, Any] = {}


def measure_stories(
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    how: Measurement,
    *,
    fewest: int,
    permutations: int = 1000,
    facts: Mapping[str, Any] = NO_FACTS,
    training: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Harms of the sentences (audit.measures.harms), with intervals; harms for each kind of target ("by_kind/...");
    figures of whole stories; and differences between targets by chance ("sentiment/by_chance_D_O-", with p).

    stories: what generate_stories returns; sentences: what label_sentences returns. fewest: sentences that a story
    should have; permutations: of stories among targets. facts stand before the figures. training: what
    train_on_sentences returns, if the generator was trained."""
    names, target_list, seed = list(how.wordings), how.target_list, how.intervals.seed
    tallied, per_story = tally(sentences, names), measuring.shares(sentences, STORY, names)
    found: dict[str, Any] = {"seed": seed, **facts}
    found |= {keys.ROWS: stories["row"].n_unique(), keys.ROWS_ABOUT_A_TARGET: sentences["row"].n_unique()}
    found |= audit.harms(tallied, how)
    found |= training_figures(training or {})
    found |= measuring.story_counts(stories, per_story, fewest, names)
    found |= {keys.NAMING_TARGET: measuring.naming_target(sentences, own_patterns(target_list))}
    found |= {keys.DISTINCT_SENTENCES: measuring.distinct_sentences(sentences)}
    tables = how.tables(tallied)
    kinds = {target: kind_of(target, target_list) for target in how.targets["target"]}
    has_kinds = stories["kind"].is_in(KINDS).any()
    for name in names:
        if has_kinds:
            found |= measuring.by_kind(tables[name], kinds, name, target_list.clusters, how.intervals)
        for share in POLARISED:
            by_chance, p = measuring.by_chance(per_story, name, share, permutations, seed) or (None, None)
            found |= {keys.harm_key(name, "by chance", share): by_chance, keys.harm_key(name, "p", share): p}
    return found


def compare_within_templates(sentences: pl.DataFrame, how: Measurement) -> pl.DataFrame:
    """The difference of each target from the others on the same templates (measure.stories.within_templates)."""
    names = list(how.wordings)
    return measuring.within_templates(measuring.shares(sentences, STORY, names), names, how.intervals)


def own_patterns(target_list: TargetList) -> dict[str, str]:
    """Own target -> a regular expression for all its forms."""
    return {target.word: target_list.pattern_among([target.word]) for target in target_list.own}


def notices(
    metrics: Mapping[str, Any], sentences: pl.DataFrame, how: Measurement, *, fewest: int, sampled: bool
) -> list[str]:
    """Limits of the figures that a reader must know first. sampled: whether the stories were generated here."""
    found = audit.notices(tally(sentences, list(how.wordings)), how)
    if untold := metrics[keys.UNTOLD_STORIES]:
        found.append(f"{untold:,} stories have no whole sentence and are left out.")
    if short := metrics[keys.SHORT_STORIES]:
        found.append(f"{short:,} of {metrics[keys.STORIES]:,} stories have fewer than {fewest} whole sentences.")
    found += long_texts(sentences["masked"])
    if sampled:
        found.append("Stories are drawn by chance: with another seed each target has other stories.")
    return found
