"""What an audit knows, has read and has checked before its first stage."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
from omegaconf import DictConfig

from mitigate.label_cache import LabelStore
from mitigate.recipes.job import build, plain
from mitigate.recipes.scorers import build_scorers
from mitigate.store import as_parquet, digest_of
from mitigate.tasks.audit import read
from mitigate.tasks.audit.resource import Resource, resource_of
from mitigate.tasks.labelling import Labelling, labellings
from mitigate.triples import LabelCache, Scorer

WHERE = ("_target_", "root", "path", "on_bad_line")  # of a loader's options, those that Resource.fingerprint knows


@dataclass(frozen=True)
class Plan:
    """All that is known and checked before the first stage."""

    config: DictConfig
    resource: Resource
    targets: pl.DataFrame  # (target, category)
    given: str | None  # the column of labels that the file gives
    scorers: list[Scorer]  # none where the file gives labels
    labellings: list[Labelling]
    cache: LabelCache
    source: str  # the hash of the resource and the targets

    @property
    def paper(self) -> str | None:
        """The resource whose figures the paper gives, if they are over these targets and of its template."""
        others = self.config.recipe.targets is not None or self.config.measure.template == "neutral"
        return None if others else self.config.data.get("paper")


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings raised here, and of what is read whole."""
    options = {name: value for name, value in plain(config.data.load).items() if name not in WHERE}
    resource, targets = resource_of(
        build(config.data.load), plain(config.recipe.targets), splits=config.filter.splits, options=options
    )
    read.check(config.measure.texts, resource)
    given = config.data.get("label_column")
    given = given.lower() if given else None
    scorers = [] if given else build_scorers(config.score)
    templates = resource.templates(config.measure.template)
    return Plan(
        config=config,
        resource=resource,
        targets=targets,
        given=given,
        scorers=scorers,
        labellings=[Labelling(given, given, "paper")] if given else labellings(scorers, templates),
        cache=LabelStore(Path(config.paths.cache) / "labels"),
        source=digest_of(resource.content.encode() + as_parquet(targets)),
    )
