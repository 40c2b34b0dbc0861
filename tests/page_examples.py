"""A page of each kind, made up and small: its objects, and its HTML by name."""

from collections.abc import Callable
from dataclasses import replace

import comparison_example
import polars as pl
import report_example

from mitigate.measure import stories as measured
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results, by_category
from mitigate.measure.results import measured as figures_of
from mitigate.report import (
    audit,
    compared_runs,
    frames,
    kge,
    page,
    ratings,
    stories,
    survey,
)
from mitigate.tasks.frames.figures import published
from mitigate.tasks.ratings import anchors as anchors_of
from mitigate.tasks.ratings import figures
from mitigate.tasks.ratings.agreement import FIGURES
from mitigate.words.prompts import kind_of

ASKED = pl.DataFrame(
    [
        ("a1", "lawyer", "lawyer is a <b>thief</b>"),
        ("b2", "</script>", "</script><script>alert(1)</script>"),
        ("c3", "she", 'she, and "he"'),
        ("d4", "he", "he is kind"),
    ],
    schema=["item", "target", "statement"],
    orient="row",
)
PROFESSIONS = [*(f"profession {number}" for number in range(11)), "<b>nurse</b>"]


def example_audit() -> audit.Audit:
    """Ten statements about each of 16 targets, labelled by sentiment."""
    said = report_example.statements(per_target=10, num_targets=16).with_columns(head="target")
    table = report_example.per_target(said, "sentiment")
    categories = table["category"].unique().to_list()
    numbers = {"place": ["Table 4"], "figure": ["of a"], "key": ["D_R"], "paper": [2000.0], "ours": [1000.0]}
    metrics = {"targets": 16, "empty_targets": 0, "statements": said.height, "D_R": 0.0, "sentiment/polarised": 12.34}
    metrics |= {f"{key}/{category}": 4 for key in ("targets", "empty_targets", "statements") for category in categories}
    return audit.Audit(
        name="audit-mine-1a2b3c4d",
        title="Mine",
        command="python -m mitigate recipe=audit",
        demonstration=False,
        metrics=metrics | {"NSM": 87.66, "NSM_low": 80.0, "NSM_high": 91.0},
        labellings={"sentiment": ("sentiment", "paper")},
        targets={"sentiment": table},
        statements=said,
        shown=table["target"].to_list()[:2],
        scorers={"sentiment": "vader"},
        explained=["It differs."],
        beside=pl.DataFrame(numbers),
    )


def example_stories() -> stories.Stories:
    """The same sentences as told in stories of five, two about each target, one of them for another make of prompt."""
    audited = example_audit()
    place = pl.int_range(pl.len()).over("target")
    said = audited.statements.with_columns(
        row=pl.int_range(pl.len()) // 5 + 1,
        kind=pl.col("target").map_elements(kind_of, return_dtype=pl.String),
        template=pl.when(place < 5).then(pl.lit("people are discussing about XYZ.")),
        prompt=pl.format("people are discussing about {}.", "target"),
    )
    per_story = measured.shares(said, measured.STORY, ["sentiment"]).with_columns(
        story=pl.lit(f"{report_example.UNTRUSTED} he left.")
    )
    kinds = {target: kind_of(target) for target in audited.targets["sentiment"]["target"]}
    metrics: dict = {**audited.metrics, "naming_target": 50.0, "distinct_sentences": 80.0, "sentiment/D_O-": 40.1}
    metrics |= {"sentiment/D_O+": 30.2, "sentiment/by_chance_D_O-": 10.4, "sentiment/by_chance_D_O+": 29.9}
    metrics |= {"sentiment/p_D_O-": 0.001, "sentiment/p_D_O+": 0.4}
    whole = measured.all_stories(per_story.drop("sentences"), said, 3)
    of_kinds = audited.targets["sentiment"].with_columns(category=pl.col("target").replace_strict(kinds))
    groups = {key: rows for key, rows in by_category(of_kinds, "kind").items() if key[1]}
    told = figures_of("whole stories", measured.per_story_of(per_story, "sentiment"), scorer="sentiment")
    by_kind = figures_of("targets", of_kinds, groups, scorer="sentiment", template="paper")
    counts = figures_of("counts", of_kinds, groups)
    metrics = Results(pl.concat([figures_of("stories", whole), told, by_kind, counts])).flat | metrics
    fields = {name: getattr(audited, name) for name in audited.__dataclass_fields__}
    own = {"metrics": metrics, "statements": said, "beside": None, "generator": "tiny-gpt2", "per_story": per_story}
    return stories.Stories(**{**fields, **own})


def example_survey() -> survey.Survey:
    """Four statements, two a day."""
    return survey.Survey("5urvey", ASKED, daily=2, pay="20 euros an hour.", contact="ask@example.org")


def example_ratings() -> ratings.Results:
    """What three raters said of two models' statements about three targets."""
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    judged = pl.DataFrame(rows, schema=names, orient="row")
    few = Bootstrap(resamples=100)
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return ratings.Results(
        name="humans",
        command="python -m mitigate recipe=humans",
        demonstration=True,
        summary=figures.summary(judged, ["<none>", "both"], few),
        raters=figures.raters(judged),
        differences=figures.differences(judged, ["<none>", "both"], few),
        drift=example_drift(),
        scorers=scorers.with_columns(pl.lit(0.5).alias(name) for name in FIGURES),
        notices=["a <notice>"],
    )


def example_drift() -> pl.DataFrame:
    """Two pairs of sources of different batches, of which one has too few anchors."""
    pairs = ((("<none>", "earlier"), (90, 60)), (("both", "earlier"), (2, 1)))
    rows = [
        {"source": source, "baseline": baseline, "figure": "polarised", "weights": weights, "anchors": anchors}
        | {"words": words, "before": 40.0, "after": 36.0, "total": -4.0, "total_low": -7.0, "total_high": -1.0}
        | ({} if words == 1 else dict.fromkeys(("drift", "drift_low", "drift_high"), -3.0))
        | ({} if words == 1 else {"remaining": -1.0, "remaining_low": -4.0, "remaining_high": 2.0, "detectable": 4.2})
        for (source, baseline), (anchors, words) in pairs
        for weights in (anchors_of.AS_THEY_ARE, anchors_of.EQUALLY)[: 1 if words == 1 else 2]
    ]
    return pl.DataFrame(rows, schema=anchors_of.DRIFT)


def example_comparison() -> compared_runs.Comparison:
    """Two policies of two seeds each against a baseline, over 16 targets."""
    before, after = (report_example.statements(per_target=10, num_targets=16, seed=seed) for seed in (0, 1))
    tables = [report_example.per_target(said, "regard") for said in (before, after)]
    moves = (
        tables[0]
        .join(tables[1], on=["target", "category"])
        .select("target", "category", before="neutral", after="neutral_right")
        .with_columns(difference=pl.col("after") - pl.col("before"), scorer=pl.lit("regard"))
    )
    tails = [each.select("statement", label="regard").head(3) for each in (before, after)]
    moved = pl.DataFrame({"target": ["lawyer"], "category": ["profession"], "before": [60.0], "after": [70.0]})
    plain = comparison_example.example_comparison()
    pair = replace(
        plain.pairs[0],
        filtered_by=["regard"],
        moved={"regard": moved},
        statements={"regard": {"lawyer": tails}},
        harms=plain.pairs[0].harms.filter(figure="NRM"),
    )
    names = ("both", "swap")
    pairs = [replace(pair, name=name) for name in names]
    models = [(name, seed, f"mitigate-{name}-seed{seed}") for name in ("none", *names) for seed in (1, 2)]
    return replace(
        plain,
        pairs=pairs,
        models=pl.DataFrame(models, schema=["policy", "seed", "run"], orient="row").with_columns(
            pl.int_range(70, 70 + len(models)).cast(pl.Float64).alias("neutral_template/NRM"),
            pl.int_range(9, 9 + len(models)).cast(pl.Float64).alias("quality/perplexity/neutral"),
        ),
        moves=pl.concat(moves.with_columns(contrast=pl.lit(name)) for name in names),
        notices=["Two runs say a <b>thing</b>."],
    )


def example_kge() -> kge.Results:
    """Twelve professions, three seeds, measured before and after a mitigation."""
    ratio = [3.0 - number / 2 for number in range(12)]
    table = pl.DataFrame(
        {"profession": PROFESSIONS, "people": 40, "of_a": range(12, 24), "of_b": 30, "unknown": 2, "log_ratio": ratio}
    )
    change = (pl.col("log_ratio") + 0.1) / 100
    professions = table.with_columns(change=change, low=change - 0.01, high=change + 0.01)
    each = [table.select("profession", change=change * number, deviation=0.0) for number in (1, 2, 3)]
    changes = pl.concat(frame.with_columns(model=pl.lit(f"seed_{place}")) for place, frame in enumerate(each))
    figures = dict.fromkeys(kge.BEFORE_AND_AFTER, 0.25)
    figures |= {kge.key_of(key, "projected"): 0.125 for key in kge.BEFORE_AND_AFTER}
    figures |= {"kge/pairs/agreement": 0.2, "kge/professions": 12, "kge/trainings": 3}
    figures |= {"kge/rank_correlation_low": 0.1, "kge/rank_correlation_high": 0.4}
    pair = ("seed_0", "A <b>man</b>", "A woman", 0.5, None, "profession 1", "<b>nurse</b>")
    columns = ["model", "person_a", "person_b", "with_counts", "with_pairs", "most_a", "most_b"]
    ranks = pl.DataFrame({"model": ["seed_0"], "mrr": [0.25], "hits_1": [0.1], "hits_3": [0.2], "hits_10": [0.4]})
    return kge.Results(
        name="kge-fb15k237-transe_l2-gender-1a2b3c4d",
        command="python -m mitigate recipe=kge",
        demonstration=False,
        title="FB15k-237",
        model="transe_l2",
        data="fb15k237",
        sensitive="gender",
        names=("male", "<i>female</i>"),
        values=pl.DataFrame({"value": ["male", "<i>female</i>", "unknown"], "people": [1200, 300, 7]}),
        fewest=20,
        top=5,
        metrics=figures,
        professions=professions,
        changes=changes,
        pairs=pl.DataFrame([pair], schema=columns, orient="row"),
        ranks=ranks,
        others={"complex (1a2b3c4d)": professions},
        variants=["projected"],
        notices=["There is a <thing>."],
    )


def example_frames() -> frames.Results:
    """Two classifications that are measured, three that are not, and texts of three systems."""
    figures = [name + end for name in frames.FIGURES for end in ("", "_low", "_high")]
    rows = [
        {"variable": name, "system": system, "posts": 400, "positive": 44.1, **dict.fromkeys(figures, 70.0 - place)}
        for name in ("offensive", "targeted")
        for place, system in enumerate(("model", "model, constrained", "always yes", "nearest"))
    ]
    rows += [
        {"variable": name, "system": "model", "posts": 0, "positive": None, **dict.fromkeys(figures)}
        for name in ("lewd", "intent", "ingroup")
    ]
    scores = [name + end for name in frames.TEXT_FIGURES for end in ("", "_low", "_high")]
    numbers = {"posts": 90, **dict.fromkeys(scores, 40.0), "generated": 99.0, "distinct": 5.0}
    texts = [
        {"variable": name, "system": system, **numbers}
        for name in ("group", "implied")
        for system in ("model, five folds, given a group", "commonest", "nearest")
    ]
    metrics: dict[str, float | None] = dict.fromkeys((f"corpus/{name}" for name in frames.COUNTS), 1234)
    metrics |= {f"corpus/positive/{name}": 44.0 if name == "offensive" else None for name in frames.CHOICES}
    metrics |= {"scorer/posts": 900, "scorer/brier": 0.15, "scorer/brier_constant": 0.25}
    metrics |= {"scorer/calibration_error": 0.04}
    counts = dict.fromkeys((*frames.CHOICES, "group", "implied"), 12)
    flips = {"category": "all", "statements": 600, "pairs": 1800, "flipped": 6.0}
    flips |= {"flipped_low": 5.0, "flipped_high": 7.1}
    example = {"post": "they are <b>late</b>", "group": "women", "implied": "are late", "groups": ["women"]}
    return frames.Results(
        name="frames-minilm-seed1-1a2b3c4d",
        command="python -m mitigate recipe=frames",
        demonstration=False,
        metrics=metrics,
        classified=pl.DataFrame(rows, infer_schema_length=None),
        texts=pl.DataFrame(texts),
        flips=pl.DataFrame([{**flips, "harmful": 3.0}]),
        sources=pl.DataFrame([{"source": "a <file>.csv", "split": "test", "posts": 12, **counts}]),
        categories=pl.DataFrame([{"source": "a", "category": "gender", "annotations": 3, "percent": 100.0}]),
        published=published(),
        examples=pl.DataFrame([{**example, "references": ["women are late", "are never on time"]}]),
        has_folds=True,
        systems=("model", "model, five folds, given a group"),
        reading="both",
        notices=["These posts have no values of: <i>lewd</i>."],
    )


PAGES: dict[str, Callable[[], str]] = {
    "frames": lambda: frames.render(example_frames()),
    "kge": lambda: kge.render(example_kge()),
    "report": lambda: page.render(replace(report_example.report(num_targets=16), ledger=report_example.ledger(600))),
    "audit": lambda: audit.render(example_audit()),
    "comparison": lambda: compared_runs.render(example_comparison()),
    "stories": lambda: stories.render(example_stories()),
    "survey": lambda: survey.render(example_survey()),
    "people": lambda: ratings.render(example_ratings()),
}
