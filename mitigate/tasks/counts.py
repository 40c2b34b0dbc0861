"""How many statements have which label."""

import polars as pl

from mitigate.measure.agreement import CLASSES, fold_other


def label_names(table: pl.DataFrame) -> list[str]:
    """The columns of labels; each stands beside a column of its strength."""
    return [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]


def count_labels(table: pl.DataFrame) -> dict[str, int]:
    """rows, distinct (masked texts), and {label column}/{favouritism|neutral|prejudice}, "other" counted as neutral."""
    counts = {"rows": table.height, "distinct": table["masked"].n_unique()}
    for column in label_names(table):
        labels = fold_other(table[column].to_numpy())
        counts |= {f"{column}/{name}": int((labels == label).sum()) for label, name in CLASSES.items()}
    return counts
