"""Data and targets that the configuration names, loaded."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.targets import Wanted, targets_of_statements
from mitigate.recipes.instantiate import build
from mitigate.recipes.job import Config, say
from mitigate.stages import digest_of_values
from mitigate.words.relations import Relation
from mitigate.words.targets import (
    LISTED,
    NAMED,
    PAPER,
    TargetList,
    check_spelling,
    choose_targets,
    list_of,
    not_listed,
    notice_of_own,
)


def load_data(config: Config) -> Any:
    """The data, as the loader of `data` returns it. Raises MitigateError for data that only another recipe reads."""
    if config.data.load is None:
        raise _wrong_recipe(config, "is a knowledge graph", "kge")
    loaded = build(config.data.load, "data.load")
    if loaded.kind == "stories":
        raise _wrong_recipe(config, "has stories", "stories")
    return loaded


def digest_of_relations(own: Sequence[Relation]) -> bytes:
    """The hash of a user's own relations with their wordings, which affect labels; b"" where there are none. The same
    triples in other words are another run."""
    return digest_of_values(list(own)).encode() if own else b""


def _wrong_recipe(config: Config, what: str, recipe: str) -> MitigateError:
    return MitigateError(
        f"data={config.data.name} {what}, and recipe={config.recipe.name} reads triples or statements; set "
        f"recipe={recipe}, or other data: data=sample, data=triples data.path=FILE or data=statements data.path=FILE"
    )


def probed_targets(config: Config, setting: str = "probe.targets") -> Any:
    """The targets that a setting names; None without it. Raises MitigateError for one that seems misspelt."""
    group, _, name = setting.partition(".")
    wanted = getattr(getattr(config, group), name, None)
    if wanted is not None and not config.probe.new_targets:
        check_spelling(wanted)
    return wanted


def named_targets(config: Config) -> Wanted:
    """The targets that recipe.targets names, or where that is null a list or a file in probe.targets; else None."""
    own, probed = probed_targets(config, "recipe.targets"), probed_targets(config)
    return own if own is not None or probed in LISTED else probed


def read_target_list(config: Config, statements: pl.DataFrame | None = None) -> tuple[TargetList, list[str]]:
    """The paper's targets, and further ones that the configuration names, or where it names none a file of statements;
    and a notice of further ones."""
    named = named_targets(config)
    if statements is None and named is None:
        return PAPER, []
    chosen = choose_targets(named or []) if statements is None else targets_of_statements(named, statements)
    return list_of(chosen), notice_of_own(chosen)


def shown_targets(config: Config, chosen: pl.DataFrame) -> list[str]:
    """The targets whose bars the page draws: those of recipe.shown, and own ones."""
    return [*config.recipe.shown, *not_listed(chosen)[:NAMED]]


def say_downloads(config: Config, downloads: Sequence[str]) -> None:
    """A line for each download, before it."""
    for download in downloads:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {download}")
