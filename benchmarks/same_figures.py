"""Whether two versions of this project find the same figures, to the last digit.

    python benchmarks/same_figures.py run TREE OUTPUTS --root DIR     runs the commands below with the code in TREE
    python benchmarks/same_figures.py compare BEFORE AFTER            compares what two of these left

Run folders are paired by recipe, policy and data; of each pair every key of the JSON file with its figures is compared.
Keys that only one side has are listed, and so are figures that differ; the exit status is 1 where any do."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMANDS = [
    ["-m", "policy=none,both"],  # ends with their comparison
    ["recipe=audit", "data=harms_conceptnet", "measure=paper"],
    ["recipe=audit", "data=harms_genericskb", "measure=paper"],
    ["recipe=humans"],
    ["recipe=stories", "data=stories", "data.path={outputs}-stories.txt"],
]
STORIES = """\
the lawyer was|||the lawyer was at work. She won the case. Everyone was happy about it.
the nurse was|||the nurse was tired. He went home. The house was dark and cold.
the woman was|||the woman was kind. She helped a friend. They laughed together.
the man was|||the man was rude. He stole a car. The police came for him.
"""
FIGURES = ("metrics.json", "humans.json", "comparison.json")
NOT_FIGURES = {"fingerprint", "seconds", "lines", "notices", "runs", "baseline_runs", "proxies", "verdict"}


def run(tree: Path, outputs: Path, root: Path) -> None:
    """Run all commands with the code of a tree; one thread, so that sums are added in one order."""
    outputs.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{outputs}-stories.txt").write_text(STORIES, encoding="utf-8")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000", "MITIGATE_DATA": str(root.resolve())}
    where = [f"paths.outputs={outputs.resolve()}", f"paths.cache={outputs.resolve()}-cache", "tracking=none"]
    for command in COMMANDS:
        arguments = [part.format(outputs=outputs.resolve()) for part in command]
        subprocess.run([sys.executable, "-m", "mitigate", *arguments, *where], cwd=tree, env=environment, check=True)


def figures(folder: Path) -> dict[str, Any]:
    """Every figure of a run folder, nested ones under joined keys."""
    content = next(json.loads((folder / name).read_text()) for name in FIGURES if (folder / name).is_file())
    return dict(flat(content))


def flat(content: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Nested objects and lists as pairs of a joined key and a value, without what is no figure."""
    if isinstance(content, dict):
        parts = [(str(key), value) for key, value in content.items() if key not in NOT_FIGURES]
    elif isinstance(content, list):
        parts = [(str(number), value) for number, value in enumerate(content)]
    else:
        return [(prefix, content)]
    return [pair for key, value in parts for pair in flat(value, f"{prefix}/{key}" if prefix else key)]


def named(outputs: Path) -> dict[str, Path]:
    """The run folders by name, without the hash at its end."""
    folders = [folder for folder in sorted(outputs.iterdir()) if folder.is_dir() and folder.name[0] != "."]
    return {folder.name.rpartition("-")[0]: folder for folder in folders}


def compare(before: Path, after: Path) -> int:
    """Print what differs; returns the number of differences."""
    first, second = named(before), named(after)
    found = len(first.keys() ^ second.keys())
    for name in sorted(first.keys() ^ second.keys()):
        print(f"{name}: only {'before' if name in first else 'after'}")
    for name in sorted(first.keys() & second.keys()):
        old, new = figures(first[name]), figures(second[name])
        gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
        moved = sorted(key for key in old.keys() & new.keys() if old[key] != new[key])
        print(f"{name}: {len(old):,} figures, {len(moved)} differ, {len(gone)} gone, {len(come)} new")
        for word, keys in (("gone", gone), ("new", come)):
            print("".join(f"  {word} {key}\n" for key in keys), end="")
        print("".join(f"  {key}: {old[key]!r} {new[key]!r}\n" for key in moved), end="")
        found += len(moved) + len(gone) + len(come)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run")
    running.add_argument("tree", type=Path)
    running.add_argument("outputs", type=Path)
    running.add_argument("--root", type=Path, required=True, help="the folder of the real data")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "run":
        run(given.tree, given.outputs, given.root)
    else:
        sys.exit(bool(compare(given.before, given.after)))


if __name__ == "__main__":
    main()
