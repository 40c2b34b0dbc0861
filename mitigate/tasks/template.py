"""What the wording of relations adds to labels: each phrase's own, and how many triples each policy drops by it."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.score.labels import NOTHING_CACHED
from mitigate.tasks.label import label_masked
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.relations import Relation, comet_relations


def filters(scorers: Sequence[str] = ROLES) -> Mapping[str, Sequence[str]]:
    """The paper's filters, with these scorers: name -> those whose polarised triples it drops."""
    return {**{scorer: [scorer] for scorer in scorers}, **({"both": list(scorers)} if len(scorers) > 1 else {})}


def carriers(own: Sequence[Relation] = ()) -> pl.DataFrame:
    """COMeT's 34 relations and a user's own, each phrase behind "this person" and with nothing after it: relation,
    phrase, neutral_phrase, masked, masked_neutral."""
    return _behind_a_person(list({relation.name: relation for relation in (*comet_relations(), *own)}.values()))


def not_neutral(own: Sequence[Relation], scorers: Sequence[Scorer], cache: LabelCache = NOTHING_CACHED) -> list[str]:
    """A notice of the relations of one's own whose neutral phrase is labelled, by itself, as anything but neutral."""
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


def _behind_a_person(wanted: Sequence[Relation]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "relation": [relation.name for relation in wanted],
            "phrase": [relation.phrase for relation in wanted],
            "neutral_phrase": [relation.neutral_phrase for relation in wanted],
            "masked": [f"{MASK} {relation.phrase}" for relation in wanted],
            "masked_neutral": [f"{MASK} {relation.neutral_phrase}" for relation in wanted],
        }
    )


def count_drops(labelled: pl.DataFrame, scorers: Sequence[str] = ROLES) -> pl.DataFrame:
    """A row for each relation: its triples, and in the column {policy}/{template} how many of them that drops."""
    policies = filters(scorers)
    columns = [f"{policy}/{template}" for policy in policies for template in TEMPLATES]
    dropped = [
        polarised(Policy(policy, by, template)).alias(f"{policy}/{template}")
        for policy, by in policies.items()
        for template in TEMPLATES
    ]
    rows = labelled.select("relation", *dropped)
    return rows.group_by("relation", maintain_order=True).agg(pl.len().alias("triples"), pl.col(columns).sum())


def totals(drops: pl.DataFrame) -> dict[str, Any]:
    """The same over all relations."""
    return drops.drop("relation").sum().row(0, named=True)
