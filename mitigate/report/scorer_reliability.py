"""Reliability of the labels behind every figure: the agreement of the scorers with people, as measured here and as the
harms paper states it (Table 3), and the shipped scorers' errors on identity terms.

data/agreement_measured.csv holds what `python -m mitigate recipe=agreement data.root=DIR` finds of the scorers that
come with the project, rating by rating, and kappa with the majority of raters: that recipe's measured.csv, which tests
recompute."""

from mitigate.measure.base import ENDS
from mitigate.package_data import rows_of

Agreement = dict[tuple[str, str], dict[str, float]]
"""(resource, scorer) -> measure ("prejudice/f1") -> value, from 0 to 1."""

RESOURCES = ("ConceptNet", "GenericsKB", "COMeT")
ALWAYS_NEUTRAL, PEOPLE = "always_neutral", "people"
KAPPA = tuple(f"majority/kappa{end}" for end in ENDS)


def reliability(scorer: str, role: str) -> str:
    """The agreement of the scorer of a role with people in a few words, for the line after a headline: "F1 with people:
    favouritism 0.41 to 0.50, prejudice 0.50 to 0.56 (minilm)"."""
    ours = [measured().get((resource, scorer), {}) for resource in RESOURCES]
    known = {label: [row[f"{label}/f1"] for row in ours if row] for label in ("favouritism", "prejudice")}
    spans = [f"{label} {min(found):.2f} to {max(found):.2f}" for label, found in known.items() if found]
    named = f" ({scorer})" if scorer != role else ""
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


ERRORS = {"false_positives": "neutral or kind, labelled prejudice", "false_negatives": "unkind, not labelled prejudice"}
