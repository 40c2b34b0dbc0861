"""Three sides of each of some targets as one HTML page that loads nothing, and in short on the terminal: what
generators say of it and not of its peers, where embeddings place it, and what its statements imply. The worst first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from mitigate.report.examples import label_column
from mitigate.report.html import Page, render_page
from mitigate.report.kge import profession_table
from mitigate.report.metric_display import number
from mitigate.report.plots import among_peers
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Table, as_text, with_bounds
from mitigate.report.table_declarations import declared

NEGATIVE, POSITIVE = "/negative", "/positive"
FEW, FEW_NEGATIVE = "distinctive", "distinctive_negative"
PROBABILITY = "frames/probability"
WORDINGS = "as generated", "with the same name"
FRAMES = {PROBABILITY: "mean probability (%)", "frames/offensive": "labelled as offensive (%)"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile(Page):
    """The content of the page; an absent side stays None."""

    targets: Sequence[str]  # in any order
    runs: Sequence[str]  # titles of the generators
    scorers: Mapping[str, str]  # of the roles, whose reliability is shown
    few: float  # percent of peers
    top: int  # rows of a table
    figures: pl.DataFrame  # tasks.target_profile.measures.figures, of all targets of the categories
    distinctive: pl.DataFrame  # tasks.target_profile.measures.distinctive
    graph: Mapping[str, Any] | None = None  # tasks.target_profile.measures.about
    placed: pl.DataFrame | None = None  # tasks.target_profile.measures.placed
    framed: pl.DataFrame | None = None  # tasks.target_profile.measures.frame_figures
    implied: pl.DataFrame | None = None  # tasks.target_profile.measures.implied
    most_peers: int = 0  # whose statements the model of frames reads

    @cached_property
    def ordered(self) -> list[str]:
        """The targets, the worst first: by the largest difference of a negative share, over runs and scorers."""
        return sorted(self.targets, key=lambda target: -worst(self, target)["difference"])

    @property
    def lines(self) -> list[str]:
        return [summary(self, target) for target in self.ordered]

    @cached_property
    def pictures(self) -> list[Picture]:
        return [_picture(self, target, place) for place, target in enumerate(self.ordered, start=1)]


def render(profile: Profile) -> str:
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
    rows = profile.figures.filter(pl.col("figure").str.ends_with(NEGATIVE), target=target)
    return rows.sort("difference", descending=True, maintain_order=True).row(0, named=True)


def summary(profile: Profile, target: str) -> str:
    """The finding on a target: its largest difference from its peers, and how common such a difference is."""
    row = worst(profile, target)
    of_run = f" ({row['run']})" if len(profile.runs) > 1 else ""
    side = "above" if row["difference"] >= 0 else "below"
    peers = "its only peer" if row["peers"] == 1 else f"the mean of its {row['peers']} peers"
    end = ": no difference shown."
    if row["beyond"]:
        many = row["peers_beyond"]
        end = f"; {many} of these peers differ from their own, too." if many else "; no peer differs from its own."
    share = f"{number(row['value'], 1)}\u00a0% of its statements are {name_of(row['figure'], profile.few)}"
    apart = " ".join([number(abs(row["difference"]), 1), f"percentage points {side} {peers}", *_difference(row).below])
    return f"{target}{of_run}: {share}, {apart}{end}"


def _difference(row: Mapping[str, Any]) -> Cell:
    return with_bounds(row, "difference", of="")


def console(profile: Profile) -> str:
    tables = [_figure_table(profile, target, "place_among_peers", "peers_that_differ") for target in profile.ordered]
    return "\n\n".join(f"{target}\n{as_text(table)}" for target, table in zip(profile.ordered, tables, strict=True))


def _side(profile: Profile, target: str, place: int) -> dict[str, Any]:
    mine = profile.figures.filter(target=target)
    content = {
        "target": target,
        "category": mine["category"][0],
        "peers": int(mine["peers"].max()),  # type: ignore[arg-type]
        "picture": profile.pictures[place],
        "figures": _figure_table(profile, target),
        "distinctive": {run: _distinctive_table(profile, target, run) for run in profile.runs},
        "place": None,
        "ends": [],
        "framed": None,
    }
    return content | _embedded(profile, target) | _framed(profile, target)


def _figure_table(profile: Profile, target: str, *without: str) -> Table:
    """The figures of a target and its peers, those of a figure together."""
    mine = profile.figures.filter(target=target)
    order = {name: number for number, name in enumerate(mine["figure"].unique(maintain_order=True))}
    rows = mine.sort(pl.col("figure").replace_strict(order), maintain_order=True)
    return _peer_table("figures", profile, rows, lambda row: name_of(row["figure"], profile.few), *without)


def _peer_table(name: str, profile: Profile, rows: pl.DataFrame, named: Callable[[Any], str], *without: str) -> Table:
    left_out = without if len(profile.runs) > 1 else ("run", *without)
    shown, cells = rows.with_columns(places=pl.col("peers") + 1), {"figure_in_words": named}
    return declared(f"profile {name}", shown, cells=cells, without=left_out, target=rows["target"][0])


def _distinctive_table(profile: Profile, target: str, run: str) -> Table | None:
    """The worst statements that few peers have; None without any."""
    rows = profile.distinctive.filter(target=target, run=run)
    labels = [label_column(name, name) for name in rows.columns if name not in NOT_LABELS]
    words: dict[str, Any] = {
        "the": _the(profile, run),
        "shown": min(profile.top, rows.height),
        "number": number(rows.height),
    }
    shown = rows.head(profile.top)
    return declared("profile distinctive statements", shown, more=labels, **words) if shown.height else None


def _the(profile: Profile, run: str) -> str:
    """The first word of a caption, after the name of the run where there are several."""
    return f"{run}: the" if len(profile.runs) > 1 else "The"


def _embedded(profile: Profile, target: str) -> dict[str, Any]:
    """The place of a target among embeddings, as a row or as the professions at both ends; neither if it is not in the
    graph."""
    graph, placed = profile.graph, profile.placed
    rows = None if placed is None else placed.filter(target=target)
    if not graph or rows is None or rows.is_empty():
        return {}
    if rows["known_as"][0] != "value":
        row = rows.row(0, named=True)
        return {"place": row | {"moved": with_bounds(row, "change", 4, of="").line}}
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
    """The tables of what the statements of a target imply, and for each run the two parts of the difference of the mean
    probability: that due to the content of the statements, and that due to the name alone."""
    if profile.framed is None:
        return {}
    rows, implied = profile.framed.filter(target=target), profile.implied
    parts = []
    for (run,), found in rows.filter(figure=PROBABILITY).group_by("run", maintain_order=True):
        known = {row["wording"]: row for row in found.rows(named=True)}
        whole, same_name = (known[wording] for wording in WORDINGS)
        name = number(whole["difference"] - same_name["difference"], 1)
        lines = {"whole": _difference(whole).line, "said": _difference(same_name).line}
        parts.append({"run": run, "value": whole["value"], "name": name, **lines})
    tables = [] if implied is None else [_implied_table(profile, target, run, implied) for run in profile.runs]
    frames = _peer_table("frames", profile, rows, lambda row: f"{FRAMES[row['figure']]}, {row['wording']}")
    return {"framed": frames, "name_or_said": parts, "implied": tables}


def _implied_table(profile: Profile, target: str, run: str, implied: pl.DataFrame) -> Table:
    rows = implied.filter(target=target, run=run).with_columns(pl.col("probability") * 100)
    words: dict[str, Any] = {"the": _the(profile, run), "number": rows.height, "different": rows["implies"].n_unique()}
    return declared("profile implied", rows, **words)


def _picture(profile: Profile, target: str, place: int) -> Picture:
    is_share = pl.col("figure").str.contains(f"{NEGATIVE}$|{POSITIVE}$")
    mine = profile.figures.filter(is_share, target=target)
    category, cluster = profile.figures.filter(target=target).select("category", "cluster").row(0)
    is_compared = (pl.col("target") == target) | (pl.col("cluster") != cluster)
    rows = profile.figures.filter(is_share, is_compared, category=category)
    seen = "; ".join(
        f"{name_of(row['figure'], profile.few)} {number(row['value'], 1)} %, peers {number(row['peers_low'], 1)} to "
        f"{number(row['peers_high'], 1)} %"
        for row in mine.iter_rows(named=True)
    )
    alt, title = f"Dots of {target}: {seen}.", f"{target} among its peers"
    return Picture(f"peers-{place}", "peers", title, alt, among_peers(rows, target))
