"""Generators to train or to probe, by folder or name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.tasks.generators.base_model import Start, find_start
from mitigate.words.relations import Relation
from models import gguf, minilm
from models.comet import Comet, Layout
from models.hub import is_seq2seq
from models.kinds import kind_of
from models.language_model import LanguageModel


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
        folder = minilm.locate() if model is None else gguf.locate(str(model))
    except (ValueError, OSError) as error:
        raise MitigateError(str(error)) from error
    how: dict[str, Any] = {"layout": layout, "relation": relation, "train": trainable, "further": own_relations}
    if model is None and trainable:
        return find_start(Comet.from_encoder, folder, options={"layout": layout, "relation": relation}, **how)
    try:
        kind = kind_of(folder) if trainable or is_seq2seq(folder) else LanguageModel
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
