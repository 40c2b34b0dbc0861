"""Agreement of scorers with people, and the effect of identity terms on their labels, as tables for the terminal."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from mitigate.measure.base import bounds
from mitigate.policies import Drop, Policy
from mitigate.recipes.job import build
from mitigate.recipes.scorers import Scorers
from mitigate.report.metric_display import number
from mitigate.report.table import Cell, Column, Table, as_text, bounded, figures, text, with_bounds
from mitigate.tasks.identity import farthest
from mitigate.tasks.ratings.agreement import ABSTAINED, AUC, FIGURES, IDENTITY, SPEED

CLASSIFIER_FIGURES = {
    **{"kappa": "kappa", "macro_f1": "macro-F1", AUC: "AUC", "polarised": "polarised", ABSTAINED: "abstained"},
    IDENTITY: "identity false positives",
}
"""The figures of classifiers against people that have an interval, and their headings."""


def format_agreement(frame: pl.DataFrame) -> str:
    """The table of agreement for the terminal."""
    names = [text("", "resource"), text("", "scorer"), text("", "against")]
    return as_text(Table("", [*names, *figures(3, **dict(FIGURES))], frame))


def classifier_table(frame: pl.DataFrame, learnt_from: Mapping[str, str]) -> Table:
    """Scorers beside the majority of raters with 95 % intervals over targets and texts, their speed, and the sources of
    their labels; shares from 0 to 1. frame: what interval_table returns; learnt_from: the sources by scorer."""

    found: dict[tuple[str | None, str], dict[str, float | None]] = {}
    for resource, scorer, figure, *numbers in frame.iter_rows():
        name = "kappa" if figure == "fleiss" else figure  # the raters' own
        found.setdefault((resource, scorer), {}).update(zip((name, *bounds(name)), numbers, strict=True))
    rows = [
        {"resource": resource, "scorer": scorer, **found.get((None, scorer), {}), **own}
        for (resource, scorer), own in found.items()
        if resource is not None
    ]
    columns = [
        text("against the majority of raters", "resource"),
        text("", "scorer"),
        *(bounded(title, name, 3) for name, title in CLASSIFIER_FIGURES.items()),
        bounded("texts/s", SPEED, 0),
        text("learnt from", lambda row: learnt_from.get(row["scorer"], "")),
    ]
    return Table("", columns, rows)


def format_drops(frame: pl.DataFrame) -> str:
    """The rated statements that each policy drops for the terminal, %, with intervals over targets and texts."""
    headings = {"precision": "precision", "recall": "recall", "before": "polarised before", "after": "after"}
    names = [text("% of rated statements", "resource"), text("", "policy"), Column("dropped", "dropped", show=1)]
    return as_text(Table("", [*names, *(bounded(title, name) for name, title in headings.items())], frame))


def format_identity(terms: pl.DataFrame, summed: pl.DataFrame) -> str:
    """Errors on unseen identity terms and frames for the terminal: the mean over terms, the term that is farthest from
    it with its 95 % interval over frames, and the share of the three farthest and of masked frames."""

    def gap(row: Mapping[str, Any]) -> Cell:
        cell = with_bounds(row, "largest", 1)
        return cell._replace(text=f"{'+' if row['largest'] > 0 else ''}{cell.text}")

    def most(row: Mapping[str, Any]) -> str:
        return ", ".join(f"{term} {number(share, 1)}" for term, share in farthest(terms, row["scorer"], row["error"]))

    columns = [
        text("% of unseen identity terms", "scorer"),
        text("", lambda row: row["error"].replace("_", " ")),
        Column("mean", "mean", show=1),
        Column("farthest from the mean", gap),
        Column("beyond 5", lambda row: f"{row['beyond']} of {row['terms']}"),
        Column("masked", "masked", show=1),
        text("farthest terms", most),
    ]
    return as_text(Table("", columns, summed.filter(part="unseen", number="both")))


def drop_policies(scorers: Scorers) -> list[Policy]:
    """All configured policies whose action is to drop and whose scorers label, `none` first, with the names that these
    have in tables."""
    loader, found = GlobalHydra.instance().config_loader(), []
    config = loader.load_configuration("config", [], RunMode.RUN)
    OmegaConf.set_struct(config, False)
    for name in loader.get_group_options("policy"):
        # The group's file alone: composing the whole configuration for each policy took five seconds.
        config.policy = loader.load_configuration(f"policy/{name}", [], RunMode.RUN).policy
        policy = build(config.policy)
        if type(policy) in (Policy, Drop) and not scorers.absent_roles(policy):
            found.append(scorers.in_tables(policy))
    return sorted(found, key=lambda policy: (len(policy.reads), policy.name))
