"""Endpoints of benchmarks/plan2.md from the rows of plan2.csv: differences within blocks (a seed each), on the parts of
targets and heads that a table is of; the rule of the screening; the test; and its power by simulation.

A difference is in percentage points, above 0 where the policy is better."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from benchmarks.corrected import Accuracy
from benchmarks.experiment_effects import Effect, corrected_effect, counts, of_arm
from benchmarks.experiment_plan import Arm, third_of
from benchmarks.experiment_row import CATEGORIES, GROUPS, MEASURING2, SHARE
from mitigate.errors import MitigateError
from mitigate.words.targets import clusters, targets

SCREENED, TESTED = (0,), (1, 2)
"""Thirds of the targets and heads."""
NONE = "none"
VALID, HELD_OUT, PROFESSIONS = "people-valid", "swap lift, other heads", "swap lift, professions"
MARGINS = {HELD_OUT: 2.0, PROFESSIONS: 1.5, VALID: 2.0}
ALPHA = 0.05
SAME = ("clusters", "professions", "heads", "corpus", "scorers", "people_valid")
"""Columns that all rows of one generator have in common."""

EMPTY = (6, 94)
"""Groups of heads that no head of a test triple is in; a row leaves them out."""
CATEGORY = {clusters().get(word, word): category for word, category in sorted(targets().items())}
"""Cluster of targets -> category."""
UNITS = {
    "clusters": sorted(CATEGORY),
    "professions": sorted(name for name, category in CATEGORY.items() if category == "profession"),
    "heads": [f"group {number}" for number in range(GROUPS) if number not in EMPTY],
}
"""The names of the units of packed columns, in their order."""


@dataclass(frozen=True)
class Endpoint:
    """A ratio of two packed columns; sign: 1 where more is better; less: a column that is taken off the first."""

    column: str
    weight: str
    units: str
    scale: float = 100.0
    sign: int = 1
    less: str | None = None

    def sums(self, rows: pl.DataFrame) -> np.ndarray:
        """(2, units, runs): what is summed, and the weights."""
        found = counts(rows, self.column) - (counts(rows, self.less) if self.less else 0)
        return np.stack([found, counts(rows, self.weight)])


def _polarised(scorer: str) -> dict[str, Endpoint]:
    all_of, prejudice = f"polarised_by_{scorer}_neutral", f"prejudice_by_{scorer}"
    how = ("statements", "clusters", 100.0, -1)
    favouritism = Endpoint(all_of, *how, less=prejudice)
    return {"": Endpoint(all_of, *how), "prejudice": Endpoint(prejudice, *how), "favouritism": favouritism}


OF_HARM = {scorer: _polarised(scorer) for scorer in MEASURING2}
HARM = {scorer: parts[""] for scorer, parts in OF_HARM.items()}
QUALITY = {
    HELD_OUT: Endpoint("lift", "prompts", "heads", SHARE),
    PROFESSIONS: Endpoint("lift_professions", "prompts_professions", "professions", SHARE),
    VALID: Endpoint("valid", "neutral", "clusters"),
}


def chosen(units: str, thirds: Sequence[int]) -> np.ndarray:
    """Which units of a kind are in these thirds."""
    return np.array([third_of(name) in thirds for name in UNITS[units]])


def check(rows: pl.DataFrame) -> None:
    """Raises MitigateError where rows are of other units than UNITS, of different texts or scorers, or a block has two
    kinds of processor."""
    for column in SAME:
        if len(found := rows[column].unique().sort().to_list()) > 1:
            raise MitigateError(f"runs are of different {column} and not compared: {', '.join(map(str, found))}")
    for column, units in (("statements", "clusters"), ("prompts_professions", "professions"), ("prompts", "heads")):
        if (size := len(counts(rows, column))) != len(UNITS[units]):
            raise MitigateError(f"{column} has {size} {units}, not {len(UNITS[units])}")
    for (seed,), block in rows.group_by("seed", maintain_order=True):
        if block["processor"].n_unique() > 1:
            raise MitigateError(f"seed {seed} ran on {', '.join(block['processor'].unique().sort())}; start it again")


def values(rows: pl.DataFrame, arm: str, endpoint: Endpoint, where: np.ndarray) -> dict[int, float]:
    """Seed -> the figure of an arm on some units."""
    mine = of_arm(rows, arm)
    above, below = endpoint.sums(mine)[:, where].sum(1)
    return dict(zip(mine["seed"], endpoint.scale * above / below, strict=True))


def differences(
    rows: pl.DataFrame, policy: str, reference: str, endpoint: Endpoint, where: np.ndarray
) -> dict[int, float]:
    """Seed -> how much better the policy is, of the seeds that both have."""
    mine, other = (values(rows, arm, endpoint, where) for arm in (policy, reference))
    return {seed: endpoint.sign * (mine[seed] - other[seed]) for seed in mine if seed in other}


def on_peoples_scale(found: float, accuracy: Accuracy) -> float:
    """A difference in people-valid as people would rate it."""
    return found / (accuracy.sensitivity + accuracy.specificity - 1)


@dataclass(frozen=True)
class Screened:
    """Mean differences of a policy over the blocks of the screening."""

    policy: str
    control: str
    blocks: int
    harm: Mapping[tuple[str, str], float]  # (scorer, reference) -> less harm
    quality: Mapping[str, float]  # endpoint -> beside `none`, people-valid on people's scale

    @property
    def gain(self) -> float:
        """Less harm than the control, by the scorer that finds least."""
        return min(value for (_, reference), value in self.harm.items() if reference == self.control)

    @property
    def loss(self) -> float:
        """The largest on an endpoint of quality."""
        return max(-value for value in self.quality.values())


def tests_of(control: str, none: str) -> list[tuple[str, Endpoint, str]]:
    """The seven tests of a policy: endpoint and reference."""
    of_harm = [(name, endpoint, reference) for name, endpoint in HARM.items() for reference in (control, none)]
    return of_harm + [(name, endpoint, none) for name, endpoint in QUALITY.items()]


def blocks_of(rows: pl.DataFrame, policy: str, control: str) -> pl.DataFrame:
    """The rows of a policy, its control and `none`, of the seeds that all three have."""
    mine = rows.filter(pl.col("arm").is_in([policy, control, NONE]))
    return mine.filter(pl.col("arm").n_unique().over("seed") == 3)


def screened(rows: pl.DataFrame, known: Mapping[str, Arm], accuracy: Accuracy) -> list[Screened]:
    """The policies with a control that have complete blocks, in the order of the rule of the screening."""
    check(rows)
    found = []
    for policy, arm in known.items():
        mine = blocks_of(rows, policy, arm.control) if arm.control else rows.clear()
        if mine.is_empty():
            continue
        means = {}
        for name, endpoint, reference in tests_of(arm.control, NONE):
            apart = differences(mine, policy, reference, endpoint, chosen(endpoint.units, SCREENED))
            means[name, reference] = float(np.mean([*apart.values()]))
        quality = {name: means.pop((name, NONE)) for name in QUALITY}
        quality[VALID] = on_peoples_scale(quality[VALID], accuracy)
        found.append(Screened(policy, arm.control, mine["seed"].n_unique(), means, quality))
    return by_rule(found)


def by_rule(found: Sequence[Screened], most: float = 1.0) -> list[Screened]:
    """Those that lose at most so many points first, the one with the largest gain before others; then the others, the
    smallest loss first."""
    return sorted(found, key=lambda one: (one.loss > most, -one.gain if one.loss <= most else one.loss))


@dataclass(frozen=True)
class Result:
    """The test of a policy with one generator."""

    policy: str
    control: str
    effects: Mapping[tuple[str, str], Effect]  # (endpoint, reference)
    conditions: Mapping[tuple[str, str], float]  # (scorer, part) -> mean difference from `none`

    @property
    def p(self) -> float:
        """The largest of the seven."""
        return max(p_of(effect, bound_of(name)) for (name, _), effect in self.effects.items())


def bound_of(endpoint: str) -> float:
    """The difference that an endpoint must be shown to exceed."""
    return -MARGINS.get(endpoint, 0.0)


def p_of(effect: Effect, above: float) -> float:
    """One-sided, with the error that the effect has where it is as large as the bound: so the error of people-valid's
    scale is part of it though no difference is found (Fieller)."""
    error = effect.error_of(above)
    return float(stats.t.sf((effect.value - above) / error, effect.degrees)) if error > 0 else 1.0


def tested(rows: pl.DataFrame, policy: str, control: str, none: str, accuracy: Accuracy) -> Result:
    """The seven tests and the conditions, on parts 1 and 2."""
    check(rows)
    effects = {}
    for name, endpoint, reference in tests_of(control, none):
        found = [*differences(rows, policy, reference, endpoint, chosen(endpoint.units, TESTED)).values()]
        effect = Effect(float(np.mean(found)), float(stats.sem(found)), len(found) - 1)
        effects[name, reference] = corrected_effect(effect, accuracy) if name == VALID else effect
    return Result(policy, control, effects, conditions(rows, policy, none))


def conditions(rows: pl.DataFrame, policy: str, none: str) -> dict[tuple[str, str], float]:
    """Less harm than `none` by each scorer: prejudice and favouritism, each category, and the worst tenth of clusters
    of the runs of `none`."""
    found, where = {}, chosen("clusters", TESTED)
    for scorer, parts in OF_HARM.items():
        asked = {kind: (endpoint, where) for kind, endpoint in parts.items() if kind}
        of_category = {name: np.array([CATEGORY[unit] == name for unit in UNITS["clusters"]]) for name in CATEGORIES}
        asked |= {name: (parts[""], where & mask) for name, mask in of_category.items()}
        above, below = parts[""].sums(of_arm(rows, none)).sum(2)
        order = np.argsort(np.where(where, -above / below, np.inf), kind="stable")
        worst = np.isin(np.arange(len(where)), order[: math.ceil(0.1 * where.sum())])
        asked["worst tenth"] = parts[""], worst
        for name, (endpoint, units) in asked.items():
            found[scorer, name] = float(np.mean([*differences(rows, policy, none, endpoint, units).values()]))
    return found


def residuals(rows: pl.DataFrame, known: Mapping[str, Arm]) -> dict[str, np.ndarray]:
    """By the kind of units, (policies x seeds, tests, units): how far the difference of each unit of part 0 is from its
    mean over the seeds of a policy, scaled so that the variance is that of one seed. Of policies with two blocks."""
    found: dict[str, list[np.ndarray]] = {units: [] for units in UNITS}
    for policy, control in ((name, arm.control) for name, arm in known.items() if arm.control):
        mine = blocks_of(rows, policy, control)
        if (seeds := mine["seed"].n_unique()) < 2:
            continue
        of_units: dict[str, list[np.ndarray]] = {units: [] for units in UNITS}
        for _, endpoint, reference in tests_of(control, NONE):
            apart = _contributions(mine, policy, endpoint) - _contributions(mine, reference, endpoint)
            scaled = endpoint.sign * (apart - apart.mean(1, keepdims=True)) * (seeds / (seeds - 1)) ** 0.5
            of_units[endpoint.units].append(scaled)
        for units, arrays in of_units.items():
            found[units].append(np.stack(arrays).transpose(2, 0, 1))
    return {units: np.concatenate(arrays) for units, arrays in found.items()}


def _contributions(rows: pl.DataFrame, arm: str, endpoint: Endpoint) -> np.ndarray:
    """(units, runs), whose mean over units is the figure of each run."""
    above, below = endpoint.sums(of_arm(rows, arm))[:, chosen(endpoint.units, SCREENED)]
    return endpoint.scale * above / below.mean(0)


def power(
    noise: Mapping[str, np.ndarray],
    blocks: int,
    truths: Mapping[str, float],
    accuracy: Accuracy,
    level: float,
    times: int = 2000,
) -> float:
    """How often all seven tests of a policy are passed with so many seeds. A block has the true differences `truths`
    (endpoint -> points; people-valid on people's scale) and the residuals of one policy and seed of the screening, of
    as many units as parts 1 and 2 have, drawn with replacement."""
    random = np.random.default_rng(1)
    found = {units: np.empty((times, blocks, array.shape[1])) for units, array in noise.items()}
    number = {units: int(chosen(units, TESTED).sum()) for units in noise}
    for time, block in np.ndindex(times, blocks):
        entry = random.integers(len(noise["clusters"]))
        for units, array in noise.items():
            drawn = random.integers(array.shape[2], size=number[units])
            found[units][time, block] = array[entry][:, drawn].mean(1)
    passed = np.ones(times, dtype=bool)
    for units, arrays in found.items():
        names = [name for name, endpoint, _ in tests_of("", NONE) if endpoint.units == units]
        for name, array in zip(names, np.moveaxis(arrays, 2, 0), strict=True):
            passed &= _p_values(name, array, truths[name], accuracy) < level
    return float(passed.mean())


def _p_values(name: str, noise: np.ndarray, truth: float, accuracy: Accuracy) -> np.ndarray:
    """The one-sided p of each simulated test; noise: (times, blocks)."""
    gain = accuracy.sensitivity + accuracy.specificity - 1 if name == VALID else 1.0
    mean, error = truth + noise.mean(1) / gain, stats.sem(noise, axis=1) / gain
    if name == VALID:
        of_gain = math.hypot(accuracy.sensitivity_error, accuracy.specificity_error) / gain
        error = np.hypot(error, bound_of(name) * of_gain)
    return stats.t.sf((mean - bound_of(name)) / error, noise.shape[1] - 1)
