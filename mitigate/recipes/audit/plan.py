"""The plan of an audit: all that is read and checked before its first stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.load.ratings import rated_sets
from mitigate.load.statements import find_root
from mitigate.load.targets import Match
from mitigate.measure.base import check_scorer_name
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.statements import Labelling, Measurement, labellings
from mitigate.policies import Policy
from mitigate.recipes import loading, rated_scorers, reporting
from mitigate.recipes.job import Config
from mitigate.recipes.scorers import Scorers, make_labeller
from mitigate.score.base import check_name
from mitigate.score.labeller import Labeller
from mitigate.stages import as_parquet
from mitigate.tasks.audit import read
from mitigate.tasks.audit.resource import Resource, resource_of
from mitigate.tasks.ratings.paper_statements import read_rated
from mitigate.triples import ROLES
from mitigate.words.targets import list_of

WHERE = ("_target_", "root", "path", "relations", "on_bad_line")  # loader options that Resource.fingerprint covers


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    resource: Resource
    measurement: Measurement
    given: str | None  # the column of labels that the file gives
    everywhere: list[str]  # the names of scorers that also label texts about no target
    labeller: Labeller  # without scorers where the file gives labels
    source: str  # the hash of the resource, its own relations and the targets
    paper: str | None  # the resource whose figures the paper gives
    rated: pl.DataFrame | None  # the resource's statements that people rated
    policies: list[Policy]  # that are compared with these ratings
    search: read.Search
    about: dict[str, Any]  # data, seed and fingerprint, as metrics.json begins
    title: str
    data: dict[str, Any]  # the description of the data for the page
    shown: list[str]  # targets whose bars the page draws


def _given(config: Config) -> str | None:
    """The column of labels that the file gives, if any. Raises MitigateError for a name with another meaning in tables
    or metrics."""
    if not (name := config.data.label_column):
        return None
    try:
        check_name(name.lower())
        check_scorer_name(name.lower())
    except MitigateError as error:
        raise MitigateError(f"data.label_column={name.lower()}: {error}") from error
    return name.lower()


def make_plan(config: Config) -> Plan:
    """Everything the stages need, with all faults of settings raised here, and of files that are read whole."""
    described = reporting.origin(config, ["data"])["data"]
    loaded = loading.load_data(config)
    options = {name: value for name, value in config.data.load.items() if name not in WHERE}
    resource, chosen = resource_of(loaded, loading.named_targets(config), splits=config.filter.splits, options=options)
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    read.check(config.measure.texts, resource)
    given = _given(config)
    configured, measure = Scorers(config.score), config.measure
    match: Match = measure.match or ("paper" if measure.masking == "paper" else "exact")
    scorers = [] if given else configured.labelling
    templates = resource.templates(measure.template)
    columns = [Labelling(given, given, "paper")] if given else labellings(scorers, templates)
    content = resource.loaded.digest.encode() + as_parquet(targets) + target_list.content
    source = digest_of(content + loading.digest_of_relations(resource.loaded.own_relations))
    rated = None if given else rated_statements(config)
    rules = [] if rated is None else rated_scorers.drop_policies(configured)
    labelled = {scorer.name for scorer in scorers} - {"crowd"}  # which has learnt from these ratings
    intervals = Bootstrap(resamples=measure.resamples, seed=config.seed)
    return Plan(
        resource=resource,
        measurement=Measurement(targets, columns, target_list, intervals, measure.empty_targets),
        given=given,
        everywhere=[name for role, name in configured.names.items() if role == "sentiment"],
        labeller=make_labeller(config, scorers, target_list, resource.loaded.own_relations),
        source=source,
        paper=_paper(config, columns),
        rated=rated,
        policies=[policy for policy in rules if labelled.issuperset(policy.reads)],
        search=read.Search(targets, match, target_list, measure.texts),
        about={"seed": config.seed, "data": config.data.name, "fingerprint": source},
        title=reporting.title_of(config.data),
        data={"name": config.data.name, **described},
        shown=loading.shown_targets(config, targets),
    )


def _paper(config: Config, columns: Sequence[Labelling]) -> str | None:
    """The resource whose figures the paper reports, if they are over these targets, with its template, and by sentiment
    or regard."""
    others = loading.named_targets(config) is not None or config.measure.template == "neutral"
    theirs = any(labels.scorer in ROLES for labels in columns)
    return config.data.paper if theirs and not others else None


def rated_statements(config: Config) -> pl.DataFrame | None:
    """The rated statements of the resource, where data.rated names it and their files are at hand."""
    source = config.data.rated
    root = find_root(config.data.root)
    if not source or root is None:
        return None
    try:
        rated_sets(root / "humans", [source])
    except MitigateError:
        return None  # an audit needs no ratings
    return read_rated(root, [source])
