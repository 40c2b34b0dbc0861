"""None against none: how often a comparison finds an effect where there is none.

    python benchmarks/null_pairs.py [--seeds 10] [--outputs DIR]

Trains the unfiltered policy on the sample corpus with one seed after another, all else equal, and compares single runs
with single runs, and one half of the seeds with the other, every time as if one side were another policy. The halves
are drawn ten times, so that the ten comparisons share runs. It writes its section of RESULTS.md; stopped, the same
command goes on. Runs are shorter than the demonstration's, since what counts is that only chance sets them apart."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.report.verdicts import BETTER, HELPS, WORSE, WORSENS

SHORT = ("trainer.max_steps=150", "probe.beams=5", "probe.top=5", "score.plausibility=null")
CLAIMS = {HELPS, WORSENS, BETTER, WORSE}
SPLITS = 10
HEADER = (
    "| compared | times | with a finding by the primary endpoint | exploratory figures | of them with 0 outside 95 % |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="an even number of runs")
    parser.add_argument("--outputs", type=Path, default=Path(tempfile.gettempdir()) / "null_pairs", help="run folders")
    arguments = parser.parse_args()
    runs = [train(seed, arguments.outputs) for seed in range(1, arguments.seeds + 1)]
    half = len(runs) // 2
    single = [
        found([first], [second], arguments.outputs) for first, second in zip(runs[:half], runs[half:], strict=True)
    ]
    random = np.random.default_rng(1)
    orders = [[runs[place] for place in random.permutation(len(runs))] for _ in range(SPLITS)]
    halves = [found(order[:half], order[half:], arguments.outputs) for order in orders]
    rows = [
        row("one run against another: two models", single),
        row(f"{half} seeds against {half} others: does the policy do anything?", halves),
    ]
    text = [
        "## Comparing: none against none",
        f"Measured on {machine()}, by `python benchmarks/null_pairs.py`: policy none on the sample corpus with "
        f"{len(runs)} seeds, {', '.join(f'`{setting}`' for setting in SHORT)}. The two sides differ only "
        "by their seeds, so any finding about policies is false; that two single models differ may be true.",
        "\n".join([HEADER, "|---" * 5 + "|", *rows]),
        "The primary endpoint is the neutral mean of regard, the only one here, so that nothing is corrected. "
        "Exploratory figures are other means and variances, of all targets and of each category. Their 95 % intervals "
        "are of each figure alone; one in twenty may exclude no change by chance.",
    ]
    write_section("null pairs", "\n\n".join(text))
    print("\n\n".join(text))


def train(seed: int, outputs: Path) -> Path:
    """The run folder of this seed."""
    mitigate("policy=none", f"seed={seed}", *SHORT, f"paths.outputs={outputs}")
    (folder,) = outputs.glob(f"mitigate-none-sample-comet_minilm-seed{seed}-*")
    return folder


def found(baseline: Sequence[Path], runs: Sequence[Path], outputs: Path) -> tuple[bool, list[bool]]:
    """Whether the comparison's primary endpoint differs, and whether each exploratory figure's interval says so."""
    settings = {"runs": [*baseline, *runs], "baseline": list(baseline)}
    given = [f"compare.{key}=[{','.join(map(str, folders))}]" for key, folders in settings.items()]
    place = outputs / "compared" / "-".join(folder.name[-8:] for folder in settings["runs"])
    mitigate("recipe=compare", *given, f"paths.outputs={place}")
    (facts,) = place.glob("*/comparison.json")
    (contrast,) = json.loads(facts.read_text())["contrasts"]
    (primary,) = contrast["primary"].values()
    others = [
        row for figure, row in contrast["harms"].items() if figure != primary["figure"] and row["low"] is not None
    ]
    return primary["verdict"] in CLAIMS, [excludes(row) for row in others]


def excludes(row: Mapping[str, Any]) -> bool:
    """Whether the 95 % interval excludes no change."""
    none = 1 if row["as"] == "ratio" else 0
    return row["low"] > none or (row["high"] is not None and row["high"] < none)


def row(title: str, comparisons: Sequence[tuple[bool, list[bool]]]) -> str:
    """A row of the table."""
    figures = [excluded for _, others in comparisons for excluded in others]
    with_finding = sum(claimed for claimed, _ in comparisons)
    return f"| {title} | {len(comparisons)} | {with_finding} | {len(figures)} | {sum(figures)} |"


def mitigate(*overrides: str) -> None:
    subprocess.run([sys.executable, "-m", "mitigate", "tracking=none", *overrides], check=True)


if __name__ == "__main__":
    main()
