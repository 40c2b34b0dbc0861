"""Do stories change, too? The comparison of benchmarks/plan.md, "Stories": the generators of three arms of the
experiment are trained further on texts of the triples that their policy keeps, and write stories about all targets.

    python benchmarks/experiment_stories.py

prints the comparison of the runs in experiment_stories.csv. Version 0.2.0 (commit 368c7b80) ran them."""

import argparse
import sys
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_effects import Effect, counts, ratio_change
from mitigate.measure.base import key_of

CSV = Path(__file__).with_name("experiment_stories.csv")
ARMS = ("none_short", "both_neutral", "random_both_neutral")
FIGURES = {
    "stories": "stories",
    "naming_target": "name their target again, %",
    "distinct_sentences": "distinct sentences, %",
    key_of("neutral_mean", "crowd"): "neutral by crowd, % ↑",
    key_of("neutral_mean", "regard"): "neutral by regard, % ↑",
    key_of("neutral_mean", "sentiment"): "neutral by sentiment, % ↑",
}
SCHEMA = {
    **{"arm": pl.String, "seed": pl.Int64, "hours": pl.Float64, "commit": pl.String, "folder": pl.String},
    **dict.fromkeys(FIGURES, pl.Float64),
    **{"clusters": pl.String, "polarised": pl.String, "statements": pl.String},  # packed, as in experiment.csv
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, default=CSV)
    print(table(read(parser.parse_args().csv)))


def read(path: Path) -> pl.DataFrame:
    """The rows of the file."""
    return pl.read_csv(path, schema_overrides=SCHEMA)


def effect(rows: pl.DataFrame, reference: str, policy: str = "both_neutral") -> Effect:
    """How much smaller the policy's percentage of polarised sentences is than the reference's; words and seeds are
    drawn."""
    found = ratio_change(rows, reference, policy, "clusters", ("statements", "polarised"), 100.0)
    return Effect(-found.value, found.error, found.degrees)


def table(rows: pl.DataFrame) -> str:
    """Means over seeds, and the policy beside its control and `none`."""
    lines = [
        f"| arm | seeds | polarised by crowd, % | {' | '.join(FIGURES.values())} |",
        "|---" * (3 + len(FIGURES)) + "|",
    ]
    for arm in ARMS:
        mine = rows.filter(arm=arm)
        if mine.is_empty():
            continue
        share = 100 * counts(mine, "polarised").sum() / counts(mine, "statements").sum()
        means = " | ".join(f"{mine[key].mean():,.{0 if key == 'stories' else 1}f}" for key in FIGURES)
        lines.append(f"| `{arm}` | {mine.height} | {share:.1f} | {means} |")
    for reference in ("random_both_neutral", "none_short"):
        if set(rows["arm"]) >= {reference, "both_neutral"}:
            found = effect(rows, reference)
            low, high = found.bounds()
            lines += ["", f"Less polarised than `{reference}`: {found.value:.1f} points [{low:.1f}, {high:.1f}]."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
