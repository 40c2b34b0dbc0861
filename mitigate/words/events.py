"""Events, the heads of ATOMIC ("personx goes to work"): their relations, their wording for a target, and the words for
people without a name. From data/atomic_relations.csv, event_frames.csv and event_subjects.csv.

Independent of generators and scorers."""

import re
from functools import cache

import polars as pl

from mitigate.package_data import rows_of
from mitigate.words.relations import comet_relations, spelt

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
    """A relation's name in ATOMIC's files, in the form of relations.spelt -> its name here."""
    rows = rows_of("atomic_relations.csv")
    return {spelt(row[file]): row["relation"] for row in rows for file in ("atomic", "atomic2020") if row[file]}


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
    subject = next(
        (row["subject"] for row in rows_of("event_subjects.csv") if all(row[by] in ("", given[by]) for by in given)), ""
    )
    agent = "yes" if subject else "no"
    named = subject.replace(PLACE, target) or target
    rows = [row for row in rows_of("event_frames.csv") if (row["heads"], row["agent"]) == (heads, agent)]
    return [row["event"].replace(PLACE, named) for row in rows]


def as_one_person(masked: pl.Expr) -> pl.Expr:
    """A masked statement of an event, in lower case, with PERSON as its agent, in place of PersonX and of the rest of a
    target's subject ("the this person person", "the person from this person"); PersonY and PersonZ as in PERSONS, and
    "something" in a blank. Some annotators wrote "person x"."""
    for name, words in PERSONS.items():
        masked = masked.str.replace_all(rf"\b{name}\b", words)
    masked = masked.str.replace_all(r"(?:\b(?:the|an?) )?_{2,}", SOMETHING)
    masked = masked.str.replace_all(r" 's\b", "'s")  # ATOMIC has "personx 's"
    return masked.str.replace_all(rf"(?:\b(?:the|an?) )?(?:\bperson from )?\b{PERSON}\b(?: person\b)?", PERSON)
