"""Generators, opened by folder or name and trained on the triples of a ledger, or for stories on their statements."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from torch import nn

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.models import hub
from mitigate.models.comet import Comet
from mitigate.models.hf import NO_PEFT, LanguageModel, Seq2Seq
from mitigate.models.stored_tensors import CONFIG, minilm_folder, read_facts
from mitigate.models.tail_prompts import TAGS, Layout
from mitigate.stages import digest_of_values
from mitigate.train import launch
from mitigate.train.base_model import Start, class_of, find_start
from mitigate.train.comet import Examples, Log, TailModule, fit_module
from mitigate.train.comet import Settings as TrainingSettings
from mitigate.triples import valid_rows
from mitigate.words.relations import Relation

__all__ = ["TrainingSettings", "as_it_is", "as_language_model", "check_training", "examples", "train_generator"]
__all__ += ["train_on_sentences", "trained"]

OF_TRANSFORMERS = (LanguageModel, Seq2Seq)
"""Classes besides Comet with models that can be trained; each loads what it saves."""

SETTINGS = TrainingSettings()
WHERE: Mapping[str, Any] = {"accelerator": "cpu", "devices": 1, "strategy": "auto"}


def train_generator(
    ledger: pl.DataFrame,
    start: Start,
    settings: TrainingSettings = SETTINGS,
    *,
    model: str | Path,
    checkpoints: Path | None = None,
    fingerprint: str | None = None,
    log: Log | None = None,
    where: Mapping[str, Any] = WHERE,
    tags: str | None = None,
) -> dict[str, Any]:
    """Train the start on the ledger's training triples by their weights, and save it in the folder `model`, for
    transformers and for open_generator. Returns the fields of train.comet.Fitted: steps, seconds, loss, perplexity.

    ledger: what apply_policy returns; a column `valid` leaves out the triples that are not. checkpoints: a folder from
    which a killed training resumes if it holds one of this fingerprint; None: it begins anew. fingerprint: of all that
    changes the result; None: that of the arguments. log gets numbers and the step they belong to. where: accelerator,
    devices and strategy, as launch.fit takes them. tags: of a ledger with control tokens (column `token`), the heads
    that get them (policy.tags).

    Raises MitigateError without training triples, for relations that the generator has no wording of, and for a model
    that cannot be trained."""
    if checkpoints is None:
        with TemporaryDirectory() as folder:
            more: dict[str, Any] = {"fingerprint": fingerprint, "log": log, "where": where, "tags": tags}
            return train_generator(ledger, start, settings, model=model, checkpoints=Path(folder), **more)
    rows = valid_rows(ledger.filter(pl.col("weight") > 0))
    generator = start.load()
    is_comet = isinstance(generator, Comet)
    if not is_comet and not isinstance(generator, OF_TRANSFORMERS):
        raise MitigateError(f"{type(generator).__name__} cannot be trained; start from a COMeT, or model=hf or seq2seq")
    if start.prompt_format.relation == "token":
        generator.add(list(start.phrases.values()))
    if tags is not None:
        generator.add(TAGS)
        generator.tags = tags
    if not is_comet:
        generator.begin_training()
    fitted = launch.fit(
        generator,
        examples(rows.filter(split="train"), start.phrases),
        settings,
        checkpoints,
        fingerprint=fingerprint or digest_of_values(ledger, start, settings),
        dev=examples(rows.filter(split="dev"), start.phrases),
        log=log,
        **where,
    )
    if not is_comet:
        generator.end_training()
    with replacing_folder(Path(model)) as part:
        generator.save(part)
    return fitted._asdict()


def as_it_is(start: Start) -> dict[str, Any]:
    """Facts of a generator that is not trained, in place of what train_generator returns."""
    return {"trained": False, "weights": start.weights}


def check_training(start: Start, *, strategy: str, **_: Any) -> None:
    """Raise MitigateError for ways of training that the start's model does not support."""
    if start.code not in [kind.load for kind in OF_TRANSFORMERS]:
        return
    if strategy == "fsdp":
        raise MitigateError(
            "trainer.strategy=fsdp (allowed: auto or ddp): only the project's own decoder (model=comet_minilm, "
            "comet_gpt1 or comet) is trained so, and this model is from transformers"
        )
    if start.options.get("lora"):
        if find_spec("peft") is None:
            raise MitigateError(NO_PEFT)
        if start.prompt_format.relation == "token":
            raise MitigateError(
                "model.relation=token adds tokens to the vocabulary, which adapters do not train; set "
                "model.relation=phrase, words or name, or model.lora.rank=0"
            )


def trained(start: Start, model: Path, digest: str) -> Start:
    """The generator that train_generator saved in a folder; digest: a hash of the folder."""
    code = start.code if start.code in [kind.load for kind in OF_TRANSFORMERS] else Comet.load
    return Start(code, model, digest, start.prompt_format, further=start.further, comet=start.comet)


def examples(rows: pl.DataFrame, wordings: Mapping[str, str]) -> Examples:
    """Return rows of a ledger as training examples, relations worded as in prompts, heads after their control token if
    they have one. Raises MitigateError for relations without such a wording."""
    if unknown := sorted(set(rows["relation"]) - set(wordings)):
        raise MitigateError(
            f"training triples have unknown relations: {', '.join(unknown)}; allowed: {', '.join(wordings)}. Leave the "
            "other triples out"
        )
    tokens = rows["token"].to_list() if "token" in rows.columns else [None] * rows.height
    return Examples(
        heads=[f"{token} {head}" if token else head for token, head in zip(tokens, rows["head"], strict=True)],
        phrases=[wordings[relation] for relation in rows["relation"]],
        tails=rows["tail"].to_list(),
        weights=rows["weight"].to_numpy(),
    )


def open_generator(
    model: str | Path | None = None,
    *,
    trainable: bool = True,
    layout: Layout | None = None,
    relation: str | None = None,
    own_relations: Sequence[Relation] = (),
) -> Start:
    """Open a generator for train_generator and probe_generator, which load it when they need it.

    model: the folder that train_generator wrote, or the folder, hub name or GGUF file of a causal language model or a
    sequence-to-sequence model; None: a small decoder that starts from all-MiniLM-L6-v2 (model=comet_minilm). A GPT-1,
    GPT-2 or bert-generation is computed by the project's own decoder, any other by transformers. trainable=False: it is
    probed as it is, by transformers. layout ("packed", "comet") and relation ("phrase", "words", "token", "name"): of
    its prompts, "comet" by the project's own decoder alone; None: as it was trained. own_relations: those that it is
    trained on or probed with besides COMeT's 34.

    Raises MitigateError for a model that is not found, was trained with other prompts, or cannot be prompted so."""
    try:
        folder = minilm_folder() if model is None else hub.locate(str(model))
    except (ValueError, OSError) as error:
        raise MitigateError(str(error)) from error
    how: dict[str, Any] = {"layout": layout, "relation": relation, "train": trainable, "further": own_relations}
    if model is None and trainable:
        return find_start(Comet.from_encoder, folder, options={"layout": layout, "relation": relation}, **how)
    try:
        is_plain = not trainable and not read_facts(folder / CONFIG).get("is_encoder_decoder")
        kind = LanguageModel if is_plain else class_of(folder)
    except (ValueError, OSError) as error:
        raise MitigateError(f"{folder} is not a model folder ({error})") from error
    if kind is Comet:
        return find_start(Comet.load, folder, options={"layout": layout, "relation": relation}, **how)
    if layout == "comet":
        raise MitigateError(
            f"layout='comet' does not apply to the model in {folder}, whose prompt is one text without the fixed "
            "places of the original COMeT; set layout='packed', or leave layout out"
        )
    return find_start(kind.load, folder, options={"relation": relation} if relation else {}, **how)


# A language model learns the sentences of a resource, so that its stories follow them (as CSG on ConceptNet, Guan et
# al. 2020): the loss is over all their tokens.

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
    ledger: pl.DataFrame, start: Start, settings: TrainingSettings, *, model: Path, checkpoints: Path, **how: Any
) -> dict[str, Any]:
    """Train the start as a language model on the statements of the ledger's valid triples, by their weights, and save
    it in the folder `model`. Returns the fields of train.comet.Fitted.

    ledger: what apply_policy returns. checkpoints: a folder from which a killed training resumes if it holds one of
    this fingerprint. how: fingerprint, accelerator and log, as fit_module takes them. The perplexity is that of the dev
    texts, None without any. Raises MitigateError where no text is left, and for a checkpoint of another training."""
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
    """Return a loaded model as one that continues any text. A COMeT becomes one when it is saved and loaded again."""
    if isinstance(loaded, LanguageModel):
        return loaded
    with TemporaryDirectory(prefix="mitigate-") as folder:
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
