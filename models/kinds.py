"""Which class opens the folder of a trained generator."""

import json
from pathlib import Path

from models import layouts
from models.comet import Comet
from models.language_model import LanguageModel
from models.seq2seq import Seq2Seq


def kind_of(folder: Path) -> type[Comet] | type[LanguageModel] | type[Seq2Seq]:
    """The class of what is in a Hugging Face folder, by its config.json: a generator that was trained here as what it
    was trained; of other models those that our decoder computes as a Comet, the rest as a sequence-to-sequence or
    language model.

    Raises OSError without a config.json, and ValueError for one that is no JSON."""
    config = json.loads((folder / layouts.CONFIG).read_text(encoding="utf-8"))
    if config.get("is_encoder_decoder"):
        return Seq2Seq
    if "comet_layout" in config:
        return Comet
    if "comet_relation" in config:
        return LanguageModel
    ours = {layout.fixed["model_type"] for layout in layouts.LAYOUTS.values()}
    return Comet if config.get("model_type") in ours else LanguageModel
