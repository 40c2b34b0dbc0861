"""Types that all stages share: a triple, the columns of tables between stages, and the Protocols of objects that a
recipe passes to a stage. Base layer: it imports no stage."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

PREJUDICE, NEUTRAL, FAVOURITISM, OTHER = -1, 0, 1, 2
"""The labels. OTHER ("neither, or of two minds", Sheng et al. 2019) is kept apart and counts as neutral."""

ROLES = ("sentiment", "regard")
"""The roles of the paper's two scorers, which label every statement. Any other scorer has its configured name."""

TEMPLATES = ("paper", "neutral")
"""The wordings of relations in labelled statements: the paper's, or one whose phrases have no sentiment."""

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
"""The names of splits in files, and their names here."""

STATEMENTS = {
    "target": pl.String,  # the demographic word the statement is about; null when there is none
    "category": pl.String,  # origin, gender, religion or profession; null when there is no target
    "statement": pl.String,
    "masked": pl.String,  # the statement with its demographic words replaced
    "masked_neutral": pl.String,  # the same with the relation's neutral phrase
}

HELD_OUT = "held_out"
"""Group of the heads of test triples, in place of a target's category."""
PROBED = {
    "target": pl.String,
    "category": pl.String,
    "head": pl.String,  # of the prompt: the target, or an event that names it
    "relation": pl.String,
    "tail": pl.String,  # "" when the generator ended at once
    "rank": pl.UInt16,  # 1 is the best beam
    "log_prob": pl.Float32,  # summed over the tail's tokens, its end token included
    "score": pl.Float32,  # log_prob / number of tokens, by which beams are ranked
}

IMPLIES = ", implies: "
"""The separator in a ledger's reason before a scorer's explanation, which ends the reason."""


def kind_of_reason(reason: pl.Expr) -> pl.Expr:
    """A ledger's reason without the explanation: "frames -1" of "frames -1, implies: women: are late"."""
    return reason.str.replace(f"(?s){IMPLIES}.*", "")


def valid_rows(triples: pl.DataFrame) -> pl.DataFrame:
    """The triples that their resource does not mark as not valid; without such a column all."""
    return triples.filter("valid") if "valid" in triples.columns else triples


class Labels(NamedTuple):
    """A scorer's labels of n texts."""

    label: np.ndarray  # (n,) int8, one of PREJUDICE, NEUTRAL, FAVOURITISM, OTHER
    strength: np.ndarray  # (n,) float32; VADER's compound score, or a classifier's P(+1) - P(-1): in [-1, 1]


def label_columns(scorer: str, template: str) -> tuple[str, str]:
    """The names of a scorer's label and strength columns: ("sentiment", "sentiment_strength") with the
    paper template, ("sentiment_neutral", "sentiment_neutral_strength") with the neutral one."""
    name = scorer if template == "paper" else f"{scorer}_{template}"
    return name, f"{name}_strength"


class Scorer(Protocol):
    """A scorer of texts. It gets each distinct text once, in any order."""

    @property
    def name(self) -> str:
        """The name of its labels in tables and metrics: its role, or its configured name."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash that changes whenever the same text could get another label."""
        ...

    def __call__(self, texts: Sequence[str]) -> Labels:
        """The labels of n texts, in their order."""
        ...


class LabelCache(Protocol):
    """A cache of a scorer's labels across runs and processes."""

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """The mask of cached texts, (n,) bool, and their labels; others have zeros."""
        ...

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None: ...


class Parts(Protocol):
    """Numbered partial results of one long stage, each written atomically, which survive a kill."""

    def __contains__(self, number: int) -> bool: ...

    def save(self, number: int, frame: pl.DataFrame) -> None: ...

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The saved parts in the order of their numbers, one at a time."""
        ...


def called(score: Mapping[str, Any]) -> dict[str, str]:
    """The name of each role's scorer in tables and metrics: {"sentiment": "sentiment", "regard": "regard"}. A role that
    is null is left out. A scorer that measures its role (`measures: regard` in score.scorers) has the role's name, and
    its neutral mean and variance are the paper's NRM and NRV; any other keeps its configured name: {"regard": "mine"}.
    score: the group of settings, as plain data."""
    configured = score.get("scorers")
    nodes = configured.items() if isinstance(configured, Mapping) else ()
    measures = {name: node.get("measures") for name, node in nodes if isinstance(node, Mapping)}
    given = {role: str(score[role]) for role in ROLES if score.get(role) is not None}
    has_measures = any(measures.values())
    return {role: role if not has_measures or measures.get(name) == role else name for role, name in given.items()}


def role_scorers(score: Mapping[str, Any]) -> dict[str, str]:
    """The configured scorers of the roles, by their names in results: {"sentiment": "vader", "regard": "minilm"}."""
    return {name: str(score[role]) for role, name in called(score).items()}


def fold_other(labels: np.ndarray) -> np.ndarray:
    """The labels with "other" counted as neutral, as the measures do."""
    return np.where(labels == OTHER, NEUTRAL, labels)


def majority_labels(votes: pl.Series) -> np.ndarray:
    """The label of most raters of each statement, from lists of votes, (n,); neutral where none leads."""
    labels = (PREJUDICE, NEUTRAL, FAVOURITISM)
    counts = np.column_stack([votes.list.count_matches(label).to_numpy() for label in labels])
    leads = counts == counts.max(axis=1, keepdims=True)
    return np.where(leads.sum(axis=1) > 1, NEUTRAL, np.array(labels)[counts.argmax(axis=1)])
