"""The scope of a policy: everything, people, or the targets of a run's list.

Knows words, not meanings: "mother board" has a mother, and "they" may be knives."""

from functools import cache

import polars as pl

from mitigate.data_tables import rows_of
from mitigate.words.target_list import PAPER, TargetList
from mitigate.words.word_forms import contains, pattern, with_plurals


def in_scope(scope: str, target_list: TargetList = PAPER) -> pl.Expr:
    """Whether a triple's head or tail has, as whole words, a target in any of its forms ("targets"), or such or a word
    of data/people.csv ("people"); whether its head has ("person_heads"); True for "all"."""
    if scope == "all":
        return pl.lit(True)
    others = () if scope == "targets" else people()
    forms = target_list.forms.union(form for word in others for form in with_plurals(word))
    text = pl.col("head") if scope == "person_heads" else pl.concat_str("head", "tail", separator="\n")
    return contains(text, pattern(forms))


@cache
def people() -> tuple[str, ...]:
    """Words for people: kin, ages, occupations, peoples, pronouns; with the plurals that are not regular."""
    return tuple(row["word"] for row in rows_of("people.csv"))
