"""Plan of a profile, read and checked before anything is computed: runs of generators, of embeddings and of frames, and
the targets of the profile."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import FinishedRun, folders, open_run, read_runs, short_names
from mitigate.score.frames import FILE
from mitigate.tasks.ask.run_index import Index
from mitigate.tasks.compare import scorers
from mitigate.triples import label_columns
from mitigate.verbalise import MASK
from mitigate.words.outside_text import counted
from mitigate.words.targets import TargetList
from mitigate.words.word_forms import any_of

PROFESSIONS = "professions.parquet"
KEPT = ("target", "category", "relation", "tail", "rank", "statement")
FEW_RELATIONS = 20


@dataclass(frozen=True, eq=False)
class Grid:
    """Statements of one generator about the targets of the profile and their peers."""

    title: str  # of the run among the others
    run: FinishedRun
    statements: pl.DataFrame  # KEPT, cluster, and a column of labels for each scorer, with its name
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
    source: str  # the hash of all that was read

    @property
    def runs(self) -> list[FinishedRun]:
        """Runs of the generators."""
        return [grid.run for grid in self.grids]


def make_plan(
    runs: str | Sequence[str] | None, targets: Sequence[str], kge: str | None = None, frames: str | None = None
) -> ProfilePlan:
    """Read and check runs and targets. Raises MitigateError for no run or no target, a folder that is not a finished
    run of the right recipe, and a target that a run was not probed with or has no peers of."""
    places = list(dict.fromkeys(folders(runs)))
    if not places:
        raise MitigateError(
            "profile.runs is empty; set it to finished runs of recipe=mitigate: profile.runs=[DIR,DIR,...]"
        )
    found = read_runs(places, "mitigate", "profile.runs")
    indices = [Index(run) for run in found]
    if not targets:
        names = ", ".join(indices[0].targets["target"].head(3))
        raise MitigateError(f"profile.targets is empty; set it to targets of the runs, such as {names}")
    words = [_find_target(name, indices) for name in targets]
    titles = short_names({str(run.folder): {"policy": run.policy, "seed": run.seed} for run in found})
    grids = [_grid(title, index, words) for title, index in zip(titles, indices, strict=True)]
    embeddings = read_runs([kge], "kge", "profile.kge", [PROFESSIONS])[0] if kge else None
    try:
        framed = open_run(frames, "frames", figures=FILE) if frames else None
    except MitigateError as error:
        raise MitigateError(
            f"profile.frames: {error} Set it to the folder of a finished run of recipe=frames, which contains {FILE}."
        ) from error
    others = [run for run in (embeddings, framed) if run is not None]
    return ProfilePlan(
        grids=grids,
        targets=list(dict.fromkeys(words)),
        kge=embeddings,
        frames=framed,
        scorers=scorers.shared_roles(found),
        notices=list(_notices(grids)),
        source=digest_of(json.dumps([words, *([run.folder.name, run.digest] for run in (*found, *others))])),
    )


def _find_target(given: str, indices: Sequence[Index]) -> str:
    """Find a target as the runs spell it. Raises MitigateError for a run that was not probed with it or a peer of
    it."""
    for index in indices:
        word, clusters = index.target_list.named(given), index.target_list.clusters
        of_run = dict(index.probed.select("target", "category").unique(maintain_order=True).iter_rows())
        if word not in of_run:
            raise MitigateError(
                f"profile.targets: {given!r} is not a target of {index.run.folder}{did_you_mean(given, of_run)}; "
                f"allowed: its {len(of_run)} targets, listed in its tables/targets.csv or its probe.targets"
            )
        same = [name for name, category in of_run.items() if category == of_run[word]]
        if all(cluster_of(name, clusters) == cluster_of(word, clusters) for name in same):
            raise MitigateError(
                f"profile.targets: {word} has no peers in {index.run.folder}, no other target of the category "
                f"{of_run[word]}; choose another target, or a run with more targets (probe.targets)"
            )
    return indices[0].target_list.named(given)


def _grid(title: str, index: Index, targets: Sequence[str]) -> Grid:
    probed = index.probed
    categories = probed.filter(pl.col("target").is_in(list(targets)))["category"].unique()
    names = [name for name in probed.columns if f"{name}_strength" in probed.columns and not name.endswith("_neutral")]
    neutral = {name: label_columns(name, "neutral")[0] for name in names}
    labels = [pl.col(column if column in probed.columns else name).alias(name) for name, column in neutral.items()]
    cluster = pl.col("target").replace(index.target_list.clusters).alias("cluster")
    rows = probed.filter(pl.col("category").is_in(categories.to_list()), pl.col("tail") != "")
    return Grid(title, index.run, rows.select(*KEPT, cluster, *labels), index.target_list)


def _notices(grids: Sequence[Grid]) -> Iterator[str]:
    """Limits that a reader must know before the figures."""
    columns = [grid.scorers for grid in grids]
    if len(grids) > 1:
        yield from scorers.notices([grid.run for grid in grids], columns)
    for grid in grids:
        probed = grid.statements["relation"].n_unique()
        if probed < FEW_RELATIONS:
            relations = counted(probed, "relation")
            yield f"The run {grid.title} was probed with {relations}: intervals over so few are rough. COMeT has 34."


def cluster_of(target: str, clusters: Mapping[str, str]) -> str:
    """The word that stands for a target and its inflections: she for her, china for chinese."""
    return clusters.get(target, target)


def forms_of(target: str, target_list: TargetList) -> str:
    """A regular expression for the target, its inflections and its own further forms, as whole words."""
    clusters = target_list.clusters
    same = [word for word in clusters if clusters[word] == cluster_of(target, clusters)]
    own = [form for form, word in target_list.spelt.items() if word == target]
    return any_of([target, *same, *own])


def without_name(statements: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    """Add `said` to statements (target, tail): the tail in lower case with "this person" in place of its own target. A
    tail that only names its target is then the same for all targets, such as "speak chinese" for chinese and "speak
    indian" for indian."""
    tail = pl.col("tail").str.to_lowercase().str.strip_chars()
    parts = [
        part.with_columns(said=tail.str.replace_all(forms_of(target, target_list), MASK))
        for (target,), part in statements.partition_by("target", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat(parts)
