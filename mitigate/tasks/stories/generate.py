"""Stories that a generator writes for prompts: probe."""

from pathlib import Path

import polars as pl

from mitigate.probe.stories import Sampling, sample_stories
from mitigate.tasks.base_model import Start
from mitigate.tasks.stories.train import as_language_model
from mitigate.triples import Parts
from models.language_model import LanguageModel

__all__ = ["Sampling", "generate_stories"]


def generate_stories(
    prompts: pl.DataFrame, start: Start, how: Sampling, *, model: Path | None = None, parts: Parts, device: str = "cpu"
) -> pl.DataFrame:
    """The prompts (prompts.prompts) with `story`: its whole sentences, "" where there is none.

    model: the folder of the trained start; None: the start as it is. parts: stories that are there already. Raises
    MitigateError for prompts that are too long for the model."""
    generator = as_language_model(start.load()) if model is None else LanguageModel.load(model)
    return sample_stories(generator, prompts, how, parts=parts, device=device)
