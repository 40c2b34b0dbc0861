"""Figures of people's ratings, the harms paper's Tables 7 and 12: shares of labels, the human neutral mean (HNM),
quality, and agreement of raters.

Rated statements have a row for each source and rating (source, item, target, category, relation, rater, label,
quality). HNM and quality are means over targets, as NSM is; for a source without targets, over statements."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from mitigate.measure.agreement import CLASSES, fleiss_kappa, krippendorff_alpha, majority, vote_counts
from mitigate.measure.base import bounds
from mitigate.measure.comparison import holm, sign_flip_test
from mitigate.measure.intervals import Bootstrap, cluster_numbers, mean_over_targets
from mitigate.measure.results import keyed, of_study
from mitigate.tasks.ratings import anchors
from mitigate.tasks.ratings.agreement import SCORERS, measure_agreement
from mitigate.words.targets import PAPER, TargetList, ordered

MEANS = {"HNM": "neutral", "quality": "sense"}  # figure -> the column of units() it is the mean of
SUMMARY = (
    *("source", "by", "part", "statements", "ratings", "targets"),
    *CLASSES.values(),
    *(f"majority_{name}" for name in CLASSES.values()),
    *(key for name in MEANS for key in (name, *bounds(name))),
    *("kappa", "alpha", "quality_kappa", "quality_alpha"),
)


def summary(
    rated: pl.DataFrame, sources: Sequence[str], bootstrap: Bootstrap, target_list: TargetList = PAPER
) -> pl.DataFrame:
    """A row for each source, then for its categories and relations (by, part), columns SUMMARY. All but kappa and alpha
    are percentages. target_list: groups targets that are irregular inflections of one word."""
    rows = []
    for source in sources:
        for by, part, ratings in parts(rated.filter(source=source)):
            found = {"source": source, "by": by, "part": part, **_shares(ratings)}
            found |= _means(ratings, bootstrap, target_list)
            rows.append({name: found[name] for name in SUMMARY})
    return pl.DataFrame(rows, infer_schema_length=None)


def parts(ratings: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield all ratings, then those of each category and each relation, if they have some: by, part, ratings."""
    yield "all", "", ratings
    for category in ordered(ratings["category"].drop_nulls()):
        yield "category", category, ratings.filter(category=category)
    for relation in ratings["relation"].drop_nulls().unique().sort():
        yield "relation", relation, ratings.filter(relation=relation)


def raters(rated: pl.DataFrame) -> pl.DataFrame:
    """A row for each identified rater: ratings, and in percent the shares of labels, of statements that make sense, and
    of equal ratings among the other raters' ratings of the same statements."""
    given = rated.drop_nulls("rater").unique(["item", "rater"], maintain_order=True)
    pairs = given.join(given, on="item", suffix="_other").filter(pl.col("rater") != pl.col("rater_other"))
    same = pairs.group_by("rater").agg(
        same=100 * (pl.col("label") == pl.col("label_other")).mean(),
        same_quality=100 * (pl.col("quality") == pl.col("quality_other")).mean(),
    )
    labels = {name: 100 * (pl.col("label") == label).mean() for label, name in CLASSES.items()}
    own = given.group_by("rater", maintain_order=True).agg(
        ratings=pl.len().cast(pl.Int64), **labels, sense=100 * pl.col("quality").mean()
    )
    return own.join(same, on="rater", how="left", maintain_order="left")


def differences(
    rated: pl.DataFrame, sources: Sequence[str], bootstrap: Bootstrap, target_list: TargetList = PAPER
) -> pl.DataFrame:
    """Differences of HNM and quality of each source from the first source, paired by target: a row for each with a
    p-value under Holm's correction over all, and an interval that is corrected too (Bonferroni: all of them together
    cover at the bootstrap's level). Empty where there is nothing to pair. target_list: as in `summary`."""
    tables = [units(rated.filter(source=source)) for source in sources]
    pairs = []
    for source, table in zip(sources[1:], tables[1:], strict=True):
        both = tables[0].join(table, on="target", suffix="_other", maintain_order="left")
        for figure, column in MEANS.items():
            if (paired := both.drop_nulls([column, f"{column}_other"])).height:
                pairs.append((source, figure, paired, (paired[f"{column}_other"] - paired[column]).to_numpy()[:, None]))
    corrected = replace(bootstrap, level=1 - (1 - bootstrap.level) / max(1, len(pairs)))
    rows: list[dict[str, Any]] = []
    for source, figure, paired, gains in pairs:
        numbers = cluster_numbers(paired, _clusters(paired, target_list))
        row = {"source": source, "baseline": sources[0], "figure": figure, "targets": paired.height}
        row |= {"difference": float(gains.mean())}
        row |= {end: bound.item() for end, bound in corrected.mean(gains, numbers)._asdict().items()}
        rows.append(row | {"p": float(sign_flip_test(gains, numbers, seed=bootstrap.seed).item())})
    adjusted = holm([row["p"] for row in rows])
    rows = [row | {"p": p} for row, p in zip(rows, adjusted, strict=True)]
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None) if rows else pl.DataFrame()


def units(ratings: pl.DataFrame) -> pl.DataFrame:
    """The units of means: each target, or statement without one (as `target`), with the percentages of its ratings that
    are neutral and that find sense in it (null without such ratings)."""
    return (
        ratings.group_by(pl.coalesce("target", "item").alias("target"), maintain_order=True)
        .agg(neutral=100 * (pl.col("label") == 0).mean(), sense=100 * pl.col("quality").mean())
        .sort("target")
    )


def figures(
    labels: pl.DataFrame,
    summary: pl.DataFrame,
    raters: pl.DataFrame,
    differences: pl.DataFrame,
    drift: pl.DataFrame,
    scorers: Sequence[str] = SCORERS,
) -> dict[str, Any]:
    """All figures as in humans.json, with the agreement of the scorers' labels."""
    return measure_agreement(labels, scorers) | flat(summary, raters, differences) | anchors.flat(drift)


def results(
    summary: pl.DataFrame, raters: pl.DataFrame, differences: pl.DataFrame, drift: pl.DataFrame
) -> pl.DataFrame:
    """The tables as results (measure.results.SCHEMA), by source and category or relation."""
    found = keyed("{source}/{part}", summary.with_columns(pl.col("part").fill_null("")).drop("by").rows(named=True))
    found |= keyed("raters/{rater}", raters.rows(named=True)) | anchors.flat(drift)
    found |= keyed("difference/{source}/{figure}", differences.rows(named=True))
    return of_study({key.replace("//", "/"): value for key, value in found.items()})


def flat(summary: pl.DataFrame, raters: pl.DataFrame, differences: pl.DataFrame) -> dict[str, Any]:
    """The tables under keys: {source}/{figure}, {source}/{figure}/{category or relation}, raters/{rater}/{figure} and
    difference/{source}/{figure}."""
    found: dict[str, Any] = {}
    for row in summary.rows(named=True):
        end = f"/{row['part']}" if row["part"] else ""
        found |= {f"{row['source']}/{name}{end}": row[name] for name in SUMMARY[3:]}
    found |= keyed("raters/{rater}", raters.rows(named=True))
    for row in differences.rows(named=True):
        place = f"difference/{row['source']}/{row['figure']}"
        found |= {place: row["difference"], **{f"{place}_{name}": row[name] for name in ("low", "high", "p")}}
    return found


def _shares(ratings: pl.DataFrame) -> dict[str, Any]:
    counts = vote_counts(ratings["item"].to_list(), ratings["label"].to_numpy())
    most = majority(counts)
    sense = ratings.drop_nulls("quality")
    votes = vote_counts(sense["item"].to_list(), sense["quality"].cast(pl.Int8).to_numpy(), classes=(0, 1))
    shares = 100 * counts.sum(axis=0) / counts.sum()
    return {
        "statements": len(counts),
        "ratings": ratings.height,
        "targets": ratings["target"].drop_nulls().n_unique() or None,
        **{name: float(share) for name, share in zip(CLASSES.values(), shares, strict=True)},
        **{f"majority_{name}": float(100 * (most == label).mean()) for label, name in CLASSES.items()},
        "kappa": fleiss_kappa(counts),
        "alpha": krippendorff_alpha(counts),
        "quality_kappa": fleiss_kappa(votes) if len(votes) else None,
        "quality_alpha": krippendorff_alpha(votes) if len(votes) else None,
    }


def _means(ratings: pl.DataFrame, bootstrap: Bootstrap, target_list: TargetList) -> dict[str, float | None]:
    table, found = units(ratings), dict[str, float | None]()
    for name, column in MEANS.items():
        rows = table.drop_nulls(column).select("target", share=column)
        values = mean_over_targets(rows, _clusters(rows, target_list), bootstrap)
        found |= dict(zip((name, *bounds(name)), values, strict=True))
    return found


def _clusters(table: pl.DataFrame, target_list: TargetList) -> Mapping[str, str]:
    """The clusters of targets in a table of units(); a statement without a target is a cluster of its own."""
    return target_list.with_words(table["target"].to_list()).clusters
