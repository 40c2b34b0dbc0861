"""Settings that affect results, and the names of scorers in results.

Separate from mitigate.settings: results depend on this module, and not on how settings are checked and described."""

from collections.abc import Mapping
from typing import Any

from mitigate.triples import ROLES

SURROUNDINGS: dict[str, tuple[str, ...]] = {
    "": ("paths", "tracking", "hydra", "dry_run", "verbose", "optimized_metric", "experiment", "call", "code"),
    "recipe": ("run", "shown", "reads", "prompts"),
    "data": ("root", "path", "relations", "runs", "output", "load", "missing", "published"),
    "compare": ("runs", "baseline", "gate"),
    "humans": ("survey", "anchors_from", "answers", "sentences", "bias_labels", "quality_labels"),
    "kge": ("device", "checkpoint_every"),
    "frames": ("device", "checkpoint_every", "weights"),
    "trainer": ("accelerator", "devices", "strategy", "checkpoint_every"),
    "model": (
        *("folder.cache", "endpoint", "key", "concurrency", "timeout", "tries"),
        *("folder.revision", "missing.revision"),
    ),
    "probe": ("processes", "device", "published"),
    "score": (
        *("engine", "workers", "address", "networks", "judge.key", "judge.concurrency"),
        *(f"scorers.judge.{name}" for name in ("key", "concurrency", "failures")),
    ),
}
"""Settings of where and with what a run is done, by group; they do not affect results. A dot precedes a setting of a
setting."""

NULL_IS_ABSENT = ("revision",)
"""Settings that are left out where they are null: runs that are older than these settings keep their names."""

NOT_ARGUMENTS = ("missing", "measures", "learnt_from", "cross_fitted")
"""Keys beside `_target_` that are no arguments of its class: downloads, and a scorer's role and sources of labels."""


def deciding(given: Mapping[str, Any]) -> dict[str, Any]:
    """The nested plain settings that affect results: the groups that the recipe reads (`recipe.reads`; all for a recipe
    without it), without SURROUNDINGS."""
    recipe = given.get("recipe")
    reads = recipe.get("reads") if isinstance(recipe, Mapping) else None
    kept = {
        name: part
        for name, part in given.items()
        if name not in SURROUNDINGS[""] and (reads is None or name in (*reads, "recipe"))
    }
    return {
        name: _without(part, SURROUNDINGS.get(name, ())) if isinstance(part, Mapping) else part
        for name, part in kept.items()
    }


def _without(part: Mapping[str, Any], names: tuple[str, ...], above: str = "") -> dict[str, Any]:
    return {
        key: _without(value, names, f"{above}{key}.") if isinstance(value, Mapping) else value
        for key, value in part.items()
        if f"{above}{key}" not in names and not (value is None and key in NULL_IS_ABSENT)
    }


def called(score: Mapping[str, Any]) -> dict[str, str]:
    """The name of each role's scorer in tables and metrics: {"sentiment": "sentiment", "regard": "regard"}. A
    role that is null is left out.

    A scorer that measures its role (`measures: regard` in score.scorers) has the role's name, and its neutral mean and
    variance are the paper's NRM and NRV. Any other keeps its configured name: {"regard": "mine"}. score: the group of
    settings, as plain data; where no scorer has `measures`, as in a run of an earlier revision, a role's scorer has the
    role's name."""
    configured = score.get("scorers")
    nodes = configured.items() if isinstance(configured, Mapping) else ()
    measures = {name: node.get("measures") for name, node in nodes if isinstance(node, Mapping)}
    given = {role: str(score[role]) for role in ROLES if score.get(role) is not None}
    has_measures = any(measures.values())
    return {role: role if not has_measures or measures.get(name) == role else name for role, name in given.items()}


def role_scorers(score: Mapping[str, Any]) -> dict[str, str]:
    """The configured scorers of the roles, by their names in results: {"sentiment": "vader", "regard": "minilm"}; with
    one of a user's own in place of minilm {"sentiment": "vader", "mine": "mine"}."""
    return {name: str(score[role]) for role, name in called(score).items()}


def in_present_terms(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a policy with `decoding` apart from `action`: action=rerank of version 0.1 is action=keep
    decoding=rerank."""
    if settings.get("action") == "rerank":
        return {**settings, "action": "keep", "decoding": "rerank"}
    return {"decoding": "none", **settings}
