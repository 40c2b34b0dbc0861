"""The output of a job: its file, its last lines, and what it says about the run."""

import os
import re
from pathlib import Path

from mitigate.runs.child_processes import EXITED, signal_name
from mitigate.serve.job_table import Job
from mitigate.words.outside_text import escaped

RUN_FOLDER = re.compile(r"^  run folder  (.+)$", re.MULTILINE)  # as recipes say it (recipes/job.perform)
SAID_FIRST = 1 << 16  # bytes of the output in which the run folder is said
LONGEST_ERROR = 500


def log_of(place: Path, job: Job) -> Path:
    """The output of a job. place: the queue's folder."""
    return place / "jobs" / f"{job.name}.log"


def last_lines(path: Path, most: int = 40, longest: int = 1 << 16) -> list[str]:
    """The last lines of an output, without what steers a terminal; none where there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - longest))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = text.removesuffix("\n").split("\n") if text else []  # splitlines() would split a bar
    return [escaped(line.rstrip("\r").rpartition("\r")[2]) for line in lines[-most:]]  # of a bar the last state


def run_folder(log: Path, most: int = SAID_FIRST) -> str | None:
    """The run folder that an output names, once it does. most: bytes of the output that are read, -1 for all."""
    try:
        with log.open("rb") as file:
            said = RUN_FOLDER.search(file.read(most).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    return said[1] if said else None


def incomplete(log: Path) -> str | None:
    """A sentence about a command that ended with status 0 before its run was complete; None where it is complete."""
    folder = run_folder(log, -1)
    if folder is not None and (Path(folder) / "manifest.json").is_file():  # which a run writes last
        return None
    lacking = "no run folder was named" if folder is None else f"no manifest.json in {folder}"
    return f"the process ended with status 0 before its run was complete: {lacking}; {EXITED}"


def sentence(log: Path, status: int) -> str:
    """A sentence about a failure: the last that the command said."""
    ended = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
    said = [line for line in last_lines(log) if line.strip()]
    own = [line.removeprefix("mitigate: ") for line in said if line.startswith("mitigate: ")]
    last = (own or said or ["it said nothing"])[-1]
    return f"{ended}: {last[:LONGEST_ERROR]}"
