"""Pages of studies, made up and small: knowledge-graph embeddings and Social Bias Frames."""

from collections.abc import Iterable

import polars as pl

from mitigate.measure.results import as_rows
from mitigate.report import frames, kge, page
from mitigate.tasks.frames.figures import published

PROFESSIONS = [*(f"profession {number}" for number in range(11)), "<b>nurse</b>"]


def example_kge(low: float | None = 0.1, high: float | None = 0.4) -> page.Page:
    """Twelve professions, three trainings, before and after a mitigation; the interval of the correlation."""
    change = (pl.col("log_ratio") + 0.1) / 100
    table = pl.DataFrame({"profession": PROFESSIONS, "log_ratio": [3.0 - number / 2 for number in range(12)]})
    professions = table.with_columns(people=40, of_a=12, of_b=30, unknown=2, change=change)
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
        ["complex (1a2b3c4d)"],
        name="kge-fb15k237-transe_l2-gender-1a2b3c4d",
        command="python -m mitigate recipe=kge",
        names=("male", "<i>female</i>"),
        sensitive="gender",
        fewest=20,
        published=pl.DataFrame({"mrr": [0.313], "source": ["Ruffinelli et al. 2020"]}),
        demonstration=False,
        notices=["There is a <thing>."],
    )


def example_frames() -> page.Page:
    """Two classifications that are measured, one that is not, and texts of three systems."""
    rows = [
        {"variable": name, "system": system, "posts": 400, **bounded(frames.FIGURES, value)}
        for name, best in {"offensive": 60.0, "targeted": 69.5}.items()
        for system, value in {"model": 70.0, "model, constrained": 90.0, "always yes": best, "nearest": 50.0}.items()
    ]
    rows += [{"variable": "lewd", "system": "model", "posts": 0, **bounded(frames.FIGURES, None)}]
    texts = [
        {"variable": name, "system": system, "posts": 90, **bounded(frames.TEXT_FIGURES, 40.0)}
        for name in ("group", "implied")
        for system in ("model, five folds, given a group", "commonest", "nearest")
    ]
    flips = {"category": "all", "statements": 600, "pairs": 1800, "flipped": 6.0, "harmful": 3.0}
    example = {"post": "they are <b>late</b>", "generated": "women: are late", "annotators": "women: are never on time"}
    return frames.page(
        {
            "classified": pl.DataFrame(rows, infer_schema_length=None),
            "texts": pl.DataFrame(texts),
            "flips": pl.DataFrame([flips]),
            "examples": pl.DataFrame([example]),
        },
        published(),
        {f"scorer/{name}": 0.15 for name in ("posts", "brier", "brier_constant", "calibration_error")},
        name="frames-minilm-seed1-1a2b3c4d",
        command="python -m mitigate recipe=frames",
        notices=["These posts have no values of: <i>lewd</i>."],
    )


def bounded(names: Iterable[str], value: float | None) -> dict[str, float | None]:
    """Figures that are all the same, with an interval of one point to either side."""
    shift = {"": 0, "_low": -1, "_high": 1}
    return {name + end: None if value is None else value + by for name in names for end, by in shift.items()}
