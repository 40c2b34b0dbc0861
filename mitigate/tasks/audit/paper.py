"""The harms paper's figures of the resources that it audited, and what is known of the differences from them."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import polars as pl

from mitigate.tasks.audit.measures import value_of


def paper_figures(resource: str) -> pl.DataFrame:
    """The paper's figures of a resource (place, figure, key, value), from data/paper_audit.csv."""
    return _read("paper_audit.csv", resource).cast({"value": pl.Float64})


def paper_notes(resource: str) -> list[str]:
    """What is known of the differences from the paper's figures, from data/paper_audit_notes.csv: figures with
    measure=paper."""
    return _read("paper_audit_notes.csv", resource)["note"].to_list()


def beside_the_paper(metrics: Mapping[str, Any], stated: pl.DataFrame) -> pl.DataFrame:
    """The paper's figures with ours (place, figure, key, paper, ours); in all of them a target without statements
    counts as 0 %. stated: what paper_figures returns."""
    ours = [value_of(metrics, key, "zero") for key in stated["key"]]
    return stated.rename({"value": "paper"}).with_columns(ours=pl.Series(ours, dtype=pl.Float64)).drop_nulls("ours")


def _read(name: str, resource: str) -> pl.DataFrame:
    with files("mitigate").joinpath("data", name).open("rb") as lines:
        return pl.read_csv(lines, infer_schema=False).filter(resource=resource).drop("resource")
