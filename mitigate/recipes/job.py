"""What every recipe needs around its stages: the run folder, named by what the run is; the record in W&B; a line on
the terminal for each stage, and status.json; and the rehearsal that says what is still to be done."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate import __version__
from mitigate.cli.arguments import inputs
from mitigate.cli.output import EVERY, SELDOM, Showing, say
from mitigate.errors import MitigateError
from mitigate.recipes import sweep_notes as notes
from mitigate.recipes.instantiate import build as build
from mitigate.result_settings import deciding
from mitigate.runs.files import write
from mitigate.runs.fingerprints import plain as known_by
from mitigate.runs.fingerprints import sealed
from mitigate.runs.progress import listening
from mitigate.runs.status import Status
from mitigate.runs.store import (
    SETTINGS,
    BusyError,
    NotComputedError,
    Result,
    Run,
    as_json,
    digest_of,
    read_json,
    tidy,
    wait_for,
)
from mitigate.tracking.record import NoTracking, Tracking, is_handed_out, open_tracking
from mitigate.words.texts import counted, without_folders

NO_FACTS: Mapping[str, Any] = {}
GROUPS = ("policy", "data", "model")  # of settings, by which runs are found in W&B
LONGEST_TAG = 64  # letters, in W&B
PACKAGES = ("torch", "transformers", "pytorch-lightning", "vaderSentiment", "hydra-core", "polars", "wandb")


class Job:
    """A recipe at work: its settings, its run folder and where it is recorded."""

    def __init__(self, config: DictConfig, run: Run, tracking: Tracking, status: Status | None = None) -> None:
        self.config = config
        self.run = run
        self.tracking = tracking
        self.status = status
        self.folder = run.folder
        self.brief = is_brief(config)

    def stage(
        self, name: str, function: Callable[..., pl.DataFrame | dict[str, Any]], *values: Any, **more: Any
    ) -> Result:
        """Run.stage, parts of the configuration among its values made plain, with a line on the terminal."""
        if self.status:
            self.status.stage(name)
        values = tuple(map(plain, values))
        result = self.run.stage(name, function, *values, **{key: plain(value) for key, value in more.items()})
        if self.status:
            self.status.done(name)
            if not (self.brief and call(self.config)["sweep"]):
                say_stage(result)
        return result

    def training(self, device: str, stage: str, fingerprint: str) -> dict[str, Any]:
        """What the training of a network in a stage is given: where it runs, and where its figures go."""
        log = partial(self.tracking.log, stage=stage)
        return {"folder": self.folder, "fingerprint": fingerprint, "accelerator": device, "log": log}

    @property
    def recipe(self) -> str:
        """The name of the recipe."""
        return self.config.recipe.name

    @property
    def command(self) -> str:
        """What to type to do this job again; in a sweep, this job of it."""
        return command(self.config)

    @property
    def needs(self) -> dict[str, str]:
        """The user's own files that the command names (arguments.inputs)."""
        return inputs(call(self.config)["arguments"])

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration as plain data."""
        return plain(self.config)

    @property
    def results(self) -> dict[str, Result]:
        """The results so far, by stage."""
        return {result.stage: result for result in self.run.results}

    @property
    def kept(self) -> list[str]:
        """The stages whose results stay although their code has changed (code=keep)."""
        return [result.stage for result in self.run.results if result.kept]


Phase = Callable[[Job], None]
"""A pipeline, or what records its results."""


def nothing(_: Job) -> None:
    """The record of a recipe that leaves files alone."""


def perform(
    config: DictConfig,
    name: str,
    inputs: object,
    pipeline: Phase,
    record: Phase = nothing,
    *,
    uploads: Sequence[str] = (),
    facts: Mapping[str, Any] = NO_FACTS,
    of: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Result] | None:
    """Run a recipe's pipeline in the run folder `{name}-{hash}`; the hash is of the settings and the inputs' content.
    Returns the results by stage; None for a rehearsal that was asked for.

    inputs: tables, or what else a stage may be given (fingerprints.plain), such as the hash of a file. pipeline: runs
    the stages in their order. record: called once, after them, to record, upload and print what they found.

    A rehearsal goes through the pipeline first and finds out what the folder already holds: stages that are not there
    are pending, and so are those that depend on them. With dry_run=true they are listed; a run that is complete is not
    recorded a second time, unless a sweep of W&B asks for it. While another process works on the same run, this one
    waits, and then looks again. uploads: what goes to W&B besides settings and metrics, in words; of: the policies,
    data and models that the run is found by there, where the settings do not name them. facts: what the manifest says
    besides the provenance."""
    folder = Path(config.paths.outputs) / f"{name}-{digest_of(as_json([science(config), known_by(inputs)]))[:8]}"
    say(f"  run folder  {folder}")
    keep_code = config.get("code") == "keep"
    rehearsal = Run(folder, dry=True, keep_code=keep_code)
    job = Job(config, rehearsal, NoTracking())
    with suppress(NotComputedError):  # a pipeline that reads a pending result is followed no further
        pipeline(job)
    if config.dry_run:
        for result in rehearsal.results:
            say_stage(result)
        return None
    if rehearsal.finished() and not is_handed_out():
        say("  complete: nothing is left to do")
        tidy(folder)
        _restore_settings(config, folder)
        notes.leave(call(config), {"folder": str(folder)})
        for page in sorted(folder.glob("*.html")):
            say(f"  {page.stem:<10}  {page}")
        return job.results
    try:
        run = Run(folder, keep_code=keep_code)
    except BusyError:
        say("  another process is already working on this run; waiting until it has ended")
        wait_for(folder)
        return perform(config, name, inputs, pipeline, record, uploads=uploads, facts=facts, of=of)
    return _perform(config, run, [pipeline, record], uploads, facts, of or what_of(config))


def _perform(
    config: DictConfig,
    run: Run,
    phases: Sequence[Phase],
    uploads: Sequence[str],
    facts: Mapping[str, Any],
    of: Mapping[str, Sequence[str]],
) -> dict[str, Result]:
    """The pipeline and its record; the record in W&B is finished as failed when one of them fails."""
    status = Status(run.folder, config.recipe.name)
    state, error = "failed", None
    try:
        write(run.folder / SETTINGS, OmegaConf.to_yaml(config, resolve=True).encode())
        notes.leave(call(config), {"folder": str(run.folder)})
        seldom = is_brief(config) and call(config)["sweep"]
        with listening(Showing(status, SELDOM if seldom else EVERY)):
            results = _recorded(config, run, status, phases, uploads, facts, of)
        state = "finished"
    except KeyboardInterrupt:
        state = "stopped"
        raise
    except Exception as failure:
        error = str(failure) if isinstance(failure, MitigateError) else f"{type(failure).__name__}: {failure}"
        raise
    finally:
        status.close(state, error)
        run.close()
    return results


def _recorded(
    config: DictConfig,
    run: Run,
    status: Status,
    phases: Sequence[Phase],
    uploads: Sequence[str],
    facts: Mapping[str, Any],
    of: Mapping[str, Sequence[str]],
) -> dict[str, Result]:
    tracking = open_tracking(
        config.tracking.mode,
        folder=run.folder,
        run_id=record_id(run.folder),
        project=config.tracking.project,
        entity=config.tracking.entity,
        name=run.folder.name,
        group=group_of(of),
        job_type=config.recipe.name,
        tags=tags_of(config.recipe.name, of),
        config=recorded_settings(config),
    )
    what = "" if config.tracking.mode == "none" else f" ({', '.join(['settings', 'metrics', *uploads])})"
    if not is_said(config):
        say(f"  recorded    {tracking.place}{what}")
    job, failed = Job(config, run, tracking, status), True
    try:
        for phase in phases:
            phase(job)
        run.finish(provenance(config, {**facts, "stages": [_facts(result) for result in run.results]}))
        failed = False
    finally:
        tracking.finish(failed=failed)
    return job.results


def _restore_settings(config: DictConfig, folder: Path) -> None:
    """Write config.yaml of a complete run anew when it is gone or damaged."""
    path, manifest = folder / SETTINGS, read_json(folder / "manifest.json") or {}
    if not path.is_file() or digest_of(path.read_bytes()) != manifest["files"].get(path.name):
        content = OmegaConf.to_yaml(config, resolve=True)
        write(path, content)
        manifest["files"][path.name] = digest_of(content)
        write(folder / "manifest.json", as_json(sealed(manifest)))
        say("  config.yaml was damaged and was written again")


def record_id(folder: Path) -> str:
    """The id under which a run is recorded: the same each time it goes on, another for a folder elsewhere."""
    return folder.name[-8:] + digest_of(str(folder.resolve()))[:8]


def what_of(config: DictConfig) -> dict[str, list[str]]:
    """The policy, the data and the model that a run is of, if its recipe reads such; others are mere defaults."""
    reads = config.recipe.get("reads") or ()
    return {group: [str(config[group].name)] for group in GROUPS if group in reads}


def group_of(of: Mapping[str, Sequence[str]]) -> str | None:
    """The group a run is recorded in, by its data and model: those of one group stand side by side."""
    return "-".join(dict.fromkeys([*of.get("data", ()), *of.get("model", ())])) or None


def tags_of(recipe: str, of: Mapping[str, Sequence[str]]) -> list[str]:
    """What runs are filtered by in W&B: "recipe:mitigate", "policy:both", "data:sample", "model:comet_minilm"."""
    named = {"recipe": [recipe], **{group: of.get(group, ()) for group in GROUPS}}
    return [f"{group}:{name}"[:LONGEST_TAG] for group, names in named.items() for name in dict.fromkeys(names)]


def recorded_settings(config: DictConfig) -> dict[str, Any]:
    """The settings that W&B gets: those that decide what the run finds, without the folders of this machine."""
    return _without_folders(science(config))


def _without_folders(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {name: _without_folders(part) for name, part in node.items()}
    if isinstance(node, list):
        return [_without_folders(part) for part in node]
    return without_folders(node) if isinstance(node, str) else node


def is_brief(config: DictConfig) -> bool:
    """Whether the terminal gets a verdict and a few figures (verbose=false), and not all of them."""
    return not config.get("verbose", False)


def is_said(config: DictConfig) -> bool:
    """Whether the first job of this sweep says what holds for all of them, and this one is brief and another."""
    return is_brief(config) and bool(call(config)["number"])


def science(config: DictConfig) -> dict[str, Any]:
    """The settings that decide what a run finds (decisions.deciding), as a plain dict."""
    return deciding(plain(config))


def call(config: DictConfig) -> dict[str, Any]:
    """How this job was called (notes.call_of); of a recipe that is not run from the command line, nothing."""
    return plain(config.get("call")) or {"arguments": [], "overrides": [], "sweep": None, "number": None}


def command(config: DictConfig) -> str:
    """What to type to do this job again; in a sweep, this job of it."""
    return shlex.join(["python", "-m", "mitigate", *call(config)["arguments"]])


def provenance(config: DictConfig, more: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to do it again: the command, versions, seed, and what is given besides."""
    return {
        "command": command(config),
        "seed": config.seed,
        "mitigate": __version__,
        "python": sys.version.split()[0],
        **{package: metadata.version(package) for package in PACKAGES},
        **more,
    }


def plain(node: Any) -> Any:
    """A part of the configuration as plain lists and dicts; anything else as it is."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def say_stage(result: Result) -> None:
    """A line on the terminal for a stage: to be run, cached, or the seconds it took, and what it found."""
    if result.pending:
        say(f"  {result.stage:<12}{'to be run':>18}")
        return
    took = "kept, old code" if result.kept else "cached" if result.from_cache else f"{result.seconds:.1f} s"
    if result.path.suffix == ".parquet":
        rows = pl.scan_parquet(result.path, glob=False).select(pl.len()).collect().item()
        found = f"   {counted(rows, 'row')}"
    else:
        found = _said_of_training(result.facts())
    say(f"  {result.stage:<12}{took:>18}{found}")


def _said_of_training(facts: Mapping[str, Any]) -> str:
    """Steps done, of how many that were planned, and the setting that ended them; "" of another stage."""
    if "ended_by" not in facts:
        return ""
    steps, passes = f"{facts['steps']:,} of {facts['planned']:,} steps", facts["passes"]
    passes = f"{passes:,.1f}" if passes >= 1 else f"{passes:.2g}"
    return f"   {steps}, ended by trainer.{facts['ended_by']}; {passes} passes over the data"


def _facts(result: Result) -> dict[str, Any]:
    facts = {"stage": result.stage, "seconds": result.seconds, "peak_memory": result.peak_memory}
    return facts | ({"code": "kept: it has changed since this result was computed"} if result.kept else {})
