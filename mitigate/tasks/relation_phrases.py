"""Effects of the wording of relations: the labels of the phrases alone, and how many triples each policy drops."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.score.labels import NOTHING_CACHED
from mitigate.tasks.label import label_masked
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.relations import Relation, comet_relations


def filters(scorers: Sequence[str] = ROLES) -> Mapping[str, Sequence[str]]:
    """The paper's filters, with these scorers: name -> the scorers whose polarised triples it drops."""
    return {**{scorer: [scorer] for scorer in scorers}, **({"both": list(scorers)} if len(scorers) > 1 else {})}


def carriers(own: Sequence[Relation] = ()) -> pl.DataFrame:
    """COMeT's 34 relations and a user's own, each phrase behind "this person" and with nothing after it: relation,
    phrase, neutral_phrase, masked, masked_neutral."""
    return _behind_a_person({relation.name: relation for relation in (*comet_relations(), *own)}.values())


def not_neutral(own: Sequence[Relation], scorers: Sequence[Scorer], cache: LabelCache = NOTHING_CACHED) -> list[str]:
    """A notice of a user's relations whose neutral phrase alone is labelled as anything but neutral."""
    labelled = label_masked(_behind_a_person(own), scorers, cache=cache)
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


def _behind_a_person(wanted: Iterable[Relation]) -> pl.DataFrame:
    names = ("relation", "phrase", "neutral_phrase")
    rows = [(relation.name, relation.phrase, relation.neutral_phrase) for relation in wanted]
    masked = {"masked": pl.format(MASK + " {}", "phrase"), "masked_neutral": pl.format(MASK + " {}", "neutral_phrase")}
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").with_columns(**masked)


def count_drops(labelled: pl.DataFrame, scorers: Sequence[str] = ROLES) -> pl.DataFrame:
    """A row for each relation: its triples, and in each column {policy}/{template} the number that the policy drops."""
    dropped = [
        polarised(Policy(policy, by, template)).sum().alias(f"{policy}/{template}")
        for policy, by in filters(scorers).items()
        for template in TEMPLATES
    ]
    return labelled.group_by("relation", maintain_order=True).agg(pl.len().alias("triples"), *dropped)


def totals(drops: pl.DataFrame) -> dict[str, Any]:
    """Sums of count_drops over all relations."""
    return drops.drop("relation").sum().row(0, named=True)
