"""All figures of stories."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.measure import stories as measuring
from mitigate.measure.harms import tally
from mitigate.measure.results import by_category, measured
from mitigate.measure.statements import Measurement, long_texts
from mitigate.measure.stories import STORY
from mitigate.tasks.audit import measures as audit
from mitigate.words.prompts import KINDS, kind_of
from mitigate.words.targets import TargetList


def measure_stories(
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    how: Measurement,
    *,
    fewest: int,
    training: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): harms of the sentences, with intervals, also for each kind of target;
    figures of whole stories; and differences between targets by chance.

    stories: what generate_stories returns; sentences: what label_sentences returns. fewest: sentences that a story
    should have. training: what train_on_sentences returns, if the generator was trained."""
    names, target_list = list(how.wordings), how.target_list
    tallied, per_story = tally(sentences, names), measuring.shares(sentences, STORY, names)
    whole = measuring.all_stories(stories, sentences, fewest, own_patterns(target_list))
    counts = {"rows": stories["row"].n_unique(), "rows_about_a_target": sentences["row"].n_unique()}
    found = [measured("resource", counts).drop_nulls("value"), audit.harms(tallied, how)]
    found += [measured("stories", whole), measured("sentences", sentences)]
    found += [measured("whole stories", measuring.per_story_of(per_story, name), scorer=name) for name in names]
    if training and "steps" in training:
        found.append(measured("training", training).drop_nulls("value"))
    if stories["kind"].is_in(KINDS).any():
        kinds = {target: kind_of(target, target_list) for target in how.targets["target"]}
        for number, (column, (scorer, template)) in enumerate(how.wordings.items()):
            table = how.tables(tallied)[column].with_columns(category=pl.col("target").replace_strict(kinds))
            drawn: dict[str, Any] = {"clusters": target_list.clusters, "intervals": how.intervals}
            groups = {key: rows for key, rows in by_category(table, "kind").items() if key[1]}
            found.append(measured("targets", table, groups, scorer=scorer, template=template, **drawn))
            found += [measured("counts", table, groups)] if not number else []
    return pl.concat(found)


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
    if untold := metrics["stories/untold"]:
        found.append(f"{untold:,} stories have no whole sentence and are left out.")
    if short := metrics["stories/short"]:
        found.append(f"{short:,} of {metrics['stories']:,} stories have fewer than {fewest} whole sentences.")
    found += long_texts(sentences["masked"])
    if sampled:
        found.append("Stories are drawn by chance: with another seed each target has other stories.")
    return found
