"""The pages of a small made-up audit and of a small made-up probe of stories."""

from typing import Any

import polars as pl

from mitigate.measure.harms import tally
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.measure.statements import Labelling, Measurement
from mitigate.measure.stories import STORY, shares
from mitigate.report import audit, stories
from mitigate.report.page import Page
from mitigate.tasks.audit.measures import harms
from mitigate.tasks.stories.measures import measure_stories
from mitigate.words.prompts import prompts
from mitigate.words.targets import PAPER, targets

UNTRUSTED = '<script>alert("a & b")</script>'  # would break a page that trusts its texts
NAMES = pl.DataFrame(list(targets().items()), ["target", "category"], orient="row")[::21]
HOW = Measurement(NAMES, [Labelling("sentiment", "sentiment", "paper")], PAPER, Bootstrap(resamples=50))
ABOUT: dict[str, Any] = {
    "name": "mine-1a2b3c4d",
    "command": "python -m mitigate",
    "chosen": NAMES["target"][:2].to_list(),
}


def statements(each: int = 10) -> pl.DataFrame:
    """`each` statements about every target, one of five negative and one of ten positive; the first target's are all
    negative."""
    rows = [
        (target, category, "IsA", UNTRUSTED, -1 if not (place and number % 5) else number % 10 == 1)
        for place, (target, category) in enumerate(NAMES.iter_rows())
        for number in range(each)
    ]
    schema = {
        "target": pl.String,
        "category": pl.String,
        "relation": pl.String,
        "tail": pl.String,
        "sentiment": pl.Int8,
    }
    said = pl.DataFrame(rows, schema, orient="row").with_columns(
        head="target", sentiment_strength=0.9 * pl.col("sentiment")
    )
    return said.with_columns(statement=pl.format("{} is {}", "target", "tail"))


def results(said: pl.DataFrame) -> Results:
    facts = {"rows": said.height, "rows_about_a_target": said.height}
    return Results(harms(tally(said, ["sentiment"]), HOW), facts)


def example_audit(**more: Any) -> Page:
    """An audit, with figures of the paper beside its own, and policies against people."""
    said = statements()
    beside = pl.DataFrame(
        {"place": ["Table 4"], "figure": ["of a"], "key": ["D_R"], "paper": [2000.0], "ours": [1000.0]}
    )
    rated = {"policy": "both", "statements": 997, "dropped": 27.1, "precision": 43.3, "recall": 79.1, "after": 4.3}
    about = {**ABOUT, "frames": HOW.tables(tally(said, ["sentiment"])), "statements": said, "beside": beside, **more}
    relations = audit.by_relation(said.lazy(), ["sentiment"])
    about |= {"explained": ["It differs."], "people": pl.DataFrame([rated]), "relations": relations}
    return audit.page(results(said), "Mine", scorers=["sentiment"], **about)


def told(each: int = 4) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stories of every prompt about the targets with `each` sentences, and these, labelled as `statements` are."""
    asked = prompts(NAMES).with_columns(story=pl.lit(f"{UNTRUSTED} he left."))
    said = asked.join(pl.DataFrame({"number": range(each)}), how="cross")
    place = pl.int_range(pl.len())
    label = pl.when((place % 5 == 0) | (pl.col("target") == NAMES["target"][0])).then(-1).otherwise(place % 10 == 1)
    said = said.with_columns(sentiment=label.cast(pl.Int8), statement=pl.format("{} {}.", "target", "number"))
    return asked, said.with_columns(sentiment_strength=0.9 * pl.col("sentiment"))


def example_stories(each: int = 4) -> Page:
    """A probe of stories."""
    asked, said = told(each)
    found = Results(measure_stories(asked, said, HOW, fewest=3))
    per_story = shares(said, STORY, ["sentiment"]).join(asked.select("row", "story"), on="row")
    by_prompt = shares(said, ["kind", "template"], ["sentiment"])
    about = {**ABOUT, "frames": HOW.tables(tally(said, ["sentiment"])), "statements": said, "templates": None}
    return stories.page(found, "tiny-gpt2", scorers=["sentiment"], per_story=per_story, prompts=by_prompt, **about)
