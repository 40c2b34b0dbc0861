"""What the crowd classifier learns from: rated statements, and what annotators of Social Bias Frames wrote down as
implied about groups. No label of another classifier is among it."""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mitigate.load.frames import read_frames
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.rated import read_rated
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of
from models.heads import fold_of

VOTES = (PREJUDICE, NEUTRAL, FAVOURITISM)


@dataclass(frozen=True)
class Texts:
    """All that is learnt from or measured on."""

    rated: pl.DataFrame  # what describe_rated returns, with fold and shares (of VOTES)
    implied: list[str]  # masked statements of Social Bias Frames: prejudice

    def digest(self) -> str:
        """The hash of their content."""
        return digest_of_values(self.rated, self.implied)


def read_texts(root: Path) -> Texts:
    """Read a folder that holds humans/ and sbic/. Implied statements that the crowd rated are left out."""
    rated = read_rated(root)
    shares = [(pl.col("votes").list.count_matches(vote) / pl.col("votes").list.len()) for vote in VOTES]
    rated = rated.with_columns(
        fold=pl.col("cluster").map_elements(fold_of, return_dtype=pl.Int64), shares=pl.concat_list(shares)
    )
    known = set(rated["masked"])
    return Texts(rated, [text for text in implied_statements(root / "sbic") if text not in known])


def implied_statements(folder: Path) -> list[str]:
    """Each distinct statement of Social Bias Frames with its groups and demographic words masked; one that names
    neither gets "this person" in front, as it is about the group that stands beside it."""
    found = (
        masked(statement, groups) for statement, groups in read_frames(folder).select("statement", "groups").iter_rows()
    )
    return list(dict.fromkeys(found))


def masked(statement: str, groups: list[str]) -> str:
    """The statement about "this person"."""
    for group in sorted(groups, key=lambda group: (-len(group), group)):
        statement = re.sub(rf"\b{re.escape(group)}\b", MASK, statement)
    statement = re.sub(any_of(targets()), MASK, statement)
    return statement if MASK in statement else f"{MASK} {statement}"
