"""Figures of a run of recipe=kge: results, and the table of professions."""

from collections.abc import Mapping

import polars as pl

from mitigate.measure.base import PROJECTED
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.kge import by_model, over_seeds, rank_correlation
from mitigate.measure.results import measured
from mitigate.tasks.kge.question import Question

EXACT = Bootstrap()  # intervals over trainings are Student's, and need no draws


def profession_table(question: Question, changes: pl.DataFrame) -> pl.DataFrame:
    """The professions, the one that value a raises most first: profession, people, of_a, of_b, log_ratio, change (mean
    over seeds), and its interval low and high."""
    found = over_seeds(by_model(changes))._asdict()
    columns = (pl.Series(name, found[key]) for name, key in (("change", "mean"), ("low", "low"), ("high", "high")))
    table = question.professions.with_columns(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.sort("change", "profession", descending=[True, False])


def measure_bias(
    question: Question,
    ranks: pl.DataFrame,
    changes: pl.DataFrame,
    pairs: pl.DataFrame,
    parity: pl.DataFrame,
    leaks: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    mitigated: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """The results (measure.results.SCHEMA). others: tables of professions of other models; mitigated: tables after a
    mitigation, by names such as "projected/rank"."""
    drawn = pairs.filter(pl.col("person_a").is_null()).select("model", "with_counts", "with_pairs")
    trainings = trainings_of(question, ranks, changes, parity, leaks).join(drawn, on="model", how="left")
    theirs = [table.select("profession", "change", model=pl.lit(name)) for name, table in others.items()]
    columns = ["model", "profession", "change", "is_other"]
    mine = changes.with_columns(is_other=pl.lit(False)).select(columns)
    rankings = pl.concat([mine, *(table.with_columns(is_other=pl.lit(True)).select(columns) for table in theirs)])
    groups = {"people_a": len(question.group_a), "people_b": len(question.group_b)}
    found = [
        measured("trainings", trainings, intervals=EXACT),
        measured("rankings", rankings),
        measured("graph", {"professions": question.professions.height, "trainings": ranks.height, **groups}),
    ]
    for variant in dict.fromkeys(name.split("/")[0] for name in mitigated):
        after = [mitigated[f"{variant}/{name}"] for name in ("rank", "changes", "parity", "leakage")]
        table = trainings_of(question, *after)
        if variant == PROJECTED:  # equation 1 is 0 by construction: the rest is rounding
            table = table.with_columns(rank_correlation=pl.lit(None, pl.Float64))
        found.append(measured("trainings", table, intervals=EXACT, variant=variant))
    return pl.concat(found)


def trainings_of(
    question: Question, ranks: pl.DataFrame, changes: pl.DataFrame, parity: pl.DataFrame, leaks: pl.DataFrame
) -> pl.DataFrame:
    """A row for each training: ranks, equation 1, parity, amplification and leakage."""
    ratios = question.professions["log_ratio"].to_numpy()
    correlations = [rank_correlation(row, ratios) for row in by_model(changes)]
    names = changes["model"].unique(maintain_order=True)
    found = pl.DataFrame({"model": names, "rank_correlation": pl.Series(correlations, dtype=pl.Float64)})
    for table in (ranks, parity, leaks):
        found = found.join(table, on="model", how="left", maintain_order="left")
    return found
