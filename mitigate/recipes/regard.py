"""The regard classifiers that come with the project, trained from scratch: load > train > measure > card.

The n-grams are taught by the other classifier on statements of train100k that nobody has labelled."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.triples_file import read_triples
from mitigate.recipes import regard_card
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.relations import relations
from mitigate.score.regard import labels
from mitigate.store import as_parquet, digest_of
from mitigate.targets import targets
from mitigate.train import regard as training
from mitigate.train import regard_data, regard_ngram
from mitigate.verbalise import MASK, mask_column
from models.minilm import locate
from models.regard import minilm, ngram
from models.regard.minilm import MiniLMClassifier
from models.regard.ngram import NgramClassifier

STAGES = ("minilm", "taught", "ngram", "figures", "cards")


def run(config: DictConfig) -> float | None:
    """Train both classifiers and measure them; returns the macro-F1 of minilm on unseen targets."""
    root = data_root(config.data.root)
    crowd = with_masks(regard_data.read_crowd(root / "humans"))
    labelled = regard_data.read_labelled(root / "regard", kept_out=crowd["paper"].explode().to_list())
    texts = unlabelled(root, labelled)
    say(f"regard: {len(labelled):,} labelled texts, {len(texts):,} without a label, seed {config.seed}")
    source = digest_of(as_parquet(labelled) + as_parquet(crowd.select("sentence", "votes")) + "\n".join(texts).encode())
    name = f"{config.recipe.name}-seed{config.seed}"
    metrics = perform(config, name, source, STAGES, lambda job: pipeline(job, source, labelled, crowd, texts))
    return metrics["minilm/test/macro_f1"] if metrics else None


def pipeline(job: Job, source: str, labelled: pl.DataFrame, crowd: pl.DataFrame, texts: list[str]) -> dict[str, Any]:
    """The stages in their order; the classifiers are left in the folders minilm/ and ngram/ of the run."""
    encoder, settings = locate(), plain(job.config.recipe)
    folders = {name: job.folder / name for name in ("minilm", "ngram")}

    def train_minilm(_: str) -> dict[str, Any]:
        found = training.fit_minilm(labelled, encoder, seed=job.config.seed, **settings["minilm"])
        found.save(folders["minilm"])
        return {"trained": sum(value.numel() for value in found.trained().values())}

    def teach(_: str) -> pl.DataFrame:
        probabilities = MiniLMClassifier.load(folders["minilm"], encoder).probabilities(texts)
        return pl.DataFrame({"text": texts, "probabilities": probabilities})

    def train_ngram(_: str) -> dict[str, Any]:
        told = taught.table()
        found = regard_ngram.fit_ngram(
            labelled, told["text"].to_list(), told["probabilities"].to_numpy(), seed=job.config.seed, **settings["ngram"]
        )
        found.save(folders["ngram"])
        return {"trained": found.weight.size + found.bias.size}

    def measure(_: str) -> dict[str, Any]:
        shipped = {
            "minilm": MiniLMClassifier.load(folders["minilm"], encoder),
            "ngram": NgramClassifier.load(folders["ngram"]),
        }
        return {
            f"{name}/{key}": value
            for name, classifier in shipped.items()
            for key, value in figures(classifier, labelled, crowd).items()
        }

    code = [training, regard_data, minilm]
    first = job.stage(
        "minilm", train_minilm, needs=[source], settings=settings["minilm"], code=code, leaves=["minilm"]
    )
    taught = job.stage("taught", teach, needs=[first.digest], code=[minilm])
    code = [regard_ngram, ngram]
    second = job.stage(
        "ngram", train_ngram, needs=[taught.digest], settings=settings["ngram"], code=code, leaves=["ngram"]
    )
    metrics = job.stage("metrics", measure, needs=[first.digest, second.digest], code=[regard_figures])
"""
"""
