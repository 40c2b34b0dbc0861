"""A part of the identity terms: labelling all 11,000 texts takes most of a minute, with the same code."""

import polars as pl
import pytest

from mitigate.load.identity_terms import identity_texts


def use_few_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every twelfth term, of those to train with and of those to test with, is labelled from here on."""
    monkeypatch.setattr("mitigate.tasks.identity.identity_texts", _of_few_terms)


def _of_few_terms(mask: str) -> pl.DataFrame:
    texts = identity_texts(mask)
    few = (
        texts.drop_nulls("axis")
        .unique("term", keep="first", maintain_order=True)
        .sort("term_split", maintain_order=True)
    )
    return texts.filter(pl.col("axis").is_null() | pl.col("term").is_in(few["term"].gather_every(12).implode()))
