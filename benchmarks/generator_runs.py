"""What generators of several architectures reached on train100k, side by side.

    python benchmarks/generators.py make DIR --root ../shared/data
    python -m mitigate model=seq2seq model.base=DIR/bart policy=none data=cn100k ...
    python benchmarks/generator_runs.py 'LABEL=FOLDER[,FOLDER ...]' ... [--note TEXT] [--write]

Reads finished runs of the main job; a label with several run folders gets means. --write replaces the section of
RESULTS.md."""

import json
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from statistics import fmean

import polars as pl
from safetensors import safe_open

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.stage_seconds import present, seconds_of
from mitigate.metrics import harm_key

FIGURES = {  # heading -> key of metrics.json, digits
    "perplexity": ("quality/perplexity/all", 2),
    "bits per character": ("quality/bits_per_char/all", 3),
    "BLEU-2": ("quality/bleu2/all", 1),
    "swap lift, held-out heads": ("quality/swap_lift/held_out", 1),
    "distinct tails, %": ("distinct_tails", 1),
    "neutral, sentiment, %": (harm_key("sentiment", "mean", "neutral", "neutral"), 1),
    "neutral, regard, %": (harm_key("regard", "mean", "neutral", "neutral"), 1),
}


def main() -> None:
    by = "By `python benchmarks/generator_runs.py`, from finished runs."
    present(__doc__, "generator runs", "Generators of other architectures on train100k", by, table)


def table(groups: Sequence[tuple[str, Sequence[Path]]]) -> str:
    """A line for each label."""
    headings = ["", "runs", "million weights", "kept", "steps", "training, min", "probe, statements/s", *FIGURES]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for label, folders in groups:
        found = [measured(folder) for folder in folders]
        means = {name: fmean(each[name] for each in found) for name in found[0]}
        digits = {"million weights": 1, "training, min": 1} | {name: places for name, (_, places) in FIGURES.items()}
        cells = [f"{means[name]:,.{digits.get(name, 0)}f}" for name in headings[2:]]
        lines.append(f"| {' | '.join([label, str(len(found)), *cells])} |")
    return "\n".join(lines)


def measured(folder: Path) -> dict[str, float]:
    """The columns of a run."""
    metrics, trained = (json.loads((folder / f"{name}.json").read_text()) for name in ("metrics", "train"))
    statements = pl.scan_parquet(folder / "statements.parquet").select(pl.len()).collect().item()
    own = {
        "million weights": weights(folder / "model") / 1e6,
        "kept": metrics["filter/kept"],
        "steps": trained.get("steps", 0),
        "training, min": trained.get("seconds", 0.0) / 60,
        "probe, statements/s": statements / seconds_of(folder)["probe"],
    }
    return own | {name: metrics[key] for name, (key, _) in FIGURES.items()}


def weights(folder: Path) -> int:
    """How many numbers a saved model has."""
    count = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="numpy") as tensors:
            count += sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return count


if __name__ == "__main__":
    main()
