"""Training of the crowd classifier's heads on frozen features, and its training texts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.files import replacing_folder, write
from mitigate.load.sbic import read_implied
from mitigate.score.crowd import MEANING, SHIPPED, Crowd
from mitigate.score.labels import with_labels
from mitigate.score.people import plain
from mitigate.score.precision import native_dtype
from mitigate.tasks.ratings.paper_statements import read_rated
from mitigate.train.crowd import Rows, fit_heads
from mitigate.triples import NEUTRAL, PREJUDICE, LabelCache
from mitigate.verbalise import MASK
from mitigate.words.targets import clusters, targets
from mitigate.words.word_forms import any_of
from models.encoder import Encoder
from models.heads import LABELS, fold_of
from models.minilm import locate

FOLDS_FILE = "folds.csv"
VOTES = tuple(MEANING[label] for label in LABELS)
"""The meaning of the heads' columns."""


@dataclass(frozen=True)
class Texts:
    """Texts for training and measuring."""

    rated: pl.DataFrame  # as read_rated returns it
    implied: list[str]  # masked statements of Social Bias Frames: prejudice


def train_crowd(texts: Texts, settings: Mapping[str, Any], *, folder: Path) -> dict[str, int]:
    """Train on rated statements (masked, cluster, votes, most) and implied ones, all of them prejudice, and write
    crowd/ to the folder; returns the number of parameters.

    settings: implied_weight of an implied statement, where a rated one has 1; decay and false_alarms of fit_heads."""
    rated, implied = texts.rated, texts.implied
    encoder, others = Encoder(locate(), native_dtype()), len(implied)
    of_implied = known_rows(implied, [PREJUDICE] * others, settings["implied_weight"])
    rows = Rows.joined([rated_rows(rated, vote_shares(rated)), of_implied])
    features = np.concatenate([encoder.features(rated["masked"].to_list()), encoder.features(implied)])
    neutral = np.append(rated["most"].to_numpy() == NEUTRAL, np.zeros(others, dtype=bool))
    heads = fit_heads(rows, features, neutral, settings["false_alarms"], settings["decay"])
    with replacing_folder(folder / "crowd") as part:
        heads.save(part)
        write(part / FOLDS_FILE, folds_of_targets().write_csv())
    return {"parameters": heads.weight.size + heads.bias.size + heads.threshold.size}


def vote_shares(rated: pl.DataFrame) -> np.ndarray:
    """The shares (n, 3) of VOTES among the ratings of each statement."""
    counts = [rated["votes"].list.count_matches(vote) for vote in VOTES]
    return np.stack(counts, axis=1) / rated["votes"].list.len().to_numpy()[:, None]


def rated_rows(rated: pl.DataFrame, shares: np.ndarray) -> Rows:
    """Training rows of rated statements (masked, cluster), each left out by the heads of its folds."""
    subjects = np.array([fold_of(cluster) for cluster in rated["cluster"]])
    folds = np.array([fold_of(plain(text)) for text in rated["masked"]])
    return Rows(rated["masked"].to_list(), shares, np.ones(rated.height), subjects, folds)


def known_rows(texts: Sequence[str], labels: Iterable[int], weight: float) -> Rows:
    """Training rows of texts with their labels that every head learns from."""
    shares = np.eye(len(VOTES))[[VOTES.index(label) for label in labels]]
    return Rows(texts, shares, np.full(len(texts), weight), *np.full((2, len(texts)), -1))


def folds_of_targets() -> pl.DataFrame:
    """The fold of each of the 329 targets: target, fold."""
    words = clusters()
    folds = {target: fold_of(words.get(target, target)) for target in targets()}
    return pl.DataFrame({"target": list(folds), "fold": list(folds.values())})


def label_unseen(rated: pl.DataFrame, folder: Path | None = None, *, cache: LabelCache) -> pl.DataFrame:
    """Label rated statements (target, cluster, masked, masked_neutral) by `crowd` under both templates, each by the
    classifier that left out the fold of its target. folder: None for the shipped classifier. Its folder has the folds,
    since the list of clusters may have changed after its training."""
    of_target = dict(pl.read_csv((folder or SHIPPED) / FOLDS_FILE, glob=False).iter_rows())
    rows = rated.select("target", "cluster").iter_rows()
    folds = [of_target[target] if target else fold_of(cluster) for target, cluster in rows]
    numbered = rated.with_row_index("_row").with_columns(_fold=pl.Series(folds, dtype=pl.Int64))
    parts = [
        with_labels(part, Crowd(folder, unseen=fold), cache)
        for (fold,), part in numbered.group_by("_fold", maintain_order=True)
        if isinstance(fold, int)
    ]
    return pl.concat(parts).sort("_row").drop("_row", "_fold")


def read_texts(root: Path) -> Texts:
    """Read a folder that holds humans/ and sbic/. Implied statements that the crowd rated are left out."""
    rated = read_rated(root)
    texts = set(rated["masked"])
    return Texts(rated, [text for text in implied_statements(root / "sbic") if text not in texts])


def implied_statements(folder: Path) -> list[str]:
    """Read the distinct statements of Social Bias Frames with their groups and demographic words masked; one that names
    neither gets "this person" in front, as it is about the group in the next column."""
    return list(dict.fromkeys(masked(statement, groups) for statement, groups in read_implied(folder)))


def masked(statement: str, groups: list[str]) -> str:
    """Make a statement about groups one about "this person"."""
    for group in sorted(groups, key=lambda group: (-len(group), group)):
        statement = re.sub(rf"\b{re.escape(group)}\b", MASK, statement)
    statement = re.sub(any_of(targets()), MASK, statement)
    return statement if MASK in statement else f"{MASK} {statement}"
