"""Question to a graph's embeddings: the attribute that is changed, and the professions with observed scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.graph.graph import Graph
from mitigate.measure.kge import log_count_ratio
from mitigate.probe.kge import Asked
from mitigate.tasks.kge.graphs import triples_of

OTHERS = "all others"
MOST_NAMED = 8  # values that a message names


@dataclass(frozen=True, eq=False)
class Question:
    """An attribute with its value a and value b, and professions, as numbers of the graph's entities and relations."""

    attribute: int
    values: np.ndarray  # entities that are value a
    others: np.ndarray  # entities that are value b
    names: tuple[str, str]  # of both values
    occupation: int
    professions: pl.DataFrame  # profession, people (of value a or b), of_a, of_b, log_ratio: a row a name
    entities: np.ndarray  # of professions, (e,): several may have one name
    places: np.ndarray  # (e,) the row of each among professions
    people: np.ndarray  # all people with the attribute or a profession
    group_a: np.ndarray  # people with value a and without value b
    group_b: np.ndarray
    num_both: int  # people with both values, who are in neither group

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of people with value a, and with value b."""
        return len(self.group_a) + self.num_both, len(self.group_b) + self.num_both

    @property
    def notices(self) -> list[str]:
        """Notices about people with both values."""
        if not self.num_both:
            return []
        return [
            f"{self.num_both:,} of the people have {self.names[0]} and {self.names[1]}: they count in both columns of "
            "counts, and are left out of predictions and probes"
        ]

    @property
    def asked(self) -> Asked:
        """The question in the form of probe.kge."""
        return Asked(self.people, self.attribute, self.values, self.others, self.occupation, self.entities)

    @property
    def grouped(self) -> tuple[np.ndarray, np.ndarray]:
        """The people of both groups (n,), and a mask of group a, (n,) bool."""
        people = np.concatenate([self.group_a, self.group_b])
        return people, np.arange(len(people)) < len(self.group_a)

    def merged(self, values: np.ndarray) -> np.ndarray:
        """The mean over entities of one name: (professions,) of (e,)."""
        counts = np.bincount(self.places, minlength=self.professions.height)
        return np.bincount(self.places, weights=values, minlength=self.professions.height) / counts


def find_question(graph: Graph, sensitive: str, values: Sequence[str], occupation: str | None, fewest: int) -> Question:
    """Find the question of settings in a graph, as its numbers. Ids with one name are one value, or one profession.
    Counts are of people in all splits.

    Raises MitigateError for a relation or a value that the graph does not have, equal values, too many of them, a
    relation from values to people, and fewer than three professions with `fewest` people of value a or b."""
    if not occupation:
        raise MitigateError("kge.occupation is not set; set it to the relation from people to professions")
    if not 1 <= len(values) <= 2:
        raise MitigateError(f"kge.values=[{','.join(values)}] must name one value or two of kge.sensitive={sensitive}")
    triples = triples_of(graph).all
    attribute, job = _relation(graph, sensitive, "kge.sensitive"), _relation(graph, occupation, "kge.occupation")
    if attribute == job:
        raise MitigateError(
            f"kge.sensitive and kge.occupation are the same relation, {graph.relation_names[job]}; set two different "
            "ones"
        )
    held, of_job = triples[triples[:, 1] == attribute], triples[triples[:, 1] == job]
    if not np.isin(held[:, 0], of_job[:, 0]).any():
        raise MitigateError(
            f"kge.sensitive={sensitive}: none of its heads has a profession by {graph.relation_names[job]}; it must be "
            "a relation from people to values"
        )
    a = _value(graph, held, values[0], sensitive)
    b = _value(graph, held, values[1], sensitive) if len(values) == 2 else np.setdiff1d(held[:, 2], a)
    if np.isin(a, b).any() or not len(b):
        raise MitigateError(f"kge.values=[{','.join(values)}] must name two different values of {sensitive}")
    with_a, with_b = (np.unique(held[np.isin(held[:, 2], tails), 0]) for tails in (a, b))
    professions, entities, places = _professions(graph, of_job, with_a, with_b, fewest)
    return Question(
        attribute=attribute,
        values=a,
        others=b,
        names=(values[0], values[1] if len(values) == 2 else OTHERS),
        occupation=job,
        professions=professions,
        entities=entities,
        places=places,
        people=np.union1d(held[:, 0], of_job[:, 0]),
        group_a=np.setdiff1d(with_a, with_b),
        group_b=np.setdiff1d(with_b, with_a),
        num_both=len(np.intersect1d(with_a, with_b)),
    )


def count_holders(
    triples: np.ndarray, question: Question, with_a: np.ndarray, with_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of holders of each profession among people with value a, and with value b, (professions,)."""
    of_job = triples[triples[:, 1] == question.occupation]
    place = np.full(int(triples.max()) + 1, -1)
    place[question.entities] = question.places
    pairs = _pairs(of_job, place)
    size = question.professions.height
    of_a, of_b = (np.bincount(pairs[np.isin(pairs[:, 0], group), 1], minlength=size) for group in (with_a, with_b))
    return of_a, of_b


def with_values(triples: np.ndarray, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """The people with value a, and those with value b, in these triples."""
    held = triples[triples[:, 1] == question.attribute]
    with_a, with_b = (np.unique(held[np.isin(held[:, 2], tails), 0]) for tails in (question.values, question.others))
    return with_a, with_b


def _relation(graph: Graph, name: str, setting: str) -> int:
    try:
        found = graph.relations_called(name)
    except MitigateError as error:
        raise MitigateError(f"{setting}={name}: {error}") from error
    if len(found) > 1:
        ids = ", ".join(graph.relations[number] for number in found)
        raise MitigateError(f"{setting}={name}: {len(found)} relations have this name; give one of their ids: {ids}")
    return int(found[0])


def _value(graph: Graph, held: np.ndarray, name: str, sensitive: str) -> np.ndarray:
    """The entities with this name that people have as the attribute."""
    tails, counts = np.unique(held[:, 2], return_counts=True)
    common = ", ".join(graph.entity_names[tail] for tail in tails[np.argsort(-counts, kind="stable")][:MOST_NAMED])
    try:
        found = np.intersect1d(graph.entities_called(name), tails)
    except MitigateError:
        found = tails[:0]
    if not len(found):
        raise MitigateError(
            f"kge.values: no person in the graph has {name!r} as {sensitive}; the most frequent values: "
            f"{common}{did_you_mean(name, [graph.entity_names[tail] for tail in tails])}"
        )
    return found


def _professions(
    graph: Graph, of_job: np.ndarray, with_a: np.ndarray, with_b: np.ndarray, fewest: int
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """The table of professions with enough people of value a or b, their entities, and the row of each entity."""
    tails = np.unique(of_job[:, 2])
    names = sorted({graph.entity_names[tail] for tail in tails})
    number = {name: place for place, name in enumerate(names)}
    place = np.full(len(graph.entities), -1)
    place[tails] = [number[graph.entity_names[tail]] for tail in tails]
    pairs = _pairs(of_job[np.isin(of_job[:, 0], np.union1d(with_a, with_b))], place)
    people = np.bincount(pairs[:, 1], minlength=len(names))
    rows = np.flatnonzero(people >= fewest)
    if len(rows) < 3:
        raise MitigateError(
            f"{len(rows)} professions have at least {fewest} people of the two values (kge.fewest); at least 3 are "
            "needed. Lower kge.fewest"
        )
    of_a, of_b = (
        np.bincount(pairs[np.isin(pairs[:, 0], group), 1], minlength=len(names))[rows] for group in (with_a, with_b)
    )
    table = pl.DataFrame(
        {
            "profession": [names[row] for row in rows],
            "people": people[rows],
            "of_a": of_a,
            "of_b": of_b,
            "log_ratio": log_count_ratio(of_a, of_b),
        }
    )
    new = np.full(len(names), -1)
    new[rows] = np.arange(len(rows))
    entities = tails[new[place[tails]] >= 0]
    return table, entities, new[place[entities]]


def _pairs(of_job: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Distinct pairs of a person and the number of a profession's name, (pairs, 2). place: the number of each entity's
    name, -1 for others."""
    pairs = np.stack([of_job[:, 0], place[of_job[:, 2]]], axis=1)
    return np.unique(pairs[pairs[:, 1] >= 0], axis=0)
