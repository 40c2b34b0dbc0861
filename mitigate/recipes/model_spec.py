"""The model and the training that the configuration names, for recipes that train or probe a generator."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.policies import Policy
from mitigate.recipes.instantiate import build, named
from mitigate.train.base_model import Start
from mitigate.train.base_model import find_start as find
from mitigate.train.generator import OF_TRANSFORMERS
from mitigate.train.settings import Generator
from mitigate.words.relations import Relation
from models.hf import check_chat, load_tokenizer, prompt_of, wording


def find_start(settings: Generator, train: bool, further: Sequence[Relation] = (), *, comet: bool = True) -> Start:
    """The model that the group `model` names, with prompts for further relations besides COMeT's 34, or with
    comet=False in their place. train: whether it is trained, or probed as it is.

    Raises MitigateError where the model is not there, cannot be trained with these settings, or was trained with
    prompts of another form."""
    options = deepcopy(settings.load)
    code = named(options, "model.load", "folder")
    folder = build(settings.folder, "model.folder")
    options.pop("_target_")
    kind = next((kind for kind in OF_TRANSFORMERS if kind.load == code), None)
    if settings.layout == "comet" and kind:
        raise MitigateError(
            f"model.layout=comet does not apply to model={settings.name}, whose prompt is one text without the fixed "
            "places of the original COMeT; set model.layout=packed"
        )
    if not (options.get("lora") or {}).get("rank"):
        options.pop("lora", None)  # its settings then have no effect
    elif Path(settings.base).is_file():
        options["lora"]["base"] = None  # peft opens no GGUF file: a saved adapter names the converted folder
    relation: Any = settings.relation
    if options.get("system") is None:
        options.pop("system", None)
    elif train:
        raise MitigateError("model.system is for a model that is probed as it is; set train=false, or leave it out")
    if kind and "prompt" in options:
        try:
            options["prompt"] = prompt_of(folder, options["prompt"], kind.PROMPTS)
            options["relation"] = relation = wording(relation, options["prompt"])
            if options["prompt"] == "chat":
                check_chat(load_tokenizer(folder), folder, options.get("system"))
            elif "system" in options:
                raise MitigateError(f"model.system needs model.prompt=chat, not {options['prompt']}")
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error
    how: dict[str, Any] = {"layout": settings.layout, "relation": relation, "train": train}
    return find(code, folder, **how, options=options, further=further, comet=comet)


def check_trained(settings: Generator, train: bool, policy: Policy) -> None:
    """Raise MitigateError where a model is to be trained that cannot be, and where a policy filters the training of one
    that is not trained. settings: of the group `model`."""
    if train and not settings.trainable:
        raise MitigateError(
            f"model={settings.name} cannot be trained here; leave train=true out, or choose model=comet_minilm, or "
            "model=hf with model.base=FOLDER of a causal language model"
        )
    if policy.filters and not train:
        raise MitigateError(
            f"policy={policy.name} changes training triples, and the model is not trained (train=false); set "
            "policy=none"
        )
