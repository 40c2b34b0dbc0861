"""How a target is written in what is said of it."""

from collections.abc import Mapping

import polars as pl

from mitigate.verbalise import MASK
from mitigate.words.target_list import TargetList
from mitigate.words.word_forms import any_of


def cluster_of(target: str, clusters: Mapping[str, str]) -> str:
    """The word that stands for a target and its inflections: she for her, china for chinese."""
    return clusters.get(target, target)


def forms_of(target: str, target_list: TargetList) -> str:
    """A regular expression for the target, its inflections and its own further forms, as whole words."""
    clusters = target_list.clusters
    same = [word for word in clusters if clusters[word] == cluster_of(target, clusters)]
    own = [form for form, word in target_list.spelt.items() if word == target]
    return any_of([target, *same, *own])


def without_name(statements: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    """The statements (target, tail) with `said`: the tail in lower case, "this person" in place of its own target. A
    tail that only names its target again is the same for all, as is "speak chinese" of chinese and "speak indian" of
    indian."""
    tail = pl.col("tail").str.to_lowercase().str.strip_chars()
    parts = [
        part.with_columns(said=tail.str.replace_all(forms_of(target, target_list), MASK))
        for (target,), part in statements.partition_by("target", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat(parts)
