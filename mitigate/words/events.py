"""Events, which ATOMIC's heads are ("personx goes to work"): their relations, how a target is named in one, and what
stands for people nobody names. From data/atomic_relations.csv, event_frames.csv and event_subjects.csv.

Knows no generator and no scorer."""

import re
from functools import cache
from typing import Literal, get_args

import polars as pl

from mitigate.data_tables import rows_of
from mitigate.errors import one_of
from mitigate.words.relations import comet_relations, spelt

PERSON = "this person"
"""The person that a statement is about: PersonX, and a masked target."""

PERSONS = {"personx": PERSON, "persony": "another person", "personz": "a third person"}
PLACE = "XYZ"  # where an event has its target
BLANK, SOMETHING = "___", "something"

Persons = Literal["kept", "verbalised"]
"""Whether PersonX and the like stand in triples as published, or as in PERSONS."""


@cache
def heads_of_relations() -> dict[str, str]:
    """Relation of ATOMIC 2020, by its name here -> what its heads are: event, blank or object."""
    return {row["relation"]: row["heads"] for row in rows_of("atomic_relations.csv")}


@cache
def published_names() -> dict[str, str]:
    """A relation's name in ATOMIC's files, as it is compared (relations.spelt) -> its name here."""
    rows = rows_of("atomic_relations.csv")
    return {spelt(row[file]): row["relation"] for row in rows for file in ("atomic", "atomic2020") if row[file]}


def is_of_event() -> pl.Expr:
    """Return whether a triple (head, relation, tail) says something of an event: by its relation or, of those that
    ConceptNet has too (Causes, HasSubevent), by a head with PersonX or one of event_frames.csv."""
    events = {name for name, heads in heads_of_relations().items() if heads != "object"}
    known = {row["event"].replace(PLACE, "").strip() for row in rows_of("event_frames.csv") if row["agent"] == "yes"}
    spoken = "|".join(re.escape(event) for event in sorted(known) if BLANK not in event)
    shared = pl.col("relation").is_in(sorted(events & {relation.name for relation in comet_relations()}))
    return pl.col("relation").is_in(sorted(events)) & (
        ~shared | pl.col("head").str.contains(rf"\bperson[xyz]\b|\b(?:{spoken})\b")
    )


def heads_about(target: str, category: str, kind: str, heads: str) -> list[str]:
    """The events ("event", "blank") that name a target of this category and kind (targets.KINDS): "the lawyer goes
    to work". None for relations of an "object", which have the target itself as head."""
    subject = _subject(target, category, kind)
    agent = "yes" if subject else "no"
    named = subject.replace(PLACE, target) or target
    rows = [row for row in rows_of("event_frames.csv") if (row["heads"], row["agent"]) == (heads, agent)]
    return [row["event"].replace(PLACE, named) for row in rows]


def check_persons(persons: str) -> None:
    """Raise MitigateError for anything but "kept" and "verbalised"."""
    if persons not in get_args(Persons):
        raise one_of("data.persons", persons, get_args(Persons))


def without_persons(text: pl.Expr) -> pl.Expr:
    """A lower-cased text with PersonX, PersonY and PersonZ as in PERSONS and "something" in a blank. Some annotators
    wrote "person x"."""
    for name, words in PERSONS.items():
        text = text.str.replace_all(rf"\b{name[:-1]} ?{name[-1]}\b", words)
    text = text.str.replace_all(r"(?:\b(?:the|an?) )?_{2,}", SOMETHING)
    return text.str.replace_all(r" 's\b", "'s")  # ATOMIC has "personx 's"


def as_one_person(masked: pl.Expr) -> pl.Expr:
    """A masked statement of an event, in which whoever acts is PERSON: PersonX, and what is left of a target's subject
    ("the this person person", "the person from this person")."""
    subject = rf"(?:\b(?:the|an?) )?(?:\bperson from )?\b{PERSON}\b(?: person\b)?"
    return without_persons(masked).str.replace_all(subject, PERSON)


def _subject(target: str, category: str, kind: str) -> str:
    given = {"target": target, "kind": kind, "category": category}
    for row in rows_of("event_subjects.csv"):
        if all(row[column] in ("", value) for column, value in given.items()):
            return row["subject"]
    return ""
