"""Runs the experiment of benchmarks/plan.md, or with --plan plan2 or plan2_lm that of plan2.md with one of its two
generators, and goes on where it stopped.

    python benchmarks/experiment.py --data ../shared/data --outputs outputs/experiment --hours 12

Starts what benchmarks/experiment.csv (plan2.csv) does not have yet, in the order of the plan, two runs at a time with
one thread each, from the checkout that this file is in. A finished run is a row of that file (experiment_row.py). After
--hours no run is started; those at work are waited for. Stopped by Ctrl-C or a signal, it ends the runs at work, which
the same command continues from their checkpoints; so it does after a kill.

All runs share one cache of labels. The output of a run is in OUTPUTS/logs; settings after -- are given to every run, as
`-- data=sample trainer.lr=1e-4`: then name another file by --csv."""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_plan import (
    EXPERIMENTS,
    ROOT,
    SETTINGS,
    Job,
    arms,
    command,
    jobs,
    numbers_of_steps,
    parts,
    place,
    ready,
)
from benchmarks.experiment_row import read, row_of, schema
from mitigate.files import write

PRECISION = {"MITIGATE_PRECISION": os.environ.get("MITIGATE_PRECISION") or "fp32"}
"""That of scorers, here and in the runs; that of training is in SETTINGS."""
THREADS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"),
    "GOMP_SPINCOUNT": "1000",
    "TOKENIZERS_PARALLELISM": "false",
    **PRECISION,
    "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
}
FOLDER = re.compile(r"^ +run folder +(\S.*)$", re.MULTILINE)
OWN = ("experiment.py", "experiment_plan.py", "experiment_row.py", "experiment_arms.csv", "plan2_arms.csv")
DECIDING = ("mitigate", "models", "conf", "benchmarks/plan2_heads", *(f"benchmarks/{name}" for name in OWN))
"""The files and folders that decide what a run and its row are."""
FAILURES = 2  # of one run, after which it is left out and named at the end


@dataclass
class Started:
    """A run at work."""

    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    commit: str


@dataclass
class Runner:
    """The finished, running and waiting jobs."""

    outputs: Path
    table: Path
    more: Sequence[str]
    steps: Mapping[str, int]
    waiting: list[Job]
    at_once: int = 2
    deadline: float = float("inf")
    done: dict[tuple[str, int], Path] = field(default_factory=dict)
    working: list[Started] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    settings: Sequence[str] = SETTINGS

    def run(self, pause: float = 1.0) -> list[str]:
        """Until nothing is left that may be started. Returns the names of runs that failed."""
        try:
            while self.fill() or self.working:
                self.collect()
                time.sleep(pause)
        finally:
            self.stop()
        return [name for name, times in self.failed.items() if times >= FAILURES]

    def fill(self) -> bool:
        """Starts runs while there is space and time. Whether any is at work."""
        while len(self.working) < self.at_once and time.monotonic() < self.deadline:
            job = next(ready(self.waiting, self.done), None)
            if job is None:
                break
            self.waiting.remove(job)
            self.working.append(self.start(job))
        return bool(self.working)

    def start(self, job: Job) -> Started:
        """Starts a run."""
        base = None if job.arm.base is None else self.done[job.arm.base, job.seed]
        where = [
            f"paths.outputs={place(self.outputs, job.arm.name, job.seed)}",
            f"paths.cache={self.outputs.resolve() / 'cache'}",
        ]
        asked = command(job, self.steps[job.arm.name], self.more, base, self.settings)
        line = [sys.executable, "-m", "mitigate", *asked, *where]
        log = self.outputs / "logs" / f"{job.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        at = commit()
        say(f"start {job.name}, {self.steps[job.arm.name]:,} steps")
        with log.open("ab") as output:
            process = subprocess.Popen(line, cwd=ROOT, env={**os.environ, **THREADS}, stdout=output, stderr=output)
        return Started(job, process, log, at)

    def collect(self) -> None:
        """Takes in the runs that have ended."""
        for started in [one for one in self.working if one.process.poll() is not None]:
            self.working.remove(started)
            if started.process.returncode:
                self.failed[started.job.name] = self.failed.get(started.job.name, 0) + 1
                say(f"FAILED {started.job.name}: status {started.process.returncode}, see {started.log}")
                if self.failed[started.job.name] < FAILURES:
                    self.waiting.append(started.job)
                continue
            try:
                self.take_in(started)
            except Exception as error:  # of whatever kind: the run at work beside it goes on
                self.failed[started.job.name] = FAILURES
                say(f"FAILED {started.job.name}: its figures could not be read: {type(error).__name__}: {error}")

    def take_in(self, started: Started) -> None:
        """Adds the row of a finished run."""
        folder = Path(FOLDER.findall(started.log.read_text(encoding="utf-8"))[-1])
        about = {"arm": started.job.arm.name, "seed": started.job.seed, "commit": started.commit}
        about["steps"] = self.steps[started.job.arm.name]
        row = row_of(folder, about, self.outputs / "cache" / "labels")
        append(self.table, row)
        self.done[started.job.arm.name, started.job.seed] = folder
        say(f"done {started.job.name}, {row['hours']:.2f} hours")

    def stop(self) -> None:
        """Ends the runs at work; they can be continued."""
        for started in self.working:
            started.process.terminate()
        for started in self.working:
            started.process.wait()


def append(path: Path, row: Mapping[str, object]) -> None:
    """Adds a row to the file, whole or not at all. One of the same arm and seed gives way to it."""
    new = pl.DataFrame([row], schema=schema())
    others = read(path).filter((pl.col("arm") != row["arm"]) | (pl.col("seed") != row["seed"]))
    write(path, pl.concat([others, new]).write_csv(float_precision=6))


def finished(table: Path, outputs: Path) -> dict[tuple[str, int], Path]:
    """The runs that the file has, with their folders."""
    rows = read(table).select("arm", "seed", "folder").iter_rows()
    return {(arm, seed): place(outputs, arm, seed) / folder for arm, seed, folder in rows}


def commit() -> str:
    """The last commit that changed what decides; "+" where files differ from it."""
    git = ["git", "-C", str(ROOT)]
    last = ["log", "-1", "--abbrev=10", "--format=%h", "--", *DECIDING]
    found = subprocess.run([*git, *last], check=True, capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "--", *DECIDING], check=True, capture_output=True)
    return found.stdout.strip() + ("+" if changed.stdout.strip() else "")


def say(text: str) -> None:
    """A line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def main() -> None:
    own, more = split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", choices=EXPERIMENTS, default="plan", help="the experiment")
    parser.add_argument("--data", type=Path, help="data.root of the runs")
    parser.add_argument("--outputs", type=Path, default=Path("outputs/experiment"), help="where run folders are")
    parser.add_argument("--csv", type=Path, help="the file of finished runs, in place of the plan's")
    parser.add_argument("--parts", nargs="+", help="only these")
    parser.add_argument("--arms", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, default=1000, help="of each arm the first ones, so many at most")
    parser.add_argument("--hours", type=float, default=float("inf"), help="after which no run is started")
    parser.add_argument("--at-once", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--list", action="store_true", help="print the runs that are left, and stop")
    given = parser.parse_args(own)
    os.environ |= PRECISION
    deadline = time.monotonic() + 3600 * given.hours
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = EXPERIMENTS[given.plan]
    table, every = given.csv or plan.table, plan.known()
    for setting, values, allowed in (("parts", given.parts, parts(every)), ("arms", given.arms, every)):
        if unknown := sorted(set(values or ()) - set(allowed)):
            parser.error(f"--{setting}: unknown {', '.join(unknown)}; allowed: {', '.join(allowed)}")
    done = finished(table, given.outputs)
    wanted = [job for job in jobs(every, given.parts) if job.seed in job.arm.seeds[: given.seeds]]
    wanted = [job for job in wanted if given.arms is None or job.arm.name in given.arms]
    waiting = [job for job in wanted if (job.arm.name, job.seed) not in done]
    say(f"{len(wanted)} runs, of which {len(wanted) - len(waiting)} are in {table.name}")
    if given.list or not waiting:
        print("\n".join(job.name for job in waiting))
        return
    more = [*([f"data.root={given.data.resolve()}"] if given.data else []), *more]
    of_cache = [f"paths.cache={given.outputs.resolve() / 'cache'}"]
    known = {name: arm for name, arm in every.items() if any(job.arm == arm for job in waiting)}
    steps = numbers_of_steps(known, arms(plan.arms), [*plan.settings, *more, *of_cache])
    runner = Runner(given.outputs, table, more, steps, waiting, given.at_once, deadline, done, settings=plan.settings)
    failed = runner.run()
    left = [job.name for job in runner.waiting if job.name not in failed]
    say(f"{len(read(table))} runs are in {table.name}; {len(left)} left; failed: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


def split_arguments(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """This script's arguments, and the settings after "--"."""
    place = list(given).index("--") if "--" in given else len(given)
    return list(given[:place]), list(given[place + 1 :])


if __name__ == "__main__":
    main()
