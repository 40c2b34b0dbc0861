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

OWN = {  # heading -> digits
    **{"million weights": 1, "kept": 0, "steps": 0, "training, min": 1, "probe, statements/s": 0},
    "memory, GiB": 1,
}
FIGURES = {  # heading -> key of metrics.json, digits
    "perplexity": ("quality/perplexity/all", 2),
    "bits per character": ("quality/bits_per_char/all", 3),
    "bits per character, about targets": ("quality/about_bits_per_char/all", 3),
    "BLEU-2": ("quality/bleu2/all", 1),
    "swap lift": ("quality/swap_lift/all", 1),
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
    headings = ["", "runs", *OWN, *FIGURES]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for label, folders in groups:
        found = [measured(folder) for folder in folders]
        digits = OWN | {name: places for name, (_, places) in FIGURES.items()}
        cells = [mean([each[name] for each in found], places) for name, places in digits.items()]
        lines.append(f"| {' | '.join([label, str(len(found)), *cells])} |")
    return "\n".join(lines)


def mean(values: Sequence[float | None], digits: int) -> str:
    """The mean over runs; a dash where one has no such figure."""
    known = [value for value in values if value is not None]
    return f"{fmean(known):,.{digits}f}" if len(known) == len(values) else "–"


def measured(folder: Path) -> dict[str, float | None]:
    """The columns of a run; None for a figure that it does not have."""
    metrics, trained = (json.loads((folder / f"{name}.json").read_text()) for name in ("metrics", "train"))
    statements = pl.scan_parquet(folder / "statements.parquet").select(pl.len()).collect().item()
    peaks = [stage.get("peak_memory", 0) for stage in json.loads((folder / "manifest.json").read_text())["stages"]]
    own = [
        weights(folder / "model") / 1e6,
        metrics["filter/kept"],
        trained.get("steps", 0),
        trained.get("seconds", 0.0) / 60,
        statements / seconds_of(folder)["probe"],
        max(peaks) / 2**30,
    ]
    return dict(zip(OWN, own, strict=True)) | {name: metrics.get(key) for name, (key, _) in FIGURES.items()}


def weights(folder: Path) -> int:
    """How many numbers a saved model has."""
    count = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="numpy") as tensors:
            count += sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return count


if __name__ == "__main__":
    main()
