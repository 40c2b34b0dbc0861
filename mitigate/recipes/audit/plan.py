"""What an audit knows, has read and has checked before its first stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.load.crowd import crowd_files
from mitigate.load.files import find_root
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import EmptyTargets
from mitigate.recipes.job import plain
from mitigate.recipes.loading import known_by_relations, load_data, shown_targets, wanted
from mitigate.recipes.rated_scorers import drop_policies
from mitigate.recipes.reporting import origin, title_of
from mitigate.recipes.scorers import Scorers
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import as_parquet, digest_of
from mitigate.tasks.audit import read
from mitigate.tasks.audit.resource import Resource, Texts, resource_of
from mitigate.tasks.label import Labeller
from mitigate.tasks.labelling import Labelling, labellings
from mitigate.tasks.ratings.rated import read_rated
from mitigate.tasks.scorers import check_name
from mitigate.triples import ROLES
from mitigate.words.target_list import list_of

WHERE = ("_target_", "root", "path", "relations", "on_bad_line")  # of a loader's options, known to Resource.fingerprint


@dataclass(frozen=True)
class Plan:
    """All that is known and checked before the first stage."""

    resource: Resource
    targets: pl.DataFrame  # (target, category)
    given: str | None  # the column of labels that the file gives
    roles: Mapping[str, str]  # the configured scorers of the roles, by what they are called
    everywhere: list[str]  # the names of scorers that label what is about no target too
    labeller: Labeller  # without scorers where the file gives labels
    labellings: list[Labelling]
    source: str  # the hash of the resource, its own relations and the targets
    paper: str | None  # the resource whose figures the paper gives
    rated: pl.DataFrame | None  # the resource's statements that people rated
    policies: list[Policy]  # that are compared with these ratings
    match: str
    texts: Texts
    empty_targets: EmptyTargets
    intervals: Bootstrap
    about: dict[str, Any]  # what the audit is, as metrics.json begins
    title: str
    data: dict[str, Any]  # what the page says of the data
    shown: list[str]  # targets whose bars the page draws


def _check_given(name: str) -> None:
    """Raises MitigateError for a column of labels that is called as tables or metrics call something else."""
    try:
        check_name(name)
    except MitigateError as error:
        raise MitigateError(f"data.label_column={name}: {error}") from error


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings raised here, and of what is read whole."""
    described = origin(config, ["data"])["data"]
    loaded = load_data(config)
    options = {name: value for name, value in plain(config.data.load).items() if name not in WHERE}
    resource, chosen = resource_of(loaded, wanted(config), splits=config.filter.splits, options=options)
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    read.check(config.measure.texts, resource)
    given = config.data.get("label_column")
    given = given.lower() if given else None
    if given:
        _check_given(given)
    configured, measure = Scorers(config.score), config.measure
    scorers = [] if given else configured.labelling
    templates = resource.templates(measure.template)
    columns = [Labelling(given, given, "paper")] if given else labellings(scorers, templates)
    known = resource.content.encode() + as_parquet(targets) + target_list.content
    source = digest_of(known + known_by_relations(resource.own_relations))
    rated = None if given else rated_statements(config)
    return Plan(
        resource=resource,
        targets=targets,
        given=given,
        roles={} if given else configured.roles,
        everywhere=[name for role, name in configured.names.items() if role == "sentiment"],
        labeller=Labeller(
            scorers=scorers,
            masking=measure.masking,
            target_list=target_list,
            own_relations=resource.own_relations,
            cache=LabelStore(Path(config.paths.cache) / "labels"),
        ),
        labellings=columns,
        source=source,
        paper=_paper(config, columns),
        rated=rated,
        policies=[] if rated is None else policies_of(configured),
        match=measure.match,
        texts=measure.texts,
        empty_targets=measure.empty_targets,
        intervals=Bootstrap(resamples=measure.resamples, seed=config.seed),
        about={"seed": config.seed, "data": config.data.name, "fingerprint": source},
        title=title_of(config.data),
        data={"name": config.data.name, **described},
        shown=shown_targets(config, targets),
    )


def _paper(config: DictConfig, columns: Sequence[Labelling]) -> str | None:
    """The resource whose figures the paper gives, if they are over these targets, of its template, and by sentiment or
    regard."""
    others = wanted(config) is not None or config.measure.template == "neutral"
    theirs = any(labels.scorer in ROLES for labels in columns)
    return config.data.get("paper") if theirs and not others else None


def rated_statements(config: DictConfig) -> pl.DataFrame | None:
    """The rated statements of the resource, where data.rated names it and their files are at hand."""
    source = config.data.get("rated")
    root = find_root(config.data.get("root"))
    if not source or root is None:
        return None
    try:
        crowd_files(root / "humans", [source])
    except MitigateError:
        return None  # an audit needs no ratings
    return read_rated(root, [source])


def policies_of(scorers: Scorers) -> list[Policy]:
    """The policies that drop triples by labels of the audit's scorers. Those by `crowd` are left out: it has learnt
    from the ratings that it would be compared with."""
    known = {scorer.name for scorer in scorers.labelling} - {"crowd"}
    return [policy for policy in drop_policies(scorers) if set(policy.scorers) <= known]
