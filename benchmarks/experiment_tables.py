"""Tables and pictures of the experiment of benchmarks/plan.md, drawn from benchmarks/experiment.csv alone.

    python benchmarks/experiment_tables.py                      prints them
    python benchmarks/experiment_tables.py --page benchmarks/experiment.md --pictures docs/results

The primary test is not computed before all of its runs are there; --final does so with the seeds that there are, and
says how many.
--page replaces the parts of each page between `<!-- NAME -->` and `<!-- end of NAME -->`, and adds those that no page
has."""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_effects import (
    FEWEST_SEEDS,
    HOPED,
    MARGIN,
    Effect,
    Tested,
    harm,
    lift,
    over_seeds,
    share_of,
    tests,
    worst,
)
from benchmarks.experiment_plan import Arm, arms
from benchmarks.experiment_row import CATEGORIES, CORRECTED, INDEPENDENT, RELATIONS, of_category, of_relation, read
from mitigate.files import write
from mitigate.measure.base import key_of
from mitigate.report.plots import INK, WIDTH, mark, save_figure, styled

CSV = Path(__file__).with_name("experiment.csv")
SHORT, FULL = "none_short", "none"
PRIMARY = ("both_neutral", "both")
"""The policies that a claim may be made of."""
CONTROLLED = ("both_neutral", "both", "both_person_heads")
"""Policies of the picture of policies and controls: those that version 1.0 has and that have a random control."""
ALSO = (
    ("random_both_neutral", SHORT),  # does it matter that triples are fewer?
    ("random_both", SHORT),
    ("both_neutral", SHORT),
    ("both", SHORT),
    (SHORT, FULL),  # does it matter that training is shorter?
)
"""Further contrasts: an arm and what it is compared with."""

BASELINES = {
    "echo": "the head repeated",
    "constants": "the same tails for every head",
    "random": "random tails",
    "oracle": "tails of the test triples",
}
"""Baselines that need no training. Every row has the swap lift of each; it is the same in all rows."""

HELD_OUT = key_of("swap_lift", group="held_out")
PROFESSIONS = key_of("swap_lift", group="profession")
ALIKE = "labelled polarised, relations of the endpoint"
"""Not a column of the file: computed from its counts."""
BESIDE = {  # table -> column of the file -> its name
    "harm": {
        ALIKE: "polarised by crowd, relations of the endpoint, % ↓",
        CORRECTED: "the same, corrected, % ↓",
        of_category(""): "polarised by crowd, all relations, % ↓",
        key_of("neutral_mean", "regard", "neutral"): "neutral by regard, % ↑",
        key_of("neutral_mean", "ngram", "neutral"): "neutral by n-grams, % ↑",
        key_of("neutral_mean", "keyword", "neutral"): "neutral by keywords, % ↑",
        "NSM": "NSM ↑",
        "NSV": "NSV ↓",
        "NRM": "NRM ↑",
        "NRV": "NRV ↓",
    },
    "quality": {
        HELD_OUT: "swap lift, heads that are no targets ↑",
        PROFESSIONS: "swap lift, professions ↑",
        key_of("perplexity"): "perplexity, all test triples ↓",
        INDEPENDENT["neutral"]: "perplexity, independently neutral ↓",
        INDEPENDENT["polarised"]: "perplexity, the others ↓",
        "quality/bleu2/all": "BLEU-2 ↑",
        "distinct_tails": "distinct tails, % ↑",
        "shared_tails": "shared tails, % ↓",
    },
    "targets": {f"quality/about_perplexity/{category}": f"{category} ↓" for category in ("all", *CATEGORIES)},
    "relations": {
        column: f"{name}: {said}"
        for name in RELATIONS
        for column, said in (
            (of_relation("polarised", name), "polarised, % ↓"),
            (of_relation("perplexity", name), "perplexity ↓"),
            (key_of("swap_lift", group=name, by="relation"), "swap lift ↑"),
        )
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, default=CSV, help="the file of finished runs")
    parser.add_argument("--page", type=Path, nargs="+", default=[], help="the pages whose parts are replaced")
    parser.add_argument("--pictures", type=Path, help="the folder that pictures are written to")
    parser.add_argument("--final", action="store_true", help="no more runs will come: test with the seeds there are")
    given = parser.parse_args()
    rows = read(given.csv)
    if rows.is_empty():
        sys.exit(f"{given.csv} has no finished run; benchmarks/experiment.py adds them")
    known = arms()
    parts = {"primary": partial(primary, final=given.final), **PARTS}
    found = {name: part(rows, known) for name, part in parts.items()}
    pages = {path: path.read_text("utf-8") if path.exists() else "" for path in given.page}
    for path, page in pages.items():
        others = "".join(text for other, text in pages.items() if other != path)
        write(path, with_parts(page, {name: part for name, part in found.items() if f"<!-- {name} -->" not in others}))
    if given.pictures:
        write_pictures(rows, present(rows, known), known, given.pictures)
    print("\n\n".join(found.values()))


def primary(rows: pl.DataFrame, known: Mapping[str, Arm], final: bool = False) -> str:
    """The primary contrasts, corrected, and what power they had; before all runs are there only how many are, unless
    final says that no more will come."""
    there = {name: rows.filter(arm=name).height for name, arm in known.items() if arm.part == "primary"}
    seeds = ", ".join(f"`{name}` {count} of {len(known[name].seeds)}" for name, count in there.items())
    if not final and any(count < len(known[name].seeds) for name, count in there.items()):
        return f"Seeds finished: {seeds}. The test is computed when all are."
    found = tested(rows, known)
    if not found:
        return f"Seeds finished: {seeds}. Too few for the test."
    lines = []
    for one in found:
        lines.append(line_of(one, f"harm, less than `{one.control}`", one.harm, 0.0))
        lines += [
            line_of(one, f"quality, beside `{reference}`", effect, -MARGIN) for reference, effect in one.quality.items()
        ]
    head = [
        "policy",
        "endpoint",
        "effect, points",
        "interval",
        "must be above",
        "p",
        "bound above it",
        "p of the policy, Holm",
        "policy succeeds",
    ]
    said = [f"Seeds: {seeds}.", markdown(head, lines), *map(power_line, found), conclusion(found)]
    return "\n\n".join(said)


def tested(rows: pl.DataFrame, known: Mapping[str, Arm]) -> list[Tested]:
    """The policies of PRIMARY that have two runs or more of each arm that they are compared with."""
    there = set(rows["arm"])
    controls = {name: known[name].control or "" for name in PRIMARY if {name, known[name].control, SHORT} <= there}
    enough = {name: c for name, c in controls.items() if min(rows.filter(arm=a).height for a in (name, c, SHORT)) > 1}
    return tests(rows, enough, SHORT, planned=len(PRIMARY))


def line_of(one: Tested, endpoint: str, effect: Effect, above: float) -> list[str]:
    """A row of the primary table."""
    low, high = effect.bounds(one.level)
    interval = f"[{low:.2f}, {high:.2f}], {100 * one.level:g} %"
    return [
        f"`{one.policy}`",
        endpoint,
        f"{effect.value:+.2f}",
        interval,
        f"{above:g}",
        p_of(effect.p(above)),
        YES_NO[low > above],
        p_of(one.p_holm),
        YES_NO[one.succeeds],
    ]


def power_line(one: Tested) -> str:
    """With the errors that were found, those of the correction at the size of the effect, how probable it was to show
    what is true."""
    of_quality = ", ".join(
        f"`{name}` {percent(effect.power(0.0, -MARGIN, one.level))}" for name, effect in one.quality.items()
    )
    return (
        f"Power of `{one.policy}`: {HOPED:g} points less harm would be shown in "
        f"{percent(one.harm.power(HOPED, 0.0, one.level))} of experiments, "
        f"{one.harm.detectable(level=one.level):.1f} points in 80 %. No loss of quality at all would be shown to be "
        f"within {MARGIN:g} percentage points: against {of_quality}."
    )


def conclusion(found: Sequence[Tested]) -> str:
    """In one sentence."""
    good = [f"`{one.policy}`" for one in found if one.succeeds]
    if good:
        return f"Shown by the plan's rule: {', '.join(good)}."
    return "By the plan's rule no policy is shown to reduce harm beyond its control and keep quality."


def contrasts(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
    """Every arm against the arm that it is compared with, and ALSO: exploratory."""
    lines = []
    own = [(name, known[name].control or "") for name in present(rows, known)]
    for name, control in [*own, *ALSO]:
        if min(rows.filter(arm=arm).height for arm in (name, control)) < 2:
            continue
        effects = [harm(rows, control, name), harm(rows, control, name, "", corrected=False), lift(rows, control, name)]
        of_professions = over_seeds(rows, control, name, PROFESSIONS)
        cells = [*map(with_interval, effects), with_interval(of_professions) if of_professions else "–"]
        lines.append([f"`{name}`", f"`{control}`", str(rows.filter(arm=name).height), *cells])
    if not lines:
        return "No arm has two runs and a control with two."
    head = [
        "arm",
        "against",
        "seeds",
        "less harm, corrected",
        "less harm, all relations, as labelled",
        "swap lift, heads that are no targets",
        "swap lift, professions",
    ]
    said = (
        "Percentage points, above 0 is better, with the 95 % interval of each alone, over seeds and targets, over "
        f"seeds and heads, and of professions over seeds alone. Under {FEWEST_SEEDS} seeds nothing is claimed."
    )
    return f"{said}\n\n{markdown(head, lines)}"


def runs(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
    """The runs of each arm; the file has each."""
    same = ["arm", "steps", "kept", "commit"]
    found = by_plan(rows, known).group_by(same, maintain_order=True).agg("seed", pl.col("hours").sum())
    lines = [
        [f"`{arm}`", ", ".join(map(str, seeds)), f"{steps:,}", f"{kept:,}", f"{hours:.2f}", of]
        for arm, steps, kept, of, seeds, hours in found.iter_rows()
    ]
    names = ["arm", "seeds", "steps", "training triples", "hours of one thread", "commit"]
    return markdown(names, lines) + f"\n\n{rows.height} runs, {rows['hours'].sum():.1f} hours of one thread."


def beside(name: str) -> Callable[[pl.DataFrame, Mapping[str, Arm]], str]:
    """The table of one group of BESIDE: means over seeds, with their standard deviation."""

    def of(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
        there = present(rows, known)
        found = {said: [values_of(rows, arm, key) for arm in there] for key, said in BESIDE[name].items()}
        columns = {said: values for said, values in found.items() if any(values)}
        if not columns:
            return "Not measured by these runs."
        lines = [[f"`{arm}`", *map(mean_of, cells)] for arm, *cells in zip(there, *columns.values(), strict=True)]
        return markdown(["arm", *columns], lines)

    return of


def baselines(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
    """Swap lift of what needs no training."""
    columns = {said: key_of(f"swap_lift_{name}", group="held_out") for name, said in BASELINES.items()}
    found = {said: rows[column].drop_nulls().to_list() for said, column in columns.items()}
    lines = [[said, mean_of([fmean(values)])] for said, values in found.items() if values]
    return markdown(["tails", "swap lift, heads that are no targets ↑"], lines)


def values_of(rows: pl.DataFrame, arm: str, key: str) -> list[float]:
    """A figure of each run of an arm that has it."""
    if key == ALIKE:
        return share_of(rows.filter(pl.col("polarised_alike").is_not_null()), arm, end="_alike")
    return rows.filter(arm=arm)[key].drop_nulls().to_list()


def categories(rows: pl.DataFrame, known: Mapping[str, Arm]) -> str:
    """By category and of the worst tenth of words, which other models chose: those of FULL."""
    there = present(rows, known)
    columns = [of_category(name) for name in CATEGORIES if rows[of_category(name)].is_not_null().any()]
    places = worst(rows, FULL) if FULL in there else []
    lines = []
    for arm in there:
        mine = rows.filter(arm=arm)
        cells = [mean_of(mine[column].drop_nulls().to_list()) for column in columns]
        cells += [mean_of(share_of(rows, arm, places)) if places and arm != FULL else "–"]
        lines.append([f"`{arm}`", *cells])
    return markdown(["arm", *(column.removeprefix("polarised/") for column in columns), "worst tenth"], lines)


YES_NO = {True: "yes", False: "no"}
PARTS: dict[str, Callable[[pl.DataFrame, Mapping[str, Arm]], str]] = {
    "contrasts": contrasts,
    **{name: beside(name) for name in BESIDE},
    "baselines": baselines,
    "categories": categories,
    "runs": runs,
}


def present(rows: pl.DataFrame, known: Mapping[str, Arm]) -> list[str]:
    """The arms that have runs, in the order of the plan."""
    return [name for name in known if name in set(rows["arm"])]


def by_plan(rows: pl.DataFrame, known: Mapping[str, Arm]) -> pl.DataFrame:
    """The rows in the order of the plan."""
    order = pl.DataFrame({"arm": list(known), "_place": range(len(known))})
    return rows.join(order, on="arm", how="left", maintain_order="left").sort("_place", "seed").drop("_place")


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """The page with these parts."""
    for name, text in parts.items():
        part = f"<!-- {name} -->\n{text}\n<!-- end of {name} -->"
        pattern = re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
        page = pattern.sub(lambda _, part=part: part, page) if pattern.search(page) else f"{page.rstrip()}\n\n{part}\n"
    return page.lstrip()


def with_interval(effect: Effect) -> str:
    """ "+5.00 [3.10, 6.90]"."""
    low, high = effect.bounds()
    return f"{effect.value:+.2f} [{low:.2f}, {high:.2f}]"


def mean_of(values: Sequence[float]) -> str:
    """ "36.70 (0.61)": the mean and the standard deviation over seeds."""
    if not values:
        return "–"
    return f"{fmean(values):.2f}" + (f" ({stdev(values):.2f})" if len(values) > 1 else "")


def percent(share: float) -> str:
    """ "98 %", "> 99 %"."""
    return "> 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def p_of(value: float) -> str:
    """ "0.012", "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows])


def write_pictures(rows: pl.DataFrame, there: Sequence[str], known: Mapping[str, Arm], folder: Path) -> None:
    """All pictures as PNG and SVG files."""
    primary = [name for name in there if known[name].part == "primary"]
    save_figure(policies_and_controls(rows, known), folder / "policies-and-controls")
    save_figure(harm_against_quality(rows, there), folder / "harm-against-quality")
    save_figure(by_category(rows, primary), folder / "by-category")
    save_figure(by_relation(rows, primary), folder / "by-relation")


@styled
def policies_and_controls(rows: pl.DataFrame, known: Mapping[str, Arm]) -> Figure:
    """An arrow from the mean of each control to that of its policy, and a small mark for each run. Harm is the share of
    all relations as labelled."""
    figure = Figure(figsize=(6.4, 3.9))
    axes = figure.add_subplot()

    def put(arm: str, place: int, name: str = "") -> tuple[float, float]:
        colour, marker = mark(place)
        mine = rows.filter(pl.col(HELD_OUT).is_not_null(), arm=arm)
        x, y = (mine[column].to_list() for column in (HELD_OUT, of_category("")))
        axes.scatter(x, y, s=14, c=colour, marker=marker, alpha=0.35, lw=0)
        look = {"s": 75, "marker": marker, "lw": 1.6, "facecolors": colour if name else "white", "edgecolors": colour}
        axes.scatter(fmean(x), fmean(y), **look, label=name or None, zorder=3)
        return fmean(x), fmean(y)

    put(FULL, 0, FULL)
    for place, policy in enumerate(CONTROLLED, start=1):
        start, end = put(known[policy].control or "", place), put(policy, place, policy)
        arrow = {"arrowstyle": "->", "color": mark(place)[0], "lw": 1.2, "shrinkA": 7, "shrinkB": 7}
        axes.annotate("", end, start, arrowprops=arrow)
    axes.scatter([], [], s=75, lw=1.6, facecolors="white", edgecolors=INK, label="hollow: as many at random")
    axes.grid()
    axes.margins(0.06)
    axes.set_xlabel("quality: swap lift, points (better →)")
    axes.set_ylabel("harm: polarised statements, % (better ↓)")
    axes.legend(loc="lower right")
    return figure


@styled
def harm_against_quality(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """A small mark for each run, a large one for the mean of its arm.

    Harm is the share of the endpoint as labelled. The corrected share does not exist where fewer are labelled polarised
    than the scorer's false alarms on rated statements alone (benchmarks/corrected.py), as under
    `both_neutral`."""
    figure = Figure(figsize=(6.4, 4.2 + 0.16 * -(-len(there) // 4)))
    axes = figure.add_subplot()
    for place, arm in enumerate(there):
        colour, marker = mark(place)
        mine = rows.filter(pl.col("polarised_alike").is_not_null(), pl.col(HELD_OUT).is_not_null(), arm=arm)
        if mine.is_empty():
            continue
        lifts, shares = mine.sort("seed")[HELD_OUT].to_list(), share_of(mine, arm, end="_alike")
        if mine.height > 1:
            axes.scatter(lifts, shares, s=16, c=colour, marker=marker, alpha=0.4, lw=0)
        axes.scatter(fmean(lifts), fmean(shares), s=65, c=colour, marker=marker, lw=0, label=arm, zorder=3)
    axes.grid()
    axes.margins(0.12)
    axes.set_xlabel("swap lift, heads that are no targets, points (better →)")
    axes.set_ylabel("polarised by crowd, % (← better)")
    legend(axes, columns=4)
    return figure


@styled
def by_category(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """A large mark for each arm's mean share of polarised statements, a small one for each run, by category and of the
    worst tenth of words, which the models of `none` chose."""
    names = [name for name in CATEGORIES if rows[of_category(name)].is_not_null().any()]
    places = worst(rows, "none") if "none" in there else []
    columns = {
        arm: [runs_of(rows, arm, of_category(name)) for name in names]
        + ([share_of(rows, arm, places) if arm != "none" else []] if places else [])
        for arm in there
    }
    return side_by_side({"polarised by crowd, %": columns}, [*names, *(["worst tenth"] if places else [])])


@styled
def by_relation(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """The same by relation, harm and perplexity."""
    found = {
        said: {arm: [runs_of(rows, arm, of_relation(figure, name)) for name in RELATIONS] for arm in there}
        for figure, said in (("polarised", "polarised by crowd, %"), ("perplexity", "perplexity, test triples"))
    }
    return side_by_side(found, RELATIONS)


def runs_of(rows: pl.DataFrame, arm: str, column: str) -> list[float]:
    return rows.filter(arm=arm)[column].drop_nulls().to_list()


def side_by_side(panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], names: Sequence[str]) -> Figure:
    """A panel for each figure; in each, at each name, the values of each arm's runs and their mean, arms beside one
    another."""
    figure = Figure(figsize=(WIDTH, 2.6 * len(panels) + 0.5))
    for number, (said, columns) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(len(panels), 1, number)
        for place, (arm, values) in enumerate(columns.items()):
            colour, marker = mark(place)
            beside = 0.7 * (place / max(1, len(columns) - 1) - 0.5)
            runs = [(x + beside, y) for x, each in enumerate(values) for y in each]
            points = [(x + beside, fmean(each)) for x, each in enumerate(values) if each]
            small = {"s": 9, "c": colour, "marker": marker, "alpha": 0.4, "lw": 0}
            axes.scatter([x for x, _ in runs], [y for _, y in runs], **small)
            axes.scatter([x for x, _ in points], [y for _, y in points], s=36, c=colour, marker=marker, lw=0, label=arm)
        for border in range(1, len(names)):
            axes.axvline(border - 0.5, color=INK, lw=0.4, alpha=0.4)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(said)
        axes.set_ylim(bottom=0, top=1.06 * axes.dataLim.y1 if axes.dataLim.y1 > 0 else None)
        axes.grid(axis="y")
        if number == 1:
            legend(axes)
    return figure


def legend(axes: Axes, columns: int = 3) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0, handletextpad=0.3, columnspacing=1.2
    )


if __name__ == "__main__":
    main()
