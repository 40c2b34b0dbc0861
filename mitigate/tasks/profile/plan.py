"""What a profile has read and checked before it computes anything: runs of generators, of embeddings and of frames, and
the targets that are asked about."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import FinishedRun, folders, open_run, read_runs, short_names
from mitigate.score.frames import FILE
from mitigate.tasks.ask.answerable import Known
from mitigate.tasks.compare import scorers
from mitigate.tasks.profile.words import cluster_of
from mitigate.triples import label_columns
from mitigate.words.target_list import TargetList

PROFESSIONS = "professions.parquet"
KEPT = ("target", "category", "relation", "tail", "rank", "statement")
FEW_RELATIONS = 20


@dataclass(frozen=True, eq=False)
class Grid:
    """What one generator says of the targets that are asked about, and of their peers."""

    title: str  # of the run among the others
    run: FinishedRun
    statements: pl.DataFrame  # KEPT, cluster, and a column of labels for each scorer, called by its name
    target_list: TargetList

    @property
    def scorers(self) -> list[str]:
        """The names of the columns of labels."""
        return [name for name in self.statements.columns if name not in (*KEPT, "cluster")]


@dataclass(frozen=True, eq=False)
class ProfilePlan:
    """Runs and targets that have been read and found fit."""

    grids: list[Grid]
    targets: list[str]
    kge: FinishedRun | None
    frames: FinishedRun | None
    scorers: dict[str, str]  # of the roles, where all runs share them
    notices: list[str]
    source: str  # the hash of what is read

    @property
    def runs(self) -> list[FinishedRun]:
        """Of the generators."""
        return [grid.run for grid in self.grids]


def make_plan(
    runs: str | Sequence[str] | None, targets: Sequence[str], kge: str | None = None, frames: str | None = None
) -> ProfilePlan:
    """Read what is named. Raises MitigateError for no run or no target, a folder that is no finished run of the recipe
    that is needed, and a target that a run does not know or has no peers of."""
    places = list(dict.fromkeys(folders(runs)))
    if not places:
        raise MitigateError(
            "profile.runs names no run; name one or more finished runs of recipe=mitigate: profile.runs=[DIR,DIR,...]"
        )
    found = read_runs(places, "mitigate", "profile.runs")
    known = [Known(run) for run in found]
    if not targets:
        names = ", ".join(known[0].targets["target"].head(3))
        raise MitigateError(f"profile.targets names no target; name some of the runs', such as {names}")
    asked = [_target(name, known) for name in targets]
    titles = short_names({str(run.folder): {"policy": run.policy, "seed": run.seed} for run in found})
    grids = [_grid(title, run, one, asked) for title, run, one in zip(titles, found, known, strict=True)]
    embeddings = read_runs([kge], "kge", "profile.kge", [PROFESSIONS])[0] if kge else None
    framed = _frames(frames) if frames else None
    others = [run for run in (embeddings, framed) if run is not None]
    return ProfilePlan(
        grids=grids,
        targets=list(dict.fromkeys(asked)),
        kge=embeddings,
        frames=framed,
        scorers=scorers.shared_roles(found),
        notices=list(_notices(grids)),
        source=digest_of(json.dumps([asked, *([run.folder.name, run.digest] for run in (*found, *others))])),
    )


def _target(given: str, runs: Sequence[Known]) -> str:
    """The target that is meant. Raises MitigateError where a run was not probed with it, or with no peer of it."""
    for known in runs:
        word = known.target_list.named(given)
        of_run = dict(known.probed.select("target", "category").unique(maintain_order=True).iter_rows())
        if word not in of_run:
            raise MitigateError(
                f"profile.targets: {given!r} is not a target of {known.run.folder}{did_you_mean(given, of_run)}; its "
                f"{len(of_run)} targets are in its tables/targets.csv, or are what its probe.targets names"
            )
        clusters = known.target_list.clusters
        same = [name for name, category in of_run.items() if category == of_run[word]]
        if all(cluster_of(name, clusters) == cluster_of(word, clusters) for name in same):
            raise MitigateError(
                f"profile.targets: {word} has no peers in {known.run.folder}, no other target of the category "
                f"{of_run[word]}; name another target, or a run with more of them (probe.targets)"
            )
    return runs[0].target_list.named(given)


def _grid(title: str, run: FinishedRun, known: Known, asked: Sequence[str]) -> Grid:
    probed = known.probed
    categories = probed.filter(pl.col("target").is_in(list(asked)))["category"].unique()
    names = [name for name in probed.columns if f"{name}_strength" in probed.columns and not name.endswith("_neutral")]
    neutral = {name: label_columns(name, "neutral")[0] for name in names}
    labels = [pl.col(column if column in probed.columns else name).alias(name) for name, column in neutral.items()]
    clusters = known.target_list.clusters
    cluster = pl.col("target").replace(clusters).alias("cluster")
    rows = probed.filter(pl.col("category").is_in(categories.to_list()), pl.col("tail") != "")
    return Grid(title, run, rows.select(*KEPT, cluster, *labels), known.target_list)


def _frames(folder: str) -> FinishedRun:
    """The finished run of recipe=frames. Raises MitigateError for anything else, and where it left no scorer."""
    try:
        return open_run(folder, "frames", figures=FILE)
    except MitigateError as error:
        raise MitigateError(
            f"profile.frames: {error} Name the folder of a finished run of recipe=frames, which holds {FILE}."
        ) from error


def _notices(grids: Sequence[Grid]) -> Iterator[str]:
    """What a reader must know before the figures."""
    columns = [grid.scorers for grid in grids]
    if len(grids) > 1:
        yield from scorers.notices([grid.run for grid in grids], columns)
    for grid in grids:
        asked = grid.statements["relation"].n_unique()
        if asked < FEW_RELATIONS:
            words = "1 relation" if asked == 1 else f"{asked} relations"
            yield f"The run {grid.title} was asked {words}: intervals over so few are rough. COMeT has 34."


def facts_of(run: FinishedRun) -> dict[str, Any]:
    """Where a side of the page comes from."""
    return {"run": run.folder.name, "command": run.manifest.get("command")}
