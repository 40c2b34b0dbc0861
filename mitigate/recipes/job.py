"""What every recipe needs around its stages: the run folder named by what the run is, the record in W&B, and a
line on the terminal for each stage."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from mitigate import __version__
from mitigate.store import Result, Run, as_json, digest_of, read_json, write
from mitigate.tracking import Tracking, open_tracking

# Settings that say where and by what a run is done, not what it finds: they name no folder and no stage.
SURROUNDINGS = {
    "": ("paths", "tracking", "hydra", "dry_run", "optimized_metric", "recipe", "experiment"),
    "data": ("root", "load"),
    "trainer": ("accelerator", "devices", "strategy", "checkpoint_every"),
}


class Job:
    """A recipe at work: its settings, its run folder and where it is recorded."""

    def __init__(self, config: DictConfig, run: Run, tracking: Tracking) -> None:
        self.config = config
        self.run = run
        self.tracking = tracking
        self.folder = run.folder

    def stage(
        self,
        name: str,
        compute: Callable[[str], pl.DataFrame | dict[str, Any]],
        *,
        needs: Sequence[str] = (),
        settings: object = None,
        code: Sequence[ModuleType] = (),
        leaves: Sequence[str] = (),
    ) -> Result:
        """Run.stage with a line on the terminal."""
        if OmegaConf.is_config(settings):
            settings = OmegaConf.to_container(settings, resolve=True)
        result = self.run.stage(name, compute, needs=needs, settings=settings, code=code, leaves=leaves)
        took = "kept from before" if result.from_cache else f"{result.seconds:6.1f} s"
        say(f"  {name:<12}{took:>18}   {_size(result)}")
        return result


@contextmanager
def open_job(config: DictConfig, name: str, inputs: str) -> Iterator[Job]:
    """The job in its run folder `{name}-{hash}`, where the hash is of the settings and of the inputs' content.

    The record in W&B is finished with the job, as failed when it fails."""
    science = without_surroundings(config)
    folder = Path(config.paths.outputs) / f"{name}-{digest_of(as_json([science, inputs]))[:8]}"
    run = Run(folder)
    write(folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True).encode())
    note_sweep(folder)
    tracking = open_tracking(
        config.tracking.mode,
        folder=folder,
        run_id=folder.name[-8:] + digest_of(str(folder.absolute()))[:8],
        project=config.tracking.project,
        entity=config.tracking.entity,
        name=folder.name,
        group=f"{config.data.name}-{config.model.name}",
        job_type=config.recipe.name,
        tags=[f"policy:{config.policy.name}", f"seed:{config.seed}"],
        config=OmegaConf.to_container(config, resolve=True),
    )
    say(f"  run folder  {folder}\n  recorded    {tracking.place}")
    failed = True
    try:
        yield Job(config, run, tracking)
        failed = False
    finally:
        tracking.finish(failed=failed)
        run.close()


def without_surroundings(config: DictConfig) -> dict[str, Any]:
    """The settings that decide what a run finds, as a plain dict."""
    science: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    for group, keys in SURROUNDINGS.items():
        settings = science.get(group, {}) if group else science
        for key in keys:
            settings.pop(key, None)
    return science


def note_sweep(folder: Path) -> None:
    """Note in the run folder which sweep it last belonged to, so that the sweep's end finds its runs."""
    hydra = HydraConfig.get()
    if hydra.mode is not None and hydra.mode.name == "MULTIRUN":
        write(folder / "sweep.json", as_json({"sweep": sweep_id(), "job": hydra.job.num}))


def sweep_id() -> str:
    """The id that the start of a sweep leaves in the environment, which its jobs' processes inherit."""
    import os

    return os.environ.get("MITIGATE_SWEEP", "")


def runs_of_sweep(outputs: Path) -> list[Path]:
    """The run folders of the sweep under way, in the order of their jobs."""
    found = []
    for path in outputs.glob("*/sweep.json"):
        note = read_json(path)
        if note and note["sweep"] == sweep_id():
            found.append((note["job"], path.parent))
    return [folder for _, folder in sorted(found)]


def provenance(config: DictConfig, more: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to do it again: the command, versions, seed, and what is given besides."""
    import importlib.metadata as metadata

    packages = (
        "torch",
        "transformers",
        "pytorch-lightning",
        "vaderSentiment",
        "hydra-core",
        "polars",
        "wandb",
    )
    return {
        "command": "python -m mitigate " + " ".join(HydraConfig.get().overrides.task),
        "mitigate": __version__,
        "python": sys.version.split()[0],
        **{package: metadata.version(package) for package in packages},
        "seed": config.seed,
        **more,
    }


def say(message: str) -> None:
    """A line for the user, on standard output at once."""
    print(message, flush=True)


def _size(result: Result) -> str:
    if result.path.suffix == ".parquet":
        return f"{pl.scan_parquet(result.path).select(pl.len()).collect().item():,} rows"
    return ""
