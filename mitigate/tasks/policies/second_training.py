"""Second training of a trained generator by a policy: on pairs of tails, or on its own tails."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy, polarised, preferred_tails
from mitigate.filter.policy import in_scope
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.generators.train import Examples, TrainingSettings, examples, in_training
from mitigate.tasks.label import Labeller
from mitigate.tasks.policies.rerank import candidate_tails, rerank_heads
from mitigate.train import second_training
from mitigate.train.second_training import LOSSES, Bound
from mitigate.triples import Scorer, valid_rows
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import contains

BASE = "base"
"""In a run folder: the generator before the second training; model/ is the one after it."""
PROMPT = ["head", "relation"]


def check_material(policy: Policy, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> None:
    """Raise MitigateError, before the generator is trained, where the triples have nothing for such a policy to learn
    from or to measure by."""
    if not policy.tunes:
        return
    if _neutral_dev(policy, labelled).is_empty():
        raise MitigateError(
            f"policy.tuning={policy.tuning} needs neutral dev triples, and the data has none; give triples of split "
            "dev, or set policy.tuning=none"
        )
    if policy.prefers and preferred_tails(policy, labelled, target_list).is_empty():
        raise MitigateError(
            f"policy.tuning={policy.tuning} needs pairs of a neutral and a polarised tail of one head and relation, "
            "and the training triples have none; set other policy.scorers, or set policy.tuning=none"
        )
    if policy.distils and own_prompts(policy, labelled, target_list).is_empty():
        raise MitigateError(
            "policy.tuning=distil needs heads that name a person and no target, and the training triples have none; "
            "set policy.tuning=none"
        )


def own_prompts(policy: Policy, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """The prompts (head, relation) of valid training triples whose head names a person and no target, since generators
    are measured by targets; at most `policy.fitted`, drawn by seed."""
    heads = in_scope("person_heads", target_list) & ~contains(pl.col("head"), target_list.pattern)
    prompts = valid_rows(labelled).filter(heads, split="train").select(PROMPT).unique(maintain_order=True)
    return prompts.sample(min(policy.fitted, prompts.height), shuffle=True, seed=policy.seed)


def own_tails(
    policy: Policy,
    labelled: pl.DataFrame,
    generator: Start,
    labeller: Labeller,
    top: int,
    critic: Scorer | None = None,
    **how: Any,
) -> pl.DataFrame:
    """Generate the `top` best tails (columns PROBED) for own_prompts, of those of candidate_tails (with `how`), in the
    order that the policy distils."""
    found = candidate_tails(policy, generator, own_prompts(policy, labelled, labeller.target_list), **how)
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
    **how: Any,
) -> dict[str, Any]:
    """Train the generator a second time and save it in the folder `model`. Returns `first`, the result of
    train_generator or as_it_is, with the steps of both trainings if the first has steps; and of the second training its
    steps, the step of the kept weights, its loss, and the perplexity on neutral dev triples before it and of these
    weights.

    labelled: all triples with their labels; own: what own_tails returns, for a policy that distils. settings: of the
    first training, whose batches and precision this one has. how: fingerprint, accelerator and log, as
    train.second_training.fit takes them."""
    rows, more = own, dict[str, Any]()
    if policy.prefers:
        rows = preferred_tails(policy, labelled, target_list).rename({"chosen": "tail"})
        strength = {"dpo": {"beta": policy.beta}, "unlikelihood": {"alpha": policy.alpha}}[policy.preference]
        more = {"rejected": rows["rejected"].to_list(), "loss": partial(LOSSES[policy.preference], **strength)}
    assert rows is not None
    with in_training(start, model) as generator:
        fitted, before = second_training.fit(
            generator,
            _examples(rows, start),
            _settings(policy, settings),
            checkpoints,
            dev=_examples(_neutral_dev(policy, labelled), start),
            bound=Bound(policy.most_rise, policy.tuning_every),
            **more,
            **how,
        )
    added = {"steps": fitted.steps, "planned": fitted.steps, "seconds": fitted.seconds}
    return {
        **first,
        **{name: first[name] + number for name, number in added.items() if name in first},
        "tuning_tails": rows.height,
        "tuning_steps": fitted.steps,
        "tuning_kept": fitted.kept,
        "tuning_loss": fitted.train_loss,
        "neutral_dev_perplexity_before": before,
        "neutral_dev_perplexity": fitted.dev_perplexity,
    }


def tuned_from(generator: Start, first: Start) -> Start:
    """The generator to train a second time, with the adapters of the first training if that had any.

    generator: the model to train now; first: the start of the first training."""
    if generator is first or generator.code != first.code:
        return generator
    return replace(generator, options=first.options)


def check_tuned(policy: Policy, start: Start, train: bool) -> None:
    """Raise MitigateError for a generator that cannot be trained a second time."""
    if not policy.tunes:
        return
    if start.folder.is_file():
        raise MitigateError(
            f"policy.tuning={policy.tuning} trains the generator, and {start.folder} is a file of tails; choose a "
            "model, or set policy.tuning=none"
        )
    if train and (start.options.get("lora") or {}).get("save") == "adapter":
        raise MitigateError(
            f"policy.tuning={policy.tuning} starts from whole weights, and model.lora.save=adapter saves none; set "
            "model.lora.save=merged"
        )


def _settings(policy: Policy, settings: TrainingSettings) -> TrainingSettings:
    """Training settings of the policy: its steps, over as many epochs as they take, and a learning rate falling to
    0."""
    steps = policy.tuning_steps
    settings = replace(settings, min_steps=steps, max_steps=steps, lr=policy.tuning_lr, warmup=0.1, hold=None)
    return replace(settings, together=1, vocabulary="all", keep="best")


def _examples(rows: pl.DataFrame, start: Start) -> Examples:
    return examples(rows.with_columns(weight=pl.lit(1.0)), start.phrases)


def _neutral_dev(policy: Policy, labelled: pl.DataFrame) -> pl.DataFrame:
    return valid_rows(labelled).filter(~polarised(policy), split="dev")
