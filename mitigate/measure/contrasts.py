"""Finished runs of one recipe in groups that differ by seed alone, each beside a baseline and a policy beside its
control, and the differences of their tables of results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.finished import FinishedRun, Named, differing, folders, model_settings, read_runs, recipe_of
from mitigate.load.targets import OF_A_RUN, list_of_runs
from mitigate.measure import compare
from mitigate.measure.base import PAPER_SCORERS, key_of
from mitigate.measure.compare import DIFFERENCES, HARMS, Endpoints
from mitigate.measure.quality import BY_LABEL
from mitigate.measure.results import FILE, Results
from mitigate.triples import called, role_scorers

CONTROL = "-control"  # ends the name of a policy's control
VERSIONS = ("mitigate", "torch", "transformers", "vaderSentiment")
MOST_NAMED = 8  # settings in a notice
ENDPOINTS = Endpoints()


@dataclass(frozen=True, eq=False)
class Contrast:
    """Runs of a policy, which differ by seed alone, and those that they are compared with: baseline or control."""

    name: str  # the policy, and the settings that distinguish it
    against: str
    before: tuple[FinishedRun, ...]
    after: tuple[FinishedRun, ...]

    @property
    def key(self) -> str:
        """Its name in tables: that of the policy, or of both sides where the other is the control."""
        return f"{self.name} − {self.against}" if CONTROL in self.against else self.name

    @property
    def sides(self) -> list[tuple[str, tuple[FinishedRun, ...]]]:
        return [(self.against, self.before), (self.name, self.after)]

    @property
    def runs(self) -> list[FinishedRun]:
        return [*self.before, *self.after]


@dataclass(frozen=True, eq=False)
class Plan:
    """Finished runs of one recipe that have been read and checked, grouped."""

    recipe: str
    contrasts: list[Contrast]
    endpoints: Endpoints
    unlike: list[str]  # scorers that are not the same in all runs, by which nothing is compared
    notices: list[str]  # limits of the findings

    @property
    def arms(self) -> dict[str, tuple[FinishedRun, ...]]:
        """The runs by the names of their groups."""
        return {name: side for one in self.contrasts for name, side in one.sides}

    @property
    def runs(self) -> list[FinishedRun]:
        return [run for arm in self.arms.values() for run in arm]


def make_plan(named: Named, baseline: Named, endpoints: Endpoints = ENDPOINTS) -> Plan:
    """Read, check and group the runs. Raises MitigateError where nothing can be compared."""
    is_policy = isinstance(baseline, str) and "/" not in baseline and not Path(baseline).is_dir()
    places, base_places = folders(named), [] if is_policy else folders(baseline)
    if not places or len(places) + len(base_places) < 2:
        raise MitigateError(
            f"compare.runs={[str(folder) for folder in places]}, and a comparison takes two runs or more; name more "
            "run folders by compare.runs=[DIR,DIR,...], or the one to compare with by compare.baseline=DIR"
        )
    every = list(dict.fromkeys([*base_places, *places]))
    recipe = next(filter(None, map(recipe_of, every)), "mitigate")
    figures = "humans.json" if recipe == "humans" else "metrics.json"
    runs = read_runs(every, recipe, "compare.runs", if_any=[FILE, OF_A_RUN], figures=figures)
    arms, left_out = _arms(runs)
    first = [run for run in runs if run.folder in base_places] or _baseline(baseline, runs, arms)
    others = [run for run in runs if run.folder in places and run not in first]
    others = others or [run for run in runs if run.folder in places]
    sides = [{name: kept for name, arm in arms.items() if (kept := _of(arm, side))} for side in (first, others)]
    if not (pairs := _contrasts(*sides)):
        raise MitigateError(f"{' '.join(left_out)} Nothing is left to compare; name runs with other settings or seeds.")
    used = [run for pair in pairs for run in pair.runs]
    unlike = _unlike_scorers(used)
    if tuple(endpoints.harm) == HARMS:  # a user's own scorer in regard's place
        own = [name for name in reversed(roles_of(used)) if name not in PAPER_SCORERS]
        more = [key_of("neutral_mean", name, template) for name in own for template in ("neutral", "paper")]
        endpoints = replace(endpoints, harm=[*HARMS, *more])
    notices = [*left_out, *_notices(pairs, used, unlike)]
    return Plan(recipe, pairs, endpoints, unlike, notices)


def _baseline(name: Any, runs: Sequence[FinishedRun], arms: Mapping[str, tuple[FinishedRun, ...]]) -> list[FinishedRun]:
    """The runs of a policy; without a name those of none, or else those that differ from the first run by seed alone.
    Raises MitigateError where no run is of the policy, or all are."""
    mine = [run for run in runs if run.policy == (name or "none")]
    if name is None and len(mine) in (0, len(runs)):
        mine = list(next(iter(arms.values())))
    if mine and len(mine) < len(runs):
        return mine
    policies = ", ".join(dict.fromkeys(run.policy for run in runs))
    meant = ("" if mine else did_you_mean(str(name), {run.policy for run in runs})) or "."
    wrong = "no run is of that policy" if not mine else "all runs are" if name else "all runs differ by seed alone"
    raise MitigateError(
        f"compare.baseline={name}, but {wrong} (policies among compare.runs: {policies}){meant} Name one of them, or "
        "the baseline's folder: compare.baseline=DIR"
    )


def _of(runs: Sequence[FinishedRun], among: Sequence[FinishedRun]) -> tuple[FinishedRun, ...]:
    return tuple(run for run in runs if run in among)


def _arms(runs: Sequence[FinishedRun]) -> tuple[dict[str, tuple[FinishedRun, ...]], list[str]]:
    """The runs by the names of their groups, which are of one corpus and differ by seed alone; with notices of runs
    that are left out: the second of two with the same settings and the same seed is not a second draw."""
    every = [model_settings(run) for run in runs]
    shared = sorted(set.intersection(*map(set, every)))  # another version may have other settings
    groups: dict[str, dict[Any, FinishedRun]] = {}
    notices = []
    for run, settings in zip(runs, every, strict=True):
        key = [run.metrics.get("fingerprint", run.digest), {name: settings[name] for name in shared}]
        group = groups.setdefault(json.dumps(key), {})
        twin = group.setdefault(run.setting("seed"), run)
        if twin is not run:
            notices.append(f"{run.folder.name} has the settings and the seed of {twin.folder.name}: it is left out.")
    found = [tuple(group.values()) for group in groups.values()]
    names = [_name(arm[0], [other[0] for other in found]) for arm in found]
    names = names if len(set(names)) == len(names) else [arm[0].folder.name for arm in found]
    return dict(zip(names, found, strict=True)), notices


def numbers_of(run: FinishedRun) -> str:
    """The figures of a run: the same for a copy, and for a policy that changed nothing."""
    return json.dumps({name: value for name, value in run.metrics.items() if name not in ("policy", "seed")})


def _name(run: FinishedRun, others: Sequence[FinishedRun]) -> str:
    """The run's policy, or where the recipe has none its data, with the settings that distinguish it from others of the
    same."""
    first = "policy.name" if "policy.name" in run.settings else "data.name"
    alike = [other for other in others if other.text(first) == run.text(first)]
    parts = [str(run.text(first))]
    for name in _shortened(differing(alike)):
        value = str(run.setting(name))
        short = str(Path(*Path(value).parts[-2:])) if value.startswith("/") else value  # a path by its last two parts
        parts.append(value if name.endswith(".name") else f"{name}={short}")
    return ", ".join(parts)


def _shortened(names: Sequence[str]) -> list[str]:
    """The names of settings that differ; if data or models differ, their name stands for all settings of these."""
    whole = {"data.name": ("data.",), "model.name": ("model.", "train", "trainer.")}
    dropped = tuple(start for name, starts in whole.items() if name in names for start in starts)
    return [name for name in names if name in whole or not name.startswith(dropped)]


def _contrasts(
    baselines: Mapping[str, tuple[FinishedRun, ...]], others: Mapping[str, tuple[FinishedRun, ...]]
) -> list[Contrast]:
    """Pair each of the others with the baseline nearest to it in settings, and with its control where that is among
    them; a control with a policy of its own among them is compared with that alone."""
    policies = {name: arm[0].policy for name, arm in others.items() if name.startswith(arm[0].policy)}
    controls = {name: name.replace(policy, policy + CONTROL, 1) for name, policy in policies.items()}
    pairs = [
        (name, min(baselines, key=lambda base: len(differing([baselines[base][0], others[name][0]]))))
        for name in others
        if name not in controls.values()
    ]
    found = [(name, base, baselines[base], others[name]) for name, base in pairs]
    found += [(name, other, others[other], others[name]) for name, other in controls.items() if other in others]
    return [
        Contrast(name, base, before, after)
        if name != base
        else Contrast(_with_seeds(name, after), _with_seeds(base, before), before, after)
        for name, base, before, after in found
    ]


def _with_seeds(name: str, runs: Sequence[FinishedRun]) -> str:
    """The name of some of an arm's seeds that are compared with others of its own."""
    return f"{name}, seed {', '.join(str(run.setting('seed')) for run in runs)}"


def roles_of(runs: Sequence[FinishedRun]) -> list[str]:
    """The names in tables of the scorers in the roles of sentiment and regard that all runs share."""
    found = [role_scorers(run.setting("score") or {}) for run in runs]
    return [name for name in found[0] if all(name in of for of in found)]


def _unlike_scorers(runs: Sequence[FinishedRun]) -> list[str]:
    """The scorers that have other settings, code or weights in some runs, by their fingerprints."""
    prints = [run.manifest.get("scorers") or {} for run in runs]
    names = dict.fromkeys(name for found in prints for name in found)
    return [name for name in names if len({found[name] for found in prints if name in found}) > 1]


def _notices(pairs: Sequence[Contrast], runs: Sequence[FinishedRun], unlike: Sequence[str]) -> Iterator[str]:
    """Yield the limits of the findings, the gravest first."""
    if unlike:
        yield (
            f"Not all runs were labelled by the same {' and '.join(unlike)} (other settings, weights or version): "
            "figures that rest on these labels are not compared."
        )
    if len({(run.text("data.name"), run.metrics.get("fingerprint")) for run in runs}) > 1:
        names = ", ".join(dict.fromkeys(str(run.text("data.name")) for run in runs))
        yield f"The runs are not of the same corpus and targets ({names}): a difference need not be the policy's."
    if len({run.text("model.name") for run in runs}) > 1:
        yield "The models may cut text into tokens differently: compare bits per character, not perplexity."
    if differ := _shortened(differing(runs)):
        more = f" and {len(differ) - MOST_NAMED} more" if len(differ) > MOST_NAMED else ""
        yield f"The runs differ in more than policy and seed: {', '.join(differ[:MOST_NAMED])}{more}."
    if changed := [name for name in VERSIONS if len({str(run.manifest.get(name)) for run in runs}) > 1]:
        yield f"The runs were made by different versions of {' and '.join(changed)}."
    measuring = set(Results.of_run(runs[0]).table.filter(measure="neutral_mean")["scorer"]) - set(unlike)
    if biased := [one.name for one in pairs if measuring and measuring <= set(filtered_by(one.after[0]))]:
        yield (
            f"{'; '.join(dict.fromkeys(biased))}: filtered by the same scorers that measure it, so that the figures of "
            "harm are biased in its favour. Add held-out scorers to all runs: score.extra=[crowd2,keyword]."
        )
    if single := [one.name for one in pairs if min(len(one.before), len(one.after)) == 1]:
        yield (
            f"{'; '.join(dict.fromkeys(single))}: a single seed on either side, so two trained models are compared, "
            "not two policies. Train five seeds or more of each."
        )


def filtered_by(run: FinishedRun) -> list[str]:
    """The names of the scorers that the run's policy filters or ranks by; none for a control, which draws at random."""
    if run.setting("policy.control"):
        return []
    names = called(run.setting("score") or {})
    given = [run.setting(f"policy.{part}scorers") for part in ("", "first.", "second.")]
    return [names.get(str(name), str(name)) for part in given if isinstance(part, list) for name in part]


def differences(plan: Plan) -> pl.DataFrame:
    """The table DIFFERENCES of all contrasts. Raises MitigateError where the runs have no figure in common."""
    rows: list[dict[str, Any]] = []
    for one in plan.contrasts:
        before, after = ([_comparable(run, plan) for run in side] for side in (one.before, one.after))
        names = {"contrast": one.key, "policy": one.name, "against": one.against}
        if not (found := compare.differences(before, after, list_of_runs(one.runs), **names)):
            raise MitigateError(
                f"{one.name} and {one.against} have no figure in common, so there is nothing to compare. "
                f"{' '.join(plan.notices)}"
            )
        rows += found
    return pl.DataFrame(rows, schema=DIFFERENCES)


def _comparable(run: FinishedRun, plan: Plan) -> Results:
    """The run's results without figures that rest on scorers which are not the same in all runs."""
    found, scorer, measure = Results.of_run(run), pl.col("scorer"), pl.col("measure")
    dropped = scorer.is_in(plan.unlike) | measure.is_in(plan.unlike)  # people_valid is both
    if len(set(roles_of(plan.runs)) - set(plan.unlike)) < len(roles_of([run])):
        dropped |= pl.col("group").is_in(BY_LABEL)
    if "plausibility" in plan.unlike:
        dropped |= measure.str.starts_with("swap_lift") | (measure == "valid")
    return Results(found.table.filter(~dropped), found.facts)
