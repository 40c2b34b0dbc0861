"""Question to a graph's embeddings: the attribute that is changed, and the professions with observed scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.graph import Graph
from mitigate.measure.kge import log_count_ratio
from mitigate.probe.kge import Attribute, Query

OTHERS = "all others"
AND = " & "  # joins attributes, and the values of each, to an intersection
UNKNOWN = "unknown"
SETTINGS = ("sensitive", "values", "fewest", "fewest_of_each")  # of the group kge, that make a question
MOST_NAMED = 8  # values that a message names


@dataclass(frozen=True, eq=False)
class Triples:
    """Triples of a graph that embeddings are trained and tested on: numbers of head, relation and tail, (n, 3) int64
    each."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    num_entities: int
    num_relations: int

    @property
    def all(self) -> np.ndarray:
        """Triples of all splits."""
        return np.concatenate([self.train, self.valid, self.test])

    @property
    def held_out(self) -> np.ndarray:
        """Validation and test triples."""
        return np.concatenate([self.valid, self.test])


def triples_of(graph: Graph) -> Triples:
    """The triples of a graph."""
    return Triples(graph.train, graph.valid, graph.test, len(graph.entities), len(graph.relations))


@dataclass(frozen=True, eq=False)
class Question:
    """Value a and value b of an attribute or of an intersection of several, and professions, as numbers of the graph's
    entities and relations. A person has a value of an intersection by having that of every attribute."""

    attributes: tuple[Attribute, ...]
    names: tuple[str, str]  # of both values
    occupation: int
    professions: pl.DataFrame  # profession, people (of value a or b), of_a, of_b, unknown, log_ratio: a row a name
    entities: np.ndarray  # of professions, (e,): several may have one name
    places: np.ndarray  # (e,) the row of each among professions
    people: np.ndarray  # all people with the attribute or a profession
    group_a: np.ndarray  # people with value a and without value b
    group_b: np.ndarray
    num_both: int  # people with both values, who are in neither group
    values: pl.DataFrame  # value, people: the most frequent first, and at last those with a profession and no value

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of people with value a, and with value b."""
        return len(self.group_a) + self.num_both, len(self.group_b) + self.num_both

    @property
    def notices(self) -> list[str]:
        """Notices about people with both values, and about those without any."""
        both, unknown = self.num_both, int(self.values["people"][-1])
        of_both = (
            f"People with both {self.names[0]} and {self.names[1]}: {both:,}. They count in both columns of counts, "
            "and are left out of predictions and probes."
        )
        of_unknown = f"People with a profession and without a value in the graph: {unknown:,}. They count as {UNKNOWN}."
        return [notice for notice, count in ((of_both, both), (of_unknown, unknown)) if count]

    @property
    def query(self) -> Query:
        """The question in the form of probe.kge."""
        return Query(self.people, self.attributes, self.occupation, self.entities)

    @property
    def grouped(self) -> tuple[np.ndarray, np.ndarray]:
        """The people of both groups (n,), and a mask of group a, (n,) bool."""
        people = np.concatenate([self.group_a, self.group_b])
        return people, np.arange(len(people)) < len(self.group_a)

    def merged(self, values: np.ndarray) -> np.ndarray:
        """The mean over entities of one name: (professions,) of (e,)."""
        counts = np.bincount(self.places, minlength=self.professions.height)
        return np.bincount(self.places, weights=values, minlength=self.professions.height) / counts


def find_question(
    graph: Graph,
    sensitive: Sequence[str],
    values: Sequence[str],
    occupation: str | None,
    fewest: int,
    fewest_of_each: int = 0,
) -> Question:
    """Find the question of settings in a graph, as its numbers. Ids with one name are one value, or one profession.
    Counts are of people in all splits. A profession needs `fewest` people of value a or b, and `fewest_of_each` of
    either; people without a known value do not count.

    sensitive: relations, several for an intersection, whose values are names joined by " & ". Raises MitigateError for
    a relation or a value that the graph does not have, equal values, too many of them, a relation from values to
    people, and fewer than three professions with enough people."""
    if not occupation:
        raise MitigateError("data.occupation is not set; set it to the relation from people to professions")
    triples, name = triples_of(graph).all, AND.join(sensitive)
    job = _relation(graph, occupation, "data.occupation")
    of_job = triples[triples[:, 1] == job]
    sides = _sides(values, sensitive)
    attributes = []
    for place, one in enumerate(sensitive):
        relation = _relation(graph, one, "kge.sensitive")
        held = _of_people(graph, triples, of_job, relation, one)
        a, *b = (_value(graph, held, side[place], one) for side in sides)
        attributes.append(Attribute(relation, a, b[0] if b else np.setdiff1d(held[:, 2], a)))
    differ = [not np.isin(part.values, part.others).any() for part in attributes]
    if not any(differ) or not all(part.others.size for part in attributes):
        raise MitigateError(f"kge.values=[{','.join(values)}] must name two different values of {name}")
    with_a, with_b = with_values(triples, attributes)
    unknown = np.setdiff1d(of_job[:, 0], _holders(triples, [(part.relation, triples[:, 2]) for part in attributes]))
    groups = {"of_a": with_a, "of_b": with_b, "unknown": unknown}
    professions, entities, places = _professions(graph, of_job, groups, fewest, fewest_of_each)
    return Question(
        attributes=tuple(attributes),
        names=(values[0], values[1] if len(values) == 2 else OTHERS),
        occupation=job,
        professions=professions,
        entities=entities,
        places=places,
        people=np.union1d(triples[np.isin(triples[:, 1], [part.relation for part in attributes]), 0], of_job[:, 0]),
        group_a=np.setdiff1d(with_a, with_b),
        group_b=np.setdiff1d(with_b, with_a),
        num_both=len(np.intersect1d(with_a, with_b)),
        values=_people_per_value(graph, triples, attributes, len(unknown)),
    )


def _sides(values: Sequence[str], sensitive: Sequence[str]) -> list[list[str]]:
    """The value of each attribute, for value a and for value b if there is one."""
    several = len(sensitive) > 1
    name = AND.join(sensitive)
    if not 1 + several <= len(values) <= 2:
        number = "two values" if several else "one value or two"
        raise MitigateError(f"kge.values=[{','.join(values)}] must name {number} of kge.sensitive={name}")
    sides = [value.split(AND) if several else [value] for value in values]
    if wrong := [value for value, side in zip(values, sides, strict=True) if len(side) != len(sensitive)]:
        raise MitigateError(f"kge.values: {wrong[0]!r} must name a value of each of {name}, joined by {AND!r}")
    return sides


def with_values(triples: np.ndarray, attributes: Sequence[Attribute]) -> tuple[np.ndarray, np.ndarray]:
    """The people with value a, and those with value b, in these triples."""
    of_a = [(part.relation, part.values) for part in attributes]
    return _holders(triples, of_a), _holders(triples, [(part.relation, part.others) for part in attributes])


def _holders(triples: np.ndarray, required: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    """The people who have one of the tails by every relation, (n,)."""
    found = [triples[(triples[:, 1] == relation) & np.isin(triples[:, 2], tails), 0] for relation, tails in required]
    return reduce(np.intersect1d, found, np.unique(found[0]))


def _of_people(graph: Graph, triples: np.ndarray, of_job: np.ndarray, relation: int, sensitive: str) -> np.ndarray:
    """The triples of an attribute. Raises MitigateError if it is the occupation, or no attribute of people."""
    held, job = triples[triples[:, 1] == relation], graph.relation_names[of_job[0, 1]]
    if relation == of_job[0, 1]:
        raise MitigateError(f"kge.sensitive and data.occupation are the same relation, {job}; set two different ones")
    if not np.isin(held[:, 0], of_job[:, 0]).any():
        raise MitigateError(
            f"kge.sensitive={sensitive}: none of its heads has a profession by {job}; it must be a relation from "
            "people to values"
        )
    return held


def _people_per_value(
    graph: Graph, triples: np.ndarray, attributes: Sequence[Attribute], num_unknown: int
) -> pl.DataFrame:
    """Count the people with each value, or with each combination of values of several attributes."""
    names = np.array(graph.entity_names, dtype=object)
    frames = []
    for place, part in enumerate(attributes):
        held = triples[triples[:, 1] == part.relation]
        frames.append(pl.DataFrame({"person": held[:, 0], f"value {place}": names[held[:, 2]].tolist()}))
    people = reduce(lambda one, other: one.join(other, on="person"), frames)
    value = pl.concat_str(pl.exclude("person"), separator=AND).alias("value")
    counts = people.group_by(value).agg(pl.col("person").n_unique().alias("people"))
    unknown = pl.DataFrame({"value": [UNKNOWN], "people": [num_unknown]}, schema=counts.schema)
    return pl.concat([counts.sort("people", "value", descending=[True, False]), unknown])


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
    graph: Graph, of_job: np.ndarray, groups: Mapping[str, np.ndarray], fewest: int, fewest_of_each: int
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """The table of professions with enough people of value a or b, their entities, and the row of each entity. groups:
    people of value a, of value b, and of no known value, by column."""
    tails = np.unique(of_job[:, 2])
    names = sorted({graph.entity_names[tail] for tail in tails})
    number = {name: place for place, name in enumerate(names)}
    place = np.full(len(graph.entities), -1)
    place[tails] = [number[graph.entity_names[tail]] for tail in tails]
    pairs = _pairs(of_job, place)
    either = np.union1d(groups["of_a"], groups["of_b"])
    counts = {
        column: np.bincount(pairs[np.isin(pairs[:, 0], people), 1], minlength=len(names))
        for column, people in {"people": either, **groups}.items()
    }
    is_enough = (counts["people"] >= fewest) & (np.minimum(counts["of_a"], counts["of_b"]) >= fewest_of_each)
    rows = np.flatnonzero(is_enough)
    if len(rows) < 3:
        each = f", {fewest_of_each} of each (kge.fewest_of_each)" if fewest_of_each else ""
        raise MitigateError(
            f"professions with {fewest} or more people of the two values (kge.fewest){each}: {len(rows)}; at least 3 "
            "are needed. Lower kge.fewest"
        )
    table = pl.DataFrame({"profession": [names[row] for row in rows]} | {name: counts[name][rows] for name in counts})
    ratio = log_count_ratio(counts["of_a"][rows], counts["of_b"][rows])
    new = np.full(len(names), -1)
    new[rows] = np.arange(len(rows))
    entities = tails[new[place[tails]] >= 0]
    return table.with_columns(log_ratio=ratio), entities, new[place[entities]]


def _pairs(of_job: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Distinct pairs of a person and the number of a profession's name, (pairs, 2). place: the number of each entity's
    name, -1 for others."""
    pairs = np.stack([of_job[:, 0], place[of_job[:, 2]]], axis=1)
    return np.unique(pairs[pairs[:, 1] >= 0], axis=0)
