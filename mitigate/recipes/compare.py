"""`recipe=compare`: finished runs of one recipe beside a baseline and beside each policy's control, by their tables of
results. read > differences > comparison.json > page; a sweep ends with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import quote

import polars as pl

from mitigate.errors import MitigateError, did_you_mean, literal, with_texts
from mitigate.files import digest_of
from mitigate.finished import (
    NOT_GIVEN,
    FinishedRun,
    Named,
    differing,
    folders,
    model_settings,
    read_runs,
    recipe_of,
    source_of,
)
from mitigate.load.targets import OF_A_RUN, list_of_runs
from mitigate.measure import compare
from mitigate.measure.base import PAPER_SCORERS, bounds, key_of
from mitigate.measure.compare import DIFFERENCES, FAILS, HOLDS, OPEN, PRIMARY, Endpoints
from mitigate.measure.results import FILE, Results
from mitigate.recipes.config import Config
from mitigate.recipes.job import Job, open_job, say, say_verdict
from mitigate.report import compare as report
from mitigate.report.page import write
from mitigate.report.table import as_text
from mitigate.stages import in_folder
from mitigate.tracking import headline_differences, summary
from mitigate.triples import TEMPLATES, called, role_scorers
from mitigate.words.targets import named

STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error
CONTROL = "-control"  # ends the name of a policy's control
ENDPOINTS = Endpoints()
Arms = Mapping[str, tuple[FinishedRun, ...]]


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
    def sides(self) -> dict[str, tuple[FinishedRun, ...]]:
        return {self.against: self.before, self.name: self.after}

    @property
    def runs(self) -> list[FinishedRun]:
        return [*self.before, *self.after]

    @property
    def filtered_by(self) -> list[str]:
        """The names of the scorers that the policy filters or ranks by; none for a control, which draws at random."""
        run = self.after[0]
        if run.setting("policy.control"):
            return []
        names = called(run.setting("score") or {})
        given = [run.setting(f"policy.{part}scorers") for part in ("", "first.", "second.")]
        return [names.get(str(name), str(name)) for part in given if isinstance(part, list) for name in part]


@dataclass(frozen=True, eq=False)
class Plan:
    """Finished runs of one recipe that have been read and checked, grouped."""

    recipe: str
    contrasts: list[Contrast]
    endpoints: Endpoints
    notices: list[str]  # limits of the findings

    @property
    def arms(self) -> Arms:
        """The runs by the names of their groups."""
        sides = [((one.against, one.before), (one.name, one.after)) for one in self.contrasts]
        return {name: arm for pair in sides for name, arm in pair}

    @property
    def runs(self) -> list[FinishedRun]:
        return [run for arm in self.arms.values() for run in arm]

    @property
    def roles(self) -> list[str]:
        """The names in tables of the scorers in the roles of sentiment and regard that all runs share."""
        found = [role_scorers(run.setting("score") or {}) for run in self.runs]
        return [name for name in found[0] if all(name in of for of in found)]


def make_plan(given: Named, baseline: Named, endpoints: Endpoints = ENDPOINTS) -> Plan:
    """Read, check and group the runs. Raises MitigateError where nothing can be compared."""
    is_policy = isinstance(baseline, str) and "/" not in baseline and not Path(baseline).is_dir()
    places, base_places = folders(given), [] if is_policy else folders(baseline)
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
    sides = [
        {name: kept for name, arm in arms.items() if (kept := tuple(run for run in arm if run in side))}
        for side in (first, others)
    ]
    if not (pairs := _contrasts(*sides)):
        raise MitigateError(f"{' '.join(left_out)} Nothing is left to compare; name runs with other settings or seeds.")
    used = [run for pair in pairs for run in pair.runs]
    prints = [run.manifest.get("scorers") or {} for run in used]
    scorers = dict.fromkeys(name for found in prints for name in found)
    if unlike := [name for name in scorers if len({found[name] for found in prints if name in found}) > 1]:
        raise MitigateError(
            f"compare.runs: not all runs were labelled by the same {' and '.join(unlike)} (other settings, weights or "
            "version), so their results do not compare; run the older ones again"
        )
    return Plan(recipe, pairs, endpoints, [*left_out, *_notices(pairs, used)])


def _baseline(name: Any, runs: Sequence[FinishedRun], arms: Arms) -> list[FinishedRun]:
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
    found, names = [tuple(group.values()) for group in groups.values()], []
    for run, *_ in found:
        first = "policy.name" if "policy.name" in run.settings else "data.name"
        alike = [arm[0] for arm in found if arm[0].text(first) == run.text(first)]
        more = {name: str(run.setting(name)) for name in _shortened(differing(alike))}
        short = [
            of if name.endswith(".name") else f"{name}={'/'.join(of.split('/')[-2:])}" for name, of in more.items()
        ]
        names.append(", ".join([str(run.text(first)), *short]))
    names = names if len(set(names)) == len(names) else [arm[0].folder.name for arm in found]
    return dict(zip(names, found, strict=True)), notices


def _shortened(names: Sequence[str]) -> list[str]:
    """The names of settings that differ; if data or models differ, their name stands for all settings of these."""
    whole = {"data.name": ("data.",), "model.name": ("model.", "train", "trainer.")}
    dropped = tuple(start for name, starts in whole.items() if name in names for start in starts)
    return [name for name in names if name in whole or not name.startswith(dropped)]


def _contrasts(baselines: Arms, others: Arms) -> list[Contrast]:
    """Pair each of the others with the baseline nearest to it in settings, and with its control where that is among
    them; a control with a policy of its own among them is compared with that alone."""
    policies = {name: arm[0].policy for name, arm in others.items() if name.startswith(arm[0].policy)}
    controls = {name: name.replace(policy, policy + CONTROL, 1) for name, policy in policies.items()}
    found = []
    for name in (name for name in others if name not in controls.values()):
        base = min(baselines, key=lambda base: len(differing([baselines[base][0], others[name][0]])))
        against = base if base != name else f"{base}, the baseline"
        found.append(Contrast(name, against, baselines[base], others[name]))
    pairs = [(name, other) for name, other in controls.items() if other in others]
    return found + [Contrast(name, other, others[other], others[name]) for name, other in pairs]


def _notices(pairs: Sequence[Contrast], runs: Sequence[FinishedRun]) -> list[str]:
    """The limits of the findings."""
    differ = _shortened(differing(runs))
    found = [f"The runs differ in more than policy and seed: {named(differ)}."] if differ else []
    if runs[0].recipe == "audit":  # nothing was trained or filtered
        return found
    if len({(run.text("data.name"), run.metrics.get("fingerprint")) for run in runs}) > 1:
        names = ", ".join(dict.fromkeys(str(run.text("data.name")) for run in runs))
        found.append(
            f"The runs are not of the same corpus and targets ({names}): a difference may have other causes than the "
            "policy."
        )
    measuring = set(Results.of_run(runs[0]).table.filter(measure="neutral_mean")["scorer"])
    if biased := [one.name for one in pairs if measuring and measuring <= set(one.filtered_by)]:
        found.append(
            f"{'; '.join(dict.fromkeys(biased))}: the same scorers filter and measure, so the results on harm are "
            "biased in its favour. Add held-out scorers to all runs: score.extra=[crowd2,keyword]."
        )
    if single := [one.name for one in pairs if min(len(one.before), len(one.after)) == 1]:
        found.append(
            f"{'; '.join(dict.fromkeys(single))}: there is a single seed on either side, so two trained models are "
            "compared, not two policies. Train five seeds or more of each."
        )
    return found


def differences(plan: Plan) -> pl.DataFrame:
    """The table DIFFERENCES of all contrasts. Raises MitigateError where the runs have no figure in common."""
    rows: list[dict[str, Any]] = []
    for one in plan.contrasts:
        before, after = ([Results.of_run(run) for run in side] for side in (one.before, one.after))
        names = {"contrast": one.key, "policy": one.name, "against": one.against}
        if not (found := compare.differences(before, after, list_of_runs(one.runs), **names)):
            raise MitigateError(f"{one.name} and {one.against} have no result in common that could be compared")
        rows += found
    return pl.DataFrame(rows, schema=DIFFERENCES)


def run(config: Config) -> None:
    """Compare the folders of `compare.runs` with those of `compare.baseline`."""
    endpoints = Endpoints(**asdict(config.compare.primary), margins=config.compare.margins)
    if config.compare.gate and config.call["sweep"]:
        raise MitigateError("compare.gate=true is for a single comparison, and this is a sweep; leave compare.gate out")
    if config.compare.gate and not endpoints.declared:
        raise MitigateError(
            "compare.gate=true decides by the primary endpoints, and compare names no primary endpoint: give "
            "compare.primary.harm or compare.primary.quality"
        )
    plan = make_plan(config.compare.runs, config.compare.baseline, endpoints)
    facts = _shared_settings(plan)
    if facts["data"]["demonstration"]:
        say("The runs are on a small corpus written for demonstration: they show how things work and claim nothing.")
    kind = facts["model"]["name"] if plan.recipe == "mitigate" else plan.recipe
    # Taken literally: texts of a foreign folder may look like ${oc.env:HOME}.
    config.node.merge_with(with_texts(facts, literal))
    config = Config(config.node, {name: part for name, part in config.groups.items() if name not in facts})

    name = "-".join([config.recipe.name, facts["data"]["name"], kind])
    inputs = digest_of(json.dumps([run.digest for run in plan.runs]))
    tracked = {group: [str(run.text(f"{group}.name")) for run in plan.runs] for group in ("policy", "data", "model")}
    outcome = OPEN  # of a rehearsal
    with open_job(config, name, inputs, tracked=tracked) as job:
        table = job.stage("differences", differences, plan)
        written = job.stage("comparison", overview, plan, table, after=[str(run.folder) for run in plan.runs])
        of_data = [{name: run.text(f"data.{name}") for name in ("name", "attribution", "licence")} for run in plan.runs]
        origin = {"data": "; ".join(dict.fromkeys(map(source_of, of_data)))}
        using = in_folder(run=job.folder, **job.about(origin))
        job.stage("report", write_page, plan, table, using=using, after=[written, job.folder.name])
        found = findings(plan, table.table())
        outcome = compare.gates([one.gate for one in found])
        if job.is_new():
            _record(job, plan, found, outcome)
        for one in found:
            say_verdict(one.sentence)
        say(as_text(report.headline_table(found), 130))
        job.say_page_notes(plan.notices)
    if config.compare.gate:
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def _shared_settings(plan: Plan) -> dict[str, Any]:
    """The policies, the data and the model of the runs, "several" where they differ, and whether any has texts of a
    user's own or a demonstration's."""

    def shared(setting: str) -> str:
        names = {run.text(setting) or NOT_GIVEN for run in plan.runs}
        return names.pop() if len(names) == 1 else "several"

    flags = {key: any(run.setting(f"data.{key}") for run in plan.runs) for key in ("own_texts", "demonstration")}
    policies = shorten(", ".join(dict.fromkeys(one.name for one in plan.contrasts)), 50, placeholder=" ...")
    data = {key: shared(f"data.{key}") for key in ("name", "licence", "attribution")} | flags
    return {"policy": {"name": policies}, "data": data, "model": {"name": shared("model.name")}}


def _record(job: Job, plan: Plan, found: Sequence[report.Finding], outcome: str) -> None:
    """Record verdicts and gate, differences of headlines, and the page's tables and plots."""
    rows = pl.concat(headline_differences(one.name, one.against, one.rows.to_dicts()) for one in found)
    job.tracking.summarise(summary(rows) | {"verdict": " ".join(one.sentence for one in found), "gate": outcome})
    job.tracking.table("differences", rows)
    for file in sorted((job.folder / "tables").glob("*.csv")):
        if file.stem != "differences":
            job.tracking.table(file.stem, pl.read_csv(file, infer_schema_length=None, glob=False))
    job.record_plots()
    say(f"  comparison  {job.folder / 'comparison.html'}")


def findings(plan: Plan, table: pl.DataFrame) -> list[report.Finding]:
    """Each contrast with its figures and its verdict."""
    tested = compare.primary(table, plan.endpoints)

    def numbers(side: Sequence[FinishedRun]) -> set[str]:
        """The figures of each run: the same for a copy, and for a policy that changed nothing."""
        given = [{key: value for key, value in run.metrics.items() if key not in ("policy", "seed")} for run in side]
        return set(map(json.dumps, given))

    return [
        report.finding(
            name=one.name,
            against=one.against,
            seeds=(len(one.before), len(one.after)),
            is_same=numbers(one.before) == numbers(one.after),
            filtered_by=one.filtered_by,
            primary=tested.filter(contrast=one.key),
            rows=table.filter(contrast=one.key),
            endpoints=plan.endpoints,
            scorers=plan.roles,
            trained=one.runs[0].recipe != "audit",
            unlearnt=compare.no_conclusion(
                {f"“{name}”": [run.metrics for run in side] for name, side in one.sides.items()}
            ),
        )
        for one in plan.contrasts
    ]


def overview(plan: Plan, table: pl.DataFrame) -> dict[str, Any]:
    """The content of comparison.json."""
    found = findings(plan, table)
    return {
        "contrasts": [
            {
                "policy": one.name,
                "baseline": one.against,
                "runs": [str(run.folder) for run in pair.after],
                "baseline_runs": [str(run.folder) for run in pair.before],
                "seeds": list(one.seeds),
                "identical": one.is_same,
                "quality_kept": one.quality_kept,
                "gate": one.gate,
                "sentence": one.sentence,
                "primary": {row["endpoint"]: row for row in one.primary},
                "harms": {row["figure"]: row for row in one.rows.filter(section="harm").to_dicts()},
                "quality": {row["figure"]: row for row in one.rows.filter(pl.col("section") != "harm").to_dicts()},
            }
            for pair, one in zip(plan.contrasts, found, strict=True)
        ],
        "gate": compare.gates([one.gate for one in found]),
        "notices": plan.notices,
    }


def write_page(plan: Plan, table: pl.DataFrame, *, folder: Path, run: Path, **about: Any) -> dict[str, Any]:
    """Write comparison.html, its pictures and tables. about: the page's command, stages and facts."""
    found = findings(plan, table)
    axes = [*report.harm_axes(table["scorer"].unique(maintain_order=True)), *report.QUALITIES]
    keys = [name for axis in axes for name in (axis, *bounds(axis))]
    rows = [
        (name, one.seed, one.folder.name, *map(one.metrics.get, keys)) for name, arm in plan.arms.items() for one in arm
    ]
    schema = {"policy": pl.String, "seed": pl.Int64, "run": pl.String, **dict.fromkeys(keys, pl.Float64)}
    models = pl.DataFrame(rows, schema=schema, orient="row")
    models = models.select(one.name for one in models if one.null_count() < models.height)
    beside = [one.folder for one in plan.runs if one.folder.parent == run.resolve().parent]
    links = {one.name: f"../{quote(one.name)}/report.html" for one in beside if (one / "report.html").is_file()}
    primary = pl.DataFrame([row for one in found for row in one.primary], schema=PRIMARY | {"verdict": pl.String})
    tables = {"policies": policies(plan, table), "primary": primary, "differences": table, "models": models}
    is_demonstration = any(one.setting("data.demonstration") for one in plan.runs)
    about |= {"tables": tables, "demonstration": is_demonstration, "notices": plan.notices}
    write(report.page(found, models, links, **about), folder, "comparison.html")
    return {"notices": plan.notices}


def policies(plan: Plan, table: pl.DataFrame) -> pl.DataFrame:
    """The paper's figures by both templates, and quality: a row for each arm, means over seeds, and each difference."""
    harms = [(name, scorer) for scorer in PAPER_SCORERS for name in ("neutral_mean", "neutral_variance")]
    keys = [key_of(name, scorer, template) for template in reversed(TEMPLATES) for name, scorer in harms]
    keys = [key for key in (*keys, *report.QUALITIES) if key in table["figure"]]
    lines: dict[str, dict[str, Any]] = {}
    for pair in plan.contrasts:
        rows = {row["figure"]: row for row in table.filter(contrast=pair.key).to_dicts()}
        of = {"baseline": pair.against, "value": pair.name, "change": f"{pair.name} − {pair.against}"}
        for end, name in of.items():
            lines.setdefault(name, {"policy": name} | {key: rows[key][end] for key in keys if key in rows})
    schema = {"policy": pl.String} | dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(list(lines.values()), schema=schema)
