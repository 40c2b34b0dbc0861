"""What the jobs of a sweep leave for its end: a note each, of the run folder or of the failure. Kept in Hydra's own
folder, which all processes and machines of a sweep share; gone when the sweep has ended."""

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.cli import arguments
from mitigate.errors import MitigateError
from mitigate.runs.files import write
from mitigate.runs.store import as_json, read_json

SWEEP = "MITIGATE_SWEEP"  # the environment variable
COMPARISON = "comparison"  # the file that is there where the comparison failed


def begin() -> None:
    """Give the sweep an id, in the environment, which its jobs' processes inherit."""
    os.environ[SWEEP] = uuid.uuid4().hex


def call_of(hydra: Any) -> dict[str, Any]:
    """How a job was called, from Hydra's own settings: the configuration's group `call`.

    arguments: what to type after `python -m mitigate`; sweep: the folder of the sweep that the job is part of, if any;
    number: the job's in the sweep."""
    typed: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)
    is_sweep = hydra.mode is not None and hydra.mode.name == "MULTIRUN"
    named = [part for folder in arguments.config_folders(hydra) for part in ("--config-dir", _from_here(folder))]
    return {
        "arguments": named + list(typed),
        "overrides": list(typed),
        "sweep": hydra.sweep.dir if is_sweep else None,
        "number": hydra.job.num if is_sweep else None,
    }


def _from_here(folder: str) -> str:
    """A folder as one types it: one below the current folder without the way to it."""
    place, here = Path(folder), Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else folder


def leave(call: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Leave the job's note, in place of one it has left before. A job that is no part of a sweep leaves none."""
    if call["sweep"] is not None:
        note = {"overrides": list(call["overrides"]), **facts}
        write(_folder(call["sweep"]) / f"{call['number']:06}.json", as_json(note))


def read(config: DictConfig) -> list[dict[str, Any]]:
    """The notes of the sweep that ends, in the order of their jobs, each with the `job`: the overrides that not all
    jobs were given."""
    files = map(read_json, sorted(_folder(config.hydra.sweep.dir).glob("*.json")))
    notes = [note for note in files if note]
    given = Counter(override for note in notes for override in note["overrides"])
    for note in notes:
        note["job"] = " ".join(
            override for override in note["overrides"] if len(notes) == 1 or given[override] < len(notes)
        )
    return notes


def runs(config: DictConfig) -> list[Path]:
    """The run folders of the sweep that ends, each once, in the order of their jobs."""
    return [Path(folder) for folder in dict.fromkeys(note["folder"] for note in read(config) if "folder" in note)]


def leave_failed_comparison(config: DictConfig) -> None:
    """Leave word that the runs of the sweep that ends could not be compared."""
    write(_folder(config.hydra.sweep.dir) / COMPARISON, "")


def comparison_failed(config: DictConfig) -> bool:
    """Whether the runs of the sweep that ends could not be compared."""
    return (_folder(config.hydra.sweep.dir) / COMPARISON).exists()


def forget(config: DictConfig) -> None:
    """Remove the notes of the sweep that ends."""
    shutil.rmtree(_folder(config.hydra.sweep.dir), ignore_errors=True)


def _folder(place: str) -> Path:
    """This sweep's own. Raises MitigateError without its id: `place` itself is all sweeps', and not to be deleted."""
    sweep = os.environ.get(SWEEP)
    if not sweep:
        raise MitigateError(
            f"a job of a sweep finds no {SWEEP} in its environment; have the launcher hand on the environment of the "
            "command that started the sweep"
        )
    return Path(place) / sweep
