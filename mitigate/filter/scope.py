"""Whom a policy is about: everything, people, or the 329 targets.

Knows words, not meanings: "mother board" has a mother, and "they" may be knives."""

import csv
from functools import cache
from importlib.resources import files

import polars as pl

from mitigate.targets import any_of, targets


def in_scope(scope: str) -> pl.Expr:
    """Whether a triple's head or tail has, as whole words, a target or its plural ("targets"), or such or a word of
    data/people.csv ("people"); True for "all"."""
    if scope == "all":
        return pl.lit(True)
    words = targets() if scope == "targets" else {*targets(), *people()}
    return pl.concat_str("head", "tail", separator="\n").str.contains(any_of(words))


@cache
def people() -> tuple[str, ...]:
    """Words for people: kin, ages, occupations, peoples, pronouns; with the plurals that are not regular."""
    with files("mitigate").joinpath("data/people.csv").open(encoding="utf-8") as lines:
        return tuple(row["word"] for row in csv.DictReader(line for line in lines if not line.startswith("#")))
