"""The test of benchmarks/plan3.md from rows of plan3.py: for each policy a fixed sequence of three hypotheses, stopped
at the first failure; and its power by simulation.

    python benchmarks/plan3_test.py power [--csv FILE]    of the bounds, from the spread over seeds of the screening
    python benchmarks/plan3_test.py sequence --csv FILE tagged/as_is=random_tagged/as_is ...    each policy=control
    python benchmarks/plan3_test.py each --csv FILE ...    a row for each, as if it were tested alone

A difference is in percentage points, above 0 where the policy is better. Its error is that over seeds (t) and that over
clusters of targets or groups of heads (jackknife of the mean over seeds) together."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_row import SHARE, unpack
from benchmarks.experiment_tables import markdown
from benchmarks.plan3 import CSV, TOP
from mitigate.measure.intervals import jackknife

NONE, ALPHA, TIMES = "none/as_is", 0.05, 5000


class Endpoint(NamedTuple):
    """A ratio of two packed columns (units,), times scale; above 0 is better after the sign."""

    columns: tuple[str, ...]  # whose mean is the numerator
    weight: str
    scale: float
    sign: int
    bound: float  # that the lower bound of the difference must exceed


HARM = {name: Endpoint((f"{name}_by_cluster",), "tails_by_cluster", 100.0, -1, 3.0) for name in ("crowd2", "crowd_lm")}
YIELD = {
    "U": Endpoint(("useful_crowd2_by_cluster", "useful_crowd_lm_by_cluster"), "rated_by_cluster", 100 / TOP, 1, 2.0)
}
LIFT = {
    "swap lift, other heads": Endpoint(("lift",), "prompts", SHARE, 1, -2.0),
    "swap lift, professions": Endpoint(("lift_professions",), "prompts_professions", SHARE, 1, -1.5),
}
SEQUENCE = {"H1": (HARM, ("none", "control")), "H2": (YIELD, ("none", "control")), "H3": (LIFT, ("none",))}


class Difference(NamedTuple):
    """The mean difference over seeds, its error over seeds and over units, and the number of seeds."""

    value: float
    over_seeds: float
    over_units: float
    seeds: int

    def p(self, bound: float) -> float:
        """The one-sided p of the difference being above the bound."""
        return float(stats.t.sf((self.value - bound) / np.hypot(self.over_seeds, self.over_units), self.seeds - 1))

    def low(self, alpha: float = ALPHA) -> float:
        error = np.hypot(self.over_seeds, self.over_units)
        return float(self.value - stats.t.ppf(1 - alpha, self.seeds - 1) * error)


def sums(rows: pl.DataFrame, name: str, endpoint: Endpoint) -> dict[int, np.ndarray]:
    """Seed -> (2, units): what is summed, and the weights. name: model/decoding."""
    model, decoding = name.split("/")
    found = {}
    for row in rows.filter(model=model, decoding=decoding).iter_rows(named=True):
        above = np.mean([unpack(str(row[column])) for column in endpoint.columns], axis=0)
        found[row["seed"]] = np.stack([above, unpack(str(row[endpoint.weight]))])
    return found


def difference(rows: pl.DataFrame, policy: str, reference: str, endpoint: Endpoint) -> Difference:
    mine, other = (sums(rows, name, endpoint) for name in (policy, reference))
    if not (seeds := sorted(mine.keys() & other.keys())):
        raise SystemExit(f"{policy} and {reference} have no seed in common")
    both = np.array([[mine[seed], other[seed]] for seed in seeds])  # (seeds, 2, 2, units)

    def ratios(of: np.ndarray) -> np.ndarray:
        """(seeds,) or (seeds, units)."""
        share = of[:, :, 0] / of[:, :, 1]
        return endpoint.sign * endpoint.scale * (share[:, 0] - share[:, 1])

    values = ratios(both.sum(-1))
    apart = ratios(both.sum(-1, keepdims=True) - both).mean(0)  # (units,): each left out
    error = float(jackknife(apart[:, None])[0].item())
    return Difference(float(values.mean()), float(stats.sem(values)) if len(seeds) > 1 else 0.0, error, len(seeds))


def sequence(rows: pl.DataFrame, pairs: Mapping[str, str]) -> str:
    """The hypotheses of each policy. With two policies each begins with half of ALPHA; when one has passed its whole
    sequence the other has all of it (Holm)."""
    found: dict[str, dict[str, float]] = {}
    lines = []
    for policy, control in pairs.items():
        found[policy] = {}
        for name, (endpoints, references) in SEQUENCE.items():
            worst = 0.0
            for (shown, endpoint), against in product(endpoints.items(), references):
                one = difference(rows, policy, NONE if against == "none" else control, endpoint)
                worst = max(worst, p := one.p(endpoint.bound))
                cells = [f"{one.value:+.2f}", f"{one.low():+.2f}", f"{endpoint.bound:g}", f"{p:.4f}"]
                lines.append([policy, name, shown, against, str(one.seeds), *cells])
            found[policy][name] = worst
    head = ["policy", "", "endpoint", "against", "seeds", "difference", "lower bound, 95 %", "must exceed", "p"]
    passed: dict[str, list[str]] = {}
    while True:
        level = ALPHA / max(1, len(found) - sum(len(one) == len(SEQUENCE) for one in passed.values()))
        now = {policy: passing(ps, level) for policy, ps in found.items()}
        if now == passed:
            break
        passed = now
    said = [f"`{policy}`: {passes(now, found[policy])}" for policy, now in passed.items()]
    return "\n\n".join([markdown(head, lines), *said])


def each(rows: pl.DataFrame, pairs: Mapping[str, str]) -> str:
    """For each policy, as if it were tested alone, the smallest difference and lower bound of each endpoint against
    `none` and the control, and the first hypothesis that fails."""
    lines = []
    for policy, control in pairs.items():
        cells, ps = [], dict.fromkeys(SEQUENCE, 0.0)
        for name, (endpoints, references) in SEQUENCE.items():
            for endpoint in endpoints.values():
                found = [
                    difference(rows, policy, NONE if one == "none" else control, endpoint)
                    for one in references
                    if one == "none" or control != policy
                ]
                least = min(found, key=lambda one: one.low())
                cells.append(f"{least.value:+.1f} ({least.low():+.1f})")
                ps[name] = max(ps[name], *(one.p(endpoint.bound) for one in found))
        lines.append([f"`{policy}`", *cells, passes(passing(ps, ALPHA), ps)])
    bounds = [f"{shown}, > {one.bound:g}" for endpoints, _ in SEQUENCE.values() for shown, one in endpoints.items()]
    return markdown(["policy", *bounds, ""], lines)


def passing(ps: Mapping[str, float], level: float) -> list[str]:
    """The hypotheses that hold, up to the first that fails."""
    names = list(ps)
    return names[: next((place for place, name in enumerate(names) if ps[name] >= level), len(names))]


def passes(names: Sequence[str], ps: Mapping[str, float]) -> str:
    if len(names) == len(ps):
        return "passes all three."
    return f"fails at {[*ps][len(names)]}."


def power(rows: pl.DataFrame) -> str:
    """How probable it is to pass, by the errors of the screening's policies and independent endpoints."""
    names = rows.select("model", "decoding").unique(maintain_order=True).rows()
    policies = [
        f"{model}/{decoding}" for model, decoding in names if model.startswith("tagged") or "critic" in decoding
    ]
    every = {name: one for endpoints, _ in SEQUENCE.values() for name, one in endpoints.items()}
    spread, units = {}, {}
    for name, endpoint in every.items():
        found = [difference(rows, policy, NONE, endpoint) for policy in policies]
        spread[name] = float(np.sqrt(np.mean([one.over_seeds**2 * one.seeds for one in found])))
        units[name] = float(np.mean([one.over_units for one in found]) / np.sqrt(2))  # twice as many units in the test
    random, lines = np.random.default_rng(1), []
    for harm, useful, lost in product((4.0, 5.0, 7.0), (3.0, 5.0), (0.0, -0.5, -1.0)):
        truth = {**dict.fromkeys(HARM, harm), **dict.fromkeys(YIELD, useful), **dict.fromkeys(LIFT, lost)}
        row = [f"{harm:g}", f"{useful:g}", f"{lost:g}"]
        for seeds, level in product((8, 5), (ALPHA, ALPHA / 2)):
            passed = np.ones(TIMES, dtype=bool)
            for endpoints, references in SEQUENCE.values():
                for (name, endpoint), _ in product(endpoints.items(), references):
                    values = random.normal(truth[name], spread[name], (TIMES, seeds))
                    values += random.normal(0, units[name], (TIMES, 1))
                    error = np.hypot(stats.sem(values, axis=1), units[name])
                    passed &= stats.t.sf((values.mean(1) - endpoint.bound) / error, seeds - 1) < level
            row.append(f"{100 * passed.mean():.0f}")
        lines.append(row)
    head = [
        "harm less, points",
        "U more",
        "swap lift",
        *(f"{n} seeds, {a:g}" for n, a in product((8, 5), (0.05, 0.025))),
    ]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["power", "sequence", "each"])
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("pairs", nargs="*", help="policy=control, as tagged/as_is=random_tagged/as_is")
    given = parser.parse_intermixed_args()
    rows = pl.read_csv(given.csv)
    pairs = dict(pair.split("=") for pair in given.pairs)
    print(power(rows) if given.what == "power" else {"sequence": sequence, "each": each}[given.what](rows, pairs))


if __name__ == "__main__":
    main()
