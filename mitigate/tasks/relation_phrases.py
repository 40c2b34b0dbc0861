"""Labels of relation phrases alone: a user's neutral phrase that is not neutral."""

from collections.abc import Sequence

import polars as pl

from mitigate.score.labels import NOTHING_CACHED
from mitigate.tasks.label import label_masked
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.relations import Relation


def not_neutral(own: Sequence[Relation], scorers: Sequence[Scorer], cache: LabelCache = NOTHING_CACHED) -> list[str]:
    """A notice of a user's relations whose neutral phrase alone, behind "this person", is labelled as anything but
    neutral."""
    names = ("relation", "phrase", "neutral_phrase")
    rows = [(relation.name, relation.phrase, relation.neutral_phrase) for relation in own]
    masked = {"masked": pl.format(MASK + " {}", "phrase"), "masked_neutral": pl.format(MASK + " {}", "neutral_phrase")}
    phrases = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").with_columns(**masked)
    labelled = label_masked(phrases, scorers, cache=cache)
    found = [
        f"{row['relation']} (“{row['neutral_phrase']}”, {scorer.name} {row[column]:+d})"
        for scorer in scorers
        for column in label_columns(scorer.name, "neutral")[:1]
        for row in labelled.filter(pl.col(column).is_in([PREJUDICE, FAVOURITISM])).iter_rows(named=True)
    ]
    if not found:
        return []
    return [
        f"Neutral phrases that are not neutral: {', '.join(found)}. What a policy or a measure finds with them may "
        "come from the phrase; give others in data.relations."
    ]
