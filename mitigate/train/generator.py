"""Generators, opened by folder or name and trained on the triples that a ledger keeps: train."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.models import hub, minilm
from mitigate.models.comet import Comet
from mitigate.models.hf import NO_PEFT, LanguageModel, Seq2Seq
from mitigate.models.tail_prompts import TAGS, Layout
from mitigate.stages import digest_of_values
from mitigate.train import launch
from mitigate.train.base_model import Start, find_start, kind_of
from mitigate.train.comet import Examples, Log
from mitigate.train.comet import Settings as TrainingSettings
from mitigate.triples import valid_rows
from mitigate.words.relations import Relation

__all__ = ["TrainingSettings", "as_it_is", "check_training", "examples", "train_generator", "trained"]

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

    Raises MitigateError where nothing is left to train on, for relations that the generator has no wording of, and
    where the model cannot be trained."""
    if checkpoints is None:
        with TemporaryDirectory() as folder:
            more: dict[str, Any] = {"fingerprint": fingerprint, "log": log, "where": where, "tags": tags}
            return train_generator(ledger, start, settings, model=model, checkpoints=Path(folder), **more)
    rows = valid_rows(ledger.filter(pl.col("weight") > 0))
    generator = start.load()
    is_comet = isinstance(generator, Comet)
    if not is_comet and not isinstance(generator, OF_TRANSFORMERS):
        raise MitigateError(f"{type(generator).__name__} cannot be trained; start from a COMeT, or model=hf or seq2seq")
    if start.regimen.relation == "token":
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
        if start.regimen.relation == "token":
            raise MitigateError(
                "model.relation=token adds tokens to the vocabulary, which adapters do not train; set "
                "model.relation=phrase, words or name, or model.lora.rank=0"
            )


def trained(start: Start, model: Path, digest: str) -> Start:
    """The generator that train_generator saved in a folder; digest: a hash of the folder."""
    code = start.code if start.code in [kind.load for kind in OF_TRANSFORMERS] else Comet.load
    return Start(code, model, digest, start.regimen, further=start.further, comet=start.comet)


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
        folder = minilm.locate() if model is None else hub.locate(str(model))
    except (ValueError, OSError) as error:
        raise MitigateError(str(error)) from error
    how: dict[str, Any] = {"layout": layout, "relation": relation, "train": trainable, "further": own_relations}
    if model is None and trainable:
        return find_start(Comet.from_encoder, folder, options={"layout": layout, "relation": relation}, **how)
    try:
        kind = (
            kind_of(folder)
            if trainable or hub.read_facts(folder / hub.CONFIG).get("is_encoder_decoder")
            else LanguageModel
        )
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
