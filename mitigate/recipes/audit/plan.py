"""What an audit knows and has checked before it labels anything."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from omegaconf import DictConfig

from mitigate import match as matching
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError, one_of
from mitigate.label_cache import LabelStore
from mitigate.load.files import LoadedStatements
from mitigate.load.lines import first
from mitigate.load.stream import Chunk, Kind, Met, Streamed
from mitigate.recipes.job import build, plain
from mitigate.recipes.scorers import build_scorers
from mitigate.store import as_parquet, digest_of
from mitigate.targets import choose_targets
from mitigate.triples import TEMPLATES, Scorer, label_columns

CHUNK = 50_000  # rows labelled at once


class Labelling(NamedTuple):
    """A column of labels: whose they are, and which wording of the statements they were read from."""

    column: str
    scorer: str
    template: str  # of TEMPLATES


@dataclass(frozen=True)
class Held:
    """A resource that a loader has read whole: what Streamed is to a larger one."""

    rows: pl.DataFrame  # triples, or statements with their target
    kind: Kind
    notices: list[str] = field(default_factory=list)  # of its loader

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return f"{self.rows.height:,} {self.kind}"

    @property
    def digest(self) -> str:
        """The hash of the rows."""
        return digest_of(as_parquet(self.rows))

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """As Streamed.chunks."""
        for number, rows in enumerate(self.rows.iter_slices(CHUNK)):
            share = min(1.0, (number + 1) * CHUNK / self.rows.height)
            yield number, share, None if finished(number) else Chunk(rows, Met())

    def told(self, _: Met) -> list[str]:
        """As Streamed.told."""
        return self.notices


@dataclass(frozen=True)
class AuditPlan:
    """All that is known and checked before the first stage."""

    config: DictConfig
    resource: Held | Streamed
    targets: pl.DataFrame  # (target, category)
    scorers: list[Scorer]  # none where the file gives labels
    labellings: list[Labelling]
    cache: LabelStore
    source: str  # the hash of the resource and the targets

    @property
    def are_triples(self) -> bool:
        """Whether its statements are made here, in two wordings."""
        return self.resource.kind == "triples"

    @property
    def own_targets(self) -> tuple[str, ...]:
        """The targets that are not of the paper's 329."""
        return tuple(sorted(set(self.targets["target"]) - set(target_room.targets())))

    @property
    def title(self) -> str:
        """What the resource is called."""
        return title_of(self.config.data)

    @property
    def paper(self) -> str | None:
        """The resource whose figures the paper gives, if they are over these targets and of its wording."""
        ours = self.config.recipe.targets is not None or self.config.measure.template == "neutral"
        return None if ours else self.config.data.get("paper")


def title_of(data: DictConfig) -> str:
    """What the resource that `data` names is called; a file of one's own by its name."""
    return data.get("title") or (Path(data.path).name if data.get("path") else data.name)


def make_plan(config: DictConfig) -> AuditPlan:
    """Everything the stages need, with all faults of settings raised here, and of what is read whole."""
    _check(config.measure)
    wanted = plain(config.recipe.targets)
    resource, targets = _with_targets(build(config.data.load), wanted, config.filter.splits)
    if resource.kind == "statements" and config.measure.texts == "all":
        raise MitigateError(
            "measure.texts=all scores what is about no target too, and each statement of this file is about one; leave "
            "it out"
        )
    given = config.data.get("label_column")
    scorers = [] if given else build_scorers(config.score)
    templates = _templates(config.measure.template, resource.kind)
    return AuditPlan(
        config=config,
        resource=resource,
        targets=targets,
        scorers=scorers,
        labellings=_labellings(given, scorers, templates),
        cache=LabelStore(Path(config.paths.cache) / "labels"),
        source=digest_of(resource.digest.encode() + as_parquet(targets)),
    )


def _check(measure: DictConfig) -> None:
    verbalising.check(measure.masking)
    matching.check(measure.match)
    for setting, allowed in (("empty_targets", ("exclude", "zero")), ("texts", ("targets", "all"))):
        if measure[setting] not in allowed:
            raise one_of(f"measure.{setting}", measure[setting], allowed)


def _with_targets(loaded: Any, wanted: Any, splits: str) -> tuple[Held | Streamed, pl.DataFrame]:
    """What a loader returns as a resource, and the targets to measure over."""
    if isinstance(loaded, Streamed):
        if wanted == "data":
            raise MitigateError(
                "recipe.targets=data needs a resource that is read whole; leave it out: a target that nothing is said "
                "about is left out of the measures anyway"
            )
        return loaded, choose_targets("all" if wanted is None else wanted)
    if isinstance(loaded, LoadedStatements):
        targets = targets_of_statements(wanted, loaded.statements)
        rows, notices = those_about(loaded.statements, targets)
        return Held(rows, "statements", [*loaded.notices, *notices]), targets
    rows, notices = _counted(loaded.triples, splits)
    return Held(rows, "triples", [*loaded.notices, *notices]), choose_targets("all" if wanted is None else wanted, rows)


def _templates(asked: str | None, kind: Kind) -> Sequence[str]:
    """The wordings to measure with: the one asked for, or all there are."""
    there = TEMPLATES if kind == "triples" else TEMPLATES[:1]
    if asked is None:
        return there
    if asked not in TEMPLATES:
        raise one_of("measure.template", asked, TEMPLATES)
    if asked not in there:
        raise MitigateError(
            f"measure.template={asked} wants triples: of a plain statement nobody knows which words are a relation's; "
            "say measure.template=paper, or give the triples (data=triples)"
        )
    return (asked,)


def _labellings(given: str | None, scorers: list[Scorer], templates: Sequence[str]) -> list[Labelling]:
    if given:
        return [Labelling(given.lower(), given.lower(), "paper")]
    return [
        Labelling(label_columns(scorer.name, template)[0], scorer.name, template)
        for scorer in scorers
        for template in templates
    ]


def targets_of_statements(wanted: Any, statements: pl.DataFrame) -> pl.DataFrame:
    """A file of statements is about the targets it names (harms paper, Section 2.1), whatever else there may be."""
    named = statements.select("target", "category").unique(maintain_order=True)
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


def those_about(statements: pl.DataFrame, targets: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
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
