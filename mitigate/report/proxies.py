"""How reliable the labels behind every figure are: the agreement of the scorers with people, as measured here and as
the harms paper states it (Table 3).

data/agreement_measured.csv holds what `python -m mitigate recipe=agreement data.root=DIR` finds, rating by
rating, of the scorers that come with the project (the n-grams with score.regard=ngram); a test recomputes it."""

import csv
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import NamedTuple

Agreement = dict[tuple[str, str], dict[str, float]]
"""(resource, scorer) -> measure ("prejudice/f1") -> value, from 0 to 1."""

RESOURCES = ("ConceptNet", "GenericsKB")
ALWAYS_NEUTRAL = "always_neutral"


class Proxy(NamedTuple):
    """A scorer's agreement with people about the sentences of one resource; None where it was not measured."""

    role: str  # "sentiment" or "regard"
    scorer: str  # as the configuration names it: "vader", "minilm" ...
    resource: str
    favouritism: float | None  # F1 of its label
    prejudice: float | None
    accuracy: float | None
    always_neutral: float  # the accuracy of calling everything neutral
    paper_favouritism: float | None  # F1 of the paper's scorer of that role
    paper_prejudice: float | None


def proxies(scorers: Mapping[str, str]) -> list[Proxy]:
    """A row for each role ("sentiment", "regard") and resource, from the scorers' names by role."""
    ours, theirs = measured(), paper()
    rows = []
    for role, scorer in scorers.items():
        for resource in RESOURCES:
            found, stated = ours.get((resource, scorer), {}), theirs.get((resource, role), {})
            rows.append(
                Proxy(
                    role,
                    scorer,
                    resource,
                    favouritism=found.get("favouritism/f1"),
                    prejudice=found.get("prejudice/f1"),
                    accuracy=found.get("accuracy"),
                    always_neutral=ours[resource, ALWAYS_NEUTRAL]["accuracy"],
                    paper_favouritism=stated.get("favouritism/f1"),
                    paper_prejudice=stated.get("prejudice/f1"),
                )
            )
    return rows


def reliability(rows: Iterable[Proxy], role: str) -> str:
    """The agreement of one role's scorer in a few words, for the line after a headline: "F1 with people: favouritism
    0.41 to 0.50, prejudice 0.50 to 0.56 (minilm)"."""
    mine = [row for row in rows if row.role == role]
    spans = []
    for name in ("favouritism", "prejudice"):
        found = [value for row in mine if (value := getattr(row, name)) is not None]
        if found:
            spans.append(f"{name} {min(found):.2f} to {max(found):.2f}")
    scorer = mine[0].scorer
    return (
        f"F1 with people: {', '.join(spans)} ({scorer})" if spans else f"agreement with people not measured ({scorer})"
    )


def measured() -> Agreement:
    """Of the scorers that come with the project, by the names the configuration gives them."""
    return _read("agreement_measured.csv")


def paper() -> Agreement:
    """The paper's figures, by role: its sentiment is VADER's too, its regard another classifier's."""
    return _read("paper_agreement.csv")


def _read(name: str) -> Agreement:
    found: Agreement = {}
    with files("mitigate").joinpath("data", name).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            found.setdefault((row["resource"], row["scorer"]), {})[row["measure"]] = float(row["value"])
    return found
