"""Three sides of each of some targets as one HTML page that loads nothing, and in short on the terminal: what
generators say of it and not of its peers, where embeddings place it, and what its statements imply. The worst first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate.report.examples import label_column
from mitigate.report.html import Page, render_page
from mitigate.report.kge import profession_table
from mitigate.report.metric_display import number
from mitigate.report.plots import among_peers
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, as_text, text, with_bounds
from mitigate.report.table_declarations import declared

NEGATIVE, POSITIVE = "/negative", "/positive"
FEW, FEW_NEGATIVE = "distinctive", "distinctive_negative"
PROBABILITY = "frames/probability"
FRAMES = {PROBABILITY: "mean probability (%)", "frames/offensive": "labelled as offensive (%)"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile(Page):
    """The content of the page; an absent side stays None."""

    targets: Sequence[str]  # in any order
    runs: Sequence[str]  # titles of the generators
    scorers: Mapping[str, str]  # of the roles, whose reliability is shown
    few: float  # percent of peers
    top: int  # rows of a table
    figures: pl.DataFrame  # tasks.target_profile.statements.figures, of all targets of the categories
    distinctive: pl.DataFrame  # tasks.target_profile.statements.distinctive
    graph: Mapping[str, Any] | None = None  # tasks.target_profile.embeddings.about
    placed: pl.DataFrame | None = None  # tasks.target_profile.embeddings.placed
    framed: pl.DataFrame | None = None  # tasks.target_profile.statements.frame_figures
    implied: pl.DataFrame | None = None  # tasks.target_profile.statements.implied
    most_peers: int = 0  # whose statements the model of frames reads

    @cached_property
    def ordered(self) -> list[str]:
        """The targets, the worst first: by the largest difference of a negative share, over runs and scorers."""
        return sorted(self.targets, key=lambda target: -worst(self, target)["difference"])

    @property
    def lines(self) -> list[str]:
        """The finding on each target in words."""
        return [summary(self, target) for target in self.ordered]

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return [_picture(self, target, place) for place, target in enumerate(self.ordered, start=1)]


def render(profile: Profile) -> str:
    """The page's HTML, always the same for the same profile."""
    return render_page(
        "profile.html.jinja",
        profile,
        sentences=profile.lines,
        scorers=profile.scorers,
        sides=[_side(profile, target, place) for place, target in enumerate(profile.ordered)],
    )


NOT_LABELS = ("run", "target", "relation", "tail", "statement", "rank", "having", "peers")


def name_of(figure: str, few: float) -> str:
    """A figure in words."""
    if figure in (FEW, FEW_NEGATIVE):
        return f"said of at most {few:g} % of the peers{', and negative' if figure == FEW_NEGATIVE else ''}"
    scorer, _, sign = figure.rpartition("/")
    return f"{sign} by {scorer}"


def worst(profile: Profile, target: str) -> dict[str, Any]:
    """The row of the negative share that lies furthest above the peers' mean."""
    rows = profile.figures.filter(pl.col("target") == target, pl.col("figure").str.ends_with(NEGATIVE))
    return rows.sort("difference", descending=True, maintain_order=True).row(0, named=True)


def summary(profile: Profile, target: str) -> str:
    """The finding on a target: its largest difference from its peers, and how common such a difference is."""
    row = worst(profile, target)
    whose = f" ({row['run']})" if len(profile.runs) > 1 else ""
    side = "above" if row["difference"] >= 0 else "below"
    peers = "its only peer" if row["peers"] == 1 else f"the mean of its {row['peers']} peers"
    end = ": no difference shown."
    if row["beyond"]:
        many = row["peers_beyond"]
        end = f"; {many} of these peers differ from their own, too." if many else "; no peer differs from its own."
    share = f"{number(row['value'], 1)}\u00a0% of its statements are {name_of(row['figure'], profile.few)}"
    apart, bounds = number(abs(row["difference"]), 1), "".join(f" {known}" for known in _difference(row).below)
    return f"{target}{whose}: {share}, {apart} percentage points {side} {peers}{bounds}{end}"


def _difference(row: Mapping[str, Any]) -> Cell:
    """A difference from the peers."""
    return with_bounds(row, "difference", of="")


def console(profile: Profile) -> str:
    """The findings, and each target's figures."""
    several = len(profile.runs) > 1
    columns = [
        text("", lambda row: (name_of(row["figure"], profile.few) + f" ({row['run']})" * several)[:66]),
        Column("value", "value", show=1),
        Column("peers", "peers_mean", show=1),
        Column("difference", _difference),
    ]
    blocks = []
    for target in profile.ordered:
        rows = profile.figures.filter(target=target).sort("figure", maintain_order=True).rows(named=True)
        sides = [f"    {said}" for said in _sides(profile, target)]
        blocks.append("\n".join([as_text(Table("", columns, {target: rows})), *sides]))
    return "\n\n".join(blocks)


def _sides(profile: Profile, target: str) -> Iterator[str]:
    """The other two sides of a target in a line each."""
    if profile.placed is not None and profile.graph:
        rows = profile.placed.filter(target=target)
        if rows.is_empty():
            yield f"embeddings: {unknown(profile.graph, target)}"
        elif not _is_value(rows):
            yield f"embeddings: {place_of(rows.row(0, named=True), profile.graph)}"
        else:
            names = ", ".join(rows["profession"].head(3)), ", ".join(rows["profession"].tail(3).reverse())
            yield f"embeddings: nearest are {names[0]}; farthest are {names[1]}"
    yield from name_or_said(profile, target)


def name_or_said(profile: Profile, target: str) -> Iterator[str]:
    """Yield a sentence for each run on the two parts of the difference of the mean probability, which add up: that due
    to the content of the statements, and that due to the name alone."""
    if profile.framed is None:
        return
    rows = profile.framed.filter(target=target, figure=PROBABILITY)
    for run in rows["run"].unique(maintain_order=True):
        known = {row["wording"]: row for row in rows.filter(run=run).iter_rows(named=True)}
        whole, said = known["as generated"], known["with the same name"]
        apart = number(whole["difference"] - said["difference"], 1)
        whose = f"{run}: t" if len(profile.runs) > 1 else "T"
        yield (
            f"{whose}he mean probability of offending a group is {number(whole['value'], 1)}\u00a0%, a difference of "
            f"{_difference(whole).line} percentage points from the peers. Due to what is said: "
            f"{_difference(said).line}; due to the name alone: {apart}."
        )


def unknown(graph: Mapping[str, Any], target: str) -> str:
    """That a graph does not know a target."""
    return (
        f"The graph of this run ({graph['data']}) does not know {target}: it is neither a value of "
        f"{graph['sensitive']} ({' or '.join(graph['values'])}) nor a profession that enough people have."
    )


def place_of(row: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    """Where a profession stands among the others."""
    first, second = graph["values"]
    band = "No band of permuted graphs was made, so that chance cannot be ruled out."
    if row["outside"] is not None:
        band = (
            f"The band of graphs with permuted attributes is {number(row['null_low'], 4)} to "
            f"{number(row['null_high'], 4)}; the change is {'outside' if row['outside'] else 'within'} it, as are "
            f"{_same(row)} of the other {row['professions'] - 1} professions."
        )
    return (
        f"The score changes by {with_bounds(row, 'change', 4, of='').line} towards {first} (below 0: towards "
        f"{second}), place {row['place']} of {row['professions']} professions. {band}"
    )


def _same(row: Mapping[str, Any]) -> int:
    """Number of other professions on the same side of their bands."""
    others = row["professions"] - 1
    return row["others_outside"] if row["outside"] else others - row["others_outside"]


def _side(profile: Profile, target: str, place: int) -> dict[str, Any]:
    """The content of a target's part of the page."""
    mine = profile.figures.filter(target=target)
    order = {name: number for number, name in enumerate(mine["figure"].unique(maintain_order=True))}
    rows = mine.sort(pl.col("figure").replace_strict(order), maintain_order=True)
    found = profile.distinctive.filter(target=target)
    content = {
        "target": target,
        "category": mine["category"][0],
        "peers": int(mine["peers"].max()),  # type: ignore[arg-type]
        "picture": profile.pictures[place],
        "figures": _peer_table(
            "profile figures", profile, rows, lambda row: name_of(row["figure"], profile.few), target
        ),
        "distinctive": {run: _distinctive_table(profile, target, run, found.filter(run=run)) for run in profile.runs},
        "place": None,
        "ends": [],
        "framed": None,
    }
    return content | _embedded(profile, target) | _framed(profile, target)


def _peer_table(name: str, profile: Profile, rows: pl.DataFrame, named: Callable[[Any], str], target: str) -> Table:
    """A table of figures of a target and its peers."""

    def difference(row: Mapping[str, Any]) -> Cell:
        cell = _difference(row)
        return cell._replace(text=Markup("<strong>{}</strong>").format(cell.text)) if row["beyond"] else cell

    def peers(row: Mapping[str, Any]) -> Cell:
        return Cell(number(row["peers_mean"], 1), [f"{number(row['peers_low'], 1)}, {number(row['peers_high'], 1)}"])

    cells = {
        "figure_in_words": named,
        "difference_from_peers": difference,
        "mean_of_peers": peers,
        "place_among_peers": lambda row: f"{row['place']} of {row['peers'] + 1}",
    }
    return declared(name, rows, cells=cells, without=() if len(profile.runs) > 1 else ("run",), target=target)


def _distinctive_table(profile: Profile, target: str, run: str, rows: pl.DataFrame) -> Table | None:
    """The worst statements that few peers have; None without any."""
    labels = [name for name in profile.distinctive.columns if name not in NOT_LABELS]
    shown = min(profile.top, rows.height)
    if not shown:
        return None
    return declared(
        "profile distinctive statements",
        rows.head(shown),
        more=[label_column(name, name) for name in labels],
        the=f"{_of_run(profile, run)}he",
        shown=shown,
        number=number(rows.height),
    )


def _of_run(profile: Profile, run: str) -> str:
    """The begin of a caption that "he ..." follows: it names the run where there are several."""
    return f"{run}: t" if len(profile.runs) > 1 else "T"


def _embedded(profile: Profile, target: str) -> dict[str, Any]:
    """The place of a target among embeddings, in words or as the professions at both ends."""
    graph, placed = profile.graph, profile.placed
    if not graph or placed is None:
        return {}
    rows = placed.filter(target=target)
    if rows.is_empty():
        return {"place": unknown(graph, target)}
    if not _is_value(rows):
        return {"place": place_of(rows.row(0, named=True), graph)}
    other = "".join(value for value in graph["values"] if value != target)
    size = min(profile.top, max(1, rows.height // 2))
    ends = {"nearest to": rows.head(size), "farthest from": rows.reverse().head(size)}
    return {
        "ends": [
            profession_table("profile professions", found, graph["values"], end=end, target=target, other=other)
            for end, found in ends.items()
        ]
    }


def _framed(profile: Profile, target: str) -> dict[str, Any]:
    """The tables of what the statements of a target imply."""
    if profile.framed is None:
        return {}
    implied = profile.implied
    rows = profile.framed.filter(target=target)
    table = _peer_table(
        "profile frames", profile, rows, lambda row: f"{FRAMES[row['figure']]}, {row['wording']}", target
    )
    tables = [] if implied is None else [_implied_table(profile, target, run, implied) for run in profile.runs]
    return {"framed": table, "name_or_said": list(name_or_said(profile, target)), "implied": tables}


def _implied_table(profile: Profile, target: str, run: str, implied: pl.DataFrame) -> Table:
    rows = implied.filter(target=target, run=run)
    return declared(
        "profile implied",
        rows,
        cells={"probability": lambda row: 100 * row["probability"]},
        the=f"{_of_run(profile, run)}he",
        number=rows.height,
        different=rows["implies"].n_unique(),
    )


def _is_value(placed: pl.DataFrame) -> bool:
    """True if the target is a value of the sensitive attribute."""
    return placed.height > 0 and placed["known_as"][0] == "value"


def _picture(profile: Profile, target: str, place: int) -> Picture:
    shares = pl.col("figure").str.ends_with(NEGATIVE) | pl.col("figure").str.ends_with(POSITIVE)
    mine = pl.col("target") == target
    category, cluster = profile.figures.filter(mine).select("category", "cluster").row(0)
    rows = profile.figures.filter(shares, category=category).filter(mine | (pl.col("cluster") != cluster))
    seen = "; ".join(
        f"{name_of(row['figure'], profile.few)} {number(row['value'], 1)} %, peers {number(row['peers_low'], 1)} to "
        f"{number(row['peers_high'], 1)} %"
        for row in rows.filter(target=target).iter_rows(named=True)
    )
    return Picture(
        f"peers-{place}", "peers", f"{target} among its peers", f"Dots of {target}: {seen}.", among_peers(rows, target)
    )
