"""None against none: how often a comparison claims an effect where there is none.

    python benchmarks/null_pairs.py [--pairs 10] [--outputs DIR]

Trains the unfiltered policy on the sample corpus with one seed after another, all else equal, and compares pairs of
single runs and pairs of pairs, every time as if one side were another policy. Each seed is used in one pair of runs;
the pairs of pairs join a pair with the next one. It writes its section of RESULTS.md; stopped, the same command goes
on. Runs are shorter than the demonstration's, since what counts here is that only chance sets them apart."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.report.verdicts import BETTER, HELPS, WORSE, WORSENS

SHORT = ("trainer.max_steps=150", "probe.beams=5", "probe.top=5", "score.plausibility=null")
CLAIMS = {HELPS, WORSENS, BETTER, WORSE}
HEADER = "| compared | times | with a claim | of an overall figure | figures compared | claimed |"
OVERALL = re.compile(r"(neutral_template/)?N[SR][MV]")  # of all targets, not of a category


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--outputs", type=Path, default=Path(tempfile.gettempdir()) / "null_pairs", help="run folders")
    arguments = parser.parse_args()
    runs = [train(seed, arguments.outputs) for seed in range(1, 2 * arguments.pairs + 1)]
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    single = [claims([first], [second], arguments.outputs) for first, second in pairs]
    double = [
        claims(list(pair), list(following), arguments.outputs)
        for pair, following in zip(pairs, pairs[1:] + pairs[:1], strict=True)
    ]
    rows = [
        row("one run against another: do these two models differ?", single),
        row("two seeds against two others: does the policy do anything?", double),
    ]
    text = [
        "## Comparing: none against none",
        f"Measured on {machine()}, by `python benchmarks/null_pairs.py`: policy none on the sample corpus with "
        f"{len(runs)} seeds, {', '.join(f'`{setting}`' for setting in SHORT)}. The two sides differ only "
        "by their seeds, so any claim about policies is false; a claim about two single models may be true.",
        "\n".join([HEADER, "|---" * 6 + "|", *rows]),
        "A claim is a difference with a p of less than 0.05 after Holm's correction for all figures of its comparison.",
    ]
    write_section("null pairs", "\n\n".join(text))
    print("\n\n".join(text))


def train(seed: int, outputs: Path) -> Path:
    """The run folder of this seed."""
    mitigate("policy=none", f"seed={seed}", *SHORT, f"paths.outputs={outputs}")
    (folder,) = outputs.glob(f"mitigate-none-sample-comet_minilm-seed{seed}-*")
    return folder


def claims(baseline: Sequence[Path], runs: Sequence[Path], outputs: Path) -> dict[str, bool]:
    """Figure -> whether the comparison claims that it differs."""
    settings = {"runs": [*baseline, *runs], "baseline": list(baseline)}
    given = [f"compare.{key}=[{','.join(map(str, folders))}]" for key, folders in settings.items()]
    place = outputs / "compared" / "-".join(folder.name[-8:] for folder in settings["runs"])
    mitigate("recipe=compare", *given, f"paths.outputs={place}")
    (found,) = place.glob("*/comparison.json")
    (contrast,) = json.loads(found.read_text())["contrasts"]
    return {figure: row["verdict"] in CLAIMS for figure, row in contrast["harms"].items()}


def row(title: str, comparisons: Sequence[dict[str, bool]]) -> str:
    """A row of the table."""
    with_claim = sum(any(found.values()) for found in comparisons)
    overall = sum(any(claimed for name, claimed in found.items() if OVERALL.fullmatch(name)) for found in comparisons)
    figures = sum(map(len, comparisons))
    claimed = sum(sum(found.values()) for found in comparisons)
    return f"| {title} | {len(comparisons)} | {with_claim} | {overall} | {figures} | {claimed} |"


def mitigate(*overrides: str) -> None:
    subprocess.run([sys.executable, "-m", "mitigate", "tracking=none", *overrides], check=True)


if __name__ == "__main__":
    main()
