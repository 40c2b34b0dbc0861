"""The end of a sweep (`-m`): its runs side by side in one table, and compared on a page; of a search
(`hydra/sweeper=search`) the best settings."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from mitigate.cli.arguments import quoted
from mitigate.files import read_json, write
from mitigate.finished import recipe_of, short_names
from mitigate.recipes import sweep_outcomes
from mitigate.recipes.job import is_brief, plain, say
from mitigate.triples import role_scorers

RESULTS = "optimization_results.yaml"  # of Hydra's Optuna sweeper
MOST_RUNS = 24  # of a page, which has a section for each
LIKE_THE_SWEEP = (
    *("paths.outputs", "paths.cache"),
    *("tracking.mode", "tracking.project", "tracking.entity", "tracking.statements"),
)
PLAIN = re.compile(r"(?:[A-Za-z_/]|\.\.?/)[\w./-]*")  # .5 is a number
MEANINGFUL = ("true", "false", "null", "nan", "inf")  # words that Hydra does not read as text


class BestFound(Callback):
    """A Hydra callback that prints the settings that an optimiser found best."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if "n_trials" in config.hydra.sweeper:
            found = plain(OmegaConf.load(Path(config.hydra.sweep.dir) / RESULTS))
            settings = " ".join(f"{name}={value}" for name, value in found["best_params"].items())
            best = f"{config.optimized_metric} {found['best_value']:.2f}"
            say(f"\nbest of {config.hydra.sweeper.n_trials} jobs: {best} with {settings}")


class SideBySide(Callback):
    """A Hydra callback that prints the measures of all runs of a sweep, and has them compared."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        runs = {folder: read_json(folder / "metrics.json") for folder in sweep_outcomes.runs(config)}
        finished = {folder: metrics for folder, metrics in runs.items() if metrics}
        compared = comparable(finished)
        if len(finished) > 1 and not (is_brief(config) and _has_all(compared, finished)):
            named = short_names({folder.name: metrics for folder, metrics in finished.items()})
            say("\nside by side\n\n" + _beside(config, named))
        if compared and compare(config, compared) != 0:
            write(sweep_outcomes.failed_comparison(config), "")


def _beside(config: DictConfig, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """A table of runs by their names: four figures with their cost; with verbose=true, and for recipes without these,
    all figures."""
    if is_brief(config) and "score" in config:
        from mitigate.report.brief import figures

        found = figures(runs, list(role_scorers(plain(config.score))))
        if found:
            return found
    from mitigate.report.metrics_table import console

    return console(runs)


def comparable(runs: Mapping[Path, Mapping[str, Any]]) -> dict[Path, Mapping[str, Any]]:
    """The finished runs of a sweep (folder -> metrics), where policy or seed vary; else none. Only those of the main
    job: a story generator has a policy and a seed too, and recipe=compare does not take it."""
    whole = {
        folder: metrics
        for folder, metrics in runs.items()
        if "policy" in metrics and (folder / "manifest.json").is_file() and recipe_of(folder) == "mitigate"
    }
    return whole if len({(metrics["policy"], metrics["seed"]) for metrics in whole.values()}) > 1 else {}


def _has_all(compared: Mapping[Path, Mapping[str, Any]], runs: Mapping[Path, Mapping[str, Any]]) -> bool:
    """Return whether the comparison has a line for each run, so that a table of all runs adds nothing."""
    return len({metrics["policy"] for metrics in compared.values()}) == len(runs) <= MOST_RUNS


def compare(config: DictConfig, runs: Mapping[Path, Mapping[str, Any]]) -> int:
    """Compare runs (folder -> metrics); where they are too many for a page, print the command. Returns the exit status
    of the comparison.

    The comparison is a command like any other, in a process of its own: it can be typed again, and any launcher may
    have run the jobs."""
    if len(runs) > MOST_RUNS:
        say(f"\n{len(runs)} runs are too many for one page; choose those to compare:")
        say("  python -m mitigate recipe=compare compare.runs=[DIR,DIR,...] compare.baseline=DIR")
        return 0
    say("\ncomparison")
    command = [sys.executable, "-m", "mitigate", *_compared(runs), *_inherited(config)]
    return subprocess.run(command, check=False).returncode  # it prints its own errors


def _compared(runs: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """The settings of recipe=compare for all runs: policies against none, or else the first of them, with all its
    seeds; seeds of a single policy against the first run."""
    policies = list(dict.fromkeys(metrics["policy"] for metrics in runs.values()))
    folders = [folder.resolve() for folder in runs]
    first = folders[0] if len(policies) == 1 else "none" if "none" in policies else policies[0]
    return ["recipe=compare", f"compare.runs=[{','.join(map(_quoted, folders))}]", f"compare.baseline={_quoted(first)}"]


def _inherited(config: DictConfig) -> Sequence[str]:
    """The sweep's own settings of output and tracking."""
    values = {name: OmegaConf.select(config, name) for name in LIKE_THE_SWEEP}
    verbose = [] if is_brief(config) else ["verbose=true"]
    return [*verbose, *(f"{name}={'null' if value is None else _quoted(value)}" for name, value in values.items())]


def _quoted(value: object) -> str:
    """A value as Hydra reads it: a text in quotes. Numbers, truth values, paths and words that Hydra can only read as
    text stay as they are, so that the command on the page is easy to read."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    return text if PLAIN.fullmatch(text) and text.lower() not in MEANINGFUL else quoted(text)
