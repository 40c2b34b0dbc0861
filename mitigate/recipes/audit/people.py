"""Of the audited resource's statements that people rated, what each policy would drop."""

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.load.crowd import crowd_files
from mitigate.load.root import find_root
from mitigate.recipes.drop_rules import drop_policies
from mitigate.recipes.scorers import Scorers
from mitigate.tasks.rated import read_rated


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
