"""What a run on Social Bias Frames knows, has read and has checked before its first stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import torch
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.root import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.frames.forms import check_start
from mitigate.tasks.frames.posts import check, read_posts
from mitigate.tasks.frames.training import Start, fold_numbers
from mitigate.tasks.rated import read_rated
from mitigate.train.frames import Settings
from models.digests import sha256_of
from models.layouts import WEIGHTS

FOLDER, RATED = "sbic", "humans"
SOURCE = "the Social Bias Inference Corpus (docs/frames.md lists its files)"
RESAMPLES = 2000  # at most: there are thousands of posts


@dataclass(frozen=True)
class Plan:
    """All that is known and checked before the first stage."""

    annotations: pl.DataFrame
    posts: pl.DataFrame
    start: Start
    weights: Path | None
    settings: Settings
    fold_settings: Settings
    samples: int  # that texts are chosen from
    device: str
    intervals: Bootstrap  # over posts
    source: str  # the hash of posts and start
    rated: pl.DataFrame | None  # statements about targets (sentence, target, category); None where humans/ is not there

    @property
    def folds(self) -> Sequence[int]:
        """The folds that are trained."""
        return fold_numbers(self.posts)


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    how = config.frames
    if how.device == "cuda" and not torch.cuda.is_available():
        raise MitigateError("frames.device=cuda: PyTorch finds no GPU here; set frames.device=cpu or auto")
    weights = None if how.weights is None else Path(how.weights)
    start = Start(how.start, how.reading, how.dropout, _digest(how.start, weights))
    check_start(how.start, weights)
    shared = {"batch_size": how.batch_size, "warmup": how.warmup, "seed": config.seed}
    shared["checkpoint_every"] = how.checkpoint_every
    root = root_with(config.data.root, [FOLDER], SOURCE)
    annotations, posts = read_posts(root / FOLDER)
    check(posts)
    return Plan(
        annotations=annotations,
        posts=posts,
        start=start,
        weights=weights,
        settings=Settings(epochs=how.epochs, lr=how.lr, **shared),
        fold_settings=Settings(epochs=how.fold_epochs, lr=how.fold_lr, **shared),
        samples=how.samples,
        device=how.device,
        intervals=Bootstrap(resamples=min(config.measure.resamples, RESAMPLES), seed=config.seed),
        source=digest_of_values(annotations, posts, start),
        rated=read_rated(root).select("sentence", "target", "category") if (root / RATED).is_dir() else None,
    )


def _digest(kind: str, weights: Path | None) -> str:
    """The hash of the weights that are started from. Raises MitigateError where there are none."""
    if kind == "minilm":
        return ""  # known by its own hash
    if weights is None or not (weights / WEIGHTS).is_file():
        raise MitigateError(
            f"frames.start=model needs frames.weights=DIR with {WEIGHTS} of a GPT-1 or GPT-2; found {weights}"
        )
    return sha256_of(weights / WEIGHTS)
