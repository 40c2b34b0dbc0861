"""Do stories change, too? The comparison of benchmarks/plan.md, "Stories": the generators of three arms of the
experiment are trained further on texts of the triples that their policy keeps, and write stories about all targets.

    python benchmarks/experiment_stories.py run --data ../shared/data --outputs outputs/experiment [--seeds 1 2 3]
    python benchmarks/experiment_stories.py table

`run` starts what experiment_stories.csv does not have yet, one run after the other with one thread, from the
generators that experiment.py left in OUTPUTS. Stopped, it goes on by the same command. `table` prints the comparison.
Settings after -- are given to every run."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment import FOLDER, THREADS, commit, finished, say, split_arguments
from benchmarks.experiment_effects import Effect, counts, ratio_change
from benchmarks.experiment_plan import ROOT, arms
from benchmarks.experiment_row import is_polarised, pack
from mitigate.files import digest_of, write
from mitigate.measure.base import key_of
from mitigate.words.targets import PAPER

CSV = Path(__file__).with_name("experiment_stories.csv")
ARMS = ("none_short", "both_neutral", "random_both_neutral")
SETTINGS = (
    *("recipe=stories", "experiment=cn100k_cpu", "model=comet", "recipe.post_train=true", "score.extra=[crowd]"),
    *("trainer.max_epochs=1000", "trainer.max_steps=200", "trainer.batch_size=32", "trainer.precision=32-true"),
    "tracking=none",
)
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
    own, more = split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="train further, generate and measure")
    runs.add_argument("--data", type=Path, help="data.root of the runs")
    runs.add_argument("--outputs", type=Path, default=Path("outputs/experiment"), help="where experiment.py's runs are")
    runs.add_argument("--experiment", type=Path, default=CSV.with_name("experiment.csv"), help="its file")
    runs.add_argument("--csv", type=Path, default=CSV)
    runs.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    tables = commands.add_parser("table", help="print the comparison")
    tables.add_argument("--csv", type=Path, default=CSV)
    given = parser.parse_args(own)
    if given.command == "table":
        print(table(read(given.csv)))
        return
    generators = finished(given.experiment, given.outputs)
    for seed in given.seeds:
        for arm in ARMS:
            if not read(given.csv).filter(arm=arm, seed=seed).is_empty():
                continue
            if (arm, seed) not in generators:
                sys.exit(f"{arm}, seed {seed}, is not in {given.experiment}; run experiment.py first")
            data = [f"data.root={given.data.resolve()}"] if given.data else []
            base = generators[arm, seed] / "model"
            row = stories_of(arm, seed, base, given.outputs.resolve(), [*data, *more])
            write(given.csv, pl.concat([read(given.csv), pl.DataFrame([row], SCHEMA)]).write_csv(float_precision=6))
            say(f"done {arm}, seed {seed}, {row['hours']:.2f} hours")


def stories_of(arm: str, seed: int, base: Path, outputs: Path, more: list[str]) -> dict[str, Any]:
    """Runs recipe=stories with a generator; the row of what it finds."""
    where = [
        f"model.base={base}",
        f"paths.outputs={outputs / f'stories-{arm}-seed{seed}'}",
        f"paths.cache={outputs}/cache",
    ]
    asked = [*SETTINGS, *arms()[arm].settings, f"seed={seed}", *where, *more]
    log = outputs / "logs" / f"stories-{arm}-seed{seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    at = commit()
    with log.open("w+b") as output:
        line = [sys.executable, "-m", "mitigate", *asked]
        status = subprocess.run(line, cwd=ROOT, env={**os.environ, **THREADS}, stdout=output, stderr=output).returncode
    if status:
        sys.exit(f"{arm}, seed {seed}: status {status}, see {log}")
    folder = Path(FOLDER.findall(log.read_text(encoding="utf-8"))[-1])
    return {"arm": arm, "seed": seed, "commit": at} | row_of(folder)


def row_of(folder: Path) -> dict[str, Any]:
    """The row of a finished run, but for its arm."""
    metrics, manifest = (json.loads((folder / f"{name}.json").read_text()) for name in ("metrics", "manifest"))
    sentences = pl.read_parquet(folder / "score.parquet")
    names = pl.col("target").replace(PAPER.clusters)
    found = (
        sentences.group_by(cluster=names)
        .agg(polarised=is_polarised("crowd").sum(), statements=pl.len())
        .sort("cluster")
    )
    of = digest_of(" ".join(found["cluster"]))[:8]
    return {
        "hours": round(sum(stage["seconds"] for stage in manifest["stages"]) / 3600, 3),
        "folder": folder.name,
        **{key: metrics.get(key) for key in FIGURES},
        "clusters": f"{found.height}-{of}",
        **{name: pack(found[name].to_list()) for name in ("polarised", "statements")},
    }


def read(path: Path) -> pl.DataFrame:
    """The rows of the file; none where there is no file."""
    return pl.read_csv(path, schema_overrides=SCHEMA) if path.is_file() else pl.DataFrame(schema=SCHEMA)


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
