"""The tables of benchmarks/plan2.md as Markdown, from plan2.csv alone.

    python benchmarks/plan2_tables.py screening        of part 0 of targets and heads, in the order of the rule
    python benchmarks/plan2_tables.py power            of the test, by simulation from the screening
    python benchmarks/plan2_tables.py test             of parts 1 and 2, when all of its runs are there
    python benchmarks/plan2_tables.py dose             of all targets and heads; also the picture docs/results/dose
    python benchmarks/plan2_tables.py accuracy --half second --heads DIR [--base LM] --data DIR

`accuracy` adds the row of an endpoint's people-valid to plan2_valid.csv, which the others read. The arms of the test
are those of the parts PARTS of plan2_arms.csv; each name begins with its part, as test_none and lm_screening_none."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import plan2_effects as effects
from benchmarks.corrected import Accuracy, half_of, share_error
from benchmarks.experiment_effects import of_arm
from benchmarks.experiment_plan import HERE, Arm, arms
from benchmarks.experiment_row import read
from benchmarks.experiment_tables import markdown, mean_of, p_of, percent
from mitigate.files import write
from mitigate.load.ratings import RESOURCES, read_rated
from mitigate.measure.agreement import auc
from mitigate.measure.compare import holm
from mitigate.report.plots import INK, WIDTH, legend, mark, save_figure, styled
from mitigate.score.people import PeopleValid
from mitigate.studies.classifier import valid_votes
from mitigate.triples import NEUTRAL

ACCURACY = Path(__file__).with_name("plan2_valid.csv")
ENDPOINTS = {"screening": "SmolLM2"}
"""Part of the plan's screening -> the encoder of its people-valid."""
PARTS = {"test": "MiniLM", "lm": "SmolLM2"}
"""Part of the plan's test -> the words or states that its generator comes from, which no endpoint reads."""
TRUE_HARM, TRUE_QUALITY = 5.0, (0.0, -0.5, -1.0)
BLOCKS = {"comet_minilm": 8, "SmolLM2": 5}
MAY_LOSE = 1.0
"""Points on each endpoint of quality, in the screening."""
DOSES = ("10", "25", "50", "100")
"""Percentages of the polarised triples in scope that an arm of part `dose` drops, the strongest first."""
DOSE_PICTURE = Path(__file__).parents[1] / "docs/results/dose"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*ENDPOINTS, "power", "test", "dose", "accuracy"])
    parser.add_argument("--csv", type=Path, default=HERE / "plan2.csv", help="the file of finished runs")
    parser.add_argument("--policies", type=int, default=1, help="with power: how many are tested")
    parser.add_argument("--half", choices=["first", "second"])
    parser.add_argument("--heads", type=Path, help="people_valid/ of a run of recipe=classifier classifier=people")
    parser.add_argument("--base", type=Path, help="the language model that these read with")
    parser.add_argument("--data", type=Path, help="the folder with humans/")
    given = parser.parse_args()
    if given.table == "accuracy":
        add_accuracy(
            PeopleValid(given.heads, given.base), given.half, given.data, "SmolLM2" if given.base else "MiniLM"
        )
        return
    rows, known = read(given.csv), arms(HERE / "plan2_arms.csv")
    if given.table == "power":
        print(power(rows, known, given.policies))
    elif given.table == "test":
        print(test(rows, known))
    elif given.table == "dose":
        of_doses = dose_levels(*part_of(rows, known, "dose"))
        print(dose_table(of_doses))
        save_figure(dose_picture(of_doses), DOSE_PICTURE)
    else:
        print(screening(*part_of(rows, known, given.table), accuracy_of(ENDPOINTS[given.table])))


def part_of(rows: pl.DataFrame, known: Mapping[str, Arm], part: str) -> tuple[pl.DataFrame, dict[str, Arm]]:
    """The runs and arms of a part of the plan, without the part's name before theirs."""
    found = {
        name.removeprefix(f"{part}_"): replace(arm, control=arm.control and arm.control.removeprefix(f"{part}_"))
        for name, arm in known.items()
        if arm.part == part
    }
    mine = rows.filter(pl.col("arm").is_in([name for name, arm in known.items() if arm.part == part]))
    return mine.with_columns(pl.col("arm").str.strip_prefix(f"{part}_")), found


def screening(rows: pl.DataFrame, known: Mapping[str, Arm], accuracy: Accuracy) -> str:
    """The policies in the order of the rule, and the figures of all arms, on part 0."""
    of = [name for name in known if name in set(rows["arm"])]
    lines = []
    for place, one in enumerate(effects.screened(rows, known, accuracy), start=1):
        cells = [f"{value:+.1f}" for value in (*one.harm.values(), *one.quality.values())]
        within = "yes" if one.loss <= MAY_LOSE else "no"
        lines.append([str(place), f"`{one.policy}`", f"`{one.control}`", str(one.blocks), *cells, within])
    harm = [f"{name}, less than {of}" for name in effects.HARM for of in ("control", "`none`")]
    head = ["", "policy", "control", "blocks", *harm, *effects.QUALITY, f"loses at most {MAY_LOSE:g}"]
    asked = {**effects.HARM, **effects.QUALITY}
    levels = [
        [f"`{arm}`", str(of_arm(rows, arm).height), *(mean_of([*_levels(rows, arm, one)]) for one in asked.values())]
        for arm in of
    ]
    return f"{markdown(head, lines)}\n\n{markdown(['arm', 'blocks', *asked], levels)}"


def _levels(rows: pl.DataFrame, arm: str, endpoint: effects.Endpoint) -> list[float]:
    return [*effects.values(rows, arm, endpoint, effects.chosen(endpoint.units, effects.SCREENED)).values()]


def power(rows: pl.DataFrame, known: Mapping[str, Arm], policies: int = 1, times: int = 2000) -> str:
    """How probable it is to show a true effect with each generator, and with both, by the residuals of comet_minilm."""
    screened = {name: arm for name, arm in known.items() if arm.part == "screening"}
    noise = effects.residuals(rows, screened)
    lines = []
    for lost in TRUE_QUALITY:
        truths = {**dict.fromkeys(effects.HARM, TRUE_HARM), **dict.fromkeys(effects.QUALITY, lost)}
        found = [
            effects.power(noise, blocks, truths, accuracy_of(endpoint), effects.ALPHA / policies, times)
            for blocks, endpoint in zip(BLOCKS.values(), ("SmolLM2", "MiniLM"), strict=True)
        ]
        lines.append([f"{lost:g}", *map(percent, (*found, float(np.prod(found))))])
    of = [f"{name}, {blocks} seeds" for name, blocks in BLOCKS.items()]
    return markdown([f"true quality, points; harm {-TRUE_HARM:g}", *of, "both"], lines)


def test(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
    """The seven tests of each policy with each generator, what its conditions show, and Holm's p."""
    wanted = {(name, seed) for name, arm in known.items() if arm.part in PARTS for seed in arm.seeds}
    if lacking := sorted(wanted - set(rows.select("arm", "seed").iter_rows())) or (
        [] if wanted else ["all of its arms"]
    ):
        return f"The test is computed when all of its runs are there; lacking: {', '.join(map(str, lacking))}"
    found: dict[str, list[effects.Result]] = {}
    for part, own in PARTS.items():
        mine = {name: arm for name, arm in known.items() if arm.part == part}
        accuracy = accuracy_of(next(encoder for encoder in PARTS.values() if encoder != own))
        of_part = rows.filter(pl.col("arm").is_in([*mine]))
        for name, arm in mine.items():
            if arm.control:
                result = effects.tested(of_part, name, arm.control, f"{part}_none", accuracy)
                found.setdefault(name.removeprefix(f"{part}_"), []).append(result)
    adjusted = holm([max(one.p for one in results) for results in found.values()])
    lines = [line for results in found.values() for one in results for line in _lines(one)]
    said = [markdown(["policy", "endpoint", "beside", "difference", "90 % interval", "above", "p"], lines)]
    for (policy, results), p in zip(found.items(), adjusted, strict=True):
        broken = [
            f"{one.policy}: {' '.join(name)}" for one in results for name, value in one.conditions.items() if value < 0
        ]
        good = p is not None and p < effects.ALPHA and not broken and len(results) == len(PARTS)
        worse = f"Higher than with `none`: {'; '.join(broken)}." if broken else "No part of the harm is higher."
        said.append(f"`{policy}`: p {p_of(p or 0.0)} by Holm. {worse} It {'succeeds' if good else 'does not succeed'}.")
    return "\n\n".join(said)


def _lines(one: effects.Result) -> list[list[str]]:
    lines = []
    for (name, reference), effect in one.effects.items():
        low, high = effect.bounds(1 - 2 * effects.ALPHA)
        above = effects.bound_of(name)
        cells = [
            f"{effect.value:+.2f}",
            f"[{low:.2f}, {high:.2f}]",
            f"{above + 0.0:g}",
            p_of(effects.p_of(effect, above)),
        ]
        lines.append([f"`{one.policy}`", name, f"`{reference}`", *cells])
    return lines


def dose_levels(rows: pl.DataFrame, known: Mapping[str, Arm]) -> dict[str, dict[str, float]]:
    """Arm -> endpoint -> its figure on all targets and heads; and the number of training triples, `kept`."""
    effects.check(rows)
    found = {}
    for arm in known:
        (run,) = of_arm(rows, arm).iter_rows(named=True)
        values = {
            name: effects.values(rows, arm, one, effects.chosen(one.units, (0, 1, 2)))[run["seed"]]
            for name, one in {**effects.HARM, **effects.QUALITY}.items()
        }
        found[arm] = {"kept": run["kept"], **values}
    return found


def dose_table(levels: Mapping[str, Mapping[str, float]]) -> str:
    """A row for `none`, and for each dose and its control."""
    names = {"none": "`none`"}
    for dose in DOSES:
        names |= {dose: f"{dose} % of `both_neutral`", f"random_{dose}": "as many at random"}
    lines = [
        [said, f"{levels[arm]['kept']:,}", *(f"{levels[arm][one]:.1f}" for one in [*effects.HARM, *effects.QUALITY])]
        for arm, said in names.items()
    ]
    return markdown(["dropped", "triples", *effects.HARM, *effects.QUALITY], lines)


@styled
def dose_picture(levels: Mapping[str, Mapping[str, float]]) -> Figure:
    """Harm against both kinds of swap lift: a line from `none` through the doses, one through their controls."""
    figure = Figure(figsize=(2 * WIDTH, 3.4))
    harm = next(iter(effects.HARM))
    for number, lift in enumerate((effects.HELD_OUT, effects.PROFESSIONS), start=1):
        axes = figure.add_subplot(1, 2, number)
        for place, (said, start) in enumerate({"both_neutral": "", "random_both_neutral": "random_"}.items(), start=1):
            colour, marker = mark(place)
            points = [(levels[arm][lift], levels[arm][harm]) for arm in ["none", *(start + dose for dose in DOSES)]]
            axes.plot(*zip(*points, strict=True), c=colour, marker=marker, ms=6, lw=1, label=said)
            for dose, point in zip(DOSES, points[1:], strict=True):
                axes.annotate(f"{dose} %", point, (6, 0), textcoords="offset points", va="center", size="small")
        axes.scatter(*points[0], s=65, c=INK, zorder=3, label="none")
        axes.grid()
        axes.margins(0.15)
        axes.set_xlabel(f"{lift}, points (better →)")
        axes.set_ylabel(f"polarised by {harm}, % (← better)")
        if number == 1:
            legend(axes)
    return figure


def add_accuracy(people: PeopleValid, half: str, data: Path, encoder: str) -> None:
    """Adds the sensitivity and specificity of people_valid on the neutral rated statements of its half, by heads that
    learnt neither from the text nor about the target, with errors over clusters."""
    rated = half_of(read_rated(data, RESOURCES[-1:]), half).filter(most=NEUTRAL)
    row = {
        "encoder": encoder,
        "half": half,
        "statements": rated.height,
        **accuracy_row(
            rated, people.probabilities(*(rated[name].to_list() for name in ("sentence", "masked", "cluster")))
        ),
    }
    others = pl.read_csv(ACCURACY).filter(pl.col("encoder") != encoder) if ACCURACY.is_file() else None
    table = pl.DataFrame([row]) if others is None else pl.concat([others, pl.DataFrame([row])])
    write(ACCURACY, table.sort("encoder").write_csv(float_precision=4))
    print(table)


def accuracy_row(rated: pl.DataFrame, found: np.ndarray) -> dict[str, float | None]:
    """Figures of the probabilities of being valid (n,) of rated statements (quality, cluster)."""
    truth, clusters = valid_votes(rated) > 0.5, np.unique(rated["cluster"], return_inverse=True)[1]
    row = {"auc": auc(found, truth)}
    for name, of, said in (("sensitivity", truth, found > 0.5), ("specificity", ~truth, found <= 0.5)):
        own = np.unique(clusters[of], return_inverse=True)[1]
        error = share_error(said[of].astype(float), np.ones(of.sum()), own)
        row |= {name: fmean(said[of]), f"{name}_error": error}
    return row


def accuracy_of(encoder: str) -> Accuracy:
    """That of the endpoint that reads with this encoder."""
    (row,) = pl.read_csv(ACCURACY).filter(encoder=encoder).to_dicts()
    return Accuracy(*(row[name] for name in ("sensitivity", "sensitivity_error", "specificity", "specificity_error")))


if __name__ == "__main__":
    main()
