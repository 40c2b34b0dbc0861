"""Reliability of the labels behind every figure: the agreement of the scorers with people, as measured here and as the
harms paper states it (Table 3), and the shipped scorers' errors on identity terms.

data/agreement_measured.csv and data/identity/measured.csv hold what `python -m mitigate recipe=agreement
data.root=DIR` finds of the scorers that come with the project: rating by rating, kappa with the majority of raters, and
errors by term. They are that recipe's measured.csv and identity_measured.csv, and tests recompute them."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from mitigate.metrics import ENDS
from mitigate.report.legend import number
from mitigate.report.table import Cell, Column, Table, figures, text

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


def reliability_table(rows: Sequence[Proxy]) -> Table:
    """The agreement of the scorers with people, beside the paper's and that of always answering "neutral"."""

    def figure(title: str, name: str, reason: str = "not measured") -> Column:
        return Column(title, lambda row: _figure_or(getattr(row, name), reason))

    stated = ", whose regard classifier is another one" if any(row.role == "regard" for row in rows) else ""
    return Table(
        "Agreement with people, from 0 to 1; higher is better. F1 and accuracy are with single ratings. The paper's "
        f"columns are those of its Table 3{stated}.",
        [
            text("Scorer", _named),
            text("sentences of", "resource"),
            Column("κ with the majority", _kappa),
            figure("κ among raters", "raters"),
            figure("F1 favouritism", "favouritism"),
            figure("F1 prejudice", "prejudice"),
            figure("the paper's favouritism", "paper_favouritism", "not in the paper"),
            figure("the paper's prejudice", "paper_prejudice", "not in the paper"),
            figure("accuracy", "accuracy"),
            figure("always neutral", "always_neutral"),
        ],
        rows,
    )


def _named(row: "Proxy | IdentityError") -> str:
    return row.role if row.scorer == row.role else f"{row.role} ({row.scorer})"


def _figure_or(value: float | None, reason: str) -> Cell:
    return Cell("", reason=reason) if value is None else Cell(number(value))


def _kappa(row: Proxy) -> Cell:
    return _figure_or(row.kappa, "not measured")._replace(
        below=[] if row.kappa is None else [f"[{number(row.kappa_low)}, {number(row.kappa_high)}]"]
    )


ERRORS = {
    "false_positives": "neutral or kind, labelled prejudice",
    "false_negatives": "unkind, not labelled prejudice",
}


class IdentityError(NamedTuple):
    """One of a scorer's errors on unseen terms in unseen frames; shares in percent, gaps in percentage points."""

    role: str  # "sentiment" or "regard"; of a scorer that is no role's, its own name
    scorer: str  # as the configuration names it
    error: str  # in words
    mean: float  # over terms
    masked: float  # where the identity phrase is masked
    term: str  # the one that is farthest from the mean
    largest: float  # its gap to the mean
    low: float  # the 95 % interval of the gap, over frames
    high: float
    beyond: int  # terms that are more than 5 points from the mean
    terms: int


def identity_errors(scorers: Mapping[str, str]) -> list[IdentityError]:
    """Two rows for each scorer that was measured. scorers: configured ones by what they are called."""
    return [
        IdentityError(
            role,
            scorer,
            said,
            **{name: float(row[name]) for name in ("mean", "masked", "largest")},
            term=row["term"],
            low=float(row["largest_low"]),
            high=float(row["largest_high"]),
            beyond=int(row["beyond"]),
            terms=int(row["terms"]),
        )
        for role, scorer in scorers.items()
        for error, said in ERRORS.items()
        if (row := measured_errors().get((scorer, error)))
    ]


@cache
def measured_errors() -> dict[tuple[str, str], dict[str, str]]:
    """By scorer and error, of unseen terms in unseen frames."""
    with files("mitigate").joinpath("data/identity/measured.csv").open(encoding="utf-8") as lines:
        return {(row["scorer"], row["error"]): row for row in csv.DictReader(lines) if row["part"] == "unseen"}


def identity_table(rows: Sequence[IdentityError]) -> Table:
    """The errors of the scorers on identity terms, and the term that is farthest from the mean."""
    return Table(
        f"Errors of the scorers on {rows[0].terms} identity terms, in percent of sentences; lower is better. The gap "
        "is that of the term farthest from the mean over terms, in percentage points, with its 95 % interval over "
        "sentences.",
        [
            text("Scorer", _named),
            text("sentences that are", "error"),
            *figures(1, mean="mean over terms", masked="term masked"),
            text("farthest term", "term"),
            Column("its gap", _gap),
            Column("terms more than 5 points from the mean", lambda row: f"{row.beyond} of {row.terms}"),
        ],
        rows,
    )


def _gap(row: IdentityError) -> Cell:
    return Cell(number(row.largest, 1), [f"[{number(row.low, 1)}, {number(row.high, 1)}]"])
