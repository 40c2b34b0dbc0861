"""Notes of a sweep's jobs for its end, one each: the run folder or the failure. They stand in Hydra's own folder, which
all processes and machines of a sweep share, and are removed when the sweep has ended."""

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
from mitigate.files import as_json, read_json, write

SWEEP = "MITIGATE_SWEEP"  # the environment variable


def begin() -> None:
    """Give the sweep an id, in the environment, which its jobs' processes inherit."""
    os.environ[SWEEP] = uuid.uuid4().hex


def call_of(hydra: Any) -> dict[str, Any]:
    """The call of a job, from Hydra's own settings: the configuration's group `call`.

    arguments: those after `python -m mitigate`; sweep: the folder of the sweep that the job is part of, if any; number:
    the job's number in the sweep."""
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
    """A folder as one types it: relative to the current folder where it is below that."""
    place, here = Path(folder), Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else folder


def write_note(call: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write the job's note, in place of an earlier one. A job that is no part of a sweep writes none."""
    if call["sweep"] is not None:
        note = {"overrides": list(call["overrides"]), **facts}
        write(_folder(call["sweep"]) / f"{call['number']:06}.json", as_json(note))


def read(config: DictConfig) -> list[dict[str, Any]]:
    """The notes of the sweep that ends, in the order of their jobs, each with the `job`: the overrides that distinguish
    it from others."""
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


def failed_comparison(config: DictConfig) -> Path:
    """The file that marks that the runs of the sweep that ends could not be compared."""
    return _folder(config.hydra.sweep.dir) / "comparison"


def remove_notes(config: DictConfig) -> None:
    """Remove the notes of the sweep that ends."""
    shutil.rmtree(_folder(config.hydra.sweep.dir), ignore_errors=True)


def _folder(place: str) -> Path:
    """The folder of this sweep's notes. Raises MitigateError without its id: `place` itself belongs to all sweeps, and
    must not be deleted."""
    sweep = os.environ.get(SWEEP)
    if not sweep:
        raise MitigateError(
            f"the variable {SWEEP} is not set in a job of a sweep; make the launcher pass on the environment of the "
            "command that started the sweep"
        )
    return Path(place) / sweep
