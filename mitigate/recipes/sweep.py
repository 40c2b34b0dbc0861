"""A sweep (`-m`) as a whole. Each job notes its run folder or its failure in the sweep's folder, which all processes
and machines share; at the end the finished runs stand side by side in one table and are compared on a page, a search
(`hydra/sweeper=search`) names its best settings, and failures are listed."""

import re
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from mitigate.files import as_json, read_json, write
from mitigate.finished import recipe_of, short_names
from mitigate.progress import complain, say
from mitigate.recipes.job import is_brief, plain
from mitigate.triples import role_scorers

NOTES = "jobs"  # the folder of the jobs' notes, within the sweep's
RESULTS = "optimization_results.yaml"  # of Hydra's Optuna sweeper
MOST_RUNS = 24  # of a page, which has a section for each
LONGEST = 400  # characters of a launcher's error
LIKE_THE_SWEEP = (
    *("paths.outputs", "paths.cache"),
    *("tracking.mode", "tracking.project", "tracking.entity", "tracking.statements"),
)
PLAIN = re.compile(r"(?:[A-Za-z_/]|\.\.?/)[\w./-]*")  # .5 is a number
MEANINGFUL = ("true", "false", "null", "nan", "inf")  # words that Hydra does not read as text
_running: list[DictConfig] = []  # the sweep of this process, while it runs


class Sweep(Callback):
    """The callback that Hydra calls at a sweep's start and end, with any launcher."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Make the sweep known to `stop`."""
        _running[:] = [config]

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and compare the results. Of a callback's errors, Hydra passes on SystemExit alone."""
        _running.clear()
        notes = read_notes(config)
        status = _say_results(config, notes)
        if "n_trials" in config.hydra.sweeper:
            _say_best(config)
        if status:
            complain("the runs are finished, but their comparison failed, for the reason above")
        if _say_failures(notes, "the others are done; ") or status:
            raise SystemExit(1)


def stop(error: Exception) -> None:
    """End with exit status 1 where a launcher or sweeper fails, for example since the process of a job was killed."""
    for config in _running[:]:
        _running.clear()
        complain(f"the sweep stopped: {type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}")
        if not _say_failures(read_notes(config), "some may not have been started; "):
            complain("run the same command to finish the rest")
        raise SystemExit(1) from error


def fail(call: Mapping[str, Any], error: Exception, sentence: str | None) -> None:
    """Print and note a job's failure. sentence: that for the user, if there is one."""
    if sentence:
        complain(sentence)
    else:
        traceback.print_exception(error)
    note(call, failure=sentence or f"{type(error).__name__}: {error}")


def note(call: Mapping[str, Any], **facts: str | None) -> None:
    """Note how a job of a sweep ended: its run `folder` or its `failure`."""
    if call["sweep"] is not None:
        content = as_json({"overrides": list(call["overrides"]), **facts})
        write(Path(call["sweep"]) / NOTES / f"{call['number']:06}.json", content)


def read_notes(config: DictConfig) -> list[dict[str, Any]]:
    """Read and remove the notes of the sweep, in the order of their jobs, each with the `job`: the overrides that
    distinguish it from others."""
    folder = Path(config.hydra.sweep.dir) / NOTES
    notes = [found for path in sorted(folder.glob("*.json")) if (found := read_json(path))]
    shutil.rmtree(folder, ignore_errors=True)
    given = Counter(override for note in notes for override in note["overrides"])
    for note in notes:
        differing = [one for one in note["overrides"] if len(notes) == 1 or given[one] < len(notes)]
        note["job"] = " ".join(differing)
    return notes


def _say_results(config: DictConfig, notes: Sequence[Mapping[str, Any]]) -> int:
    """Print the measures of all runs and compare them; returns the exit status of the comparison."""
    folders = dict.fromkeys(Path(note["folder"]) for note in notes if note.get("folder"))
    found = {folder: metrics for folder in folders if (metrics := read_json(folder / "metrics.json"))}
    compared = comparable(found)
    has_all = len({metrics["policy"] for metrics in compared.values()}) == len(found) <= MOST_RUNS
    if len(found) > 1 and not (is_brief(config) and has_all):  # else the comparison has a line for each run
        named = short_names({folder.name: metrics for folder, metrics in found.items()})
        say("\nside by side\n\n" + _beside(config, named))
    return compare(config, compared) if compared else 0


def _say_best(config: DictConfig) -> None:
    found = plain(OmegaConf.load(Path(config.hydra.sweep.dir) / RESULTS))
    settings = " ".join(f"{name}={value}" for name, value in found["best_params"].items())
    best = f"{config.optimized_metric} {found['best_value']:.2f}"
    say(f"\nbest of {config.hydra.sweeper.n_trials} jobs: {best} with {settings}")


def _say_failures(notes: Sequence[Mapping[str, Any]], others: str) -> bool:
    """Print the failures once more; returns whether there are any. others: a clause about the other jobs."""
    failed = [note for note in notes if "failure" in note]
    lines = "".join(f"\n  {note['job']}: {note['failure']}" for note in failed)
    if failed:
        others = others if len(failed) < len(notes) else ""
        complain(f"{len(failed)} job{'s' * (len(failed) > 1)} failed; {others}run the same command to finish:{lines}")
    return bool(failed)


def _beside(config: DictConfig, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """A table of runs by their names: the headlines; with verbose=true, and for recipes without these, all figures."""
    from mitigate.measure.results import Results
    from mitigate.report import mitigate as report  # loads matplotlib

    results = {name: Results.of_json(metrics) for name, metrics in runs.items()}
    scorers = role_scorers(plain(config.score)) if is_brief(config) and "score" in config else []
    return (report.console(results, list(scorers)) if scorers else "") or report.side_by_side(results)


def comparable(runs: Mapping[Path, Mapping[str, Any]]) -> dict[Path, Mapping[str, Any]]:
    """The finished runs of a sweep (folder -> metrics), where policy or seed vary; else none. Only those of the main
    job: a story generator has a policy and a seed too, and recipe=compare does not take it."""
    whole = {
        folder: metrics for folder, metrics in runs.items() if "policy" in metrics and recipe_of(folder) == "mitigate"
    }
    return whole if len({(metrics["policy"], metrics["seed"]) for metrics in whole.values()}) > 1 else {}


def compare(config: DictConfig, runs: Mapping[Path, Mapping[str, Any]]) -> int:
    """Compare runs (folder -> metrics): policies against none, or else the first of them, with all its seeds; seeds of
    a single policy against the first run. Where they are too many for a page, print the command. Returns the exit
    status of the comparison.

    The comparison is a command like any other, in a process of its own: it can be typed again, and any launcher may
    have run the jobs."""
    if len(runs) > MOST_RUNS:
        say(f"\n{len(runs)} runs are too many for one page; choose those to compare:")
        say("  python -m mitigate recipe=compare compare.runs=[DIR,DIR,...] compare.baseline=DIR")
        return 0
    say("\ncomparison")
    policies = list(dict.fromkeys(metrics["policy"] for metrics in runs.values()))
    folders = [folder.resolve() for folder in runs]
    first = folders[0] if len(policies) == 1 else "none" if "none" in policies else policies[0]
    chosen = [f"compare.runs=[{','.join(map(_quoted, folders))}]", f"compare.baseline={_quoted(first)}"]
    for name in LIKE_THE_SWEEP:
        value = OmegaConf.select(config, name)
        chosen.append(f"{name}={'null' if value is None else _quoted(value)}")
    own = OmegaConf.select(config, "measures")
    chosen += [f"measures=[{','.join(own)}]"] if own else []
    chosen += [] if is_brief(config) else ["verbose=true"]
    command = [sys.executable, "-m", "mitigate", "recipe=compare", *chosen]
    return subprocess.run(command, check=False).returncode  # it prints its own errors


def _quoted(value: object) -> str:
    """A value as Hydra reads it: a text in quotes. Numbers, truth values, paths and words that Hydra can only read as
    text stay as they are, so that the command on the page is easy to read."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    is_plain = PLAIN.fullmatch(text) and text.lower() not in MEANINGFUL
    return text if is_plain else QuotedString(text, Quote.single).with_quotes()
