"""The end of a sweep (`-m`): its runs side by side in one table, and compared on a page."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mitigate.cli.arguments import quoted
from mitigate.recipes import sweep_notes as notes
from mitigate.recipes.job import is_brief, plain, say
from mitigate.result_settings import role_scorers
from mitigate.runs.finished import recipe_of, short_names
from mitigate.runs.store import read_json

MOST_RUNS = 24  # beyond, as in a search for settings, nobody reads a page with a section for each
LIKE_THE_SWEEP = (
    *("paths.outputs", "paths.cache"),
    *("tracking.mode", "tracking.project", "tracking.entity", "tracking.statements"),
)
PLAIN = re.compile(r"(?:[A-Za-z_/]|\.\.?/)[\w./-]*")  # .5 is a number
MEANINGFUL = ("true", "false", "null", "nan", "inf")  # what Hydra does not read as a text


class SideBySide(Callback):
    """A Hydra callback that prints the measures of all runs of a sweep, and has them compared."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        runs = {folder: read_json(folder / "metrics.json") for folder in notes.runs(config)}
        finished = {folder: metrics for folder, metrics in runs.items() if metrics}
        compared = comparable(finished)
        if len(finished) > 1 and not (is_brief(config) and _has_all(compared, finished)):
            named = short_names({folder.name: metrics for folder, metrics in finished.items()})
            say("\nside by side\n\n" + _beside(config, named))
        if compared and compare(config, compared) != 0:
            notes.leave_failed_comparison(config)


def _beside(config: DictConfig, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Runs by their names: four figures with their cost, or with verbose=true, and where a recipe has no such, all."""
    if is_brief(config) and "score" in config:
        from mitigate.report.brief import figures

        found = figures(runs, list(role_scorers(plain(config.score))))
        if found:
            return found
    from mitigate.report.tables import console

    return console(runs)


def comparable(runs: Mapping[Path, Mapping[str, Any]]) -> dict[Path, Mapping[str, Any]]:
    """Those of a sweep's runs (folder -> metrics) that are finished, where policy or seed vary; else none. Only the
    main job's: a story generator has a policy and a seed too, and recipe=compare takes none."""
    whole = {
        folder: metrics
        for folder, metrics in runs.items()
        if "policy" in metrics and (folder / "manifest.json").is_file() and recipe_of(folder) == "mitigate"
    }
    return whole if len({(metrics["policy"], metrics["seed"]) for metrics in whole.values()}) > 1 else {}


def _has_all(compared: Mapping[Path, Mapping[str, Any]], runs: Mapping[Path, Mapping[str, Any]]) -> bool:
    """Whether the comparison has a line for each run, beside which a table of all runs says nothing new."""
    return len({metrics["policy"] for metrics in compared.values()}) == len(runs) <= MOST_RUNS


def compare(config: DictConfig, runs: Mapping[Path, Mapping[str, Any]]) -> int:
    """Compare runs (folder -> metrics); where they are too many for a page, say the command. Returns the exit status
    of the comparison.

    It is a command like any other, in a process of its own: it can be typed again, and any launcher may have run the
    jobs."""
    if len(runs) > MOST_RUNS:
        say(f"\n{len(runs)} runs are too many for one page; name those to compare:")
        say("  python -m mitigate recipe=compare compare.runs=[DIR,DIR,...] compare.baseline=DIR")
        return 0
    say("\ncomparison")
    command = [sys.executable, "-m", "mitigate", *_what(runs), *_how(config)]
    return subprocess.run(command, check=False).returncode  # it says itself what goes wrong


def _what(runs: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """All runs: policies against none or else the first of them, with all its seeds; seeds of a single policy against
    the first run."""
    policies = list(dict.fromkeys(metrics["policy"] for metrics in runs.values()))
    folders = [folder.resolve() for folder in runs]
    first = folders[0] if len(policies) == 1 else "none" if "none" in policies else policies[0]
    return ["recipe=compare", f"compare.runs=[{','.join(map(_quoted, folders))}]", f"compare.baseline={_quoted(first)}"]


def _how(config: DictConfig) -> Sequence[str]:
    """The sweep's own settings of where and how."""
    values = {}
    for name in LIKE_THE_SWEEP:
        group, key = name.split(".")
        values[name] = config[group][key]
    verbose = [] if is_brief(config) else ["verbose=true"]
    return [*verbose, *(f"{name}={'null' if value is None else _quoted(value)}" for name, value in values.items())]


def _quoted(value: object) -> str:
    """As Hydra reads a text whatever stands in it; numbers and truth values stay what they are, and so do paths and
    words that Hydra can only read as such, so that the command on the page is easy to read."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    return text if PLAIN.fullmatch(text) and text.lower() not in MEANINGFUL else quoted(text)
