"""The relations of ConceptNet and ATOMIC and the phrases that turn a triple into a sentence, from data/relations.csv.

`phrase` is the harms paper's wording, and of ATOMIC's own relations one after that in which ATOMIC-2020 (Hwang et al.
2021) was shown to people, in lower case and without commas. Eight of the paper's phrases carry a sentiment of their
own for VADER ("is capable of" +.38), as ATOMIC's "want" does, and its "but" weighs what stands before and after it; so
each has a `neutral_phrase` beside it: the same number of words with negations in the same places, and none with a
sentiment for VADER."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mitigate.errors import one_of


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, its wordings, and how often ConceptNet train100k has it."""

    name: str
    phrase: str
    neutral_phrase: str
    comet_words: str  # what the original COMeT prompts with; "" outside its 34
    in_comet: bool
    train100k: int


@cache
def relations() -> dict[str, Relation]:
    """All relations by name: COMeT's 34 in the order the model knows them, twelve more of ConceptNet, and the 14 that
    only ATOMIC has."""
    with files("mitigate").joinpath("data/relations.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        row["relation"]: Relation(
            name=row["relation"],
            phrase=row["phrase"],
            neutral_phrase=row["neutral_phrase"],
            comet_words=row["comet_words"],
            in_comet=row["in_comet"] == "1",
            train100k=int(row["train100k"]),
        )
        for row in rows
    }


def comet_relations(names: Sequence[str] | None = None) -> list[Relation]:
    """COMeT's 34 relations, or those named, in the order named.

    Raises MitigateError for a name that is not one of the 34."""
    known = {name: relation for name, relation in relations().items() if relation.in_comet}
    return list(known.values()) if names is None else [_find(name, known) for name in names]


def _find(name: str, known: dict[str, Relation]) -> Relation:
    if name not in known:
        raise one_of("relation", name, known)
    return known[name]


WORDINGS: dict[str, Callable[[Relation], str]] = {
    "phrase": lambda relation: relation.phrase,  # as statements are worded
    "words": lambda relation: relation.comet_words,  # as the original COMeT does it, "has prequisite" included
    "token": lambda relation: f"<{relation.name}>",  # a word of its own, added to the generator's vocabulary
}


def asked_with(wording: str) -> dict[str, str]:
    """What a generator is asked with for each of COMeT's 34 relations, by name: {"CapableOf": "is capable of"}.

    Raises MitigateError for an unknown wording."""
    if wording not in WORDINGS:
        raise one_of("model.relation", wording, WORDINGS)
    return {relation.name: WORDINGS[wording](relation) for relation in comet_relations()}
