"""Questions to one run or several: a head, and a relation that all of them have."""

from collections.abc import Sequence
from typing import NamedTuple

from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.run_index import find_relation


class Question(NamedTuple):
    """A head as in prompts, and the name of a relation."""

    head: str
    relation: str


def read_question(head: str, relation: str, runs: Sequence[Answers]) -> Question:
    """Read a question as a user wrote it. Raises MitigateError for an empty head, and for a relation that some run does
    not have."""
    return Question(runs[0].index.head(head), find_relation(relation, shared_relations(runs)))


def shared_relations(runs: Sequence[Answers]) -> list[str]:
    """The relations that all the runs can be asked about, in the order of the first."""
    first, *others = (run.index.relations for run in runs)
    return [name for name in first if all(name in names for names in others)]


def all_targets(runs: Sequence[Answers]) -> list[str]:
    """The targets of all runs, each once."""
    return list(dict.fromkeys(target for run in runs for target in run.index.targets["target"]))
