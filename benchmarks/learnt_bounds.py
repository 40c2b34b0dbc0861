"""What the checks of mitigate/data/learnt_bounds.csv find of generators that know nothing, that were not trained, that
were trained for a moment, and that were trained whole: the bounds lie between these.

    OMP_NUM_THREADS=1 nice python benchmarks/learnt_bounds.py [--folder DIR]

About an hour on one thread. Each generator is a run of the main job, cached in the folder; the same command goes on.
Writes its section of RESULTS.md."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.load.sample import load

TARGETS = (
    *("american", "nigerian", "italian", "indian", "spanish", "chinese"),
    *("christian", "muslim", "hindu", "brahmin", "church", "bible"),
    *("teacher", "nurse", "lawyer", "farmer", "engineer", "judge"),
    *("woman", "man", "girl", "boy", "mother", "father"),
)
STEPS = (1, 6, 30, 60, 120, 300, None)  # None: as many as the epochs take
FEW_STEPS = (1, 6, 30, 60, 120, 240)
PEOPLE = ("teacher", "nurse", "lawyer", "farmer", "engineer", "judge")
OF_PEOPLE = {  # the second study: 24 triples about six targets
    "CapableOf": ("explain a map", "change a bandage", "read a contract", "grow wheat", "plan a bridge", "hear a case"),
    "AtLocation": ("classroom", "ward", "office", "barn", "workshop", "courtroom"),
    "UsedFor": ("learning", "care", "advice", "harvest", "building", "settling a dispute"),
    "HasProperty": ("patient", "busy", "careful", "early to rise", "precise", "calm"),
}
HERE = Path(__file__).parents[1]


class Row(NamedTuple):
    """What is found of a generator."""

    name: str
    steps: int | None
    passes: float | None  # over the training triples
    shared: float | None
    distinct: float | None
    empty: float | None  # percent of the tails
    lift: float | None
    low: float | None
    high: float | None
    untrained: float  # percent of the probed relations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("outputs/learnt_bounds"))
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        f"The sample corpus, {len(TARGETS)} targets, 34 relations:": whole(folder),
        "24 triples of one's own, six targets, four relations:": few(folder),
        "Some relations of the sample corpus alone, 34 probed:": of_relations(folder),
    }
    text = [
        "## When a generator has learnt",
        f"Measured on {machine()}, by `python benchmarks/learnt_bounds.py`. model=comet_minilm, policy=none, one seed. "
        "Passes are over the triples; swap lift is in points, with its 95 % interval; all else is in percent.",
        *(piece for title, rows in parts.items() for piece in (title, table(list(rows)))),
    ]
    write_section("learnt bounds", "\n\n".join(text))
    print("\n\n".join(text))


def whole(folder: Path) -> Iterator[Row]:
    """Generators of the sample corpus: trained for some steps, not at all, and those without any knowledge."""
    asked = [f"probe.targets=[{','.join(TARGETS)}]", "probe.heads=60"]
    runs = {
        _steps(steps): run(folder / f"steps{steps}", *asked, *([f"trainer.max_steps={steps}"] if steps else []))
        for steps in reversed(STEPS)
    }
    full = runs[_steps(None)]
    subprocess.run([sys.executable, str(HERE / "docs/examples/baselines.py"), str(full)], cwd=folder, check=True)
    for name in ("constants", "echo"):
        yield found(name, run(folder / name, *asked, "model=tails", f"model.path={folder / name}.tsv"))
    yield found("as it is, not trained", run(folder / "untrained", *asked, "train=false"))
    for name in reversed(runs):
        yield found(name, runs[name])


def few(folder: Path) -> Iterator[Row]:
    """Generators trained on 24 triples."""
    path = folder / "few.csv"
    rows = [(head, name, tail) for name, tails in OF_PEOPLE.items() for head, tail in zip(PEOPLE, tails, strict=True)]
    pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_csv(path)
    for steps in FEW_STEPS:
        how = ["trainer.max_epochs=10000", f"trainer.max_steps={steps}"]
        yield found(_steps(steps), run(folder / f"few{steps}", "data=triples", f"data.path={path}", *how))


def of_relations(folder: Path) -> Iterator[Row]:
    """Generators trained on one relation, and on half of them, and asked about all."""
    corpus = load().filter("valid")
    names = corpus.filter(split="train")["relation"].value_counts(sort=True)["relation"].to_list()
    asked = [f"probe.targets=[{','.join(TARGETS)}]", "probe.heads=60", "data.probe_relations=comet", "data=triples"]
    for name, kept in {"the commonest": names[:1], "half of them": names[::2]}.items():
        path = folder / f"relations{len(kept)}.csv"
        corpus.filter(pl.col("relation").is_in(kept)).select("head", "relation", "tail", "split").write_csv(path)
        yield found(name, run(folder / f"relations{len(kept)}", *asked, f"data.path={path}"))


def run(folder: Path, *overrides: str) -> Path:
    """The run folder of the main job with these settings."""
    common = ["policy=none", "tracking=none", f"paths.outputs={folder}", f"paths.cache={folder.parent / 'cache'}"]
    subprocess.run([sys.executable, "-m", "mitigate", *common, *overrides], cwd=HERE, check=True)
    return max(folder.glob("mitigate-*"), key=lambda path: path.stat().st_mtime)


def found(name: str, run: Path) -> Row:
    """A generator's figures, from its run folder."""
    metrics, trained = (json.loads((run / f"{stage}.json").read_text()) for stage in ("metrics", "train"))
    statements = pl.read_parquet(run / "statements.parquet")
    ledger = pl.read_parquet(run / "ledger.parquet").filter(pl.col("weight") > 0, split="train")
    asked = statements["relation"].unique()
    steps = trained.get("steps")
    return Row(
        name,
        steps,
        steps * 64 / ledger.height if steps else None,
        metrics["shared_tails"],
        metrics["distinct_tails"],
        100 * statements.select(pl.col("tail").str.strip_chars() == "").to_series().mean(),
        *(metrics.get(f"quality/swap_lift/all{end}") for end in ("", "_low", "_high")),
        100 * (~asked.is_in(ledger["relation"].unique().to_list())).mean() if steps else 0.0,
    )


def _steps(steps: int | None) -> str:
    return "whole" if steps is None else f"{steps} step{'s' * (steps > 1)}"


def table(rows: list[Row]) -> str:
    header = ["generator", "steps", "passes", "shared", "distinct", "empty", "swap lift", "untrained relations"]
    lines = [header, ["---"] * len(header)]
    for row in rows:
        span = f" [{row.low:.1f}, {row.high:.1f}]" if row.low is not None and row.high is not None else ""
        numbers = [None if row.lift is None else f"{row.lift:.1f}{span}", f"{row.untrained:.0f}"]
        shares = [None if value is None else f"{value:.1f}" for value in row[2:6]]
        lines.append([row.name, str(row.steps or "–"), *(cell or "–" for cell in (*shares, *numbers))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
