"""The runner of recipes: the run folder and its name, the record in W&B, a line on the terminal for each stage, and
status.json."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError
from mitigate.files import digest_of, write
from mitigate.measure.base import own_measures
from mitigate.measure.results import Results, as_json
from mitigate.package_data import VERSION
from mitigate.progress import LINES, SELDOM, Showing, Status, listening, say
from mitigate.recipes.config import Config, plain
from mitigate.settings import deciding
from mitigate.stages import SETTINGS, MissingError, Result, Run, Work, digest_of_values
from mitigate.tracking.record import Tracking, open_tracking, started_by_wandb_agent
from mitigate.words.outside_text import counted, with_texts, without_folders
from models.digests import sha256_of

NO_FACTS: Mapping[str, Any] = {}
GROUPS = ("policy", "data", "model")  # of settings, for tags and groups of runs in W&B
WRITTEN = ("paths.", "hydra", "data.output=", "texts=[", "head=")  # settings that name no input
PARTS = re.compile(r"""[=,\[\]{}'"]+|: """)  # between the names in an argument
LONGEST_TAG = 64  # characters, in W&B
LONGEST_NAME = 100  # characters of a run folder's name, before its hash
PACKAGES = ("torch", "transformers", "pytorch-lightning", "vaderSentiment", "hydra-core", "polars", "wandb")


class Job:
    """A recipe at work: its run folder, and where it is recorded.

    The first stage that has to be computed begins the work: status.json, config.yaml and the record in W&B; a run whose
    stages are all in the store begins nothing. uploads: what goes to W&B besides settings and metrics, in words.
    tracked: the policies, data and models that W&B groups and tags the run by."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        uploads: Sequence[str] = (),
        tracked: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.config = config  # stages take their settings from the plan
        self.folder = folder
        self.run = Run(folder, dry=bool(config.dry_run), begin=self._begin)
        self.tracking = Tracking()
        self.recipe: str = config.recipe.name
        self.brief = is_brief(config)
        self.sweeps = call(config)["sweep"] is not None
        self.command = command(config)
        self._uploads, self._tracked = uploads, tracked_names(config) if tracked is None else tracked
        self._status: Status | None = None
        self._open = ExitStack()
        self._new: bool | None = None
        self._unsaid: list[Result] = []  # cached results before the first that is computed

    def stage(
        self, name: str, function: Callable[..., pl.DataFrame | dict[str, Any]], *values: Any, **more: Any
    ) -> Result:
        """Run.stage, parts of the configuration among its values made plain, with a line on the terminal."""
        self._stage = name
        if self._status:
            self._status.stage(name)
        values = tuple(map(plain, values))
        result = self.run.stage(name, function, *values, **{key: plain(value) for key, value in more.items()})
        if self._status:
            self._status.done(name)
        if self._status or self.run.dry:
            self._say(result)
        else:
            self._unsaid.append(result)
        return result

    def _say(self, result: Result) -> None:
        if self.run.dry or not (self.brief and self.sweeps):
            say_stage(result)

    def _begin(self) -> None:
        """Write the settings and the status, and open the record in W&B."""
        config = self.config
        self._status = Status(self.folder, self.recipe)
        write(self.folder / SETTINGS, OmegaConf.to_yaml(config.node, resolve=True))
        seldom = self.brief and self.sweeps
        self._open.enter_context(listening(Showing(self._status, SELDOM if seldom else LINES)))
        self.tracking = _open_tracking(config, self.folder, self._uploads, self._tracked)
        for result in self._unsaid:
            self._status.done(result.stage)
            self._say(result)
        self._status.stage(self._stage)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Release the run folder at the end; a run that began ends in W&B, and in status.json with how it ended."""
        state, error = "failed", None
        try:
            yield
            state = "finished"
        except KeyboardInterrupt:
            state = "stopped"
            raise
        except Exception as failure:
            error = str(failure) if isinstance(failure, MitigateError) else f"{type(failure).__name__}: {failure}"
            raise
        finally:
            try:
                self.tracking.finish(failed=state != "finished")
            finally:
                self._open.close()
                if self._status:
                    self._status.close(state, error)
                self.run.close()

    def is_new(self) -> bool:
        """Return whether the run's results are to be recorded: it was not complete before, or a sweep of W&B asks."""
        if self._new is None:
            self._new = not self.run.dry and (not self.run.is_complete() or started_by_wandb_agent())
            if self._new:
                self.run.begin()
        return self._new

    def measure(
        self, function: Callable[..., pl.DataFrame], *values: Any, facts: Mapping[str, Any] = NO_FACTS, **named: Any
    ) -> None:
        """Run the stages `results`, the tidy table that the function returns, and `metrics`, which derives metrics.json
        from it and the facts."""
        own = [one.function for one in own_measures()]
        found = self.stage("results", function, *values, after=own, **named)
        self.stage("metrics", as_json, found, facts)

    @property
    def figures(self) -> Results:
        """The results of the stage `results`."""
        return Results.of(self.results["results"].table(), self.results["metrics"].facts())

    def training(self, stage: str, model: str | None = None, **where: Any) -> Callable[[Work], dict[str, Any]]:
        """The `using` of a stage that trains a network: where it saves the network and its checkpoints, the stage's
        key, and where its figures go. model: the name of the network's folder; None: the function takes the stage's
        folder itself. where: further arguments, such as the accelerator."""

        def using(work: Work) -> dict[str, Any]:
            places = {"folder": work.folder}
            if model is not None:
                places = {"model": work.folder / model, "checkpoints": work.folder / "checkpoints"}
            log = partial(self.tracking.log, stage=stage)
            return {**places, "fingerprint": work.key, "log": log, **where}

        return using

    @property
    def needs(self) -> dict[str, str]:
        """The user's own files and folders that the command names (inputs)."""
        return inputs(call(self.config)["arguments"])

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
        return bool(self.config.tracking.model)

    @property
    def results(self) -> dict[str, Result]:
        """The results so far, by stage."""
        return {result.stage: result for result in self.run.results}

    def provenance(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The command, versions, seed, what is given besides, and peak memory."""
        peak = max((result.peak_memory for result in self.run.results), default=0)
        return provenance(self.config, {**more, "peak memory": f"{peak / 2**30:.2f} GiB"})

    def say_page_notes(self, notices: Sequence[str]) -> None:
        """Print the page's notices, or their number (say_page_notes)."""
        say_page_notes(self.config, notices)


@contextmanager
def open_job(
    config: Config,
    name: str,
    inputs: object,
    *,
    uploads: Sequence[str] = (),
    facts: Mapping[str, Any] = NO_FACTS,
    tracked: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Job]:
    """Open the run folder `{name}-{hash}` for the stages of a recipe; the hash is of the settings and the inputs'
    content. At the end of the block the run's manifest is written. With dry_run=true the block ends at the first stage
    that reads a result which is still missing.

    inputs: tables, or other values that a stage takes (stages.plain), such as the hash of a file. uploads, tracked: as
    Job has them. facts: further entries of the manifest. After the stages a recipe records, uploads and prints its
    results where job.is_new(): a run that is complete is not recorded a second time, except for a sweep of W&B."""
    digest = digest_of_values(result_settings(config), inputs)
    folder = Path(config.paths.outputs) / f"{name.replace('/', '_')}-{digest[-8:]}"  # of a model on a hub
    say(f"  run folder  {folder}")
    job = Job(config, folder, uploads, tracked)
    if config.dry_run:
        with suppress(MissingError):
            yield job
        return
    with job.at_work():
        yield job
        if job.is_new():
            job.run.finish(provenance(config, {**facts, "stages": [_facts(result) for result in job.run.results]}))
        else:
            say("  complete: nothing to do")
            for page in sorted(folder.glob("*.html")):
                say(f"  {page.stem:<10}  {page}")
    OmegaConf.update(config.node, "call.folder", str(folder), force_add=True)  # for the end of a sweep


def _open_tracking(
    config: Config, folder: Path, uploads: Sequence[str], tracked: Mapping[str, Sequence[str]]
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


def folder_name(*parts: str) -> str:
    """The name of a run folder, of texts with any characters."""
    return re.sub(r"[^\w.,+=-]+", "_", "-".join(parts))[:LONGEST_NAME]


def record_id(folder: Path) -> str:
    """The id under which a run is recorded: the same each time it resumes, another for a folder elsewhere."""
    return folder.name[-8:] + digest_of(str(folder.resolve()))[:8]


def tracked_names(config: Config) -> dict[str, list[str]]:
    """The names of policy, data and model, of these the groups that the recipe reads; others are mere defaults."""
    reads = config.recipe.reads or ()
    return {group: [str(getattr(config, group).name)] for group in GROUPS if group in reads}


def tags_of(recipe: str, tracked: Mapping[str, Sequence[str]]) -> list[str]:
    """The W&B tags of a run: "recipe:mitigate", "policy:both", "data:sample", "model:comet_minilm"."""
    named = {"recipe": [recipe], **{group: tracked.get(group, ()) for group in GROUPS}}
    return [f"{group}:{name}"[:LONGEST_TAG] for group, names in named.items() for name in dict.fromkeys(names)]


def is_brief(config: Config | DictConfig) -> bool:
    """Return whether the terminal gets a verdict and a few figures (verbose=false), and not all of them."""
    return not getattr(config, "verbose", False)


def is_repeat_in_sweep(config: Config) -> bool:
    """Return whether an earlier job of this sweep has printed what holds for all its jobs."""
    return is_brief(config) and bool(call(config)["number"])


def may_record_texts(config: Config) -> bool:
    """Return whether texts go to W&B: those of a user's own, or for prompts of a user's own, only with
    tracking.statements=true."""
    return bool(config.tracking.statements or not (config.data.own_texts or getattr(config.recipe, "prompts", None)))


def result_settings(config: Config) -> dict[str, Any]:
    """The settings that affect results (settings.deciding), as a plain dict."""
    return deciding(plain(config))


def call(config: Config) -> dict[str, Any]:
    """The call of this job (call_of); empty where the recipe is not run from the command line."""
    return plain(getattr(config, "call", None)) or {"arguments": [], "overrides": [], "sweep": None, "number": None}


def call_of(given: Any) -> dict[str, Any]:
    """The call of a job from Hydra's own settings, for the configuration's group `call`.

    arguments: those after `python -m mitigate`; overrides: settings among them; sweep: the folder of the sweep that the
    job is part of, if any; number: the job's number in it."""
    typed, here = plain(given.overrides.task), Path.cwd()
    folders = [Path(source.path) for source in given.runtime.config_sources if source.provider == "command-line"]
    folders = [path.relative_to(here) if path.is_relative_to(here) else path for path in folders]
    is_sweep = given.mode is RunMode.MULTIRUN
    return {
        "arguments": [part for path in folders for part in ("--config-dir", str(path))] + typed,
        "overrides": typed,
        "sweep": given.sweep.dir if is_sweep else None,
        "number": given.job.num if is_sweep else None,
    }


def command(config: Config) -> str:
    """The command that repeats this job; in a sweep, this job alone."""
    return shlex.join(["python", "-m", "mitigate", *call(config)["arguments"]])


def inputs(arguments: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each file that a command reads, by its name without folders; of a folder "". arguments: those
    after `python -m mitigate`."""
    found = {}
    for argument in arguments:
        for text in [] if argument.startswith(WRITTEN) else PARTS.split(argument):
            path = Path(text.strip().removeprefix("@"))
            with suppress(OSError, ValueError):  # a text that can be no name of a file
                if (path.suffix or len(path.parts) > 1) and path.exists():
                    found[without_folders(str(path))] = sha256_of(path) if path.is_file() else ""
    return found


def provenance(config: Config, more: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a repetition needs: the command, versions, seed, and what is given besides."""
    return {
        "command": command(config),
        "seed": config.seed,
        "mitigate": VERSION,
        "python": sys.version.split()[0],
        **{package: metadata.version(package) for package in PACKAGES},
        **more,
    }


def say_downloads(config: Config, downloads: Sequence[str]) -> None:
    """A line for each download, before it."""
    for download in downloads:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {download}")


def say_notes(notices: Iterable[str]) -> None:
    """Print notices, a line each."""
    for notice in notices:
        say(f"  note: {notice}")


def say_page_notes(config: Config, notices: Sequence[str]) -> None:
    """Print the page's notices with verbose=true, else their number; of a sweep's jobs, the first alone prints that."""
    if not is_brief(config):
        say_notes(notices)
    elif notices and not is_repeat_in_sweep(config):
        count = "one notice" if len(notices) == 1 else f"{len(notices)} notices"
        say(f"  notes       {count} on the page; verbose=true prints them, and every figure")


def say_stage(result: Result) -> None:
    """Print a line for a stage: to be run, cached, or the seconds it took, and its steps or rows, but for a table of
    counts or measures, whose rows are none of the data's."""
    if result.missing:
        say(f"  {result.stage:<12}{'to be run':>18}")
        return
    took = "cached" if result.from_cache else f"{result.seconds:.1f} s"
    if result.path.suffix == ".parquet":
        table = pl.scan_parquet(result.path, glob=False)
        of_data = {"count", "measure"}.isdisjoint(table.collect_schema())
        found = f"   {counted(table.select(pl.len()).collect().item(), 'row')}" if of_data else ""
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


def _facts(result: Result) -> dict[str, Any]:
    return {"stage": result.stage, "seconds": result.seconds, "peak_memory": result.peak_memory}
