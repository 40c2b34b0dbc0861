"""How far labels depend on the group that a sentence names: the shipped scorers' errors on identity terms, as measured
here.

data/identity/measured.csv holds what `python -m mitigate recipe=agreement data.root=DIR` finds of the scorers that
come with the project; it is that recipe's identity_measured.csv, and a test recomputes it."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

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
        if (row := measured().get((scorer, error)))
    ]


@cache
def measured() -> dict[tuple[str, str], dict[str, str]]:
    """By scorer and error, of unseen terms in unseen frames."""
    with files("mitigate").joinpath("data/identity/measured.csv").open(encoding="utf-8") as lines:
        return {(row["scorer"], row["error"]): row for row in csv.DictReader(lines) if row["part"] == "unseen"}
