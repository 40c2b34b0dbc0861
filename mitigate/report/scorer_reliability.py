"""Measured agreement of the shipped scorers with people, for datasheets: data/agreement_measured.csv holds what
`python -m mitigate recipe=agreement data.root=DIR` finds, that recipe's measured.csv, which tests recompute."""

from mitigate.package_data import rows_of

RESOURCES = ("ConceptNet", "GenericsKB", "COMeT")
ERRORS = {"false_positives": "neutral or kind, labelled prejudice", "false_negatives": "unkind, not labelled prejudice"}


def measured() -> dict[tuple[str, str], dict[str, float]]:
    """(resource, scorer in the configuration) -> measure ("prejudice/f1") -> value, from 0 to 1."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("agreement_measured.csv"):
        found.setdefault((row["resource"], row["scorer"]), {})[row["measure"]] = float(row["value"])
    return found
