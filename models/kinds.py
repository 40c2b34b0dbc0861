"""The class that opens the folder of a trained generator."""

from pathlib import Path
from typing import TYPE_CHECKING

from models import hf_layouts
from models.stored_tensors import read_facts

if TYPE_CHECKING:
    from models.comet import Comet
    from models.language_model import LanguageModel
    from models.seq2seq import Seq2Seq


def kind_of(folder: Path) -> "type[Comet] | type[LanguageModel] | type[Seq2Seq]":
    """The class of what is in a Hugging Face folder, by its config.json: a generator that was trained here as what it
    was trained; of other models those that our decoder computes as a Comet, the rest as a sequence-to-sequence or
    language model.

    Raises OSError without a config.json, and ValueError for one that is no JSON."""
    config = read_facts(folder / hf_layouts.CONFIG)
    ours = {layout.fixed["model_type"] for layout in hf_layouts.LAYOUTS.values()}
    is_comet = "comet_layout" in config or ("comet_relation" not in config and config.get("model_type") in ours)
    if is_comet and not config.get("is_encoder_decoder"):
        from models.comet import Comet  # loads PyTorch

        return Comet
    # Loading transformers takes five seconds, which a Comet does without.
    from models.language_model import LanguageModel
    from models.seq2seq import Seq2Seq

    return Seq2Seq if config.get("is_encoder_decoder") else LanguageModel
