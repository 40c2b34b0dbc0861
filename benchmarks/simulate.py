"""Coverage of intervals and false positives of tests, in simulated percentages of targets. RESULTS.md also has the
figures of earlier methods (script at commit e3f1631).

    OMP_NUM_THREADS=1 python benchmarks/simulate.py [--repetitions 400]
    OMP_NUM_THREADS=1 python benchmarks/simulate.py gate --repetitions 2000

Minutes on one thread. Writes its section of RESULTS.md; `gate` that of the exit status of compare.gate. A model's
percentage of polarised statements about a word is the word's own, times what the policy does to this word, what the
seed does to all words, and what it does to this one; then the statements are drawn."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.measure.bootstrap import Bootstrap, cluster_sums, mean_of, variance_interval, variance_of
from mitigate.measure.comparison import BOTH, COMPARED, Change, holm
from mitigate.measure.seeds import Changes, by_seeds, changes, weighted_difference
from mitigate.measure.uncertainty import FEW_TARGETS, share_interval
from mitigate.recipes.comparing import STATUS
from mitigate.report.contrast_findings import Pair
from mitigate.tasks.compare.endpoints import LIFT, Endpoints, primary, within_margins
from mitigate.tasks.compare.quality import SCHEMA

SHAPES = {  # chance of a polarised statement about a word; statements about each
    "normal": (lambda random, shape: np.clip(random.normal(0.4, 0.06, shape), 0.01, 0.9), 340),
    "skewed": (lambda random, shape: random.beta(1, 19, shape), 340),
    "tied": (lambda random, shape: random.beta(2, 8, shape), 10),
    "near-constant": (lambda random, shape: np.where(random.random(shape) < 0.1, random.beta(2, 8, shape), 0.0), 340),
}
TARGETS = (10, 12, 40, 329)
SEEDS = (3, 5, 8)
POLICY, TRAINING, INTERACTION = 0.3, 0.15, 0.1  # standard deviations of the logarithms of the three factors
QUICK = Bootstrap(resamples=200)
ENOUGH = 2000  # words, or seeds, that truth is computed from


@dataclass(frozen=True)
class World:
    """A simulated draw: the words of one list, and for each of two policies models of some seeds."""

    shape: str
    num_targets: int
    num_seeds: int
    effect: float = 1.0  # the second policy's percentages polarised, times the first's

    def words(self, random: np.random.Generator) -> np.ndarray:
        """Each word's chance under each policy, (2, words)."""
        chance = SHAPES[self.shape][0](random, self.num_targets)
        factors = np.exp(random.normal(0, POLICY, (2, self.num_targets))) * np.array([[1.0], [self.effect]])
        return chance * factors

    def models(self, random: np.random.Generator, words: np.ndarray) -> np.ndarray:
        """The percentages neutral that models of each policy have, (2, words, seeds)."""
        shape = (2, words.shape[1], self.num_seeds)
        training = random.normal(0, TRAINING, (2, 1, self.num_seeds)) + random.normal(0, INTERACTION, shape)
        polarised = np.clip(words[:, :, None] * np.exp(training), 0, 1)
        statements = SHAPES[self.shape][1]
        return 100 - 100 * random.binomial(statements, polarised) / statements

    def truth(self, random: np.random.Generator, words: np.ndarray) -> "Truth":
        """The truth of these words over endless seeds."""
        first, second = replace(self, num_seeds=ENOUGH // 10).models(random, words)
        variances = first.var(axis=0).mean(), second.var(axis=0).mean()
        ratio = variances[1] / variances[0] if variances[0] > 0 else np.nan  # no word has a polarised statement
        return Truth(second.mean() - first.mean(), ratio, variances[1] - variances[0])


class Truth(NamedTuple):
    """Of two policies."""

    difference: float  # of means
    ratio: float  # of variances
    variances: float  # their difference


@cache
def of_all_words(shape: str, effect: float) -> Truth:
    """The truth over endless seeds and words."""
    random, endless = np.random.default_rng(98), World(shape, 5 * ENOUGH, 0, effect)
    return endless.truth(random, endless.words(random))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("intervals", "gate"), default="intervals")
    parser.add_argument("--repetitions", type=int, default=400, help="of each cell")
    given = parser.parse_args()
    repetitions = given.repetitions
    if given.part == "gate":
        text = "\n\n".join(gates(repetitions))
        write_section("gate", text)
        print(text)
        return
    error = 100 * (0.05 * 0.95 / repetitions) ** 0.5
    text = [
        "## Intervals and tests in simulations",
        f"Measured on {machine()}, by `python benchmarks/simulate.py --repetitions {repetitions}`. In percent; 95 % "
        "intervals should cover in 95 % of cases and 5 % of tests find what is not there. Each cell has "
        f"{repetitions} repetitions, so that a share of 5 % has a standard error of {error:.1f} points. Normal: 60 % "
        "neutral, standard deviation 6 points. Skewed: 95 %, with a long tail. Tied: 80 %, of ten statements a word. "
        "Near-constant: nine words of ten have no polarised statement at all.",
        *one_run(repetitions),
        *policies(repetitions),
        *power(repetitions),
        *copies(repetitions),
    ]
    write_section("simulations", "\n\n".join(text))
    print("\n\n".join(text))


def one_run(repetitions: int) -> Iterator[str]:
    """Coverage of the intervals of one run's figures."""
    rows = []
    for shape in SHAPES:
        cells = []
        for num_targets in TARGETS:
            random = np.random.default_rng(1)
            world = World(shape, num_targets, 1)
            values = np.stack([world.models(random, world.words(random))[0, :, 0] for _ in range(repetitions)], axis=1)
            mean, variance = true_figures(world)
            words = np.arange(num_targets)
            cells.append(percent(covered(share_interval(values, words, QUICK), mean)))
            cells.append(percent(covered(variance_interval(values, words), variance)))
        rows.append([shape, *cells])
    yield "### One run: coverage of the mean and of the variance over targets"
    yield table(["", *(f"{n} targets, {figure}" for n in TARGETS for figure in ("mean", "variance"))], rows)


def true_figures(world: World) -> tuple[float, float]:
    random = np.random.default_rng(99)
    endless = replace(world, num_targets=100 * ENOUGH)
    values = endless.models(random, endless.words(random))[0]
    return values.mean(), values.var()


def policies(repetitions: int) -> Iterator[str]:
    """False positives, and coverage of a planted effect, for several seeds."""
    yield "### Several seeds of each policy: how often the 95 % interval misses the truth"
    yield (
        "Without an effect (× 1) this is the share of false positives; × 0.5: the second policy halves the "
        f"percentages polarised. With fewer than {FEW_TARGETS} words the analysis takes the words as they are, and the "
        "truth is theirs; with more words the truth is that of all words."
    )
    for effect in (1.0, 0.5):
        for name in ("mean", "variance"):
            rows = []
            for shape in SHAPES:
                for num_targets in TARGETS:
                    worlds = [World(shape, num_targets, num_seeds, effect) for num_seeds in SEEDS]
                    rows.append([shape, str(num_targets), *(percent(missed(w, name, repetitions)) for w in worlds)])
            title = {"mean": "Difference of means", "variance": "Ratio of variances"}[name]
            yield f"{title}, × {effect:g}:"
            yield table(["", "targets", *(f"{num_seeds} seeds" for num_seeds in SEEDS)], rows)
    yield "The analysis with targets fixed, against the truth of these words, without an effect:"
    rows = []
    for shape in SHAPES:
        worlds = [World(shape, n, num_seeds) for n in (40, 329) for num_seeds in SEEDS]
        rows.append([shape, *(percent(missed_fixed(world, repetitions)) for world in worlds)])
    yield table(["", *(f"{n} targets, {num_seeds} seeds" for n in (40, 329) for num_seeds in SEEDS)], rows)


def missed(world: World, name: str, repetitions: int) -> float:
    """The share of repetitions whose interval misses the truth."""
    random, few = np.random.default_rng(3), world.num_targets < FEW_TARGETS
    truth, misses = of_all_words(world.shape, world.effect), []
    for _ in range(repetitions):
        words = world.words(random)
        first, second = world.models(random, words)
        found = drawn_and_fixed(first, second, name)
        mine = world.truth(random, words) if few else truth
        misses.append(excludes(found.fixed if few else found.drawn, mine.difference if name == "mean" else mine.ratio))
    return float(np.mean(misses))


def missed_fixed(world: World, repetitions: int) -> float:
    random, misses = np.random.default_rng(4), []
    for _ in range(repetitions):
        words = world.words(random)
        change = drawn_and_fixed(*world.models(random, words), "mean").fixed
        misses.append(excludes(change, world.truth(random, words).difference))
    return float(np.mean(misses))


def drawn_and_fixed(first: np.ndarray, second: np.ndarray, name: str) -> Changes:
    """As a comparison computes them, from (words, seeds)."""
    words = np.arange(len(first))
    sums = [cluster_sums(side, words, powers=(0, 1, 2)) for side in (first, second)]
    if name == "mean":
        return changes(*sums, mean_of)
    return changes(*sums, variance_of, "ratio")


def power(repetitions: int) -> Iterator[str]:
    """How often a planted effect on the mean is found, at the level of the first of two endpoints."""
    yield "### Power: how often a planted effect on the mean is found"
    yield (
        "Skewed percentages (5 % polarised), two primary endpoints, so that p must be below 0.025 for the first of "
        "them; in percent, with targets drawn / with targets fixed. False claims of two endpoints without any effect: "
        f"{100 * family(repetitions):.1f} % (329 targets, 5 seeds)."
    )
    effects = (0.9, 0.75, 0.5)
    rows = []
    for num_targets in (40, 329):
        for num_seeds in SEEDS:
            cells = []
            for effect in effects:
                world, random = World("skewed", num_targets, num_seeds, effect), np.random.default_rng(5)
                found = []
                for _ in range(repetitions):
                    known = drawn_and_fixed(*world.models(random, world.words(random)), "mean")
                    found.append([known.drawn.p < 0.025, known.fixed.p < 0.025])
                cells.append(" / ".join(f"{100 * share:.0f}" for share in np.mean(found, axis=0)))
            rows.append([str(num_targets), str(num_seeds), *cells])
    yield table(["targets", "seeds", *(f"× {effect:g}" for effect in effects)], rows)


def family(repetitions: int) -> float:
    """How often at least one of two endpoints without an effect is called different, Holm's correction made."""
    world, random, claims = World("skewed", 329, 5), np.random.default_rng(6), []
    for _ in range(repetitions):
        p = [drawn_and_fixed(*world.models(random, world.words(random)), "mean").drawn.p for _ in range(2)]
        claims.append(min(holm(p)) < 0.05)
    return float(np.mean(claims))


def copies(repetitions: int) -> Iterator[str]:
    """Whether the printed power of a non-inferiority test is how often true copies pass."""
    yield "### Margins: how often a true copy passes, and the power that is printed"
    yield "Tied percentages, 329 targets, a margin of 4 points, 97.5 % intervals; and the mean of what is printed."
    rows = []
    for num_seeds in SEEDS:
        world, random, passed, printed = World("tied", 329, num_seeds), np.random.default_rng(7), [], []
        for _ in range(repetitions):
            change = drawn_and_fixed(*world.models(random, world.words(random)), "mean").drawn
            passed.append(change.bounds(0.975)[0] >= -4)
            printed.append(change.passes(-4, 0.975))
        rows.append([str(num_seeds), f"{100 * np.mean(passed):.0f}", f"{100 * np.mean(printed):.0f}"])
    yield table(["seeds", "passed, %", "printed, %"], rows)


@dataclass(frozen=True)
class Gated:
    """A policy and its baseline: the percentages neutral of words, and the swap lift of heads, in percentage points.
    Standard deviations are about those of benchmarks/experiment.csv."""

    harm: float = 0.0  # how much more neutral the policy is
    of_words: float = 0.0  # standard deviation over words of what the policy does
    lift: float = 0.0
    of_heads: float = 0.0

    def outcome(self, random: np.random.Generator, num_seeds: int) -> str:
        """The outcome of the gate of the comparison (verdicts.GATE)."""
        words = self._sides(random, (64, 8.5, 329), (self.harm, self.of_words), (0.8, 2.5), num_seeds)
        heads = self._sides(random, (40, 25, 300), (self.lift, self.of_heads), (0.4, 5.0), num_seeds)
        harms = _compared("NRM", drawn_and_fixed(*words, "mean"), COMPARED | {"contrast": pl.String})
        lifts = _compared(LIFT, weighted_difference(*heads, np.ones(300), np.arange(300)), SCHEMA)
        endpoints = Endpoints(harm=["NRM"], quality=[LIFT])
        tested = primary(harms, lifts, endpoints)
        within = within_margins(lifts, tested, endpoints.margins)
        seeds = (num_seeds, num_seeds)
        return Pair("policy", "none", seeds, False, [], tested, harms, lifts, within=within).gate

    def _sides(
        self,
        random: np.random.Generator,
        items: tuple[float, float, int],
        effect: tuple[float, float],
        training: tuple[float, float],
        num_seeds: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Figures of baseline and policy, (items, seeds) each. items: mean, standard deviation and number; effect: mean
        and standard deviation over items; training: standard deviation of a seed, and of a seed with an item."""
        mean, spread, count = items
        own = random.normal(mean, spread, (count, 1))
        changed = own + random.normal(*effect, (count, 1))
        first, second = (
            side + random.normal(0, training[0], (1, num_seeds)) + random.normal(0, training[1], (count, num_seeds))
            for side in (own, changed)
        )
        return first, second


GATED = {
    "a copy of the baseline": Gated(),
    "other words, the same means": Gated(of_words=4, of_heads=8),
    "harm better by 2 points": Gated(harm=2, of_words=4, of_heads=8),
    "harm better by 5 points": Gated(harm=5, of_words=4, of_heads=8),
    "harm better by 9 points, swap lift worse by 3": Gated(harm=9, of_words=4, lift=-3, of_heads=8),
    "harm worse by 5 points": Gated(harm=-5, of_words=4, of_heads=8),
    "swap lift worse by 5 points": Gated(of_words=4, lift=-5, of_heads=8),
}


def _compared(figure: str, found: Changes, schema: Mapping[str, Any]) -> pl.DataFrame:
    """The row of a figure as a comparison has it."""
    row = {"contrast": "policy", "figure": figure, **found.drawn.row(), **by_seeds(found, BOTH)}
    return pl.DataFrame([row], schema=schema)


def gates(repetitions: int) -> Iterator[str]:
    """How often compare.gate ends with each exit status."""
    error = 100 * (0.05 * 0.95 / repetitions) ** 0.5
    yield "## The gate of a comparison"
    yield (
        f"Measured on {machine()}, by `python benchmarks/simulate.py gate --repetitions {repetitions}`: how often "
        f"`compare.gate=true` ends with each exit status, in percent of {repetitions:,} simulated pairs (a share of 5 "
        f"% has a standard error of {error:.1f} points). Two primary endpoints: a neutral mean over 329 targets, and "
        "swap lift over 300 heads with a margin of 2 points. Standard deviations are about those of "
        "benchmarks/experiment.csv: over targets 8.5 points and over heads 25, over seeds 0.8 and 0.4, of a seed with "
        "a target 2.5 and with a head 5. In all rows but the first the policy changes each target by a standard "
        "deviation of 4 points and each head by 8."
    )
    rows = []
    for name, pair in GATED.items():
        for num_seeds in SEEDS:
            random = np.random.default_rng(8)
            found = Counter(STATUS[pair.outcome(random, num_seeds)] for _ in range(repetitions))
            shares = [f"{100 * found[status] / repetitions:.1f}" for status in (0, 4, 3)]
            rows.append([name, str(num_seeds), *shares])
    yield table(["policy against baseline", "seeds each", "0: holds", "4: fails", "3: not enough"], rows)


def covered(bounds: Sequence[np.ndarray], truth: float) -> float:
    low, high = bounds
    return float(((low <= truth) & (truth <= high)).mean())


def excludes(change: Change, truth: float) -> bool:
    """Whether the 95 % interval misses the truth; one that has no bounds does not."""
    low, high = change.bounds()
    return bool(low > truth or high < truth)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
