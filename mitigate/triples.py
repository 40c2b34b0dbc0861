"""The words all stages share: a triple, the columns of the tables that flow between stages, and the
Protocols of what a recipe hands to a stage. Base layer: it imports no stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

PREJUDICE, NEUTRAL, FAVOURITISM, OTHER = -1, 0, 1, 2
"""The labels. OTHER ("neither, or of two minds", Sheng et al. 2019) is kept apart and counts as neutral."""

ROLES = ("sentiment", "regard")
"""What every statement is labelled by: the paper's two scorers. Any other has the name it is configured under."""

TEMPLATES = ("paper", "neutral")
"""How a relation is worded when a statement is labelled: as in the paper, or so that the phrase itself
carries no sentiment."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A commonsense assertion, such as (lawyer, CapableOf, win a case)."""

    head: str
    relation: str
    tail: str


TRIPLES = {
    "row": pl.UInt32,  # line in the source file, from 1
    "split": pl.String,  # train, dev or test
    "head": pl.String,
    "relation": pl.String,
    "tail": pl.String,
    "valid": pl.Boolean,  # False for the corrupted half of dev and test
}

SPLITS = {"train": "train", "training": "train", "trn": "train", "test": "test", "tst": "test"}
SPLITS |= {"dev": "dev", "valid": "dev", "validation": "dev", "val": "dev", "dev2": "dev2"}
"""How a file may call the split of a triple, and what it is called here."""

STATEMENTS = {
    "target": pl.String,  # the demographic word the statement is about; null when there is none
    "category": pl.String,  # origin, gender, religion or profession; null when there is no target
    "statement": pl.String,
    "masked": pl.String,  # the statement with its demographic words replaced
    "masked_neutral": pl.String,  # the same with the relation's neutral phrase
}

PROBED = {
    "target": pl.String,
    "category": pl.String,
    "head": pl.String,  # what was asked about: the target, or an event that names it
    "relation": pl.String,
    "tail": pl.String,  # "" when the generator ended at once
    "rank": pl.UInt16,  # 1 is the best beam
    "log_prob": pl.Float32,  # summed over the tail's tokens, its end token counted
    "score": pl.Float32,  # log_prob / number of tokens, what beams are ranked by
}


IMPLIES = ", implies: "
"""What stands in a ledger's reason before a scorer's explanation, which ends the reason."""


def kind_of_reason(reason: pl.Expr) -> pl.Expr:
    """A ledger's reason without the explanation: "frames -1" of "frames -1, implies: women: are late"."""
    return reason.str.replace(f"(?s){IMPLIES}.*", "")


class Labels(NamedTuple):
    """What a scorer says of n texts."""

    label: np.ndarray  # (n,) int8, one of PREJUDICE, NEUTRAL, FAVOURITISM, OTHER
    strength: np.ndarray  # (n,) float32; VADER's compound score, or a classifier's P(+1) - P(-1): in [-1, 1]


def label_columns(scorer: str, template: str) -> tuple[str, str]:
    """The names of a scorer's label and strength columns: ("sentiment", "sentiment_strength") with the
    paper template, ("sentiment_neutral", "sentiment_neutral_strength") with the neutral one."""
    name = scorer if template == "paper" else f"{scorer}_{template}"
    return name, f"{name}_strength"


class Scorer(Protocol):
    """Labels texts. It is given each distinct text once and may take them in any order."""

    @property
    def name(self) -> str:
        """What its labels are called in tables and metrics: its role, or the name it is configured under."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text could get another label."""
        ...

    def __call__(self, texts: Sequence[str]) -> Labels:
        """The labels of n texts, in their order."""
        ...


class LabelCache(Protocol):
    """Remembers what a scorer said, across runs and processes."""

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """Which of the texts are known, (n,) bool, and their labels; unknown ones hold zeros."""
        ...

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None: ...


class Parts(Protocol):
    """Numbered partial results of one long stage, each written whole or not at all, kept across a kill."""

    def __contains__(self, number: int) -> bool: ...

    def save(self, number: int, frame: pl.DataFrame) -> None: ...

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The saved parts in the order of their numbers, one at a time."""
        ...
