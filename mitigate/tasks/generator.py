"""A generator to train or to probe, by its folder or its name."""

from collections.abc import Sequence
from pathlib import Path

from mitigate.errors import MitigateError
from mitigate.relations import Relation
from mitigate.tasks.start import Start, find_start
from models import hub, minilm
from models.comet import Comet, Layout
from models.language_model import LanguageModel


def open_generator(
    model: str | Path | None = None,
    *,
    trainable: bool = True,
    layout: Layout | None = None,
    relation: str | None = None,
    own_relations: Sequence[Relation] = (),
) -> Start:
    """A generator for train_generator and probe_generator; it is loaded when they need it.

    model: the folder that train_generator wrote, or the folder or hub name of a GPT-1, GPT-2 or bert-generation; None:
    a small decoder that starts from all-MiniLM-L6-v2 (model=comet_minilm). trainable=False: any causal language model,
    probed as it is. layout ("packed", "comet") and relation ("phrase", "words", "token"): how it is asked; None: as it
    was trained. own_relations: those that it is trained on or probed with besides COMeT's 34.

    Raises MitigateError for a model that is not found, or that was trained to be asked another way."""
    try:
        folder = minilm.locate() if model is None else hub.locate(str(model))
    except (ValueError, OSError) as error:
        raise MitigateError(str(error)) from error
    if not trainable:
        options = {"relation": relation} if relation else {}
        return find_start(
            LanguageModel.load,
            folder,
            layout=layout,
            relation=relation,
            train=False,
            options=options,
            further=own_relations,
        )
    asked = {"layout": layout, "relation": relation}
    code = Comet.from_encoder if model is None else Comet.load
    return find_start(code, folder, layout=layout, relation=relation, options=asked, further=own_relations)
