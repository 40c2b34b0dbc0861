"""The sections of RESULTS.md on bias in knowledge-graph embeddings, from the figures of finished trainings alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.measure.kge import rank_correlation
from mitigate.measure.kge_null import agreement, null_band, outside_of_others, over_seeds, shared_ends, within
from mitigate.report.kge import published

PAPER = Path(__file__).parent / "kge" / "paper.csv"  # the professions of the paper's tables, the most biased first
TRAINING = ("data", "model", "graph", "seed", "question")
TOP = 10  # professions each way
FEWEST = 20  # people of value a or b that a profession must have, as in conf/recipe/kge.yaml
NAMES = {  # of a question: value a and value b
    "gender": ("male", "female"),
    "ethnicity": ("Jewish people", "African Americans"),
    "religion": ("Catholic Church", "Islam"),
    "nationality": ("United States of America", "United Kingdom"),
}
MITIGATED = {
    "mrr": ("MRR ↑", 3),
    "accuracy": ("predicted professions that are right, % ↑", 1),
    "parity": ("demographic parity distance, % → chance", 1),
    "parity_by_chance": ("the same by chance, %", 1),
    "predictive_parity": ("precision difference, percentage points → 0", 1),
    "amplification": ("bias amplification, percentage points → 0", 1),
    "leakage_linear": ("leakage, linear probe → chance", 2),
    "leakage_linear_by_chance": ("the same by chance", 2),
    "leakage_nonlinear": ("leakage, nonlinear probe → chance", 2),
    "leakage_nonlinear_by_chance": ("the same by chance", 2),
}
"""Figures before and after a mitigation, and their decimals."""


def sections(runs: pl.DataFrame, professions: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """The name and the text of each section that there are trainings for. Of trainings that were repeated with other
    code or settings the last counts."""
    last = runs.unique(TRAINING, keep="last", maintain_order=True)
    for name, title, parts in (
        ("kge quality", "quality", quality(last)),
        ("kge gender", "gender in FB15k-237", gender(last, professions)),
        ("kge codex", "CoDEx-M", codex(last, professions)),
        ("kge mitigation", "mitigations on FB15k-237", mitigation(last)),
    ):
        if found := list(parts):
            yield name, "\n\n".join([f"## Knowledge-graph embeddings: {title}", *found])


def quality(runs: pl.DataFrame) -> Iterator[str]:
    """MRR and hits of each model, beside what is published."""
    rows = []
    plain = runs.filter(graph="as_published").unique(["data", "model", "seed"], keep="first", maintain_order=True)
    for (data, model), part in plain.group_by("data", "model", maintain_order=True):
        said = [f"{row['mrr']:.3f} ({row['source']})" for row in published(str(data), str(model))]
        hits = [f"{100 * part[f'hits_{k}'].mean():.1f}" for k in (1, 3, 10)]  # type: ignore[operator]
        minutes = f"{part['seconds'].mean() / 60:.1f}"  # type: ignore[operator]
        epochs = f"{part['epochs'].mean():.0f}"
        rows.append(
            [
                data,
                f"`{model}`",
                part.height,
                interval(part["mrr"], 3),
                *hits,
                "; ".join(said) or "none known",
                epochs,
                minutes,
            ]
        )
    yield markdown(
        [
            "graph",
            "model",
            "trainings",
            "MRR ↑",
            "hits@1 ↑",
            "hits@3 ↑",
            "hits@10 ↑",
            "published MRR",
            "epochs",
            "minutes",
        ],
        rows,
    )
    yield (
        "Filtered ranks on test triples, mean over trainings with its 95 % interval. Minutes are of a training with "
        "its evaluations, one thread, other work on the same cores."
    )


def gender(runs: pl.DataFrame, professions: pl.DataFrame) -> Iterator[str]:
    """What equation 1 finds, over seeds and permuted graphs; and the professions of both ends."""
    rows, tables = [], []
    chosen = professions.filter(data="fb15k237", question="gender")
    for model in ("transe", "complex"):
        mine = runs.filter(data="fb15k237", model=model, question="gender")
        found, null = mine.filter(graph="as_published"), mine.filter(graph="permuted")
        if found.is_empty():
            continue
        rankings = changes_of(found)
        band = within(null_band(null["rank_correlation"].to_numpy()), -1, 1) if null.height > 2 else None
        outside = outside_of_others(null["rank_correlation"].to_numpy()) if null.height else None
        shared = shared_ends(rankings, 2 * TOP)
        rows.append(
            [
                f"`{model}`",
                found.height,
                interval(found["rank_correlation"], 2),
                "–" if band is None else f"{band.mean:.2f}, {band.low:.2f} to {band.high:.2f}",
                "–" if outside is None else f"{outside} of {null.height}",
                interval(null["own_correlation"], 2) if null.height else "–",
                number(agreement(rankings)),
                "–" if shared is None else f"{100 * shared:.0f}",
                interval(found["pair_correlation"], 2),
                interval(found["pair_agreement"], 2),
            ]
        )
        tables += both_ways(chosen, found, null, f"`{model}`", "gender")
    if not rows:
        return
    yield markdown(
        [
            *("model", "seeds", "rank correlation with counts", "of permuted graphs: mean, 95 % band"),
            *("outside the band of the others", "with their own counts", "between seeds", "extremes shared, %"),
            *("two people compared, with counts", "two pairs"),
        ],
        rows,
    )
    yield (
        "Correlations are Spearman's over professions. Intervals of 95 % are over seeds. The band is where 95 % of "
        "further trainings on permuted graphs lie; of 20 graphs about one is expected outside the band of the others."
    )
    yield from tables


def codex(runs: pl.DataFrame, professions: pl.DataFrame) -> Iterator[str]:
    """The questions of the paper's Tables 5, 6 and 11 to 14."""
    paper = pl.read_csv(PAPER)
    rows, tables = [], []
    for question in ("ethnicity", "religion", "nationality"):
        measured = professions.filter(data="codex_m", question=question)
        for model in ("transe", "complex"):
            found = runs.filter(data="codex_m", model=model, question=question, graph="as_published")
            if found.is_empty():
                continue
            chosen, found = with_enough_people(measured, found)
            rows.append(
                [
                    f"{NAMES[question][0]} / {NAMES[question][1]}",
                    f"`{model}`",
                    found.height,
                    chosen.height,
                    interval(found["rank_correlation"], 2),
                    number(agreement(changes_of(found))),
                    *(again(chosen, found, paper, question, end) for end in (0, 1)),
                ]
            )
            tables += both_ways(chosen, found, None, f"`{model}`", question)
    if not rows:
        return
    yield markdown(
        [
            *("values a / b", "model", "seeds", "professions", "rank correlation with counts", "between seeds"),
            *("of the paper's towards a, here too", "towards b"),
        ],
        rows,
    )
    yield (
        "The last columns: of the 20 professions of the paper's table those that this graph has with at least 20 "
        "people of both values, and which of them change in the same direction here; and how many of all professions "
        "do, which professions drawn at random would reach."
    )
    yield from tables


def mitigation(runs: pl.DataFrame) -> Iterator[str]:
    """Quality, parity, amplification and leakage before and after."""
    graphs = {"as_published": "as trained", "downsampled": "downsampled", "projected": "projected"}
    tables = []
    for model in ("transe", "complex"):
        mine = runs.filter(data="fb15k237", model=model, question="gender")
        parts = {title: mine.filter(graph=graph) for graph, title in graphs.items()}
        parts = {title: part for title, part in parts.items() if part.height}
        if len(parts) > 1:
            rows = [
                [name, *(interval(part[key], d) for part in parts.values())] for key, (name, d) in MITIGATED.items()
            ]
            tables.append(
                markdown([f"`{model}`", *(f"{title} ({part.height})" for title, part in parts.items())], rows)
            )
    if tables:
        yield from tables
        yield (
            "Mean over trainings, their number in brackets, and its 95 % interval. → 0 and → chance: the closer to it, "
            "the better; chance is the line below."
        )


def both_ways(
    professions: pl.DataFrame, found: pl.DataFrame, null: pl.DataFrame | None, model: str, question: str
) -> list[str]:
    """The professions at both ends, as the paper's tables."""
    mean = over_seeds(changes_of(found))
    columns = {"change": mean.mean, "low": mean.low, "high": mean.high}
    if null is not None and null.height > 2:
        band = null_band(changes_of(null))
        columns |= {"null_low": band.low, "null_high": band.high}
    table = professions.with_columns(pl.Series(name, values) for name, values in columns.items())
    tables = []
    for end, name in enumerate(NAMES[question]):
        ordered = table.sort("change", descending=not end).head(TOP)
        ordered = ordered.filter(pl.col("change") < 0 if end else pl.col("change") > 0)
        head = [f"{model}, towards {name}", "change of score", *NAMES[question]]
        rows = [
            [row["profession"], f"{row['change']:.4f}{bounds(row['low'], row['high'], 4)}", row["of_a"], row["of_b"]]
            + ([f"{row['null_low']:.4f} to {row['null_high']:.4f}"] if "null_low" in row else [])
            for row in ordered.rows(named=True)
        ]
        tables.append(markdown([*head, *(["band of permuted graphs"] if "null_low" in columns else [])], rows))
    return tables


def again(professions: pl.DataFrame, found: pl.DataFrame, paper: pl.DataFrame, question: str, end: int) -> str:
    """Which of the paper's professions change in the same direction here, and the share of all that do."""
    theirs = [name.casefold() for name in paper.filter(question=question, towards=NAMES[question][end])["profession"]]
    mean = changes_of(found).mean(0)
    here = {name.casefold(): change for name, change in zip(professions["profession"], mean, strict=True)}
    known = [name for name in dict.fromkeys(theirs) if name in here]
    same = [name for name in known if (here[name] < 0 if end else here[name] > 0)]
    share = 100 * float(np.mean(mean < 0 if end else mean > 0))
    return f"{len(same)} of {len(known)} (of all {share:.0f} %)" + (f": {', '.join(same)}" if same else "")


def with_enough_people(professions: pl.DataFrame, found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The professions that FEWEST people of both values have, and the runs with their changes alone. Earlier trainings
    were measured on more, since people counted whose value the graph does not give."""
    enough = professions["people"] >= FEWEST
    chosen, changes = professions.filter(enough), changes_of(found)[:, enough.to_numpy()]
    ratios = chosen["log_ratio"].to_numpy()
    return chosen, found.with_columns(
        pl.Series("changes", [" ".join(map(repr, row)) for row in changes.tolist()]),
        pl.Series("rank_correlation", [rank_correlation(row, ratios) for row in changes], dtype=pl.Float64),
    )


def changes_of(runs: pl.DataFrame) -> np.ndarray:
    """Equation 1 of each run, (runs, professions)."""
    return np.array([[float(change) for change in line.split()] for line in runs["changes"]])


def interval(values: pl.Series, decimals: int) -> str:
    """ "0.71 [0.60, 0.82]"."""
    known = values.drop_nulls().cast(pl.Float64).to_numpy()
    if not len(known):
        return "–"
    found = over_seeds(known)
    return f"{found.mean:.{decimals}f}{bounds(float(found.low), float(found.high), decimals)}"


def bounds(low: float, high: float, decimals: int) -> str:
    return "" if np.isnan(low) else f" [{low:.{decimals}f}, {high:.{decimals}f}]"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def markdown(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
