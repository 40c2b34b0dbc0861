"""A job as people see it: its row of the queue, and how far its run is by the run's status.json."""

import json
import sys
from pathlib import Path
from typing import Any

from mitigate.runs.status import NAME
from mitigate.serve.job_table import Job
from mitigate.serve.schemas import JobShown
from mitigate.words.outside_text import NOT_IN_XML


def shown(job: Job, place: int | None, outputs: Path) -> JobShown:
    """The answer of HTTP about a job. outputs: the folder that its run folder must lie in."""
    folder = None if job.folder is None else Path(job.folder)
    if folder is not None and folder.resolve().parent != outputs.resolve():
        folder = None
    status = {} if folder is None else _status(folder, job)
    done = status.get("done")
    facts: dict[str, Any] = {name: value for name, value in vars(job).items() if name in JobShown.model_fields}
    facts["place"] = place
    now = status if job.state == "running" else {}
    facts |= {name: _text(now.get(name)) for name in ("stage", "step")}
    facts |= {name: _number(now.get(name)) for name in ("share", "seconds_left")}
    facts["run"] = folder.name if folder else None
    facts["is_finished"] = job.state == "done" and folder is not None and (folder / "manifest.json").is_file()
    facts["done"] = [name for name in done if _text(name) is not None] if isinstance(done, list) else []
    return JobShown(**facts)


def _text(value: Any) -> str | None:
    """The value if it is a text that an answer can hold, or None: JSON can escape half of a surrogate pair, which UTF-8
    cannot encode."""
    return value if isinstance(value, str) and not NOT_IN_XML.search(value) else None


def _number(value: Any) -> float | None:
    """The value if it is a number that an answer can hold, neither NaN nor larger than a float; else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None


def _status(folder: Path, job: Job) -> dict[str, Any]:
    """The status that the run wrote, unless it is from before this job."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("updated"), int | float):
        return {}
    return found if job.started is not None and found["updated"] >= job.started else {}
