"""How reliable the labels behind every figure are: the agreement of the scorers with people, as measured here and as
the harms paper states it (Table 3).

data/agreement_measured.csv holds what `python -m mitigate recipe=agreement data.root=DIR` finds of the scorers that
come with the project, rating by rating, and kappa with the majority of raters; it is that recipe's measured.csv, and a
test recomputes it."""

import csv
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import NamedTuple

from mitigate.metrics import ENDS

Agreement = dict[tuple[str, str], dict[str, float]]
"""(resource, scorer) -> measure ("prejudice/f1") -> value, from 0 to 1."""

RESOURCES = ("ConceptNet", "GenericsKB", "COMeT")
ALWAYS_NEUTRAL, PEOPLE = "always_neutral", "people"
KAPPA = tuple(f"majority/kappa{end}" for end in ENDS)


class Proxy(NamedTuple):
    """A scorer's agreement with people about the sentences of one source; None where it was not measured."""

    role: str  # "sentiment" or "regard"; of a scorer that is no role's, its own name
    scorer: str  # as the configuration names it: "vader", "minilm" ...
    resource: str
    favouritism: float | None  # F1 of its label
    prejudice: float | None
    accuracy: float | None
    always_neutral: float  # the accuracy of calling everything neutral
    paper_favouritism: float | None  # F1 of the paper's scorer of that role
    paper_prejudice: float | None
    kappa: float | None  # Cohen's, with the majority of raters
    kappa_low: float | None  # its 95 % interval over targets
    kappa_high: float | None
    raters: float | None  # Fleiss' kappa of the raters among themselves


def proxies(scorers: Mapping[str, str]) -> list[Proxy]:
    """A row for each scorer and resource. scorers: configured ones by what they are called, {"regard": "minilm"}."""
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
                    **dict(zip(("kappa", "kappa_low", "kappa_high"), map(found.get, KAPPA), strict=True)),
                    raters=ours[resource, PEOPLE]["fleiss"],
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
    named = f" ({mine[0].scorer})" if mine[0].scorer != role else ""
    return f"F1 with people: {', '.join(spans)}{named}" if spans else f"agreement with people not measured{named}"


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
