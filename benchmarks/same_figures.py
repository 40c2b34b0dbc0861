"""Whether two versions of this project find the same figures, to 1e-6 (absolute or relative, whichever is larger).

    python benchmarks/same_figures.py run TREE OUTPUTS --root DIR     runs the commands below with the code in TREE
    python benchmarks/same_figures.py compare BEFORE AFTER            compares what two of these left

Run folders are paired by recipe, policy and data; of each pair every key of the JSON file with its figures is compared,
and every cell of the table that recipe=labels writes. Keys that only one side has are listed, and so are figures that
differ; the exit status is 1 where any do. With --gone REGEX (several may follow), what only one side has does not count
where "RUN KEY" matches: figures and runs of what was deleted."""

import argparse
import csv
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MAIN = [
    *("-m", "policy=none,both", "trainer.max_steps=40", "trainer.batch_size=16", "measure.resamples=200"),
    *("trainer.precision=32-true", "probe.precision=fp32", "model.dropout=0"),  # whose masks depend on shapes
    *("probe.targets=[lawyer,nurse,woman,man,muslim,german,brother,sociologist]", "probe.heads=40"),
]
KGE = [
    *("recipe=kge", "data=fb15k237", "model=transe", "kge.seeds=1", "?kge.permuted=0", "model.dimension=8"),
    *("model.training.max_epochs=2", "model.training.evaluate_every=2", "kge.mitigations=[project]"),
]
FRAMES = [
    "recipe=frames",
    "data.root={inputs}",
    "++frames.fold_epochs=1",
    "++frames.dropout=0",
    "measure.resamples=200",
]
LABELS = [
    *("recipe=labels", "data=statements", "data.path={inputs}/labels.tsv", "data.output={outputs}/labels.csv"),
    "score.extra=[keyword,crowd2]",
]
COMMANDS = [  # "?": left out where the tree has no such setting
    MAIN,  # ends with their comparison
    ["recipe=audit", "data=harms_conceptnet", "measure=paper"],
    ["recipe=audit", "data=harms_genericskb", "measure=paper"],
    ["recipe=humans"],
    ["recipe=stories", "data=stories", "data.path={inputs}/stories.txt"],
    [*KGE, "kge.sensitive=gender", "kge.values=[male,female]"],
    FRAMES,
    LABELS,
]
STORIES = """\
the lawyer was|||the lawyer was at work. She won the case. Everyone was happy about it.
the nurse was|||the nurse was tired. He went home. The house was dark and cold.
the woman was|||the woman was kind. She helped a friend. They laughed together.
the man was|||the man was rude. He stole a car. The police came for him.
"""
FIGURES = ("metrics.json", "humans.json", "comparison.json")
NOT_FIGURES = {"fingerprint", "seconds", "lines", "notices", "runs", "baseline_runs", "proxies"} | {
    *("verdict", "sentence", "cost"),  # words
}
TOLERANCE = 1e-6
SHOWN = 20  # lines of a kind, of each run


def run(tree: Path, outputs: Path, root: Path) -> None:
    """Run all commands with the code of a tree; one thread, so that sums are added in one order, and labels in float32,
    since those in bfloat16 depend on what else is in a batch."""
    outputs = outputs.resolve()
    inputs = Path(f"{outputs}-inputs")
    for folder in (outputs, inputs):
        folder.mkdir(parents=True, exist_ok=True)
    (inputs / "stories.txt").write_text(STORIES, encoding="utf-8")
    write_statements(root / "humans" / "COMeT_sentences.txt", inputs / "labels.tsv")
    thin(root / "sbic", inputs / "sbic")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000", "MITIGATE_DATA": str(root.resolve())}
    environment |= {"PYTHONPATH": str(tree.resolve()), "MITIGATE_PRECISION": "fp32"}
    where = [f"paths.outputs={outputs}", f"paths.cache={outputs}-cache", "tracking=none"]
    for command in COMMANDS:
        arguments = [part.format(outputs=outputs, inputs=inputs) for part in known(command, tree)]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mitigate", *arguments, *where], cwd=tree, env=environment, check=True)
        print(f"{time.perf_counter() - began:.0f} s: {' '.join(arguments)}", flush=True)


def known(command: list[str], tree: Path) -> list[str]:
    """The command without the settings marked "?" that no file of the tree's conf/ has."""
    files = "\n".join(path.read_text(encoding="utf-8") for path in sorted((tree / "conf").rglob("*.yaml")))
    names = {part: part.partition("=")[0].rpartition(".")[2] for part in command}
    there = [part for part in command if part[0] != "?" or re.search(rf"^\s*{names[part]}:", files, re.MULTILINE)]
    return [part.removeprefix("?") for part in there]


def write_statements(sentences: Path, statements: Path, step: int = 3) -> None:
    """Every third sentence that the harms paper had rated, each beside a target."""
    lines = sentences.read_text(encoding="utf-8").splitlines()[::step]
    statements.write_text("".join(f"lawyer\t{line.strip()}\n" for line in lines if line.strip()), encoding="utf-8")


def thin(source: Path, folder: Path, step: int = 40) -> None:
    """Every 40th row of each table of SBIC, which has 35 minutes of training in all."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as read, (folder / path.name).open("w", newline="") as written:
            rows = list(csv.reader(read))
            begin = 0 if path.name.startswith("offensive_") else 1  # these files have no header
            csv.writer(written).writerows(rows[:begin] + rows[begin::step])


def figures(path: Path) -> dict[str, Any]:
    """Every figure of a run folder, nested ones under joined keys; or every cell of a table."""
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            return dict(flat(list(csv.DictReader(file))))
    content = next((json.loads((path / name).read_text()) for name in FIGURES if (path / name).is_file()), {})
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


def same(old: Any, new: Any) -> bool:
    """Whether two figures are equal to the tolerance, other values exactly."""
    try:
        return math.isclose(float(old), float(new), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except (TypeError, ValueError):
        return bool(old == new)


def named(outputs: Path) -> dict[str, Path]:
    """The run folders by name, without the hash at its end, and the tables beside them."""
    folders = [folder for folder in sorted(outputs.iterdir()) if folder.is_dir() and folder.name[0] != "."]
    return {folder.name.rpartition("-")[0]: folder for folder in folders} | {
        table.name: table for table in sorted(outputs.glob("*.csv"))
    }


def compare(before: Path, after: Path, gone: list[str]) -> int:
    """Print what differs; returns how many figures do, or are on one side only and not among those that are gone."""
    first, second = named(before), named(after)
    left_out = re.compile("|".join(gone) or "(?!)")
    found = 0
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second:
            expected = bool(left_out.search(f"{name} "))
            print(f"{name}: only {'before' if name in first else 'after'}{', as expected' if expected else ''}")
            found += not expected
            continue
        old, new = figures(first[name]), figures(second[name])
        moved = [f"{key}: {old[key]!r} {new[key]!r}" for key in old if key in new and not same(old[key], new[key])]
        alone = {"gone": sorted(old.keys() - new.keys()), "new": sorted(new.keys() - old.keys())}
        unexpected = {
            word: [key for key in keys if not left_out.search(f"{name} {key}")] for word, keys in alone.items()
        }
        counts = ", ".join(f"{len(keys)} {word} ({len(unexpected[word])} unexpected)" for word, keys in alone.items())
        print(f"{name}: {len(old):,} figures, {len(moved)} differ, {counts}")
        for lines in (moved, *([f"{word} {key}" for key in keys] for word, keys in alone.items())):
            print("".join(f"  {line}\n" for line in lines[:SHOWN]), end="")
            print(f"  and {len(lines) - SHOWN} more\n" * (len(lines) > SHOWN), end="")
        found += len(moved) + sum(map(len, unexpected.values()))
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
    comparing.add_argument("--gone", nargs="+", default=[], help="patterns of what was deleted")
    given = parser.parse_args()
    if given.verb == "run":
        run(given.tree, given.outputs, given.root)
    else:
        sys.exit(bool(compare(given.before, given.after, given.gone)))


if __name__ == "__main__":
    main()
