"""The page of knowledge-graph embeddings, made up and small."""

import polars as pl

from mitigate.measure.results import as_rows
from mitigate.report import page
from mitigate.studies import kge

PROFESSIONS = [*(f"profession {number}" for number in range(11)), "<b>nurse</b>"]


def example_kge(low: float | None = 0.1, high: float | None = 0.4) -> page.Page:
    """Twelve professions, three trainings, before and after a mitigation; the interval of the correlation."""
    change = (pl.col("log_ratio") + 0.1) / 100
    table = pl.DataFrame({"profession": PROFESSIONS, "log_ratio": [3.0 - number / 2 for number in range(12)]})
    professions = table.with_columns(people=40, of_a=12, of_b=30, change=change)
    professions = professions.with_columns(low=pl.col("change") - 0.01, high=pl.col("change") + 0.01)
    figures = {"mrr": 0.25, "parity": 40.0, "parity_by_chance": 7.0, "rank_correlation": 0.25, "seeds/agreement": 0.8}
    interval = {"low": low, "high": high}
    rows = [
        {"measure": name, "variant": variant, "value": value / divisor, **interval}
        for variant, divisor in {"": 1, "projected": 2}.items()
        for name, value in figures.items()
    ]
    rows += [{"measure": name, "value": 120} for name in ("people_a", "people_b")]
    return kge.page(
        as_rows(rows),
        professions,
        name="kge-fb15k237-transe_l2-gender-1a2b3c4d",
        command="python -m mitigate recipe=kge",
        names=("male", "<i>female</i>"),
        sensitive="gender",
        fewest=20,
        published=pl.DataFrame({"mrr": [0.313], "source": ["Ruffinelli et al. 2020"]}),
        demonstration=False,
        notices=["There is a <thing>."],
    )
