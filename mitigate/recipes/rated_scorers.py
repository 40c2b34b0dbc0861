"""Agreement of scorers with people, and the effect of identity terms on their labels, as tables."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import polars as pl
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from mitigate.measure.base import bounds
from mitigate.policies import Drop, Policy
from mitigate.recipes.job import build
from mitigate.recipes.scorers import Scorers
from mitigate.report.numbers import number
from mitigate.report.table import Column, Table, figures, grouped, text
from mitigate.tasks.identity import farthest
from mitigate.tasks.ratings.agreement import ABSTAINED, AUC, FIGURES, IDENTITY, SPEED

CLASSIFIER_FIGURES = {
    **{"kappa": "kappa", "macro_f1": "macro-F1", AUC: "AUC", "polarised": "polarised", ABSTAINED: "abstained"},
    IDENTITY: "identity false positives",
}
"""The figures of classifiers against people that have an interval, and their headings."""


def agreement(frame: pl.DataFrame) -> Table:
    """Scorers beside people's ratings, from 0 to 1. frame: what agreement_table returns."""
    columns = [text("scorer"), text("against"), *figures(3, **FIGURES)]
    return Table("", columns, grouped(frame.rows(named=True), itemgetter("resource")))


def classifiers(frame: pl.DataFrame, learnt_from: Mapping[str, str]) -> Table:
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
    columns = [text("against the majority of raters", "resource"), text("scorer"), *figures(3, **CLASSIFIER_FIGURES)]
    columns += [Column("texts/s", SPEED, 0), text("learnt from", lambda row: learnt_from.get(row["scorer"], ""))]
    return Table("", columns, rows)


def drops(frame: pl.DataFrame) -> Table:
    """The rated statements that each policy drops, %, with intervals over targets and texts."""
    columns = [text("policy"), *figures(1, "dropped", "precision", "recall", before="polarised before", after="after")]
    return Table("", columns, grouped(frame.rows(named=True), "% of rated statements, {resource}".format_map))


def identity_errors(terms: pl.DataFrame, summed: pl.DataFrame) -> Table:
    """Errors on unseen identity terms and frames: the mean over terms, the difference of the farthest term from it with
    its 95 % interval over frames, and the shares of the three farthest and of masked frames."""

    def most(row: Mapping[str, Any]) -> str:
        return ", ".join(f"{term} {number(share, 1)}" for term, share in farthest(terms, row["scorer"], row["error"]))

    columns = [text("% of unseen identity terms", "scorer"), text("", lambda row: row["error"].replace("_", " "))]
    columns += figures(1, mean="mean", largest="farthest from the mean")
    columns += [text("beyond 5", "{beyond} of {terms}".format_map), *figures(1, "masked"), text("farthest terms", most)]
    return Table("", columns, summed.filter(part="unseen", number="both"))


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
