"""The relations of ConceptNet and ATOMIC and the phrases that turn a triple into a sentence, from data/relations.csv.

`phrase` is the harms paper's wording; for ATOMIC's own relations it follows the wording in which ATOMIC-2020 (Hwang et
al. 2021) was shown to people, in lower case and without commas. Eight of the paper's phrases have a sentiment of their
own for VADER ("is capable of" +.38), as has ATOMIC's "want". So each has a `neutral_phrase` too: the same number of
words with negations in the same places, and none with a sentiment for VADER. `comet_words` is another wording for
prompts: the original COMeT's words and, for ATOMIC's relations, each of which had a token of its own there, short ones
of this project that differ in their first five tokens.

Events, the heads of ATOMIC ("personx goes to work"), have a wording for each target and words for people without a
name, from data/event_frames.csv and event_subjects.csv."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from mitigate.errors import one_of
from mitigate.files import rows_of

RATED = ("CapableOf", "HasProperty", "Causes")
"""Relations of the statements of COMeT that people rated. Other relations have another accuracy."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, its wordings, and its number of triples in ConceptNet train100k. Only ConceptNet's have the last
    three."""

    name: str
    phrase: str
    neutral_phrase: str
    comet_words: str = ""  # of the original COMeT's prompts, or short words in their place; "": the phrase
    in_comet: bool = False
    train100k: int = 0


@cache
def relations() -> dict[str, Relation]:
    """All relations by name: COMeT's 34 in the order the model knows them, twelve more of ConceptNet, and the 14 that
    only ATOMIC has."""
    by_name = dict[str, Relation]()
    for row in rows_of("relations.csv"):
        name, in_comet, train100k = row["relation"], row["in_comet"] == "1", int(row["train100k"])
        by_name[name] = Relation(name, row["phrase"], row["neutral_phrase"], row["comet_words"], in_comet, train100k)
    return by_name


def with_own(own: Iterable[Relation]) -> dict[str, Relation]:
    """All relations by name, then a user's own; an own one replaces one of the same name."""
    return relations() | {relation.name: relation for relation in own}


def parse_sentence(sentence: str) -> tuple[str, Relation, str] | None:
    """Head, relation and tail of a sentence in the paper's wording, such as "nurse is capable of heal"; None where it
    has no phrase. At the same place the longest phrase counts."""
    by_phrase, pattern = _phrases()
    if not (match := re.match(pattern, sentence)):
        return None
    head, phrase, tail = match.groups()
    return head, by_phrase[phrase], tail


@cache
def _phrases() -> tuple[dict[str, Relation], str]:
    by_phrase = {relation.phrase: relation for relation in relations().values()}
    longest_first = sorted(by_phrase, key=lambda phrase: (-len(phrase), phrase))
    return by_phrase, f"(.+?) ({'|'.join(map(re.escape, longest_first))}) (.+)"


def names_by_key(own: Iterable[Relation] = ()) -> dict[str, str]:
    """The `name_key` of each relation, the project's and a user's own -> its name."""
    return {name_key(name): name for name in with_own(own)}


def name_key(name: str) -> str:
    """A relation's name for comparisons: in lower case, without blanks and underscores."""
    return re.sub(r"[ _]", "", name.lower())


def comet_relations() -> list[Relation]:
    """COMeT's 34 relations, in the order the model knows them."""
    return [relation for relation in relations().values() if relation.in_comet]


def named(names: Sequence[str], known: Mapping[str, Relation]) -> list[Relation]:
    """The relations of these names, in their order. Raises MitigateError for an unknown name."""
    if unknown := next((name for name in names if name not in known), None):
        raise one_of("relation", unknown, known)
    return [known[name] for name in names]


WORDINGS: dict[str, Callable[[Relation], str]] = {
    "phrase": lambda relation: relation.phrase,  # as statements are worded
    "words": lambda relation: relation.comet_words or relation.phrase,  # the original's, "has prequisite" included
    "token": lambda relation: f"<{relation.name}>",  # a word of its own, added to the generator's vocabulary
    "name": lambda relation: relation.name,  # in plain letters, as COMET-ATOMIC 2020
}


def prompt_phrases(wording: str, further: Iterable[Relation] = (), *, comet: bool = True) -> dict[str, str]:
    """The words in a generator's prompt for each of COMeT's 34 relations and the further ones, by name: {"CapableOf":
    "is capable of"}. comet: whether the 34 are included.

    Raises MitigateError for an unknown wording."""
    if wording not in WORDINGS:
        raise one_of("model.relation", wording, WORDINGS)
    prompted = [*(comet_relations() if comet else ()), *further]
    return {relation.name: WORDINGS[wording](relation) for relation in prompted}


# Events


PERSON = "this person"
"""The person that a statement is about: PersonX, and a masked target."""

PERSONS = {"person ?x": PERSON, "person ?y": "another person", "person ?z": "a third person"}
PLACE = "XYZ"  # where an event has its target
BLANK, SOMETHING = "___", "something"


@cache
def heads_of_relations() -> dict[str, str]:
    """Relation of ATOMIC 2020, by its name here -> the kind of its heads: event, blank or object."""
    return {row["relation"]: row["heads"] for row in rows_of("atomic_relations.csv")}


@cache
def published_names() -> dict[str, str]:
    """The `name_key` of a relation's name in ATOMIC's files -> its name here."""
    rows = rows_of("atomic_relations.csv")
    return {name_key(row[file]): row["relation"] for row in rows for file in ("atomic", "atomic2020") if row[file]}


def is_of_event() -> pl.Expr:
    """Return whether a triple (head, relation, tail) is about an event: by its relation or, for relations that
    ConceptNet has too (Causes, HasSubevent), by a head with PersonX or one of event_frames.csv."""
    events = {name for name, heads in heads_of_relations().items() if heads != "object"}
    ours = {row["event"].replace(PLACE, "").strip() for row in rows_of("event_frames.csv") if row["agent"] == "yes"}
    spoken = "|".join(re.escape(event) for event in sorted(ours) if BLANK not in event)
    shared = pl.col("relation").is_in(sorted(events & {relation.name for relation in comet_relations()}))
    return pl.col("relation").is_in(sorted(events)) & (
        ~shared | pl.col("head").str.contains(rf"\bperson[xyz]\b|\b(?:{spoken})\b")
    )


def heads_about(target: str, category: str, kind: str, heads: str) -> list[str]:
    """The events ("event", "blank") that name a target of this category and kind (targets.KINDS): "the lawyer goes to
    work". Empty for relations of an "object", which have the target itself as head."""
    given = {"target": target, "kind": kind, "category": category}
    rows = [row for row in rows_of("event_subjects.csv") if all(row[by] in ("", given[by]) for by in given)]
    subject = rows[0]["subject"] if rows else ""
    agent = "yes" if subject else "no"
    named = subject.replace(PLACE, target) or target
    frames = [row for row in rows_of("event_frames.csv") if (row["heads"], row["agent"]) == (heads, agent)]
    return [frame["event"].replace(PLACE, named) for frame in frames]


def as_one_person(masked: pl.Expr) -> pl.Expr:
    """A masked statement of an event, in lower case, with PERSON as its agent, in place of PersonX and of the rest of a
    target's subject ("the this person person", "the person from this person"); PersonY and PersonZ as in PERSONS, and
    "something" in a blank. Some annotators wrote "person x"."""
    for name, words in PERSONS.items():
        masked = masked.str.replace_all(rf"\b{name}\b", words)
    masked = masked.str.replace_all(r"(?:\b(?:the|an?) )?_{2,}", SOMETHING)
    masked = masked.str.replace_all(r" 's\b", "'s")  # ATOMIC has "personx 's"
    return masked.str.replace_all(rf"(?:\b(?:the|an?) )?(?:\bperson from )?\b{PERSON}\b(?: person\b)?", PERSON)
