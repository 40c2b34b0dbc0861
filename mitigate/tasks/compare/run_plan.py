"""Plan of a comparison of runs of the main job, checked before anything is computed: runs and their baselines, the
labels that are compared, and notices."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError, did_you_mean
from mitigate.files import digest_of
from mitigate.finished import NOT_GIVEN, FinishedRun, Named, folders, read_runs, source_of
from mitigate.report.sections import TEMPLATES
from mitigate.tasks.compare import notices as compare_notices
from mitigate.tasks.compare import run_groups, scorers
from mitigate.tasks.compare.endpoints import Endpoints, with_own_scorers
from mitigate.tasks.compare.figures import Labelling
from mitigate.tasks.compare.run_groups import Arm, Contrast, restrict_arms, statements_of
from mitigate.triples import role_scorers

ENDPOINTS = Endpoints()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunsPlan:
    """Finished runs of the main job that have been read and checked, grouped."""

    runs: Sequence[FinishedRun]
    titles: Sequence[str]  # of the contrasts
    notices: list[str]  # limits of the findings
    source: str  # the hash of the compared figures, without the folders
    folders: list[str] = field(init=False)  # comparison.json names them, so it follows runs that are moved
    arms: list[Arm]
    contrasts: list[Contrast]
    labellings: dict[str, Labelling]  # by label column, of all labels that all runs have by the same scorer
    scorers: dict[str, str]  # of these, those of the roles: {"sentiment": "vader", "regard": "minilm"}
    deciding: list[str]  # the scorers by which triples and statements are neutral; none where the runs had others
    relations: list[str]  # that all were probed with
    endpoints: Endpoints  # the figures that a claim may rest on

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", [str(run.folder) for run in self.runs])

    @property
    def demonstration(self) -> bool:
        return any(run.setting("data.demonstration") for run in self.runs)

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the runs for the page."""
        fingerprints = dict.fromkeys(str(run.metrics["fingerprint"]) for run in self.runs)
        return {
            "data": "; ".join(dict.fromkeys(map(_data_source, self.runs))),
            "fingerprints of corpus and targets": ", ".join(fingerprints),
            "scorers": self.scorers,
        }


def shared_settings(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """The data and the model of runs, "several" where they differ, and whether any has texts of a user's own or a
    demonstration's: for the manifest and W&B."""

    def shared(setting: str) -> str:
        names = {run.text(setting) or NOT_GIVEN for run in runs}
        return names.pop() if len(names) == 1 else "several"

    flags = {key: any(run.setting(f"data.{key}") for run in runs) for key in ("own_texts", "demonstration")}
    data = {key: shared(f"data.{key}") for key in ("name", "licence", "attribution")} | flags
    return {"data": data, "model": {"name": shared("model.name")}}


def names_of(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """The policies, data and models of runs, which tag the record in W&B."""
    return {group: [str(run.text(f"{group}.name")) for run in runs] for group in ("policy", "data", "model")}


def read_compared(named: Named, baseline: Named) -> tuple[list[FinishedRun], str | list[FinishedRun] | None]:
    """Read the runs in folders, and the baseline: runs if folders are given, else the policy's name as it is. Raises
    MitigateError for fewer than two, and for folders that are not finished runs of recipe=mitigate."""
    is_policy = isinstance(baseline, str) and "/" not in baseline and not Path(baseline).is_dir()
    places, baselines = folders(named), [] if is_policy else folders(baseline)
    if not places or len(places) + len(baselines) < 2:
        raise MitigateError(
            f"compare.runs={[str(folder) for folder in places]}, and a comparison takes two runs or more; name more "
            "run folders by compare.runs=[DIR,DIR,...], or the one to compare with by compare.baseline=DIR"
        )
    runs = read_models(dict.fromkeys(places), "compare.runs")
    if not baselines:
        return runs, None if baseline is None else str(baseline)
    by_folder = {run.folder: run for run in runs}
    elsewhere = read_models([folder for folder in baselines if folder not in by_folder], "compare.baseline")
    by_folder |= {run.folder: run for run in elsewhere}
    return runs, [by_folder[folder] for folder in dict.fromkeys(baselines)]


def _data_source(run: FinishedRun) -> str:
    return source_of({name: run.text(f"data.{name}") for name in ("name", "attribution", "licence")})


def read_models(places: Iterable[Path], setting: str) -> list[FinishedRun]:
    """Read finished runs of the main job, with the files that a comparison is made of."""
    further = [run_groups.VALIDITY, run_groups.LIFT, run_groups.PUBLISHED]
    return read_runs(places, "mitigate", setting, needs=run_groups.FOUND, if_any=further)


def make_plan(
    runs: Sequence[FinishedRun],
    baseline: str | Sequence[FinishedRun] | None = None,
    endpoints: Endpoints = ENDPOINTS,
) -> RunsPlan:
    """Group and check the runs. baseline: a policy among the runs (None: the policy none), or runs. Raises
    MitigateError where nothing can be compared."""
    if baseline is None or isinstance(baseline, str):
        first, others = _by_policy(baseline or "none", runs, baseline is not None)
    else:
        first = _once(baseline)
        places = {run.folder for run in first}
        others = [run for run in _once(runs) if run.folder not in places] or _once(runs)
    groups = run_groups.arms(_once([*first, *others]))
    (base_arms, left_out), (other_arms, more_left_out) = restrict_arms(groups, first), restrict_arms(groups, others)
    pairs = run_groups.contrasts(base_arms, other_arms)
    used = [run for pair in pairs for run in (*pair.before, *pair.after)]
    _shared("target", used)
    labellings, not_compared = _labellings(used)
    relations = _shared("relation", used)
    sides = [
        [pair.name, pair.against, *([run_groups.numbers_of(run) for run in side] for side in (pair.before, pair.after))]
        for pair in pairs
    ]
    kept = restrict_arms(groups, used)[0]
    notices = compare_notices.notices(pairs, used, relations, (scorer for scorer, _ in labellings.values()))
    roles = scorers.shared_roles(used)
    return RunsPlan(
        runs=_once(run for arm in kept for run in arm.runs),
        titles=list(dict.fromkeys(pair.name for pair in pairs)),
        arms=kept,
        contrasts=pairs,
        labellings=labellings,
        scorers=roles,
        deciding=scorers.deciding(used),
        relations=relations,
        endpoints=with_own_scorers(endpoints, roles),
        notices=[*left_out, *more_left_out, *not_compared, *notices],
        source=digest_of(json.dumps([sides, [[run.seed, run.metrics] for run in used]])),
    )


def _once(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    return list({run.folder: run for run in runs}.values())


def _by_policy(name: str, runs: Sequence[FinishedRun], is_given: bool) -> tuple[list[FinishedRun], list[FinishedRun]]:
    """Split the runs into those of a policy and the others. Raises MitigateError where either is empty."""
    mine = [run for run in runs if run.policy == name]
    others = [run for run in runs if run.policy != name]
    if mine and others:
        return mine, others
    policies = ", ".join(dict.fromkeys(run.policy for run in runs))
    given = f"compare.baseline={name}" if is_given else f"no compare.baseline is given, so that it is the policy {name}"
    meant = ("" if mine else did_you_mean(name, {run.policy for run in runs})) or "."
    wrong = "all runs are of that policy" if mine else "no run is of that policy"
    raise MitigateError(
        f"{given}, but {wrong} (policies among compare.runs: {policies}){meant} Name one of them, or the baseline's "
        "folder: compare.baseline=DIR"
    )


def _labellings(runs: Sequence[FinishedRun]) -> tuple[dict[str, Labelling], list[str]]:
    """The label columns that all runs have by the same scorer, the headline's first; with notices about others. Raises
    MitigateError where no column is left."""
    schemas = [statements_of(run).schema for run in runs]
    columns = [[name for name in schema if f"{name}_strength" in schema] for schema in schemas]
    found = {
        name: (name.removesuffix("_neutral"), "neutral" if name.endswith("_neutral") else "paper")
        for name in columns[0]
    }
    notices = list(scorers.notices(runs, columns))
    kept = {
        name: labelling
        for name, labelling in found.items()
        if all(name in names for names in columns) and scorers.is_shared(runs, labelling[0])
    }
    if not kept:
        raise MitigateError(
            f"the runs have no labels by the same scorer. {' '.join(notices)} Make one of them again with the other's "
            "score.sentiment and score.regard"
        )
    roles, templates = list(reversed(role_scorers(scorers.score_of(runs[0])))), list(TEMPLATES)

    def place(column: str) -> tuple[int, int]:
        scorer, template = kept[column]
        return roles.index(scorer) if scorer in roles else len(roles), templates.index(template)

    return {column: kept[column] for column in sorted(kept, key=place)}, notices


def _shared(column: str, runs: Sequence[FinishedRun]) -> list[str]:
    """The targets or relations that all runs were probed with. Raises MitigateError where there are none."""
    probed = [dict.fromkeys(statements_of(run)[column].unique(maintain_order=True)) for run in runs]
    if shared := [name for name in probed[0] if all(name in names for names in probed)]:
        return shared
    folders = ", ".join(dict.fromkeys(str(run.folder) for run in runs))
    raise MitigateError(
        f"the runs {folders} have no {column} in common, but models are compared by what all were asked; name runs "
        f"with the same probe.{column}s"
    )
