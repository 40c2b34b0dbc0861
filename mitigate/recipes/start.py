"""The model and the training that the configuration names: shared by the recipes that train or probe a generator."""

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.recipes.building import named
from mitigate.recipes.job import build, plain
from mitigate.relations import Relation
from mitigate.tasks.start import Start
from mitigate.tasks.start import find_start as find
from mitigate.tasks.train import OF_TRANSFORMERS
from mitigate.train.comet import Settings
from models.seq2seq import prompt_of, wording


def find_start(config: DictConfig, policy: Policy, further: Sequence[Relation] = (), *, comet: bool = True) -> Start:
    """The model that the configuration names, to be asked about further relations than COMeT's 34, or with comet=False
    in their place.

    Raises MitigateError where it is not at hand, cannot be trained as is asked, or was trained to be asked another
    way."""
    settings = config.model
    if config.train and not settings.trainable:
        raise MitigateError(
            f"model={settings.name} is probed as it is and cannot be trained here: leave train=true out, or train "
            "model=comet_minilm, or model=hf with model.base=FOLDER of a causal language model"
        )
    if policy.changes_training and not config.train:
        raise MitigateError(
            f"policy={policy.name} filters what a model is trained on, and this one is not trained (train=false): its "
            "figures would be called the policy's. Say policy=none"
        )
    options = plain(settings.load)
    code = named(options, "model.load", "folder")
    folder = build(settings.folder)
    options.pop("_target_")
    if settings.layout == "comet" and code in [kind.load for kind in OF_TRANSFORMERS]:
        raise MitigateError(
            f"model.layout=comet has fixed places for head and relation, as the original COMeT; model={settings.name} "
            "asks with one text. Say model.layout=packed"
        )
    if not (options.get("lora") or {}).get("rank"):
        options.pop("lora", None)  # whose settings then decide nothing
    relation = settings.relation
    if "prompt" in options:
        try:
            options["prompt"] = prompt_of(folder, options["prompt"])
            options["relation"] = relation = wording(relation, options["prompt"])
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error
    how = {"layout": settings.layout, "relation": relation, "train": bool(config.train)}
    return find(code, folder, **how, options=options, further=further, comet=comet)


def training_settings(config: DictConfig) -> tuple[Settings, dict[str, Any]]:
    """How to train, and where."""
    trainer = plain(config.trainer)
    where = {name: trainer.pop(name) for name in ("accelerator", "devices", "strategy", "compile")}
    return Settings(**trainer, seed=config.seed), where
