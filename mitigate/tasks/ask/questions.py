"""A question to one run or several: a head and a relation that all of them know."""

from collections.abc import Sequence
from typing import NamedTuple

from mitigate.tasks.ask.answerable import find_relation
from mitigate.tasks.ask.answers import Answers


class Question(NamedTuple):
    """A head as it is asked, and the name of a relation."""

    head: str
    relation: str


def read(head: str, relation: str, runs: Sequence[Answers]) -> Question:
    """The question that is meant. Raises MitigateError for an empty head, and for a relation that is not one of all
    the runs'."""
    return Question(runs[0].known.head(head), find_relation(relation, shared_relations(runs)))


def shared_relations(runs: Sequence[Answers]) -> list[str]:
    """The relations that all the runs can be asked about, in the order of the first."""
    first, *others = (run.known.relations for run in runs)
    return [name for name in first if all(name in names for names in others)]


def known_heads(runs: Sequence[Answers]) -> list[str]:
    """The targets of the runs."""
    return list(dict.fromkeys(target for run in runs for target in run.known.targets["target"]))
