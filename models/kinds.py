"""Which class opens the folder of a trained generator."""

import json
from pathlib import Path

from models import layouts
from models.comet import Comet
from models.language_model import LanguageModel


def kind_of(folder: Path) -> type[Comet] | type[LanguageModel]:
    """The class of what is in a Hugging Face folder, by its config.json: a generator that was trained here as what it
    was trained; of other models those that our decoder computes as a Comet, the rest as a language model.

    Raises OSError without a config.json, and ValueError for one that is no JSON."""
    config = json.loads((folder / layouts.CONFIG).read_text(encoding="utf-8"))
    if "comet_layout" in config:
        return Comet
    if "comet_relation" in config:
        return LanguageModel
    ours = {layout.fixed["model_type"] for layout in layouts.LAYOUTS.values()}
    return Comet if config.get("model_type") in ours else LanguageModel
