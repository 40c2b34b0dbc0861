"""The page of a run on knowledge-graph embeddings: which professions move with an attribute, in which direction, and
how certain that is."""

from collections.abc import Collection, Sequence
from textwrap import fill
from typing import Any

import polars as pl

from mitigate.measure.base import ENDS, PERTURBED, PROJECTED, REGULARISED, measure_of, measures
from mitigate.report import plots, sections
from mitigate.report.numbers import number
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section
from mitigate.report.sections import crossed, figure, shown, title_of
from mitigate.report.table import Column, Table, as_text, figures, text

TITLES = {
    "": "as trained",
    REGULARISED: "penalised in training",
    PROJECTED: "attribute projected out",
    PERTURBED: "control: moved at random",
}
DRAWN, NAMED = 8, 14  # professions of each end in the first picture, and with a name in the scatter plot
LONGEST_LINE = 60  # characters that fit beside the axes
GROUP = "professions"  # of pictures that name professions
FRONT = {"parity": "demographic parity distance, %", "leakage_nonlinear": "leakage to a nonlinear probe"}
"""The figures of bias that are shown against MRR, and their axes."""
CORRELATION, AGREEMENT, MRR = "rank_correlation", "seeds/agreement", "mrr"
CERTAINTY = (CORRELATION, AGREEMENT, "seeds/shared_ends", "models/agreement", "pairs/agreement")
ORDER = "Read the order, not the sign: where one group is larger, chance is not at 0."
EQUATION = (
    "Equation 1 of “Measuring social bias in knowledge graph embeddings”: each person's embedding takes a step of 0.01 "
    "that makes {a} likelier than {b} as {sensitive}. The change of a profession's score is averaged over people; a "
    "positive one is towards {a}. Professions have at least {fewest} of these people: {num_a} {a} and {num_b} {b}."
)
PREDICTED = (
    "The profession with the highest score is predicted for each person of both groups, among those that no training "
    "triple gives the person. MRR is the price of a mitigation. A projection makes equation 1 zero by construction."
)
BEFORE_AND_AFTER = "Mean over trainings, with its 95 % interval. → 0 and → chance: the closer to it, the better."
LIMITS = (
    "A change of scores says what the embeddings encode, not that anybody is treated unfairly. Some professions belong "
    "to a group by definition. Counts are of the graph, not of the world.",
    "The attribute and its values are those of the graph. Fixed labels such as two genders leave people out, and say "
    "nothing of how people see themselves.",
    "Intervals are over trainings on one graph, and do not show what chance would give with permuted attributes.",
    "Embeddings learn triples of the attribute itself, so that probes find it in any case.",
)


def page(
    rows: pl.DataFrame,
    professions: pl.DataFrame,
    others: Collection[str],
    *,
    names: Sequence[str],
    sensitive: str,
    fewest: int,
    published: pl.DataFrame,
    demonstration: bool,
    **about: Any,
) -> Page:
    """rows: the table of results; professions: as tasks.kge.figures.profession_table has them; others: names of the
    models compared; names: of value a and value b; published: (mrr, source); about: further fields of Page."""
    state, hedge = verdict(rows, professions, names)
    num_a, num_b = (shown(figure(rows, f"people_{one}")).text for one in "ab")
    said = EQUATION.format(a=names[0], b=names[1], num_a=num_a, num_b=num_b, sensitive=sensitive, fewest=fewest)
    caption = f"{professions.height} professions, ordered by change: mean over trainings, with its 95 % interval."
    every = profession_table(professions, names, caption)
    stated = "; ".join(f"{row['mrr']:.3f} ({row['source']})" for row in published.to_dicts())
    fronts = [*filter(None, (front(rows, *one) for one in FRONT.items()))]
    explained = _of_trainings(rows).filter(~pl.col("measure").str.contains("hits|by_chance"))
    meanings = Fold("What they mean", [sections.meanings(explained)])
    certain = [one for name in (CORRELATION, AGREEMENT, MRR) if (one := figure(rows, name))]
    return Page(
        state=state,
        hedge=hedge,
        picture=picture(professions, names),
        numbers=[Number(title_of(one), shown(one).text, " ".join(shown(one).below)) for one in certain],
        sections=[
            Section(f"Professions and {sensitive}", [said, scatter(professions, names), every]),
            Section("How certain it is", [certainty(rows, others)]),
            Section("Quality and predictions", [PREDICTED, fronts, predictions(rows, stated), meanings]),
        ],
        limits=LIMITS,
        demonstration=demonstration and "A made-up graph: the figures support no claim about any group of people.",
        **about,
    )


def verdict(rows: pl.DataFrame, professions: pl.DataFrame, names: Sequence[str]) -> tuple[str, str]:
    """The state and its hedge: whether scores follow the counts, and the professions at both ends."""
    found = figure(rows, CORRELATION)
    if found is None:
        return OPEN, "Fewer than three professions change differently. Set a lower kge.fewest."
    if found["low"] is None:
        return OPEN, "One training does not show what is due to chance. Train with more seeds (kge.seeds=5)."
    if found["low"] <= 0 <= found["high"]:
        return OPEN, "The interval of the rank correlation has 0 in it. Train with more seeds (kge.seeds)."
    verb = "follow" if found["low"] > 0 else "run against"
    first, last = (", ".join(part.head(3)) for part in (professions["profession"], professions["profession"].reverse()))
    top, bottom = sides(professions, names)
    return f"Scores of professions {verb} the graph's counts", f"Professions {top}: {first}; {bottom}: {last}. {ORDER}"


def sides(professions: pl.DataFrame, names: Sequence[str]) -> tuple[str, str]:
    """The ends of the ranking in words: where all changes go one way, the other end is the one that goes least."""
    first, last = professions["change"][0], professions["change"][-1]
    top = f"most towards {names[0]}" if first > 0 else f"least towards {names[1]}"
    return top, f"most towards {names[1]}" if last < 0 else f"least towards {names[0]}"


def ends(professions: pl.DataFrame, size: int) -> pl.DataFrame:
    """The professions at both ends of the ranking."""
    return pl.concat([professions.head(size), professions.tail(size)]).unique("profession", maintain_order=True)


def picture(professions: pl.DataFrame, names: Sequence[str]) -> Picture:
    rows = ends(professions, DRAWN).select("low", "high", name="profession", value="change")
    said = "; ".join(f"{name} {number(value, 4)}" for name, value in rows.select("name", "value").iter_rows())
    label = fill(f"← {names[1]} · change of score · {names[0]} →", LONGEST_LINE)
    title = "Professions {} (top) and {} (bottom)".format(*sides(professions, names))
    return Picture("professions", GROUP, title, f"Change of score: {said}", plots.intervals(rows, label, zero=0))


@plots.styled
def scatter(professions: pl.DataFrame, names: Sequence[str]) -> Picture:
    """The change of each profession's score against its log count ratio."""
    sides = [pl.lit(fill(f"towards {name}", LONGEST_LINE)) for name in names]
    name = pl.when(pl.col("change") > 0).then(sides[0]).otherwise(sides[1])
    points = professions.select(x="log_ratio", y="change", y_low="low", y_high="high", name=name, is_mean=True)
    across = fill(f"log ratio of counts, {names[0]} to {names[1]}", LONGEST_LINE)
    drawn = plots.tradeoff(points, across, "change of score, equation 1")
    drawn.axes[0].axhline(0, color=plots.INK, lw=0.6)
    furthest = professions.with_row_index().sort((pl.col("change") - pl.col("change").mean()).abs(), descending=True)
    at, words = points.select("x", "y").to_numpy(), professions["profession"].to_list()
    plots.name_points(drawn, drawn.axes[0], words, at, furthest["index"].head(NAMED).to_list())
    alt = f"Scatter plot of {points.height} professions, with their 95 % intervals over trainings"
    return Picture("scatter", GROUP, "Score and counts, a mark for each profession", alt, drawn)


def profession_table(professions: pl.DataFrame, names: Sequence[str], caption: str) -> Table:
    """The change of each profession, and its people of each value."""
    columns = [text("profession"), Column("change of score", "change", 4, bounds="")]
    columns += figures(2, of_a=names[0], of_b=names[1], unknown="unknown", log_ratio="log ratio of counts")
    return Table(caption, columns, professions, "all-professions", "tall", "{profession}".format_map)


def certainty(rows: pl.DataFrame, others: Collection[str]) -> Table | None:
    """The agreement of trainings, of models, and of pairs of people."""
    found = [one for name in CERTAINTY if (one := figure(rows, name))]
    meaning = text("meaning", lambda row: measure_of(row["measure"]).meaning, "sentence")
    caption = "Correlations are Spearman's, from −1 to 1. Intervals of 95 % are over trainings."
    caption += f" Other models compared: {', '.join(others)}." if others else ""
    return Table(caption, [text("figure", title_of), Column("value", shown), meaning], found).present()


def _of_trainings(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("measure").is_in([one.name for one in measures("trainings") if "/" not in one.name]))


def predictions(rows: pl.DataFrame, published: str = "") -> Table | None:
    """Quality, parity and leakage as trained and after each mitigation."""
    found = _of_trainings(rows).with_columns(group="variant", variant=pl.lit(""))
    caption = BEFORE_AND_AFTER + f" Published MRR: {published}." * bool(published)
    return crossed(caption, found, TITLES, first="figure")


def front(rows: pl.DataFrame, name: str, label: str) -> Picture | None:
    """A figure of bias against MRR, before and after mitigations, and the bias by chance."""
    points: list[dict[str, Any]] = []
    for variant, title in TITLES.items():
        x, y = (figure(rows, one, variant=variant) for one in (MRR, name))
        if x and y:
            cells = {f"{axis}{end}": row[end[1:] or "value"] for axis, row in (("x", x), ("y", y)) for end in ENDS}
            points.append({"name": title, "is_mean": True, **cells})
    if len(points) < 2:
        return None
    drawn = plots.tradeoff(pl.DataFrame(points, infer_schema_length=None), "mean reciprocal rank (better →)", label)
    if chance := figure(rows, f"{name}_by_chance"):
        drawn.axes[0].axhline(chance["value"], color=plots.INK, lw=0.8, ls=":")
    said = "; ".join(f"{point['name']} {number(point['x'], 3)} and {number(point['y'])}" for point in points)
    title = f"MRR and {label} (dotted: by chance)"
    return Picture(f"front_{name}", "front", title, f"Mean reciprocal rank and {label}: {said}", drawn)


def console(rows: pl.DataFrame, professions: pl.DataFrame, names: Sequence[str], *, brief: bool) -> str:
    """The professions at both ends, and all figures where they are asked for."""
    found = [profession_table(ends(professions, 5 if brief else 20), names, ""), None if brief else predictions(rows)]
    return "\n\n".join(as_text(one, 110) for one in found if one)
