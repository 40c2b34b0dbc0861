"""Made-up ratings: of two models' statements by three people, with their page, and of sets in several batches."""

from typing import Any

import polars as pl

from mitigate.measure.agreement import FIGURES
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.ratings import DRIFT
from mitigate.report.page import Page
from mitigate.studies import humans
from mitigate.words.targets import targets

PHRASES = {"CapableOf": "is capable of", "Causes": "causes"}
PAIR = ["one", "two"]
WORDS = [word for word, category in targets().items() if category == "profession" and " " not in word][:30]


def frames() -> dict[str, pl.DataFrame]:
    """What three raters said of two models' statements about three targets, and two pairs of sources of different
    batches, of which one has too few anchors."""
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    rated, few = pl.DataFrame(rows, schema=names, orient="row"), Bootstrap(resamples=100)
    drifts = [
        {"source": source, "baseline": "earlier", "figure": "polarised", "anchors": number}
        | {"total": -4.0, "total_low": -7.0, "total_high": -1.0}
        | ({} if number < 9 else {"drift": -3.0, "remaining": -1.0, "remaining_low": -4.0, "remaining_high": 2.0})
        for source, number in (("both", 2), ("<none>", 90))
    ]
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return {
        "summary": humans.summary(rated, ["<none>", "both"], few),
        "raters": humans.by_rater(rated),
        "differences": humans.differences(rated, ["<none>", "both"], few),
        "drift": pl.DataFrame(drifts, schema=DRIFT),
        "scorers": scorers.with_columns(pl.lit(0.5).alias(name) for name in FIGURES),
    }


def example_ratings(source: str = "both", **changed: Any) -> Page:
    """changed: tables in place of those of frames()."""
    shown = {**frames(), **changed}
    about = {"name": "humans", "command": "python -m mitigate recipe=humans", "notices": ["a <notice>"]}
    return humans.page(shown, shown.pop("scorers"), source, demonstration=True, **about)


def rated(batch: str, tails: dict[str, float], words: list[str] = WORDS) -> pl.DataFrame:
    """A statement of each word, relation and tail, rated by four; tails: the share that finds it polarised. Of other
    relations than the first half as many words have it."""
    rows = [
        (batch, batch, f"{word} {phrase} {tail}", -1 if vote < 4 * share else 0, vote < 3)
        for place, phrase in enumerate(PHRASES.values())
        for word in words[: len(words) // (place + 1)]
        for tail, share in tails.items()
        for vote in range(4)
    ]
    given = pl.DataFrame(rows, schema=["source", "batch", "statement", "label", "quality"], orient="row")
    unknown = [pl.lit(None, pl.String).alias(name) for name in ("target", "category", "relation", "rater")]
    return given.with_columns(*unknown, item=pl.col("source") + pl.col("statement"), rank=pl.lit(None, pl.Int64))
