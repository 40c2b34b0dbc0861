"""Seconds of each stage of finished runs, side by side.

    python benchmarks/stage_seconds.py 'LABEL=FOLDER[,FOLDER ...]' ... [--note TEXT] [--write]

A label with several run folders, such as the jobs of a sweep, gets the median of each stage and of the sums, and a line
with the sum of all jobs. --write replaces the section of RESULTS.md."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import processor, write_section

FEW = 5.0  # seconds: stages that take less in all rows are summed up as others


def main() -> None:
    by = "By `python benchmarks/stage_seconds.py`, from the manifests of finished runs."
    title = "The whole job on train100k: seconds of its stages"
    present(__doc__, "stage seconds", title, by, lambda groups: table(seconds_of_groups(groups)))


def present(
    about: str | None, name: str, title: str, by: str, tabulate: Callable[[Sequence[tuple[str, list[Path]]]], str]
) -> None:
    """Reads a script's arguments, labels with run folders, and prints the section of their table; writes it where that
    is asked for."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="+", metavar="LABEL=FOLDERS", type=group)
    parser.add_argument("--note", default="", help="what is to be known of these runs")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    section = f"## {title}\n\n{f'{by} {given.note}'.strip()}\n\n{tabulate(given.groups)}"
    print(section)
    if given.write:
        write_section(name, section, processor())


def seconds_of_groups(groups: Sequence[tuple[str, list[Path]]]) -> dict[str, list[dict[str, float]]]:
    """Label -> the seconds of each run."""
    return {label: [seconds_of(folder) for folder in folders] for label, folders in groups}


def group(text: str) -> tuple[str, list[Path]]:
    """LABEL=FOLDER,FOLDER."""
    label, _, folders = text.partition("=")
    return label, [Path(folder) for folder in folders.split(",")]


def seconds_of(folder: Path) -> dict[str, float]:
    """Stage -> seconds, of a finished run."""
    stages = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["stages"]
    return {stage["stage"]: stage["seconds"] for stage in stages}


def table(found: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A line for each label, and what several jobs took together."""
    middle = {label: median_of(jobs) for label, jobs in found.items()}
    names = list(dict.fromkeys(name for spent in middle.values() for name in spent))
    long = [name for name in names if any(spent.get(name, 0.0) >= FEW for spent in middle.values())]
    lines = [f"| | jobs | {' | '.join(long)} | others | a job, min | all jobs, min |", "|---" * (5 + len(long)) + "|"]
    for label, spent in middle.items():
        sums = [sum(job.values()) / 60 for job in found[label]]
        others = sum(seconds for name, seconds in spent.items() if name not in long)
        cells = [label, str(len(sums)), *(f"{spent[name]:.0f}" if name in spent else "–" for name in long)]
        lines.append(f"| {' | '.join([*cells, f'{others:.0f}', f'{median(sums):.1f}', f'{sum(sums):.1f}'])} |")
    return "\n".join(lines)


def median_of(jobs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each stage, over the jobs that have it."""
    names = dict.fromkeys(name for job in jobs for name in job)
    return {name: median(job[name] for job in jobs if name in job) for name in names}


if __name__ == "__main__":
    main()
