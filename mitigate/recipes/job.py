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
from omegaconf import OmegaConf

from mitigate.errors import MitigateError, counted, with_texts, without_folders
from mitigate.files import VERSION, digest_of, write
from mitigate.measure.base import own_measures
from mitigate.measure.results import Results, as_json
from mitigate.progress import Showing, Status, listening, say
from mitigate.recipes.config import Config, plain
from mitigate.settings import deciding
from mitigate.stages import SETTINGS, MissingError, Result, Run, Work, digest_of_values
from mitigate.tracking import Tracking, headlines, open_tracking, started_by_wandb_agent

NO_FACTS: Mapping[str, Any] = {}
GROUPS = ("policy", "data", "model")  # of settings, for tags and groups of runs in W&B
NOT_IN_NAMES = re.compile(r"[^\w.,+=-]+")
LONGEST_NAME = 100  # characters of a run folder's name, before its hash
PACKAGES = ("torch", "transformers", "pytorch-lightning", "vaderSentiment", "hydra-core", "polars", "wandb")
SHOW_TEXTS = ["bars", "shown", "professions"]  # groups of pictures that name targets or professions
RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parquet files have them all


class Job:
    """A recipe at work: its run folder, and where it is recorded.

    The first stage that has to be computed begins the work: status.json, config.yaml and the record in W&B; a run whose
    stages are all in the store begins nothing. tracked: the policies, data and models that W&B groups and tags the run
    by; None: those of the groups that the recipe reads."""

    def __init__(self, config: Config, folder: Path, tracked: Mapping[str, Sequence[str]] | None = None) -> None:
        self.config = config  # stages take their settings from the plan
        self.settings: dict[str, Any] = plain(config)
        self.folder, self.brief, self.sends_model = folder, not config.verbose, bool(config.tracking.model)
        self.run = Run(folder, dry=bool(config.dry_run), begin=self._begin)
        self.tracking = Tracking()
        self.command = shlex.join(["python", "-m", "mitigate", *config.call["arguments"]])
        reads = config.recipe.reads or ()
        named = {group: [str(getattr(config, group).name)] for group in GROUPS if group in reads}
        self._tracked = named if tracked is None else tracked
        self.status: Status | None = None
        self.opened = ExitStack()
        self._new: bool | None = None

    def stage(
        self, name: str, function: Callable[..., pl.DataFrame | dict[str, Any]], *values: Any, **more: Any
    ) -> Result:
        """Run.stage, parts of the configuration among its values made plain, with a line on the terminal: to be run,
        cached, or the seconds it took, and its steps or rows."""
        self._stage = name
        if self.status:
            self.status.stage(name)
        found = self.run.stage(name, function, *map(plain, values), **{key: plain(part) for key, part in more.items()})
        if self.status:
            self.status.done(name)
        took = "to be run" if found.missing else "cached" if found.from_cache else f"{found.seconds:.1f} s"
        detail = ""
        if not found.missing and found.path.suffix == ".parquet":
            rows = pl.scan_parquet(found.path, glob=False).select(pl.len()).collect().item()
            detail = f"   {counted(rows, 'row')}"
        elif not found.missing and "ended_by" in (facts := found.facts()):  # of a training
            detail = f"   {facts['steps']:,} of {facts['planned']:,} steps, ended by trainer.{facts['ended_by']}"
        say(f"  {name:<12}{took:>18}{detail}")
        return found

    def _begin(self) -> None:
        """Write the settings and the status, and open the record in W&B."""
        config, recipe, folder = self.config, self.config.recipe.name, self.folder
        self.status = Status(folder, recipe)
        write(folder / SETTINGS, OmegaConf.to_yaml(config.node, resolve=True))
        self.opened.enter_context(listening(Showing(self.status)))
        tags = {"recipe": [recipe], **{group: self._tracked.get(group, ()) for group in GROUPS}}
        self.tracking = open_tracking(
            config.tracking.mode,
            folder=folder,
            # The same id each time it resumes, another for a folder elsewhere.
            run_id=folder.name[-8:] + digest_of(str(folder.resolve()))[:8],
            project=config.tracking.project,
            entity=config.tracking.entity,
            name=folder.name,
            group="-".join(dict.fromkeys([*tags["data"], *tags["model"]])) or None,
            job_type=recipe,
            tags=[f"{key}:{name}"[:64] for key, names in tags.items() for name in dict.fromkeys(names)],
            config=with_texts(deciding(self.settings), without_folders),
        )
        say(f"  recorded    {self.tracking.place}")
        for result in self.run.results:
            self.status.done(result.stage)
        self.status.stage(self._stage)

    def is_new(self) -> bool:
        """Return whether results are to be recorded: the run was not complete before, or a sweep of W&B asks."""
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
        functions = [one.function for one in own_measures()]
        results = self.stage("results", function, *values, after=functions, **named)
        self.stage("metrics", as_json, results, facts)

    @property
    def results(self) -> dict[str, Result]:
        """The results so far, by stage."""
        return {result.stage: result for result in self.run.results}

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
            return {**places, "fingerprint": work.key, "log": partial(self.tracking.log, stage=stage), **where}

        return using

    def provenance(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The facts that a repetition needs: the command, versions, seed, what is given besides, and peak memory."""
        peak = max((result.peak_memory for result in self.run.results), default=0)
        return {
            "command": self.command,
            "seed": self.config.seed,
            "mitigate": VERSION,
            "python": sys.version.split()[0],
            **{package: metadata.version(package) for package in PACKAGES},
            **more,
            "peak memory": f"{peak / 2**30:.2f} GiB",
        }

    def about(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The origin of a page: the command, the stages so far, and the provenance with what is given besides."""
        stages = [
            {"name": one.stage, "seconds": one.seconds, "result": "cached" if one.from_cache else "computed"}
            for one in self.run.results
        ]
        return {"name": self.folder.name, "command": self.command, "stages": stages, "facts": self.provenance(more)}

    @property
    def records_texts(self) -> bool:
        """Return whether texts go to W&B: those of a user's own, or for prompts of a user's own, only with
        tracking.statements=true."""
        are_own = self.config.data.own_texts or getattr(self.config.recipe, "prompts", None)
        return bool(self.config.tracking.statements or not are_own)

    def record_metrics(self, metrics: Results, *, also: Mapping[str, str] = NO_FACTS) -> None:
        """Give W&B the headlines and `also`, such as the verdict, as the run's values, and all results as a table."""
        values = {row.name: value for row, value in headlines(metrics).items()}
        self.tracking.summarise(values | dict(also))
        self.tracking.table("metrics", metrics.overall)

    def record_plots(self) -> None:
        """Give W&B the run folder's pictures with their captions; those that show texts only where texts may go
        there."""
        folder = self.folder / "plots"
        if (folder / "captions.csv").is_file():
            listed = pl.read_csv(folder / "captions.csv", infer_schema=False, glob=False)
            shown = listed if self.records_texts else listed.filter(~pl.col("group").is_in(SHOW_TEXTS))
            rows = shown.sort("picture").select("picture", "caption").iter_rows()
            self.tracking.pictures((name, caption, folder / f"{name}.png") for name, caption in rows)

    def record_statements(self, statements: pl.DataFrame) -> None:
        """Give W&B the statements, of many an even choice, where texts may go there."""
        if self.records_texts and statements.height:
            step = -(-statements.height // RECORDED_STATEMENTS)
            self.tracking.table("statements", statements.gather_every(step))

    def say_page_notes(self, notices: Sequence[str]) -> None:
        """Print the page's notices with verbose=true, else their number."""
        if not self.brief:
            say_notes(notices)
        elif notices:
            count = counted(len(notices), "notice")
            say(f"  notes       {count} on the page; verbose=true prints them, and every figure")


@contextmanager
def open_job(
    config: Config,
    name: str,
    inputs: object,
    *,
    facts: Mapping[str, Any] = NO_FACTS,
    tracked: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Job]:
    """Open the run folder `{name}-{hash}` for the stages of a recipe; the hash is of the settings and the inputs'
    content. At the end of the block the run's manifest is written. With dry_run=true the block ends at the first stage
    that reads a result which is still missing.

    inputs: tables, or other values that a stage takes (stages.plain), such as the hash of a file. tracked: as Job has
    it. facts: further entries of the manifest. After the stages a recipe records, uploads and prints its results where
    job.is_new(): a run that is complete is not recorded a second time, except for a sweep of W&B."""
    digest = digest_of_values(deciding(plain(config)), inputs)
    folder = Path(config.paths.outputs) / f"{NOT_IN_NAMES.sub('_', name)[:LONGEST_NAME]}-{digest[-8:]}"
    say(f"  run folder  {folder}")
    job = Job(config, folder, tracked)
    if config.dry_run:
        with suppress(MissingError):
            yield job
        return
    state, error = "failed", None
    try:
        yield job
        if job.is_new():
            stages = [
                {"stage": one.stage, "seconds": one.seconds, "peak_memory": one.peak_memory} for one in job.run.results
            ]
            job.run.finish(job.provenance({**facts, "stages": stages}))
        else:
            say("  complete: nothing to do")
            for page in sorted(folder.glob("*.html")):
                say(f"  {page.stem:<10}  {page}")
        state = "finished"
    except KeyboardInterrupt:
        state = "stopped"
        raise
    except Exception as failure:
        error = str(failure) if isinstance(failure, MitigateError) else f"{type(failure).__name__}: {failure}"
        raise
    finally:
        try:
            job.tracking.finish(failed=state != "finished")
        finally:
            job.opened.close()
            if job.status:
                job.status.close(state, error)
            job.run.close()
    OmegaConf.update(config.node, "call.folder", str(folder), force_add=True)  # for the end of a sweep


def call_of(given: Any) -> dict[str, Any]:
    """The call of a job (Config.call) from Hydra's own settings."""
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


def say_verdict(verdict: str, cost: str = "") -> None:
    """Print the finding in a sentence and its cost; "" is left out."""
    for name, sentence in {"verdict": verdict, "cost": cost}.items():
        if sentence:
            say(f"  {name:<10}  {sentence}")


def say_notes(notices: Iterable[str]) -> None:
    """Print notices, a line each."""
    for notice in notices:
        say(f"  note: {notice}")
