"""What two models say of a target, so that a reader sees what moved a percentage: the statements that only one of them
makes, the most strongly labelled first."""

import polars as pl

from mitigate.triples import FAVOURITISM, PREJUDICE


def only_in(mine: pl.DataFrame, other: pl.DataFrame, target: str, column: str, most: int = 6) -> pl.DataFrame:
    """(statement, label) of up to `most` statements of `mine` about the target that `other` does not make; those that
    the labels in `column` call polarised come first, by strength, then the others by rank."""
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
