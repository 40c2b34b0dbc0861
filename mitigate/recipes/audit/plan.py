"""What an audit knows, has read and has checked before its first stage."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.label_cache import LabelStore
from mitigate.recipes.audit.people import rated_statements
from mitigate.recipes.job import plain
from mitigate.recipes.loading import known_by_relations, load_data
from mitigate.recipes.reporting import origin
from mitigate.recipes.scorers import build_scorers
from mitigate.recipes.targets import wanted
from mitigate.store import as_parquet, digest_of
from mitigate.target_list import TargetList, list_of
from mitigate.tasks.audit import read
from mitigate.tasks.audit.resource import Resource, resource_of
from mitigate.tasks.labelling import Labelling, labellings
from mitigate.tasks.scorers import check_name
from mitigate.triples import ROLES, LabelCache, Scorer

WHERE = ("_target_", "root", "path", "relations", "on_bad_line")  # of a loader's options, known to Resource.fingerprint


@dataclass(frozen=True)
class Plan:
    """All that is known and checked before the first stage."""

    config: DictConfig
    resource: Resource
    targets: pl.DataFrame  # (target, category)
    target_list: TargetList  # the paper's, and those of these that are the audit's own
    given: str | None  # the column of labels that the file gives
    scorers: list[Scorer]  # none where the file gives labels
    labellings: list[Labelling]
    cache: LabelCache
    source: str  # the hash of the resource, its own relations and the targets
    rated: pl.DataFrame | None  # the resource's statements that people rated

    @property
    def paper(self) -> str | None:
        """The resource whose figures the paper gives, if they are over these targets, of its template, and by sentiment
        or regard."""
        others = wanted(self.config) is not None or self.config.measure.template == "neutral"
        theirs = any(labels.scorer in ROLES for labels in self.labellings)
        return self.config.data.get("paper") if theirs and not others else None


def _check_given(name: str) -> None:
    """Raises MitigateError for a column of labels that is called as tables or metrics call something else."""
    try:
        check_name(name)
    except MitigateError as error:
        raise MitigateError(f"data.label_column={name}: {error}") from error


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings raised here, and of what is read whole."""
    origin(config, ["data"])  # for the page
    loaded = load_data(config)
    options = {name: value for name, value in plain(config.data.load).items() if name not in WHERE}
    resource, chosen = resource_of(loaded, wanted(config), splits=config.filter.splits, options=options)
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    read.check(config.measure.texts, resource)
    given = config.data.get("label_column")
    given = given.lower() if given else None
    if given:
        _check_given(given)
    scorers = [] if given else build_scorers(config.score)
    templates = resource.templates(config.measure.template)
    known = resource.content.encode() + as_parquet(targets) + target_list.content
    return Plan(
        config=config,
        resource=resource,
        targets=targets,
        target_list=target_list,
        given=given,
        scorers=scorers,
        labellings=[Labelling(given, given, "paper")] if given else labellings(scorers, templates),
        cache=LabelStore(Path(config.paths.cache) / "labels"),
        rated=rated_statements(config) if scorers else None,
        source=digest_of(known + known_by_relations(resource.own_relations)),
    )
