"""The runner of recipes: the run folder and its name, the record in W&B, a line on the terminal for each stage,
status.json, and the rehearsal that lists the stages still to be run."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate import __version__
from mitigate.cli.arguments import inputs as files_of_command
from mitigate.cli.arguments import with_texts
from mitigate.cli.output import EVERY, SELDOM, Showing, say
from mitigate.errors import MitigateError
from mitigate.recipes import sweep_outcomes
from mitigate.recipes.instantiate import build as build
from mitigate.result_settings import deciding
from mitigate.runs import store
from mitigate.runs.files import as_json, read_json, write
from mitigate.runs.fingerprints import plain as hashed
from mitigate.runs.fingerprints import sealed
from mitigate.runs.progress import listening
from mitigate.runs.status import Status
from mitigate.tracking.record import Tracking, open_tracking, started_by_wandb_agent
from mitigate.words.outside_text import counted, without_folders

NO_FACTS: Mapping[str, Any] = {}
GROUPS = ("policy", "data", "model")  # of settings, for tags and groups of runs in W&B
LONGEST_TAG = 64  # characters, in W&B
LONGEST_NAME = 100  # characters of a run folder's name, before its hash
PACKAGES = ("torch", "transformers", "pytorch-lightning", "vaderSentiment", "hydra-core", "polars", "wandb")


class Job:
    """A recipe at work: its run folder, and where it is recorded."""

    def __init__(self, config: DictConfig, run: store.Run, tracking: Tracking, status: Status | None = None) -> None:
        self.config = config  # unresolved; stages take their settings from the plan
        self.run = run
        self.tracking = tracking
        self.status = status
        self.folder = run.folder
        self.recipe: str = config.recipe.name
        self.brief = is_brief(config)
        self.sweeps = call(config)["sweep"] is not None
        self.command = command(config)

    def stage(
        self, name: str, function: Callable[..., pl.DataFrame | dict[str, Any]], *values: Any, **more: Any
    ) -> store.Result:
        """Run.stage, parts of the configuration among its values made plain, with a line on the terminal."""
        if self.status:
            self.status.stage(name)
        values = tuple(map(plain, values))
        result = self.run.stage(name, function, *values, **{key: plain(value) for key, value in more.items()})
        if self.status:
            self.status.done(name)
            if not (self.brief and self.sweeps):
                say_stage(result)
        return result

    def training(self, stage: str, model: str | None = None, **where: Any) -> Callable[[store.Work], dict[str, Any]]:
        """The `using` of a stage that trains a network: where it saves the network and its checkpoints, the stage's
        fingerprint, and where its figures go. model: the folder of the run folder; None: the function takes the run
        folder itself. where: further arguments, such as the accelerator."""

        def using(work: store.Work) -> dict[str, Any]:
            places = {"folder": work.folder}
            if model is not None:
                places = {"model": work.folder / model, "checkpoints": work.folder / "checkpoints"}
            log = partial(self.tracking.log, stage=stage)
            return {**places, "fingerprint": work.fingerprint, "log": log, **where}

        return using

    @property
    def needs(self) -> dict[str, str]:
        """The user's own files that the command names (arguments.inputs)."""
        return files_of_command(call(self.config)["arguments"])

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration as plain data."""
        return plain(self.config)

    @property
    def records_texts(self) -> bool:
        """Return whether texts go to W&B."""
        return may_record_texts(self.config)

    @property
    def records_model(self) -> bool:
        """Return whether a trained generator goes to W&B."""
        return bool(self.config.tracking.get("model", False))

    @property
    def results(self) -> dict[str, store.Result]:
        """The results so far, by stage."""
        return {result.stage: result for result in self.run.results}

    def provenance(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The command, versions, seed, what is given besides, peak memory, and the stages whose results stay although
        their code has changed (code=keep)."""
        peak = max((result.peak_memory for result in self.run.results), default=0)
        kept = ", ".join(result.stage for result in self.run.results if result.kept)
        of_kept = {"kept although the code has changed": kept} if kept else {}
        return provenance(self.config, {**more, **of_kept, "peak memory": f"{peak / 2**30:.2f} GiB"})

    def say_page_notes(self, notices: Sequence[str]) -> None:
        """Print the page's notices, or their number (say_page_notes)."""
        say_page_notes(self.config, notices)


Phase = Callable[[Job], None]
"""A pipeline, or the function that records its results."""


def perform(
    config: DictConfig,
    name: str,
    inputs: object,
    pipeline: Phase,
    record: Phase = lambda _: None,
    *,
    uploads: Sequence[str] = (),
    facts: Mapping[str, Any] = NO_FACTS,
    tracked: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, store.Result] | None:
    """Run a recipe's pipeline in the run folder `{name}-{hash}`; the hash is of the settings and the inputs' content.
    Returns the results by stage; None with dry_run=true.

    inputs: tables, or other values that a stage takes (fingerprints.plain), such as the hash of a file. pipeline: runs
    the stages in their order. record: called once, after them, to record, upload and print the results.

    A rehearsal goes through the pipeline first and finds out what the folder already holds: stages that are not there
    are pending, and so are those that depend on them. With dry_run=true they are listed; a run that is complete is not
    recorded a second time, except for a sweep of W&B. While another process works on the same run, this one waits, and
    then looks again. uploads: what goes to W&B besides settings and metrics, in words. tracked: the policies, data and
    models that W&B groups and tags the run by, where the settings do not name them. facts: further entries of the
    manifest."""
    digest = store.digest_of(as_json([result_settings(config), hashed(inputs)]))
    folder = Path(config.paths.outputs) / f"{name.replace('/', '_')}-{digest[:8]}"  # of a model on a hub
    say(f"  run folder  {folder}")
    keep_code = config.get("code") == "keep"
    rehearsal = store.Run(folder, dry=True, keep_code=keep_code)
    job = Job(config, rehearsal, Tracking())
    with suppress(store.NotComputedError):  # a pipeline that reads a pending result is followed no further
        pipeline(job)
    if config.dry_run:
        for result in rehearsal.results:
            say_stage(result)
        return None
    if rehearsal.finished() and not started_by_wandb_agent():
        say("  complete: nothing to do")
        store.tidy(folder)
        _restore_settings(config, folder)
        sweep_outcomes.write_note(call(config), {"folder": str(folder)})
        for page in sorted(folder.glob("*.html")):
            say(f"  {page.stem:<10}  {page}")
        return job.results
    try:
        run = store.Run(folder, keep_code=keep_code)
    except store.BusyError:
        say("  another process is already working on this run; waiting for it to finish")
        store.wait_for(folder)
        return perform(config, name, inputs, pipeline, record, uploads=uploads, facts=facts, tracked=tracked)
    return _perform(config, run, [pipeline, record], uploads, facts, tracked or tracked_names(config))


def _perform(
    config: DictConfig,
    run: store.Run,
    phases: Sequence[Phase],
    uploads: Sequence[str],
    facts: Mapping[str, Any],
    tracked: Mapping[str, Sequence[str]],
) -> dict[str, store.Result]:
    """Run the pipeline and its record; the record in W&B is finished as failed when one of them fails."""
    with _status_of(run, config.recipe.name) as status:
        write(run.folder / store.SETTINGS, OmegaConf.to_yaml(config, resolve=True).encode())
        sweep_outcomes.write_note(call(config), {"folder": str(run.folder)})
        seldom = is_brief(config) and call(config)["sweep"]
        with listening(Showing(status, SELDOM if seldom else EVERY)):
            job, failed = Job(config, run, _open_tracking(config, run.folder, uploads, tracked), status), True
            try:
                for phase in phases:
                    phase(job)
                run.finish(provenance(config, {**facts, "stages": [_facts(result) for result in run.results]}))
                failed = False
            finally:
                job.tracking.finish(failed=failed)
    return job.results


@contextmanager
def _status_of(run: store.Run, recipe: str) -> Iterator[Status]:
    """The status of a run, closed with how the run ended; then the run folder is free for others."""
    status = Status(run.folder, recipe)
    state, error = "failed", None
    try:
        yield status
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


def _open_tracking(
    config: DictConfig, folder: Path, uploads: Sequence[str], tracked: Mapping[str, Sequence[str]]
) -> Tracking:
    tracking = open_tracking(
        config.tracking.mode,
        folder=folder,
        run_id=record_id(folder),
        project=config.tracking.project,
        entity=config.tracking.entity,
        name=folder.name,
        group="-".join(dict.fromkeys([*tracked.get("data", ()), *tracked.get("model", ())])) or None,
        job_type=config.recipe.name,
        tags=tags_of(config.recipe.name, tracked),
        config=with_texts(result_settings(config), without_folders),
    )
    if not is_repeat_in_sweep(config):
        sent = "" if config.tracking.mode == "none" else f" ({', '.join(['settings', 'metrics', *uploads])})"
        say(f"  recorded    {tracking.place}{sent}")
    return tracking


def _restore_settings(config: DictConfig, folder: Path) -> None:
    """Write config.yaml of a complete run again when it is missing or damaged."""
    path, manifest = folder / store.SETTINGS, read_json(folder / "manifest.json") or {}
    if not path.is_file() or store.digest_of(path.read_bytes()) != manifest["files"].get(path.name):
        content = OmegaConf.to_yaml(config, resolve=True)
        write(path, content)
        manifest["files"][path.name] = store.digest_of(content)
        write(folder / "manifest.json", as_json(sealed(manifest)))
        say("  config.yaml was damaged and was written again")


def folder_name(*parts: str) -> str:
    """The name of a run folder, of texts with any characters."""
    return re.sub(r"[^\w.,+=-]+", "_", "-".join(parts))[:LONGEST_NAME]


def record_id(folder: Path) -> str:
    """The id under which a run is recorded: the same each time it resumes, another for a folder elsewhere."""
    return folder.name[-8:] + store.digest_of(str(folder.resolve()))[:8]


def tracked_names(config: DictConfig) -> dict[str, list[str]]:
    """The names of policy, data and model, of these the groups that the recipe reads; others are mere defaults."""
    reads = config.recipe.get("reads") or ()
    return {group: [str(config[group].name)] for group in GROUPS if group in reads}


def tags_of(recipe: str, tracked: Mapping[str, Sequence[str]]) -> list[str]:
    """The W&B tags of a run: "recipe:mitigate", "policy:both", "data:sample", "model:comet_minilm"."""
    named = {"recipe": [recipe], **{group: tracked.get(group, ()) for group in GROUPS}}
    return [f"{group}:{name}"[:LONGEST_TAG] for group, names in named.items() for name in dict.fromkeys(names)]


def is_brief(config: DictConfig) -> bool:
    """Return whether the terminal gets a verdict and a few figures (verbose=false), and not all of them."""
    return not config.get("verbose", False)


def is_repeat_in_sweep(config: DictConfig) -> bool:
    """Return whether an earlier job of this sweep has printed what holds for all its jobs."""
    return is_brief(config) and bool(call(config)["number"])


def may_record_texts(config: DictConfig) -> bool:
    """Return whether texts go to W&B: those of a user's own, or for prompts of a user's own, only with
    tracking.statements=true."""
    return bool(config.tracking.statements or not (config.data.own_texts or config.recipe.get("prompts")))


def result_settings(config: DictConfig) -> dict[str, Any]:
    """The settings that affect results (result_settings.deciding), as a plain dict."""
    return deciding(plain(config))


def call(config: DictConfig) -> dict[str, Any]:
    """The call of this job (sweep_outcomes.call_of); empty where the recipe is not run from the command line."""
    return plain(config.get("call")) or {"arguments": [], "overrides": [], "sweep": None, "number": None}


def command(config: DictConfig) -> str:
    """The command that repeats this job; in a sweep, this job alone."""
    return shlex.join(["python", "-m", "mitigate", *call(config)["arguments"]])


def provenance(config: DictConfig, more: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a repetition needs: the command, versions, seed, and what is given besides."""
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


def say_notes(notices: Iterable[str]) -> None:
    """Print notices, a line each."""
    for notice in notices:
        say(f"  note: {notice}")


def say_page_notes(config: DictConfig, notices: Sequence[str]) -> None:
    """Print the page's notices with verbose=true, else their number; of a sweep's jobs, the first alone prints that."""
    if not is_brief(config):
        say_notes(notices)
    elif notices and not is_repeat_in_sweep(config):
        count = "one notice" if len(notices) == 1 else f"{len(notices)} notices"
        say(f"  notes       {count} on the page; verbose=true prints them, and every figure")


def say_stage(result: store.Result) -> None:
    """Print a line for a stage: to be run, cached, or the seconds it took, and its steps or rows, but for a table of
    counts, whose rows are none of the data's."""
    if result.pending:
        say(f"  {result.stage:<12}{'to be run':>18}")
        return
    new = "from another run" if result.origin else f"{result.seconds:.1f} s"
    took = "kept, old code" if result.kept else "cached" if result.from_cache else new
    if result.path.suffix == ".parquet":
        table = pl.scan_parquet(result.path, glob=False)
        is_counts = "count" in table.collect_schema()
        found = "" if is_counts else f"   {counted(table.select(pl.len()).collect().item(), 'row')}"
    else:
        found = _training_steps(result.facts())
    say(f"  {result.stage:<12}{took:>18}{found}")


def _training_steps(facts: Mapping[str, Any]) -> str:
    """The steps of a training, of how many planned, and the setting that ended it; "" for another stage."""
    if "ended_by" not in facts:
        return ""
    steps, passes = f"{facts['steps']:,} of {facts['planned']:,} steps", facts["passes"]
    passes = f"{passes:,.1f}" if passes >= 1 else f"{passes:.2g}"
    return f"   {steps}, ended by trainer.{facts['ended_by']}; {passes} passes over the data"


def _facts(result: store.Result) -> dict[str, Any]:
    facts = {"stage": result.stage, "seconds": result.seconds, "peak_memory": result.peak_memory}
    more = {"code": "kept: it has changed since this result was computed"} if result.kept else {}
    return facts | more | ({"run": result.origin} if result.origin else {})
