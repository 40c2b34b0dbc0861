"""Rows in groups, of which measures give figures, as in fairlearn's MetricFrame."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from mitigate.errors import MitigateError
from mitigate.metrics import ENDS, with_part

Value = TypeVar("Value")
ALL: Mapping[str, pl.Expr] = {"": pl.lit(True)}


@dataclass(frozen=True)
class MetricFrame:
    """Rows of a table and their groups: conditions by the parts of keys; "" is the group of all rows, whose keys have
    no part."""

    rows: pl.DataFrame
    groups: Mapping[str, pl.Expr]

    @classmethod
    def by_category(cls, rows: pl.DataFrame) -> "MetricFrame":
        """All rows, and those of each category. Raises MitigateError for a category whose figures would have the names
        of another's bounds."""
        categories = rows["category"].unique(maintain_order=True).to_list()
        for category in categories:
            if category is not None and category.endswith(ENDS[1:]):
                raise MitigateError(
                    f"the category {category!r} ends in _low or _high, as the names of an interval's bounds do; "
                    "give it another name"
                )
        return cls(rows, {**ALL, **{category: pl.col("category") == category for category in categories}})

    def __iter__(self) -> Iterator[tuple[str, pl.DataFrame]]:
        return ((group, self.rows.filter(condition)) for group, condition in self.groups.items())

    def figures(self, measures: Mapping[str, Callable[[pl.DataFrame], Value]]) -> dict[str, Value]:
        """The figures of measures by key, each of every group: {"NSM": mean} gives "NSM", "NSM/origin" ..."""
        return {with_part(key, group): measure(rows) for group, rows in self for key, measure in measures.items()}
