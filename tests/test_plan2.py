"""The tables of benchmarks/plan2.md on made-up rows whose answers one can work out by hand."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchmarks import plan2_effects as effects
from benchmarks import plan2_tables as tables
from benchmarks.experiment_plan import EXPERIMENTS, Arm, arms, third_of
from benchmarks.experiment_row import MEASURING2, pack, schema
from benchmarks.plan2_effects import HELD_OUT, NONE, PROFESSIONS, VALID
from mitigate.errors import MitigateError
from mitigate.measure.confusion import Accuracy

SCREENING = {name: arm for name, arm in arms(EXPERIMENTS["plan2"].arms).items() if arm.part == "screening"}
EXACT = Accuracy(1.0, 0.0, 1.0, 0.0)
UNITS = effects.UNITS


def row(arm: str, seed: int, screened: dict[str, float], held_back: dict[str, float] | None = None) -> dict[str, Any]:
    """A run whose figures are those of `screened` on each unit of part 0, and of `held_back` on the others. Figures:
    harm, prejudice (a part of it), lift of heads, professions, valid."""

    def packed(name: str, units: str, weight: float) -> str:
        of_parts = screened, *[screened if held_back is None else held_back] * 2
        return pack([of_parts[third_of(unit)].get(name, 50.0) * weight / 100 for unit in UNITS[units]])

    found = {"arm": arm, "seed": seed, "corpus": "c", "scorers": "s", "people_valid": "p", "processor": "zen"}
    found |= {"statements": pack([1000] * len(UNITS["clusters"])), "neutral": pack([200] * len(UNITS["clusters"]))}
    found |= {f"polarised_by_{scorer}_neutral": packed("harm", "clusters", 1000) for scorer in MEASURING2}
    found |= {f"prejudice_by_{scorer}": packed("prejudice", "clusters", 1000) for scorer in MEASURING2}
    found |= {"valid": packed("valid", "clusters", 200)}
    for end, units, name in (("", "heads", "lift"), ("_professions", "professions", "professions")):
        found |= {f"lift{end}": packed(name, units, 40), f"prompts{end}": pack([1] * len(UNITS[units]))}
    return dict.fromkeys(schema()) | found


def rows(shown: dict[str, dict[str, float]], seeds: tuple[int, ...] = (11, 12, 13), **held_back: Any) -> pl.DataFrame:
    """Runs of each arm; a seed adds a tenth of a point to every figure of its block, which differences do not have."""

    def moved(figures: dict[str, float], seed: int) -> dict[str, float]:
        return {name: value + seed / 10 for name, value in figures.items()}

    found = [
        row(arm, seed, moved(figures, seed), moved(held_back.get(arm, figures), seed))
        for seed in seeds
        for arm, figures in shown.items()
    ]
    return pl.DataFrame(found, schema=schema())


def figures(harm: float, lift: float = 60, professions: float = 23, valid: float = 70) -> dict[str, float]:
    return {"harm": harm, "prejudice": harm / 2, "lift": lift, "professions": professions, "valid": valid}


SHOWN = {
    NONE: figures(36),
    "rerank": figures(30, lift=59.5),
    "random_rerank": figures(35),
    "replace": figures(20, lift=58),  # most of all, and loses too much
    "random_replace": figures(34),
    "prefer": figures(33, valid=69.4),
    "random_prefer": figures(36),
    "distil": figures(28),  # whose control is not there
}


def test_the_screening_reads_part_0_and_orders_policies_by_its_rule() -> None:
    """Parts 1 and 2 have other figures, which change nothing."""
    made = rows(SHOWN, rerank=figures(50, lift=10), prefer=figures(1))
    found = effects.screened(made, SCREENING, EXACT)
    assert [one.policy for one in found] == ["rerank", "prefer", "replace"]
    first, second, third = found
    assert (first.control, first.blocks) == ("random_rerank", 3)
    assert [*first.harm.values()] == pytest.approx([5, 6, 5, 6])  # crowd2 beside control and none, crowd_lm
    assert first.quality == pytest.approx({HELD_OUT: -0.5, PROFESSIONS: 0, VALID: 0})
    assert (first.gain, first.loss, second.gain, third.loss) == pytest.approx((5, 0.5, 3, 2))
    halved = effects.screened(made, SCREENING, Accuracy(0.8, 0.0, 0.7, 0.0))  # people's scale: twice as much
    assert [one.policy for one in halved] == ["rerank", "prefer", "replace"]
    assert halved[1].quality[VALID] == pytest.approx(-1.2)
    assert [one.policy for one in effects.by_rule(found, most=0.1)] == ["rerank", "prefer", "replace"]  # by loss


def test_rows_that_are_not_of_one_experiment_are_refused() -> None:
    made = rows(SHOWN)
    with pytest.raises(MitigateError, match="different scorers and not compared: other, s"):
        effects.check(made.with_columns(scorers=pl.when(arm=NONE).then(pl.lit("other")).otherwise("scorers")))
    with pytest.raises(MitigateError, match="seed 11 ran on avx, zen"):
        effects.check(made.with_columns(processor=pl.when(arm=NONE).then(pl.lit("avx")).otherwise("processor")))
    with pytest.raises(MitigateError, match="statements has 1 clusters, not 246"):
        effects.check(made.with_columns(statements=pl.lit("7")))


def test_the_tests_read_parts_1_and_2_and_the_largest_p_decides() -> None:
    held_back = {NONE: figures(36), "rerank": figures(30, lift=59), "random_rerank": figures(35)}
    made = rows(dict.fromkeys(held_back, figures(0)), (21, 22, 23, 24), **held_back)
    off = {21: -1, 22: 1, 23: -1, 24: 1}  # points of swap lift of the policy; standard error of the difference 0.577
    units = [place for place, name in enumerate(UNITS["heads"]) if third_of(name) != 0]
    found = made.to_dicts()
    for one in found:
        if one["arm"] == "rerank":
            lift = np.array(one["lift"].split(), dtype=float)
            lift[units] += off[one["seed"]] / 2.5
            one["lift"] = pack(lift.tolist())
    result = effects.tested(pl.DataFrame(found, schema=schema()), "rerank", "random_rerank", NONE, EXACT)
    assert [effect.value for effect in result.effects.values()] == pytest.approx([5, 6, 5, 6, -1, 0, 0])
    of_lift = result.effects[HELD_OUT, NONE]
    assert (of_lift.error, of_lift.degrees) == pytest.approx((1 / 3**0.5, 3))
    assert effects.p_of(of_lift, -2) == pytest.approx(effects.stats.t.sf(3**0.5, 3))
    assert result.p >= effects.p_of(of_lift, -2)
    assert min(result.conditions.values()) >= 0
    assert {part for _, part in result.conditions} == {
        *("prejudice", "favouritism", "origin", "gender", "religion", "profession", "worst tenth")
    }
    assert result.conditions["crowd2", "prejudice"] == pytest.approx(3)


def test_the_scale_of_people_valid_makes_its_test_less_certain() -> None:
    """A half, known with an error of a tenth: 2 points on it have an error of 0.4."""
    effect = effects.corrected_effect(effects.Effect(0.0, 0.15, 7), Accuracy(0.8, 0.08, 0.7, 0.06))
    assert effect.error == pytest.approx(0.3)
    assert effects.p_of(effect, -2) == pytest.approx(effects.stats.t.sf(2 / 0.5, 7))


def test_a_condition_that_is_broken_is_seen_though_harm_falls() -> None:
    """Less prejudice, more favouritism."""
    shown = {NONE: figures(36), "rerank": figures(30) | {"prejudice": 10}, "random_rerank": figures(35)}
    result = effects.tested(rows(shown), "rerank", "random_rerank", NONE, EXACT)
    assert result.conditions["crowd_lm", "favouritism"] == pytest.approx(-2)


def noisy(seeds: tuple[int, ...], spread: float) -> pl.DataFrame:
    """Rows in which every unit of every run is off by a draw of its own."""
    random, found = np.random.default_rng(0), []
    columns = [
        name
        for name, value in row(NONE, 1, {}).items()
        if value is not None and name.startswith(("pol", "lift", "valid"))
    ]
    for one in rows({name: SHOWN[name] for name in (NONE, "rerank", "random_rerank")}, seeds).to_dicts():
        for column in columns:
            values = np.array(one[column].split(), dtype=float)
            one[column] = pack((values + values.mean() * spread * random.normal(size=len(values))).tolist())
        found.append(one)
    return pl.DataFrame(found, schema=schema())


def test_power_falls_with_noise_and_with_a_true_loss() -> None:
    truths = {**dict.fromkeys(effects.HARM, 5.0), **dict.fromkeys(effects.QUALITY, 0.0)}
    noise = effects.residuals(noisy((11, 12, 13), 0.03), SCREENING)
    assert noise["clusters"].shape == (3, 5, 69)
    assert noise["heads"].shape[:2] == noise["professions"].shape[:2] == (3, 1)
    assert np.abs(noise["clusters"].sum(0)).max() < 1e-9  # of three seeds of one policy
    assert effects.power(noise, 8, truths, EXACT, 0.05, times=50) == 1
    assert effects.power(noise, 8, truths | {HELD_OUT: -2.0}, EXACT, 0.05, times=200) < 0.2
    loud = effects.residuals(noisy((11, 12, 13), 1.0), SCREENING)
    assert effects.power(loud, 3, truths, EXACT, 0.05, times=100) < 0.9
    unsure = Accuracy(0.6, 0.2, 0.6, 0.2)  # a factor of 0.2, known with an error as large
    lost = truths | {VALID: -1.0}
    assert (
        effects.power(noise, 8, lost, unsure, 0.05, times=100)
        < 0.5
        < effects.power(noise, 8, lost, EXACT, 0.05, times=100)
    )


@pytest.fixture
def known_accuracy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tables, "accuracy_of", lambda encoder: EXACT)


@pytest.mark.usefixtures("known_accuracy")
def test_tables_of_the_screening_and_of_the_power() -> None:
    said = tables.screening(*tables.part_of(rows(SHOWN), SCREENING, "screening"), EXACT)
    others = {
        f"lm_screening_{name}": replace(arm, part="lm_screening", control=arm.control and f"lm_screening_{arm.control}")
        for name, arm in SCREENING.items()
    }
    made = rows({f"lm_screening_{name}": of for name, of in SHOWN.items()})
    assert tables.screening(*tables.part_of(made, SCREENING | others, "lm_screening"), EXACT) == said
    assert "| 1 | `rerank` | `random_rerank` | 3 | +5.0 | +6.0 | +5.0 | +6.0 | -0.5 | +0.0 | +0.0 | yes |" in said
    assert "| 3 | `replace` | `random_replace` | 3 | +14.0 | +16.0 | +14.0 | +16.0 | -2.0 | +0.0 | +0.0 | no |" in said
    assert "| `distil` | 3 | 29.20 (0.10) | 29.20 (0.10) | 61.20 (0.10) | 24.20 (0.10) | 71.20 (0.10) |" in said
    said = tables.power(noisy((11, 12, 13), 0.03), SCREENING, times=20)
    assert "| true quality, points; harm -5 | comet_minilm, 8 seeds | SmolLM2, 5 seeds | both |" in said
    assert "| 0 | > 99 % | > 99 % | > 99 % |" in said


@pytest.mark.usefixtures("known_accuracy")
def test_the_test_waits_for_its_runs_and_needs_both_generators() -> None:
    def planned(part: str, seeds: range) -> dict[str, Arm]:
        arm = replace(SCREENING[NONE], part=part, seeds=seeds)
        controls = {f"{part}_rerank": f"{part}_random", f"{part}_random": None, f"{part}_none": None}
        return {name: replace(arm, name=name, control=control) for name, control in controls.items()}

    known = planned("test", range(21, 24)) | planned("lm", range(21, 23))
    shown = {"rerank": figures(30), "random": figures(35), "none": figures(36)}
    made = noisy_parts({f"test_{name}": of for name, of in shown.items()}, (21, 22, 23))
    assert tables.test(made, known).startswith(
        "The test is computed when all of its runs are there; lacking: ('lm_none', 21)"
    )
    assert tables.test(made, SCREENING).endswith("lacking: all of its arms")
    both = pl.concat([made, noisy_parts({f"lm_{name}": of for name, of in shown.items()}, (21, 22))])
    said = tables.test(both, known)
    assert "No part of the harm is higher. It succeeds." in said
    assert said.count("| `lm_rerank` |") == said.count("| `test_rerank` |") == 7
    worse = pl.concat(
        [
            made,
            noisy_parts(
                {f"lm_{name}": of for name, of in (shown | {"rerank": figures(30, lift=50)}).items()}, (21, 22)
            ),
        ]
    )
    assert "It does not succeed." in tables.test(worse, known)


def noisy_parts(shown: dict[str, dict[str, float]], seeds: tuple[int, ...]) -> pl.DataFrame:
    """Rows whose arms move by a little of their own from seed to seed, so that no error is 0."""
    random = np.random.default_rng(2)
    found = [
        row(arm, seed, {name: value + 0.01 * random.normal() for name, value in of.items()})
        for seed in seeds
        for arm, of in shown.items()
    ]
    return pl.DataFrame(found, schema=schema())


def test_accuracy_of_an_endpoint_by_hand() -> None:
    """Four valid statements, of which three are found, and two others, both found not valid."""
    votes = [[True] * 3] * 4 + [[False] * 3] * 2
    rated = pl.DataFrame({"quality": votes, "cluster": ["a", "a", "b", "b", "a", "b"]})
    found = tables.accuracy_row(rated, np.array([0.9, 0.8, 0.7, 0.2, 0.4, 0.3]))
    assert found["auc"] == pytest.approx(6 / 8)
    assert (found["sensitivity"], found["specificity"]) == (0.75, 1.0)
    # Clusters found 2 of 2 and 1 of 2: influences of (2 - 1.5) / 4 and its negative, times the root of 2 / 1.
    assert found["sensitivity_error"] == pytest.approx((2 * (0.125**2 + 0.125**2)) ** 0.5)
    assert found["specificity_error"] == 0


def test_doses_stand_beside_controls_of_their_size() -> None:
    arms_of_doses = {name: arm for name, arm in arms(EXPERIMENTS["plan2"].arms).items() if arm.part == "dose"}
    harms = {"dose_none": 40, "dose_10": 38, "dose_25": 36, "dose_50": 32, "dose_100": 24}
    shown = {name: figures(harms.get(name, 39), lift=harms.get(name, 60)) for name in arms_of_doses}
    made = rows(shown, (11,)).with_columns(kept=pl.lit(90_000))
    levels = tables.dose_levels(*tables.part_of(made, arms_of_doses, "dose"))
    assert [*levels["none"]] == ["kept", "crowd2", "crowd_lm", HELD_OUT, PROFESSIONS, VALID]
    first, _, *lines = tables.dose_table(levels).splitlines()
    assert (
        first
        == "| dropped | triples | crowd2 | crowd_lm | swap lift, other heads | swap lift, professions | people-valid |"
    )
    assert lines[0] == "| `none` | 90,000 | 41.1 | 41.1 | 41.1 | 24.1 | 71.1 |"
    assert [line.split(" | ")[2] for line in lines[1:]] == [
        "39.1",
        "40.1",
        "37.1",
        "40.1",
        "33.1",
        "40.1",
        "25.1",
        "40.1",
    ]
    axes = tables.dose_picture(levels).axes[0]
    assert [tuple(line.get_ydata()) for line in axes.lines] == [
        pytest.approx((41.1, 39.1, 37.1, 33.1, 25.1)),
        pytest.approx((41.1, 40.1, 40.1, 40.1, 40.1)),
    ]
