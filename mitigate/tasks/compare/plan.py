"""What a comparison has checked before it computes anything: which runs stand against which, by whose labels, and
notices about them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mitigate.errors import MitigateError, did_you_mean
from mitigate.report.legend import TEMPLATE_NAMES, by_headline
from mitigate.result_settings import role_scorers
from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import FinishedRun, folders, read_runs
from mitigate.tasks.compare import notices as compare_notices
from mitigate.tasks.compare import scorers
from mitigate.tasks.compare.figures import Labelling
from mitigate.tasks.compare.run_groups import (
    FOUND,
    LIFT,
    PUBLISHED,
    VALIDITY,
    Arm,
    Contrast,
    among,
    arms,
    contrasts,
    numbers_of,
    statements_of,
)


@dataclass(frozen=True)
class ComparePlan:
    """Runs that have been read, grouped and found fit to be compared."""

    arms: list[Arm]
    contrasts: list[Contrast]
    labellings: dict[str, Labelling]  # by label column, of all labels that all runs have by the same scorer
    scorers: dict[str, str]  # of these, those of the roles: {"sentiment": "vader", "regard": "minilm"}
    deciding: list[str]  # the scorers by which triples and statements are neutral; none where the runs had others
    relations: list[str]  # that all were asked
    notices: list[str]
    source: str  # the hash of what is compared, and of who stands against whom
    folders: list[str]  # of the runs

    @property
    def runs(self) -> list[FinishedRun]:
        """All of them, each once."""
        return _once(run for arm in self.arms for run in arm.runs)

    @property
    def demonstration(self) -> bool:
        return any(run.setting("data.demonstration") for run in self.runs)


def read_compared(
    named: str | Sequence[str] | None, baseline: str | Sequence[str] | None
) -> tuple[list[FinishedRun], str | list[FinishedRun] | None]:
    """The runs in folders, and the baseline: runs where folders are given, else the policy's name as it is. Raises
    MitigateError for fewer than two, and for folders that are no finished runs of recipe=mitigate."""
    places, baselines = folders(named), _baseline_folders(baseline)
    if not places or len(places) + len(baselines) < 2:
        raise MitigateError(
            f"compare.runs={[str(folder) for folder in places]}, and a comparison takes two runs or more; name more "
            "run folders by compare.runs=[DIR,DIR,...], or the one to compare with by compare.baseline=DIR"
        )
    runs = read_models(dict.fromkeys(places), "compare.runs")
    if not baselines:
        return runs, None if baseline is None else str(baseline)
    known = {run.folder: run for run in runs}
    elsewhere = read_models([folder for folder in baselines if folder not in known], "compare.baseline")
    known |= {run.folder: run for run in elsewhere}
    return runs, [known[folder] for folder in dict.fromkeys(baselines)]


def read_models(places: Iterable[Path], setting: str) -> list[FinishedRun]:
    """Finished runs of the main job, with the files that a comparison is made of."""
    return read_runs(places, "mitigate", setting, needs=FOUND, if_any=[VALIDITY, LIFT, PUBLISHED])


def make_plan(runs: Sequence[FinishedRun], baseline: str | Sequence[FinishedRun] | None = None) -> ComparePlan:
    """Who stands against whom. baseline: a policy among the runs (None: the policy none), or runs. Raises
    MitigateError where nothing can be compared."""
    if baseline is None or isinstance(baseline, str):
        first, others = _by_policy(baseline or "none", runs, baseline is not None)
    else:
        first = _once(baseline)
        places = {run.folder for run in first}
        others = [run for run in _once(runs) if run.folder not in places] or _once(runs)
    groups = arms(_once([*first, *others]))
    (base_arms, left_out), (other_arms, more_left_out) = among(groups, first), among(groups, others)
    pairs = contrasts(base_arms, other_arms)
    used = [run for pair in pairs for run in (*pair.before, *pair.after)]
    _check_targets(used)
    labellings, not_compared = _labellings(used)
    relations = _relations(used)
    sides = [
        [pair.name, pair.against, *([numbers_of(run) for run in s] for s in (pair.before, pair.after))]
        for pair in pairs
    ]
    kept = among(groups, used)[0]
    labelled_by = (scorer for scorer, _ in labellings.values())
    told = compare_notices.notices(pairs, used, relations, labelled_by)
    return ComparePlan(
        arms=kept,
        contrasts=pairs,
        labellings=labellings,
        scorers=scorers.shared_roles(used),
        deciding=scorers.deciding(used),
        relations=relations,
        notices=[*left_out, *more_left_out, *not_compared, *told],
        source=digest_of(json.dumps([sides, [[run.seed, run.metrics] for run in used]])),
        folders=[str(run.folder) for arm in kept for run in arm.runs],
    )


def shared(names: Sequence[str]) -> str:
    """The name that all have, or "several"."""
    return names[0] if len(set(names)) == 1 else "several"


def _once(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    return list({run.folder: run for run in runs}.values())


def _baseline_folders(baseline: str | Sequence[str] | None) -> list[Path]:
    """The folders that compare.baseline names; none when it names a policy, or nothing."""
    if isinstance(baseline, str) and "/" not in baseline and not Path(baseline).is_dir():
        return []
    return folders(baseline)


def _by_policy(name: str, runs: Sequence[FinishedRun], asked: bool) -> tuple[list[FinishedRun], list[FinishedRun]]:
    """The runs of a policy, and the others."""
    mine = [run for run in runs if run.policy == name]
    others = [run for run in runs if run.policy != name]
    if mine and others:
        return mine, others
    policies = ", ".join(dict.fromkeys(run.policy for run in runs))
    given = f"compare.baseline={name}" if asked else f"no compare.baseline is given, so that it is the policy {name}"
    meant = ("" if mine else did_you_mean(name, {run.policy for run in runs})) or "."
    wrong = "all runs are of that policy" if mine else "no run is of that policy"
    raise MitigateError(
        f"{given}, but {wrong} (policies among compare.runs: {policies}){meant} Name one of them, or the baseline's "
        "folder: compare.baseline=DIR"
    )


def _labellings(runs: Sequence[FinishedRun]) -> tuple[dict[str, Labelling], list[str]]:
    """The label columns that all runs have by the same scorer, the headline's first, and what is to be said of others.
    A label column stands beside a column of its strength. Raises MitigateError where no column is left."""
    schemas = [statements_of(run).schema for run in runs]
    columns = [[name for name in schema if f"{name}_strength" in schema] for schema in schemas]
    found = {
        name: (name.removesuffix("_neutral"), "neutral" if name.endswith("_neutral") else "paper")
        for name in columns[0]
    }
    said = list(scorers.notices(runs, columns))
    kept = {
        name: labelling
        for name, labelling in found.items()
        if all(name in names for names in columns) and scorers.is_shared(runs, labelling[0])
    }
    if not kept:
        raise MitigateError(
            f"the runs have no labels by the same scorer. {' '.join(said)} Run one of them again with the "
            "score.sentiment and score.regard of the other"
        )
    roles, templates = by_headline(role_scorers(scorers.score_of(runs[0]))), list(TEMPLATE_NAMES)

    def place(column: str) -> tuple[int, int]:
        scorer, template = kept[column]
        return roles.index(scorer) if scorer in roles else len(roles), templates.index(template)

    return {column: kept[column] for column in sorted(kept, key=place)}, said


def _relations(runs: Sequence[FinishedRun]) -> list[str]:
    asked = [dict.fromkeys(statements_of(run)["relation"].unique(maintain_order=True)) for run in runs]
    shared = [name for name in asked[0] if all(name in names for names in asked)]
    if not shared:
        raise MitigateError(_nothing_shared("relation", "probe.relations", runs))
    return shared


def _check_targets(runs: Sequence[FinishedRun]) -> None:
    if not set.intersection(*(set(statements_of(run)["target"]) for run in runs)):
        raise MitigateError(_nothing_shared("target", "probe.targets", runs))


def _nothing_shared(what: str, setting: str, runs: Sequence[FinishedRun]) -> str:
    folders = ", ".join(dict.fromkeys(str(run.folder) for run in runs))
    return (
        f"the runs {folders} have no {what} in common, but models are compared by what all were asked; name runs with "
        f"the same {setting}"
    )
