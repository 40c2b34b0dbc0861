"""Training of a language model on the sentences of a resource, so that its stories follow them (as CSG on ConceptNet,
Guan et al. 2020): the loss is over all their tokens."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from torch import nn

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.models.hf import LanguageModel
from mitigate.train.base_model import Start
from mitigate.train.comet import Examples, Settings, TailModule, fit_module

SENTENCES = 5  # of a text, as many as of a story


class Reader(nn.Module):
    """A language model whose tails are whole texts, with the methods that training asks for."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model, self.nll = model, model.nll
        before = model.tokenizer("")["input_ids"]
        self.start = [int(token) for token in before] or [model.end]  # as GPT-2 begins texts

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before each text: its start, for every head and phrase."""
        return [self.start for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, cut where the model's positions end, and END."""
        positions = self.model.positions
        most = None if positions is None else positions - len(self.start)
        texts = self.model.tokenizer(list(tails), add_special_tokens=False)["input_ids"] if tails else []
        return [[*text[:most], self.model.end] for text in texts]


def train_on_sentences(
    ledger: pl.DataFrame, start: Start, settings: Settings, *, model: Path, checkpoints: Path, **how: Any
) -> dict[str, Any]:
    """Train the start as a language model on the statements of the ledger's valid triples, by their weights, and save
    it in the folder `model`. Returns the fields of train.comet.Fitted.

    ledger: what apply_policy returns. checkpoints: a folder from which a killed training resumes if it holds one of
    this fingerprint. how: fingerprint, accelerator and log, as fit_module takes them. The perplexity is that of the dev
    texts, per token, None without any. Raises MitigateError where nothing is left to train on, and where the checkpoint
    is of another training."""
    rows = ledger.filter(pl.col("weight") > 0, "valid")
    generator = as_language_model(start.load())
    generator.begin_training()
    train, dev = (paragraphs(rows.filter(split=split)) for split in ("train", "dev"))
    if not train.tails:
        raise MitigateError("no text is left to train on; choose another policy or more data")
    module = TailModule(Reader(generator), train, settings)
    fitted = fit_module(module, checkpoints, dev=[dev] if dev.tails else [], **how)
    generator.end_training()
    with replacing_folder(model) as part:
        generator.save(part, as_comet=False)
    return fitted._asdict()


def as_language_model(loaded: Any) -> LanguageModel:
    """Return a loaded model as one that continues any text: the decoder of a COMeT is a language model once it is saved
    as one."""
    if isinstance(loaded, LanguageModel):
        return loaded
    with tempfile.TemporaryDirectory(prefix="mitigate-") as folder:
        loaded.save(Path(folder))
        return LanguageModel.load(Path(folder))


def paragraphs(rows: pl.DataFrame) -> Examples:
    """Join rows of a ledger to texts: the statements about one head, up to SENTENCES a text, with the mean of their
    weights; as tails without a head."""
    place = (pl.int_range(pl.len()).over("head") // SENTENCES).alias("place")
    texts = rows.group_by("head", place, maintain_order=True).agg(
        text=pl.col("statement").str.join(". ") + ".", weight=pl.col("weight").cast(pl.Float64).mean()
    )
    nothing = [""] * texts.height
    return Examples(nothing, nothing, texts["text"].to_list(), texts["weight"].to_numpy())
