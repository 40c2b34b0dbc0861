"""The statements about a target that only one of two models generates, the most strongly labelled first. They show what
changed a percentage."""

import polars as pl

from mitigate.triples import FAVOURITISM, PREJUDICE


def only_in(mine: pl.DataFrame, other: pl.DataFrame, target: str, column: str, most: int = 6) -> pl.DataFrame:
    """(statement, label) of up to `most` statements about the target that `mine` has and `other` has not: first those
    that are polarised by the labels in `column`, by strength, then the others by rank."""
    key = ["relation", "tail"]
    polarised = pl.col(column).is_in([PREJUDICE, FAVOURITISM])
    return (
        mine.filter(target=target)
        .join(other.filter(target=target), on=key, how="anti", maintain_order="left")
        .sort(
            ~polarised,
            pl.when(polarised).then(-pl.col(f"{column}_strength").abs()).otherwise(0.0),
            "rank",
            maintain_order=True,
        )
        .head(most)
        .select("statement", label=column)
    )
