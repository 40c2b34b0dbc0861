"""Training of forms on frames: on the training split, and then, if implied statements exist for test posts alone, on
four fifths of these posts for each of five folds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.files import replacing_folder
from mitigate.tasks.frames.form_examples import examples, learnable_choices, start_form
from mitigate.tasks.frames.posts import FOLDS, share_of
from mitigate.train.frames import Settings, fit
from mitigate.words.frames import CHOICES
from models.form import Form, Reads

BASE = "base"
SHORTER = 1 / 3
"""Posts without implied statements that a fold is trained on, as a share of those that have some."""


@dataclass(frozen=True)
class Start:
    """A form before training."""

    kind: str  # minilm, or model: the GPT-1 or GPT-2 of a folder
    reads: Reads
    dropout: float = 0.1
    weights: str = ""  # the hash of the folder's weights


def train_base(
    posts: pl.DataFrame, start: Start, settings: Settings, *, folder: Path, weights: Path | None = None, **how: Any
) -> dict[str, Any]:
    """Train on the posts of the split `train` and save in {folder}/models/base. weights: the folder that the start is
    read from. how: fingerprint, accelerator and log, as train.frames.fit takes them. Text fields allow the words of all
    posts' groups and statements, without learning their use."""
    form = start_form(start.kind, weights, start.reads, learnable_choices(posts), start.dropout)
    form.restrict(form.words_of([text for column in ("groups", "implied") for row in posts[column] for text in row]))
    learnt = examples(form, posts.filter(pl.col("split") == "train"))
    return _fitted(form, learnt, settings, BASE, folder, **how)


def train_fold(posts: pl.DataFrame, fold: int, settings: Settings, *, folder: Path, **how: Any) -> dict[str, Any]:
    """Train {folder}/models/base further on test posts of all other folds and save in {folder}/models/fold_{fold}:
    those with implied statements, and a third as many of the others. how: as train_base."""
    form = Form.load(folder / "models" / BASE)
    learnt = examples(form, fold_posts(posts, fold))
    return _fitted(form, learnt, settings, f"fold_{fold}", folder, **how)


def fold_posts(posts: pl.DataFrame, fold: int) -> pl.DataFrame:
    """The posts that a fold's model learns from."""
    others = posts.filter(pl.col("fold").is_not_null(), pl.col("fold") != fold)
    has_implied = pl.col("implied").list.len() > 0
    implied, rest = others.filter(has_implied), others.filter(~has_implied)
    order = rest["key"].map_elements(lambda key: share_of(key, "drawn"), return_dtype=pl.Float64)
    return pl.concat([implied, rest[order.arg_sort().head(round(SHORTER * implied.height))]])


def needs_folds(posts: pl.DataFrame) -> bool:
    """Return whether implied statements exist for test posts alone."""
    implied = posts.filter(pl.col("implied").list.len() > 0)
    return implied.height > 0 and (implied["split"] == "test").all()


def fold_numbers(posts: pl.DataFrame) -> list[int]:
    """The folds to train; none where training posts have implied statements."""
    return list(range(FOLDS)) if needs_folds(posts) else []


def _fitted(form: Form, learnt: list[Any], settings: Settings, name: str, folder: Path, **how: Any) -> dict[str, Any]:
    fitted = fit(form, learnt, settings, folder / "checkpoints" / name, **how)
    with replacing_folder(folder / "models" / name) as part:
        form.save(part)
    return {**fitted._asdict(), "learnt": [choice for choice in CHOICES if choice in form.known]}
