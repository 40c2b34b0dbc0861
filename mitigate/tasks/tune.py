"""A second training of a trained generator, as a policy has it: on pairs of tails, or on its own tails."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy, polarised, preferred_tails
from mitigate.filter.scope import in_scope
from mitigate.measure.lift import is_echo
from mitigate.tasks.base_model import Start
from mitigate.tasks.label import Labeller
from mitigate.tasks.probe_heads import probe_heads
from mitigate.tasks.rerank import rerank_heads
from mitigate.tasks.train import Examples, TrainingSettings, examples, in_training
from mitigate.train import tune
from mitigate.train.comet import Fitted, Log
from mitigate.train.tune import LOSSES, Bound
from mitigate.triples import Parts, Scorer
from mitigate.words.target_list import PAPER, TargetList
from mitigate.words.word_forms import contains

BASE = "base"
"""Of a run folder: the generator before the second training; model/ is the one after it."""
PROMPT = ["head", "relation"]


def check_material(policy: Policy, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> None:
    """Raises MitigateError where the triples have nothing for such a policy to learn from, or to measure by: before the
    generator is trained."""
    if not policy.tunes:
        return
    if _neutral_dev(policy, labelled).is_empty():
        raise MitigateError(
            f"policy.tuning={policy.tuning} keeps weights by perplexity on neutral dev triples, and the data has none; "
            "give triples of split dev, or set policy.tuning=none"
        )
    if policy.prefers and preferred_tails(policy, labelled, target_list).is_empty():
        raise MitigateError(
            f"policy.tuning={policy.tuning} learns pairs of a neutral and a polarised tail of one head and relation, "
            "and the training triples have none; give policy.scorers that find some, or set policy.tuning=none"
        )
    if policy.distils and own_prompts(policy, labelled, target_list).is_empty():
        raise MitigateError(
            "policy.tuning=distil learns tails for heads that name a person and no target, and the training triples "
            "have none; set policy.tuning=none"
        )


def own_prompts(policy: Policy, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """The prompts (head, relation) of valid training triples whose head has a person and no target, which is what
    generators are measured by; at most `policy.fitted`, drawn by seed."""
    heads = in_scope("person_heads", target_list) & ~contains(pl.col("head"), target_list.pattern)
    prompts = _valid(labelled).filter(heads, split="train").select(PROMPT).unique(maintain_order=True)
    return prompts.sample(min(policy.fitted, prompts.height), shuffle=True, seed=policy.seed)


def own_tails(
    policy: Policy,
    labelled: pl.DataFrame,
    generator: Start,
    labeller: Labeller,
    top: int,
    critic: Scorer | None = None,
    *,
    parts: Parts | None = None,
    device: str = "cpu",
) -> pl.DataFrame:
    """The generator's `top` best tails (columns PROBED) for own_prompts, of its `policy.candidates` best ones that are
    neither empty nor an echo of the head, in the order that the policy distils. What is done is kept in `parts`,
    across a kill."""
    prompts, number = own_prompts(policy, labelled, labeller.target_list), policy.candidates
    found = probe_heads(generator, prompts, generator.asked, device=device, parts=parts, beams=number, top=number)
    found = found.filter(pl.col("tail") != "", ~is_echo())
    if policy.distilled == "none":
        return found.filter(pl.col("rank").rank("ordinal").over(PROMPT) <= top)
    order = replace(policy, decoding=policy.distilled)
    return rerank_heads(order, found, labeller, top, critic)


def tune_generator(
    policy: Policy,
    labelled: pl.DataFrame,
    own: pl.DataFrame | None,
    start: Start,
    settings: TrainingSettings,
    first: Mapping[str, Any],
    target_list: TargetList = PAPER,
    *,
    model: Path,
    checkpoints: Path,
    fingerprint: str,
    log: Log | None = None,
    accelerator: str = "cpu",
) -> dict[str, Any]:
    """Trains the generator a second time and saves it in the folder `model`. Returns `first`, what train_generator or
    as_it_is returned, with the steps of both trainings where that has steps; and of the second one its steps, the step
    whose weights are kept, its loss, and the perplexity on neutral dev triples before and of these weights.

    labelled: all triples with their labels; own: what own_tails returns, for a policy that distils. settings: of the
    first training, whose batches and precision this one has."""
    rows, more = own, dict[str, Any]()
    if policy.prefers:
        rows = preferred_tails(policy, labelled, target_list).rename({"chosen": "tail"})
        more = {"rejected": rows["rejected"].to_list(), "loss": _loss(policy)}
    assert rows is not None
    with in_training(start, model) as generator:
        fitted, before = tune.fit(
            generator,
            _examples(rows, start),
            _settings(policy, settings),
            checkpoints,
            dev=_examples(_neutral_dev(policy, labelled), start),
            bound=Bound(policy.most_rise, policy.tuning_every),
            fingerprint=fingerprint,
            log=log,
            accelerator=accelerator,
            **more,
        )
    return {
        **first,
        **{name: first[name] + added for name, added in _added(fitted).items() if name in first},
        "tuning_tails": rows.height,
        "tuning_steps": fitted.steps,
        "tuning_kept": fitted.kept,
        "tuning_loss": fitted.train_loss,
        "neutral_dev_perplexity_before": before,
        "neutral_dev_perplexity": fitted.dev_perplexity,
    }


def _added(fitted: Fitted) -> dict[str, float]:
    """What a second training adds to figures of the first."""
    return {"steps": fitted.steps, "planned": fitted.steps, "seconds": fitted.seconds}


def tuned_from(generator: Start, first: Start) -> Start:
    """The generator to be trained a second time: with the adapters of the first training, if that had any.

    generator: what is trained now; first: what the first training started from."""
    if generator is first or generator.code != first.code:
        return generator
    return replace(generator, options=first.options)


def check_tuned(policy: Policy, start: Start, train: bool) -> None:
    """Raises MitigateError for a generator that cannot be trained a second time."""
    if not policy.tunes:
        return
    if start.folder.is_file():
        raise MitigateError(
            f"policy.tuning={policy.tuning} trains the generator, and {start.folder} is a file of tails; name a model, "
            "or set policy.tuning=none"
        )
    if train and (start.options.get("lora") or {}).get("save") == "adapter":
        raise MitigateError(
            f"policy.tuning={policy.tuning} needs whole weights, and model.lora.save=adapter saves none; set "
            "model.lora.save=merged"
        )


def _settings(policy: Policy, settings: TrainingSettings) -> TrainingSettings:
    """As many steps as the policy says, each example as often as it takes, from a learning rate that falls to 0."""
    steps = policy.tuning_steps
    settings = replace(settings, min_steps=steps, max_steps=steps, lr=policy.tuning_lr, warmup=0.1, hold=None)
    return replace(settings, together=1, vocabulary="all", keep="best")


def _loss(policy: Policy) -> tune.Loss:
    strength = {"dpo": {"beta": policy.beta}, "unlikelihood": {"alpha": policy.alpha}}[policy.preference]
    return partial(LOSSES[policy.preference], **strength)


def _examples(rows: pl.DataFrame, start: Start) -> Examples:
    return examples(rows.with_columns(weight=pl.lit(1.0)), start.asked)


def _neutral_dev(policy: Policy, labelled: pl.DataFrame) -> pl.DataFrame:
    return _valid(labelled).filter(~polarised(policy), split="dev")


def _valid(labelled: pl.DataFrame) -> pl.DataFrame:
    return labelled.filter("valid") if "valid" in labelled.columns else labelled
