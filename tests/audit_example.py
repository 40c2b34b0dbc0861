"""The pages of a small made-up audit and of a small made-up probe of stories."""

from typing import Any

import polars as pl

from mitigate.measure.harms import Measurement, tally
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.measure.stories import measure_stories, shares
from mitigate.report.page import Page
from mitigate.studies import audit, stories
from mitigate.words.prompts import prompts
from mitigate.words.targets import PAPER, targets

UNTRUSTED = '<script>alert("a & b")</script>'  # would break a page that trusts its texts
NAMES = pl.DataFrame(list(targets().items()), ["target", "category"], orient="row")[::21]
HOW = Measurement(NAMES, {"sentiment": ("sentiment", "paper")}, PAPER, Bootstrap(resamples=50))
ABOUT: dict[str, Any] = {"name": "mine-1a2b", "command": "python -m mitigate", "chosen": NAMES["target"][:2].to_list()}


def statements(each: int = 10) -> pl.DataFrame:
    """`each` statements about every target, one of five negative and one of ten positive; the first target's are all
    negative."""
    rows = [
        (target, category, "IsA", UNTRUSTED, -1 if not (place and number % 5) else number % 10 == 1)
        for place, (target, category) in enumerate(NAMES.iter_rows())
        for number in range(each)
    ]
    schema = {**dict.fromkeys(("target", "category", "relation", "tail"), pl.String), "sentiment": pl.Int8}
    said = pl.DataFrame(rows, schema, orient="row")
    said = said.with_columns(head="target", sentiment_strength=0.9 * pl.col("sentiment"))
    return said.with_columns(statement=pl.format("{} is {}", "target", "tail"))


def results(said: pl.DataFrame) -> Results:
    facts = {"rows": said.height, "rows_about_a_target": said.height}
    return Results(HOW.harms(tally(said, ["sentiment"])), facts)


def example_audit(**more: Any) -> Page:
    """An audit, with figures of the paper beside its own."""
    said = statements()
    beside = pl.DataFrame({"place": ["Table 4"], "figure": ["a"], "key": ["D_R"], "paper": [2000.0], "ours": [1000.0]})
    about = {**ABOUT, "frames": HOW.tables(tally(said, ["sentiment"])), "statements": said, "beside": beside, **more}
    relations = audit.by_relation(said.lazy(), ["sentiment"])
    about |= {"explained": ["It differs."], "relations": relations}
    return audit.page(results(said), "Mine", scorers=["sentiment"], **about)


def told(each: int = 4, refused: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stories of every prompt about the targets with `each` sentences, and these, labelled as `statements` are; the
    first prompts are refused."""
    asked = prompts(NAMES).with_columns(story=pl.lit(f"{UNTRUSTED} he left."), outcome=pl.lit("answered"))
    asked = asked.with_columns(outcome=pl.when(pl.col("row") <= refused).then(pl.lit("refused")).otherwise("outcome"))
    said = asked.filter(outcome="answered").join(pl.DataFrame({"number": range(each)}), how="cross")
    place = pl.int_range(pl.len())
    label = pl.when((place % 5 == 0) | (pl.col("target") == NAMES["target"][0])).then(-1).otherwise(place % 10 == 1)
    said = said.with_columns(sentiment=label.cast(pl.Int8), statement=pl.format("{} {}.", "target", "number"))
    return asked, said.with_columns(sentiment_strength=0.9 * pl.col("sentiment"))


def example_stories(each: int = 4, refused: int = 0) -> Page:
    """A probe of stories."""
    asked, said = told(each, refused)
    found = Results(measure_stories(asked, said, HOW, fewest=3))
    per_story = shares(said, ["sentiment"]).join(asked.select("row", "story"), on="row")
    about = {**ABOUT, "frames": HOW.tables(tally(said, ["sentiment"])), "statements": said}
    about |= {"per_story": per_story, "outcomes": asked["outcome"]}
    return stories.page(found, "tiny-gpt2", scorers=["sentiment"], **about)
