"""Scorers that labels of runs can be compared by: those that all runs have with the same settings."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mitigate.finished import FinishedRun
from mitigate.settings import NOT_ARGUMENTS
from mitigate.triples import ROLES, called, role_scorers

PLAUSIBILITY = "plausibility"  # name of swap lift's classifier in settings and manifests
AT_RANDOM = {"random", "random_tag", "random_rerank", "random_critic", "validity", "keep", "none"}
"""Actions and decodings of version 0.2 that do not depend on which triples are polarised."""


def score_of(run: FinishedRun) -> Mapping[str, Any]:
    """The group `score` of a run's settings."""
    score = run.setting("score")
    return score if isinstance(score, Mapping) else {}


def is_shared(runs: Iterable[FinishedRun], scorer: str) -> bool:
    """Return whether the scorer with this name in tables is the same in all runs: the configured one, and its
    settings."""
    found = set()
    for run in runs:
        configured = role_scorers(score_of(run)).get(scorer, scorer)
        found.add(json.dumps([configured, _node(run, configured)], sort_keys=True))
    return len(found) == 1


def shared_roles(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """The scorers of the roles that all runs share, by their names in tables: {"sentiment": "vader"}."""
    return {
        name: configured
        for name, configured in role_scorers(score_of(runs[0])).items()
        if all(name in role_scorers(score_of(run)) for run in runs) and is_shared(runs, name)
    }


def deciding(runs: Sequence[FinishedRun]) -> list[str]:
    """The scorers by which triples and statements are neutral or polarised: those of the roles; none if the runs do not
    share all of them."""
    shared = shared_roles(runs)
    return list(shared) if all(role_scorers(score_of(run)) == shared for run in runs) else []


def filtered_by(run: FinishedRun) -> list[str]:
    """The names of the scorers that the run's policy filters or ranks by; none for a control, which draws at random."""
    acts = {run.setting(f"policy.{name}", "none") for name in ("decoding", "tuning")}
    is_old_control = {run.setting("policy.action"), *acts} <= AT_RANDOM and not run.setting("policy.balance")
    if is_old_control or run.setting("policy.control"):
        return []
    names = called(score_of(run))
    given = [run.setting(f"policy.{part}scorers") for part in ("", "first.", "second.")]
    return [names.get(str(name), str(name)) for part in given if isinstance(part, list) for name in part]


def notices(runs: Sequence[FinishedRun], columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield notices of labels that not all runs have by the same scorer. columns: each run's columns of labels."""
    yield from _other_roles(runs)
    of_roles = {name for run in runs for name in role_scorers(score_of(run))}
    every = dict.fromkeys(name for names in columns for name in names if not name.endswith("_neutral"))
    further = [name for name in every if name not in of_roles]
    if some := [name for name in further if any(name not in names for names in columns)]:
        yield f"Not all runs were labelled by {' and '.join(some)}: these labels are not compared."
    if others := [name for name in further if name not in some and not is_shared(runs, name)]:
        yield f"Not all runs have the same settings of {' and '.join(others)}: these labels are not compared."
    shared = [name for name in every if is_shared(runs, name)]
    if len({json.dumps(score_of(run).get(PLAUSIBILITY), sort_keys=True) for run in runs}) == 1:
        shared.append(PLAUSIBILITY)
    fingerprints = [run.manifest.get("scorers") for run in runs]
    for name in shared:
        if len({of_run.get(name) for of_run in fingerprints if isinstance(of_run, Mapping)} - {None}) > 1:
            yield (
                f"The scorer {name} has the same settings in all runs, but not the same code, weights or precision: a "
                "difference may be the scorer's."
            )


def _other_roles(runs: Sequence[FinishedRun]) -> Iterator[str]:
    for role in ROLES:
        names = dict.fromkeys(str(score_of(run).get(role)) for run in runs)
        settings = {json.dumps(_node(run, str(score_of(run).get(role))), sort_keys=True) for run in runs}
        if len(names) > 1 or len(settings) > 1:
            how = ", ".join(names) if len(names) > 1 else f"{next(iter(names))}, with other settings"
            yield (
                f"The runs were labelled by different scorers in the place of {role} ({how}): neither its figures are "
                "compared, nor those of neutral and of polarised triples."
            )


def _node(run: FinishedRun, configured: str) -> Any:
    """The settings of a scorer that decide its labels."""
    nodes = score_of(run).get("scorers")
    node = nodes.get(configured) if isinstance(nodes, Mapping) else None
    return {k: v for k, v in node.items() if k not in NOT_ARGUMENTS} if isinstance(node, Mapping) else node
