"""The skeleton of every comparison: the plan of the runs that are compared, and the two stages that all kinds share.

A kind (runs, audits, embeddings) is a module with the functions of Kind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from mitigate.errors import MitigateError
from mitigate.report.html import save
from mitigate.runs import files
from mitigate.runs.finished import NOT_GIVEN, FinishedRun, read_runs, source_of
from mitigate.tasks.compare.endpoints import Endpoints

MOST_DIFFERENT = 5  # targets that are shown: those that rose, and as many that fell
Stage = Callable[..., Any]
"""The runner of a stage: stage(name, function, *values)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """Finished runs that have been read and checked. Each kind adds its own fields."""

    runs: Sequence[FinishedRun]
    titles: Sequence[str]  # of the compared policies, resources or models
    notices: list[str]  # limits of the findings
    source: str  # the hash of the compared figures, without the folders
    folders: list[str] = field(init=False)  # comparison.json names them, so it follows runs that are moved

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", [str(run.folder) for run in self.runs])

    @property
    def demonstration(self) -> bool:
        return any(run.setting("data.demonstration") for run in self.runs)

    @property
    def about(self) -> dict[str, Any]:
        """The settings of the runs for the manifest and W&B, data and model first."""
        return shared_settings(self.runs)

    @property
    def name_parts(self) -> list[str]:
        """The parts of the run folder's name."""
        about = self.about
        return [about["data"]["name"], *([about["model"]["name"]] if "model" in about else [])]

    def page_fields(self, folder: Path) -> dict[str, Any]:
        """The fields that every page takes from the plan."""
        return {"name": folder.name, "demonstration": self.demonstration, "notices": self.notices}

    @property
    def tracked(self) -> dict[str, list[str]]:
        """The names by which W&B groups and tags the comparison: of data, and of policies or models."""
        return {"data": [str(run.text("data.name")) for run in self.runs]}

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the runs for the page."""
        return {title: self.origin_of(run) for title, run in zip(self.titles, self.runs, strict=True)}

    def origin_of(self, run: FinishedRun) -> dict[str, Any]:
        """The origin of a run for the page: the name of its folder, and its command."""
        return {"run": run.folder.name, "command": run.manifest.get("command")}


class Kind(Protocol):
    """The functions and constants of a kind's module.

    read_plan reads and checks the folders that settings name, and raises MitigateError where they cannot be compared.
    measure runs the stages of figures, and returns their results. page_of makes the page of them, with its `frames`,
    `pictures`, and the rows of its `differences`; about: fields of Page. content_of: the content of comparison.json."""

    DEMONSTRATION: str  # the sentence on the terminal for runs on demonstration data
    UPLOADS: Sequence[str]  # to W&B besides settings and metrics, in words

    def read_plan(self, runs: Any, baseline: Any, endpoints: Endpoints) -> Any: ...
    def measure(self, stage: Stage, plan: Any) -> list[Any]: ...
    def page_of(self, plan: Any, *figures: Any, folder: Path, **about: Any) -> Any: ...
    def content_of(self, plan: Any, page: Any) -> dict[str, Any]: ...
    def render(self, page: Any) -> str: ...


def compare(kind: Kind, plan: Plan, *figures: Any) -> dict[str, Any]:
    """The content of comparison.json. figures: the results of kind.measure."""
    return kind.content_of(plan, kind.page_of(plan, *figures, folder=Path(), command=""))


def write_page(kind: Kind, plan: Plan, *figures: Any, folder: Path, **about: Any) -> dict[str, Any]:
    """Write comparison.html, its pictures and tables. about: the page's command, stages and facts."""
    page = kind.page_of(plan, *figures, folder=folder, **about)
    files.write(folder / "comparison.html", kind.render(page))
    save(folder, page.frames, page.pictures)
    return {"notices": plan.notices}


def read_two(folders: Iterable[str | Path], recipe: str, noun: str, needs: Sequence[str]) -> list[FinishedRun]:
    """Open the two finished runs of a recipe. Raises MitigateError for another number, and for other folders."""
    runs = read_runs(dict.fromkeys(folders), recipe, "compare.runs", needs)
    if len(runs) != 2:
        raise MitigateError(
            f"compare.runs must name 2 different {noun}; it names {len(runs)}. Name them by compare.runs=[DIR,DIR], in "
            "the order of the page"
        )
    return runs


def differing_settings(runs: Sequence[FinishedRun], names: Iterable[str]) -> dict[str, list[Any]]:
    """The settings of these names that differ between two runs: name -> both values."""
    found = {name: [run.setting(name) for run in runs] for name in names}
    return {name: values for name, values in found.items() if values[0] != values[1]}


def shared_settings(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """The data and the model of runs; "several" where they differ."""

    def shared(setting: str) -> str:
        names = {run.text(setting) or NOT_GIVEN for run in runs}
        return names.pop() if len(names) == 1 else "several"

    data = {key: shared(f"data.{key}") for key in ("name", "licence", "attribution")} | data_flags(runs)
    return {"data": data, "model": {"name": shared("model.name")}}


def names_of(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """The policies, data and models of runs, which tag the record in W&B."""
    return {group: [str(run.text(f"{group}.name")) for run in runs] for group in ("policy", "data", "model")}


def data_flags(runs: Sequence[FinishedRun]) -> dict[str, bool]:
    """Return whether any of the runs has texts of a user's own or a demonstration's, for W&B and the page."""
    return {key: any(run.setting(f"data.{key}") for run in runs) for key in ("own_texts", "demonstration")}


def data_source(run: FinishedRun) -> str:
    """The run's data with attribution and licence."""
    return source_of({name: run.text(f"data.{name}") for name in ("name", "attribution", "licence")})


def most_different(targets: pl.DataFrame) -> pl.DataFrame:
    """The targets whose `difference` is largest, then those whose `difference` is most below 0."""
    ranked = targets.sort("difference", "target", descending=[True, False])
    more, less = ranked.filter(pl.col("difference") > 0), ranked.filter(pl.col("difference") < 0)
    return pl.concat([more.head(MOST_DIFFERENT), less.tail(MOST_DIFFERENT)])


def by_figure(table: pl.DataFrame, name: str = "figure") -> dict[str, dict[str, Any]]:
    """The rows by figure, each with the columns that follow it."""
    columns = table.columns[table.columns.index(name) + 1 :]
    return {row[name]: {column: row[column] for column in columns} for row in table.to_dicts()}
