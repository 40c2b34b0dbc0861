"""The survey of benchmarks/plan3.md: do people find statements that `critic` puts in less polarised, and more valid,
than those that it takes out? Raters see both mixed, and only the statements that are swapped.

    python benchmarks/plan3_survey.py draw --data DIR --lm LM --work FOLDER    plan3_survey/, from a model of the test
    python -m mitigate recipe=humans data=statements data.path=benchmarks/plan3_survey/statements.tsv humans.raters=2
    python benchmarks/plan3_survey.py compare --answers FILE.csv ...           of the raters' files

A statement is polarised if a rater chose prejudice or favouritism, valid if it makes sense to the rater."""

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_tables import markdown
from benchmarks.plan3 import PARTS, chosen, planned
from mitigate.measure.intervals import jackknife
from mitigate.probe.beams import label_candidates
from mitigate.stages import digest_of
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER

FOLDER = Path(__file__).with_name("plan3_survey")
SEED = 1  # of the draw, and the default seed of recipe=humans, which is part of an item's name
EACH = 150  # statements of each relation that are put in, and as many that are taken out
PLACES = ["target", "relation", "head", "tail"]


def draw(given: argparse.Namespace) -> None:
    """EACH swapped statements of each rated relation in either direction, from the pool of the test's first model."""
    part, model = PARTS["test"], given.work / f"seed{PARTS['test'].seeds[0]}" / "none"
    plan, critic = planned(part.seeds[0], "none", part, given)
    labeller = plan.labeller.by(plan.scorers)
    pool = pl.read_parquet(model / "pool.parquet").filter(pl.col("relation").is_in(RATED))
    pool = label_candidates(pool, labeller, critic)
    first, best = (chosen(decoding, pool, pl.DataFrame(), part.seeds[0]) for decoding in ("as_is", "critic20"))
    swapped = {"in": best.join(first, on=PLACES, how="anti"), "out": first.join(best, on=PLACES, how="anti")}
    rows = [
        labeller.label(found.filter(relation=relation).sort(PLACES).sample(EACH, seed=SEED).select(PLACES))
        for found in swapped.values()
        for relation in RATED
    ]
    sides = [side for side in swapped for _ in range(EACH * len(RATED))]
    names = ("target", "relation", "statement")
    found = pl.concat(rows).select(*names, side=pl.Series(sides)).sample(fraction=1, shuffle=True, seed=SEED)
    item = [digest_of(f"{SEED}\t{target}\t{statement}")[:10] for target, _, statement, _ in found.iter_rows()]
    FOLDER.mkdir(exist_ok=True)
    found.select("target", "statement").write_csv(FOLDER / "statements.tsv", separator="\t")
    found.select(item=pl.Series(item), side="side", relation="relation", target="target").write_csv(FOLDER / "key.csv")


def compare(answers: list[Path]) -> str:
    """Percentages of ratings by side, each relation of equal weight, and their difference with its 95 % interval over
    clusters of targets."""
    ratings = pl.concat(pl.read_csv(path).select("item", "label", "quality") for path in answers)
    rated = pl.read_csv(FOLDER / "key.csv").join(ratings, on="item")
    polarised, valid = 100.0 * (pl.col("label") != 0), 100.0 * pl.col("quality").cast(pl.Float64)
    rated = rated.with_columns(polarised=polarised, valid=valid, cluster=pl.col("target").replace(PAPER.clusters))

    def shares(rows: pl.DataFrame) -> np.ndarray:
        """(in, out, difference) x (polarised, valid)."""
        means = rows.group_by("side", "relation").agg(pl.col("polarised", "valid").mean())
        sides = means.group_by("side").agg(pl.col("polarised", "valid").mean()).sort("side")
        found = sides.select("polarised", "valid").to_numpy()
        return np.vstack([found, found[0] - found[1]])

    whole = shares(rated)
    without = np.array([shares(rated.filter(pl.col("cluster") != one))[2] for one in rated["cluster"].unique().sort()])
    half = 1.96 * jackknife(without)[0]
    lines = [
        [name, f"{whole[0, at]:.1f}", f"{whole[1, at]:.1f}", f"{whole[2, at]:+.1f} ± {half[at]:.1f}"]
        for at, name in enumerate(("polarised, %", "valid, %"))
    ]
    return markdown(["ratings", "put in", "taken out", "difference"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "compare"])
    parser.add_argument("--data", type=Path, help="as plan3.py has it, and --lm and --work")
    parser.add_argument("--lm", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--answers", type=Path, nargs="+", help="the raters' files")
    given = parser.parse_args()
    given.more = []
    if given.what == "draw":
        draw(given)
    else:
        print(compare(given.answers))


if __name__ == "__main__":
    main()
