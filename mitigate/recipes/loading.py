"""The data that the configuration names, loaded: shared by the recipes that read triples or statements."""

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.stories import LoadedStories
from mitigate.recipes.instantiate import build
from mitigate.runs.fingerprints import digest_of_values
from mitigate.words.relations import Relation


def load_data(config: DictConfig) -> Any:
    """What the loader of `data` returns. Raises MitigateError for data that only another recipe reads."""
    if "load" not in config.data and "graph" in config.data:
        raise _of_another_recipe(config, "is a knowledge graph", "kge")
    loaded = build(config.data.load)
    if isinstance(loaded, LoadedStories):
        raise _of_another_recipe(config, "has stories", "stories")
    return loaded


def known_by_relations(own: Sequence[Relation]) -> bytes:
    """The hash of a user's own relations with their wordings, which decide what is labelled; b"" where there are none.
    It is a part of what a run is known by: the same triples in other words are another run."""
    return digest_of_values(list(own)).encode() if own else b""


def _of_another_recipe(config: DictConfig, what: str, recipe: str) -> MitigateError:
    return MitigateError(
        f"data={config.data.name} {what}, which recipe={recipe} is for; recipe={config.recipe.name} reads triples or "
        "statements: data=sample, data=triples data.path=FILE or data=statements data.path=FILE, as it needs"
    )
