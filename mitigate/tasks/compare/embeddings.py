"""The comparison of two runs of recipe=kge on the same question (tasks.compare.plan.Kind): the checked plan, figures
side by side, and the content of the page and of comparison.json."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate import metrics as keys
from mitigate.errors import MitigateError
from mitigate.measure.kge import between_trainings, rank_correlation, shared_ends
from mitigate.metrics import kge_key
from mitigate.report import compared_embeddings
from mitigate.report.compared_embeddings import KgeComparison
from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import NOT_GIVEN, FinishedRun, Named, folders
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.plan import Plan, Stage, by_figure, data_flags, data_source, differing_settings, read_two
from mitigate.tasks.kge.figures import TOP, correlations
from mitigate.tasks.kge.predictions import FIGURES, LEAKS
from mitigate.tasks.kge.question import SETTINGS
from mitigate.tasks.kge.training import HITS

RANK, CHANGES, PARITY, LEAKAGE, PROFESSIONS = (
    f"{name}.parquet" for name in ("rank", "changes", "parity", "leakage", "professions")
)
MUST_AGREE = ("data.name", *(f"kge.{name}" for name in (*SETTINGS, "step")))
COMPARED = {  # key -> the table with a figure of each training, its column, and what it is multiplied by
    keys.KGE_MRR: (RANK, "mrr", 1),
    **{kge_key(f"hits_{k}"): (RANK, f"hits_{k}", 100) for k in HITS},
    **{kge_key(name): (PARITY, name, 1) for name in FIGURES},
    **{kge_key(name): (LEAKAGE, name, 1) for name in LEAKS},
}


DEMONSTRATION = ""  # the page says it
UPLOADS = ("tables", "plots")

render = compared_embeddings.render


@dataclass(frozen=True, eq=False, kw_only=True)
class EmbeddingsPlan(Plan):
    """Two runs of recipe=kge; each model has a title."""

    names: tuple[str, str]  # value a, value b
    sensitive: str

    @property
    def about(self) -> dict[str, Any]:
        data = {key: self.runs[0].text(f"data.{key}") or NOT_GIVEN for key in ("name", "licence", "attribution")}
        return {"data": data | data_flags(self.runs), "model": {"name": ", ".join(self.titles)}}

    @property
    def name_parts(self) -> list[str]:
        return ["kge", self.about["data"]["name"], *self.titles]

    @property
    def tracked(self) -> dict[str, list[str]]:
        return {**super().tracked, "model": list(self.titles)}

    @property
    def provenance(self) -> dict[str, Any]:
        return {"data": data_source(self.runs[0]), **super().provenance}


def read_plan(runs: Named, baseline: Named, endpoints: Endpoints) -> EmbeddingsPlan:
    """Read and check the two folders of embeddings, which have no primary endpoints. Raises MitigateError where they
    cannot be compared."""
    needs = (RANK, CHANGES, PARITY, LEAKAGE, PROFESSIONS)
    both = read_two([*folders(baseline), *folders(runs)], "kge", "runs of recipe=kge", needs)
    first, second = both
    differing = [f"{name}={ours} and {theirs}" for name, (ours, theirs) in differing_settings(both, MUST_AGREE).items()]
    if first.metrics.get("fingerprint") != second.metrics.get("fingerprint"):
        differing.append("the triples of the graph")
    if differing:
        raise MitigateError(
            f"the runs {first.folder} and {second.folder} answer different questions ({'; '.join(differing)}); run one "
            "of them again with the settings of the other"
        )
    values = [*first.setting("kge.values"), "all others"]
    titles = [str(run.text("model.name")) for run in both]
    if titles[0] == titles[1]:
        titles = [f"{title} {run.folder.name[-8:]}" for title, run in zip(titles, both, strict=True)]
    return EmbeddingsPlan(
        runs=both,
        titles=titles,
        names=(str(values[0]), str(values[1])),
        sensitive=str(first.setting("kge.sensitive")),
        notices=list(_notices(first, second)),
        source=digest_of(json.dumps([run.digest for run in both])),
    )


def measure(stage: Stage, plan: EmbeddingsPlan) -> list[Any]:
    """Measure the differences of all figures, and how far the two rank professions in the same order."""
    figures = stage("figures", side_by_side, plan.runs)
    professions = stage("professions", both_rankings, plan.runs)
    return [figures, professions, stage("agreement", agreement_of, professions)]


def page_of(
    plan: EmbeddingsPlan,
    figures: pl.DataFrame,
    professions: pl.DataFrame,
    agreement: Mapping[str, float | None],
    *,
    folder: Path,
    **about: Any,
) -> KgeComparison:
    """The content of the page."""
    return KgeComparison(
        titles=(plan.titles[0], plan.titles[1]),
        names=plan.names,
        sensitive=plan.sensitive,
        figures=figures,
        professions=professions,
        agreement=agreement,
        **plan.page_fields(folder),
        **about,
    )


def content_of(plan: EmbeddingsPlan, page: KgeComparison) -> dict[str, Any]:
    """The content of comparison.json."""
    return {
        "demonstration": plan.demonstration,
        "runs": [{"title": title, "run": folder} for title, folder in zip(plan.titles, plan.folders, strict=True)],
        "figures": by_figure(page.figures, "key"),
        "agreement": dict(page.agreement),
        "lines": compared_embeddings.lines(page),
        "notices": plan.notices,
    }


def side_by_side(runs: Sequence[FinishedRun]) -> pl.DataFrame:
    """A row for each figure that both runs have: key, first, second (means over trainings), change, low and high (the
    interval of the difference), and the numbers of trainings."""
    rows = []
    for key in (*COMPARED, keys.KGE_CORRELATION):
        first, second = (_of_trainings(run, key) for run in runs)
        if not len(first) or not len(second):
            continue
        found = between_trainings(first, second)
        means = {"first": float(first.mean()), "second": float(second.mean())}
        rows.append({"key": key, **means, **found._asdict(), "trainings": f"{len(first)} and {len(second)}"})
    return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})


def both_rankings(runs: Sequence[FinishedRun]) -> pl.DataFrame:
    """The professions, the one that moved most first: profession, of_a, of_b, log_ratio, first and second (the mean
    change in each run), their places (1: raised most towards value a), and moved (the place in the second minus that in
    the first)."""
    tables = [run.table(PROFESSIONS, ["profession", "change"]) for run in runs]
    joined = tables[0].select("profession", "of_a", "of_b", "log_ratio", first="change")
    joined = joined.join(tables[1].select("profession", second="change"), on="profession", maintain_order="left")
    places = [pl.col(side).rank("ordinal", descending=True).alias(f"{side}_place") for side in ("first", "second")]
    moved = (pl.col("second_place").cast(pl.Int64) - pl.col("first_place").cast(pl.Int64)).alias("moved")
    joined = joined.with_columns(places).with_columns(moved)
    return joined.sort(pl.col("moved").abs(), "profession", descending=[True, False])


def agreement_of(professions: pl.DataFrame) -> dict[str, float | None]:
    """Agreement of two rankings of professions: ranked_alike, the rank correlation, and shared_ends, the percentage of
    extreme professions that both have."""
    rankings = professions.select("first", "second").to_numpy().T
    shared = shared_ends(rankings, TOP)
    return {
        "ranked_alike": rank_correlation(*rankings),
        "shared_ends": None if shared is None else 100 * shared,
    }


def _of_trainings(run: FinishedRun, key: str) -> np.ndarray:
    """A figure of each training; empty where some training has none."""
    if key == keys.KGE_CORRELATION:
        found = correlations(run.table(CHANGES, ["model"]), run.table(PROFESSIONS, ["log_ratio"]))
    else:
        name, column, factor = COMPARED[key]
        found = [None if value is None else factor * value for value in run.table(name, [column])[column]]
    return np.array([] if None in found else found, dtype=float)


def _notices(first: FinishedRun, second: FinishedRun) -> Iterator[str]:
    """Limits that a reader must know before the figures."""
    for run in (first, second):
        trainings = run.metrics.get(keys.KGE_TRAININGS)
        if trainings is not None and trainings < 5:
            yield (
                f"{run.folder.name} has {trainings} training{'s' if trainings > 1 else ''} (kge.seeds): a difference "
                "between models needs at least five of each."
            )
    differing = [name for name in first.settings if first.settings[name] != second.settings.get(name, Ellipsis)]
    if named := [name for name in differing if name.split(".")[0] in ("model", "kge") and name not in MUST_AGREE]:
        yield f"Settings that differ: {', '.join(named)}."
