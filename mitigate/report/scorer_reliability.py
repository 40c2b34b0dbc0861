"""Reliability of the labels behind every figure: the agreement of the scorers with people, as measured here and as the
harms paper states it (Table 3), and the shipped scorers' errors on identity terms.

data/agreement_measured.csv and data/identity/measured.csv hold what `python -m mitigate recipe=agreement
data.root=DIR` finds of the scorers that come with the project: rating by rating, kappa with the majority of raters, and
errors by term. They are that recipe's measured.csv and identity_measured.csv, and tests recompute them."""

from collections.abc import Iterable, Mapping
from typing import Any

from mitigate.metrics import ENDS
from mitigate.package_data import frame_of, rows_of
from mitigate.report.table import Table
from mitigate.report.table_declarations import declared

Agreement = dict[tuple[str, str], dict[str, float]]
"""(resource, scorer) -> measure ("prejudice/f1") -> value, from 0 to 1."""

RESOURCES = ("ConceptNet", "GenericsKB", "COMeT")
ALWAYS_NEUTRAL, PEOPLE = "always_neutral", "people"
KAPPA = tuple(f"majority/kappa{end}" for end in ENDS)


def proxies(scorers: Mapping[str, str]) -> list[dict[str, Any]]:
    """The agreement of each scorer with people on the sentences of each resource; None if it was not measured.
    scorers: role -> name of the configured scorer, {"regard": "minilm"}.

    favouritism and prejudice are F1 of that label, also paper_favouritism and paper_prejudice of the paper's scorer of
    the role; always_neutral is the accuracy of calling everything neutral; kappa is Cohen's with the majority of
    raters, with its 95 % interval over targets; raters is Fleiss' kappa of the raters among themselves."""
    ours, theirs = measured(), paper()
    rows = []
    for role, scorer in scorers.items():
        for resource in RESOURCES:
            found, stated = ours.get((resource, scorer), {}), theirs.get((resource, role), {})
            row: dict[str, Any] = {"role": role, "scorer": scorer, "resource": resource}
            row |= {label: found.get(f"{label}/f1") for label in ("favouritism", "prejudice")}
            row |= {"accuracy": found.get("accuracy"), "always_neutral": ours[resource, ALWAYS_NEUTRAL]["accuracy"]}
            row |= {f"paper_{label}": stated.get(f"{label}/f1") for label in ("favouritism", "prejudice")}
            row |= {f"kappa{end}": found.get(key) for key, end in zip(KAPPA, ENDS, strict=True)}
            rows.append(row | {"raters": ours[resource, PEOPLE]["fleiss"]})
    return rows


def reliability(rows: Iterable[Mapping[str, Any]], role: str) -> str:
    """The agreement of the scorer of a role in a few words, for the line after a headline: "F1 with people: favouritism
    0.41 to 0.50, prejudice 0.50 to 0.56 (minilm)"."""
    mine = [row for row in rows if row["role"] == role]
    known = {label: [row[label] for row in mine if row[label] is not None] for label in ("favouritism", "prejudice")}
    spans = [f"{label} {min(found):.2f} to {max(found):.2f}" for label, found in known.items() if found]
    named = f" ({mine[0]['scorer']})" if mine[0]["scorer"] != role else ""
    return f"F1 with people: {', '.join(spans)}{named}" if spans else f"agreement with people not measured{named}"


def measured() -> Agreement:
    """Measured agreement of the shipped scorers, by their names in the configuration."""
    return _read("agreement_measured.csv")


def paper() -> Agreement:
    """The paper's figures, by role: its sentiment is also by VADER, its regard by another classifier."""
    return _read("paper_agreement.csv")


def _read(name: str) -> Agreement:
    found: Agreement = {}
    for row in rows_of(name):
        found.setdefault((row["resource"], row["scorer"]), {})[row["measure"]] = float(row["value"])
    return found


def reliability_tables(scorers: Mapping[str, str]) -> dict[str, Table | None]:
    """The agreement of the scorers with people, beside the paper's and that of always answering "neutral"; and their
    errors on identity terms, with the term that is farthest from the mean."""

    def named(row: Mapping[str, Any]) -> str:
        return row["role"] if row["scorer"] == row["role"] else f"{row['role']} ({row['scorer']})"

    rows, errors, cells = proxies(scorers), identity_errors(scorers), {"scorer": named}
    another = ", whose regard classifier is another one" if "regard" in scorers else ""
    agreement = declared("scorers agreement with people", rows, cells=cells, another=another) if rows else None
    terms = errors[0]["terms"] if errors else 0
    identity = declared("scorers errors on identity terms", errors, cells=cells, terms=terms) if errors else None
    return {"proxies": agreement, "identity": identity}


ERRORS = {"false_positives": "neutral or kind, labelled prejudice", "false_negatives": "unkind, not labelled prejudice"}


def identity_errors(scorers: Mapping[str, str]) -> list[dict[str, Any]]:
    """The errors of each measured scorer on unseen terms in unseen sentences: the mean over terms, also with the term
    masked, and the gap of the term farthest from it, with its 95 % interval over sentences. Shares are in percent.
    scorers: role -> name of the configured scorer."""
    unseen = frame_of("identity/measured.csv").filter(part="unseen")
    return [
        row | {"role": role, "error": words}
        for role, scorer in scorers.items()
        for error, words in ERRORS.items()
        for row in unseen.filter(scorer=scorer, error=error).rows(named=True)
    ]
