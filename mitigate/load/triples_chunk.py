"""What every loader of triples does with the three fields once it has them: relations are known by their names, blanks
are bad lines, underscores are spaces."""

from functools import cache
from pathlib import Path

import polars as pl

from mitigate.load.stream import MOST_NAMES, Chunk, Met, bad
from mitigate.relations import relations

OTHER_LANGUAGE = "neither end is English"
ONE_END = "one end is not English (another language, or an address)"


def triples_chunk(path: Path, frame: pl.DataFrame, met: Met, names: dict[str, str] | None = None) -> Chunk:
    """The rows (row, head, relation, tail) as TRIPLES, all valid and of split train; case is folded, as in the harms
    paper, and repeats stay. Rows with a relation that has no phrase are counted in `met`, blank fields are bad lines.

    names: what relations of relations.csv are called in this resource, where that is not their name."""
    plain = frame.with_columns(
        pl.col("head", "tail").str.replace_all("_", " ", literal=True).str.strip_chars().str.to_lowercase(),
        pl.col("relation").str.strip_chars(),
    )
    blank = pl.any_horizontal(pl.col("head", "relation", "tail").fill_null("") == "")
    faulty = plain.filter(blank)
    bad(met, (f"{path}:{row}: a blank field" for row in faulty["row"]))
    plain = plain.filter(~blank)
    spelt = pl.col("relation").str.to_lowercase().str.strip_prefix("/r/").str.replace_all(r"[ _]", "")
    named = plain.with_columns(
        known=spelt.replace_strict(_spellings() | (names or {}), default=None, return_dtype=pl.String)
    )
    unknown = named.filter(pl.col("known").is_null())["relation"].value_counts(sort=True)
    for name, count in unknown.head(MOST_NAMES).iter_rows():
        met["relation", name] += count
    if others := sum(unknown["count"][MOST_NAMES:]):
        met["relation", "others"] += others
    rows = named.drop_nulls("known").select(
        "row",
        split=pl.lit("train"),
        head="head",
        relation="known",
        tail="tail",
        valid=pl.lit(True),
    )
    return Chunk(rows, +met)


@cache
def _spellings() -> dict[str, str]:
    """Relation as it may be spelt, in lower case without gaps -> its name."""
    return {name.lower(): name for name in relations()}
