"""The data that the configuration names, loaded: shared by the recipes that read triples or statements."""

from typing import Any

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.stories import LoadedStories
from mitigate.recipes.building import build


def load_data(config: DictConfig) -> Any:
    """What the loader of `data` returns. Raises MitigateError for data that only another recipe reads."""
    if "load" not in config.data and "graph" in config.data:
        raise _of_another_recipe(config, "is a knowledge graph", "kge")
    loaded = build(config.data.load)
    if isinstance(loaded, LoadedStories):
        raise _of_another_recipe(config, "has stories", "stories")
    return loaded


def _of_another_recipe(config: DictConfig, what: str, recipe: str) -> MitigateError:
    return MitigateError(
        f"data={config.data.name} {what}, which recipe={recipe} is for; recipe={config.recipe.name} reads triples or "
        "statements: data=sample, data=triples data.path=FILE or data=statements data.path=FILE, as it needs"
    )
