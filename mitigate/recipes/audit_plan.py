"""What an audit knows, has read and has checked before it labels anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from omegaconf import DictConfig

from mitigate import match as matching
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError, one_of
from mitigate.load.files import LoadedStatements
from mitigate.load.lines import first
from mitigate.recipes.job import build, plain
from mitigate.recipes.scorers import build_scorers
from mitigate.store import LabelStore, as_parquet, digest_of
from mitigate.targets import choose_targets
from mitigate.triples import TEMPLATES, Scorer, label_columns

CHUNK = 50_000  # rows labelled between two parts on disk: what a killed audit loses at most


class Labelling(NamedTuple):
    """A column of labels: whose they are, and which wording of the statements they were read from."""

    column: str
    scorer: str
    template: str  # of TEMPLATES


@dataclass(frozen=True)
class AuditPlan:
    """All that is known, read and checked before the first stage."""

    config: DictConfig
    rows: pl.DataFrame  # triples, or statements with their target
    are_triples: bool
    targets: pl.DataFrame  # (target, category)
    scorers: list[Scorer]  # none where the file gives labels
    labellings: list[Labelling]
    cache: LabelStore
    notices: list[str]
    source: str  # the hash of the rows and the targets

    @property
    def own_targets(self) -> tuple[str, ...]:
        """The targets that are not of the paper's 329."""
        return tuple(sorted(set(self.targets["target"]) - set(target_room.targets())))

    @property
    def title(self) -> str:
        """What the resource is called."""
        return self.config.data.get("title") or self.config.data.name

    @property
    def paper(self) -> str | None:
        """The resource whose figures the paper gives, if they are over these targets."""
        return None if self.config.recipe.targets is not None else self.config.data.get("paper")

    def chunks(self) -> Iterator[pl.DataFrame]:
        """The rows, a part at a time."""
        return self.rows.iter_slices(CHUNK)


def make_plan(config: DictConfig) -> AuditPlan:
    """Everything the stages need, with all faults of settings and input raised here."""
    verbalising.check(config.measure.masking)
    matching.check(config.measure.match)
    if config.measure.empty_targets not in ("exclude", "zero"):
        raise one_of("measure.empty_targets", config.measure.empty_targets, ("exclude", "zero"))
    loaded = build(config.data.load)
    are_triples = not isinstance(loaded, LoadedStatements)
    if are_triples:
        rows, left_out = _counted(loaded.triples, config.filter.splits)
        targets = _targets(plain(config.recipe.targets), rows, are_triples)
    else:
        targets = _targets(plain(config.recipe.targets), loaded.statements, are_triples)
        rows, left_out = _about(loaded.statements, targets)
    given = config.data.get("label_column")
    scorers = [] if given else build_scorers(config.score)
    templates = TEMPLATES if are_triples else TEMPLATES[:1]
    return AuditPlan(
        config=config,
        rows=rows,
        are_triples=are_triples,
        targets=targets,
        scorers=scorers,
        labellings=_labellings(given, scorers, templates),
        cache=LabelStore(Path(config.paths.cache) / "labels"),
        notices=[*loaded.notices, *left_out],
        source=digest_of(as_parquet(rows) + as_parquet(targets)),
    )


def _labellings(given: str | None, scorers: list[Scorer], templates: tuple[str, ...]) -> list[Labelling]:
    if given:
        return [Labelling(given.lower(), given.lower(), "paper")]
    return [
        Labelling(label_columns(scorer.name, template)[0], scorer.name, template)
        for scorer in scorers
        for template in templates
    ]


def _targets(wanted: Any, rows: pl.DataFrame, are_triples: bool) -> pl.DataFrame:
    """The targets to measure over. A file of statements is about the targets it names (harms paper, Section 2.1),
    whatever else there may be."""
    if are_triples:
        return choose_targets("all" if wanted is None else wanted, rows)
    named = rows.select("target", "category").unique(maintain_order=True)
    if wanted in (None, "data"):
        return named
    chosen = choose_targets(wanted)
    return pl.concat([chosen, named.filter(category="own")]) if wanted == "all" else chosen


def _counted(triples: pl.DataFrame, splits: str) -> tuple[pl.DataFrame, list[str]]:
    """The valid triples of the splits that filter.splits names, and a notice of those of other splits."""
    valid = triples.filter("valid")
    if splits == "all":
        return valid, []
    others = valid.filter(pl.col("split") != "train")
    if others.is_empty():
        return valid, []
    named = ", ".join(others["split"].unique(maintain_order=True))
    notice = f"{others.height:,} valid triples of {named} left out; filter.splits=all counts them too"
    return valid.filter(split="train"), [notice]


def _about(statements: pl.DataFrame, targets: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The statements about the targets, with the category these have there, and notices: of how many others there
    are, and of targets that the paper does not have, which are often misspelt."""
    rows = statements.drop("category").join(targets, on="target", how="inner", maintain_order="left")
    rows = rows.select(statements.columns)
    if rows.is_empty():
        raise MitigateError(
            f"no statement is about any of the {targets.height:,} targets of recipe.targets; those in the file: "
            f"{first(statements['target'].unique(maintain_order=True).to_list(), ', ')}"
        )
    notices = []
    if others := statements.height - rows.height:
        notices.append(f"{others:,} statements left out, which are about none of the {targets.height:,} targets")
    if own := rows.filter(category="own")["target"].unique(maintain_order=True).to_list():
        notices.append(f"Targets that are not of the paper's 329, and a category of their own: {first(own, ', ')}")
    return rows, notices
