"""The targets that the configuration names, for recipes that probe nothing: what a user brings with probe.targets
counts there too."""

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes.job import plain
from mitigate.tasks.targets import Wanted, targets_of_statements
from mitigate.words.target_list import PAPER, TargetList, list_of
from mitigate.words.targets import LISTED, NAMED, choose_targets, not_listed, notice_of_own


def wanted(config: DictConfig) -> Wanted:
    """recipe.targets, or where that is null a list or a file that probe.targets names; else None."""
    own, probed = plain(config.recipe.get("targets")), plain(config.probe.targets)
    return own if own is not None or probed in LISTED else probed


def list_named(config: DictConfig, statements: pl.DataFrame | None = None) -> tuple[TargetList, list[str]]:
    """The paper's targets and those besides that the configuration names, or where it names none a file of statements;
    and a notice of these."""
    named = wanted(config)
    if statements is None and named is None:
        return PAPER, []
    chosen = choose_targets(named or []) if statements is None else targets_of_statements(named, statements)
    return list_of(chosen), notice_of_own(chosen)


def shown_targets(config: DictConfig, chosen: pl.DataFrame) -> list[str]:
    """The targets whose bars are drawn: those of recipe.shown, and own ones."""
    return [*config.recipe.shown, *not_listed(chosen)[:NAMED]]
