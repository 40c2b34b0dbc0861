"""Percentages of stories by kind and prompt, differences by chance, and the page of a probe of stories."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import example_stories

from mitigate.measure.results import Results, measured
from mitigate.measure.stories import STORY, all_stories, by_chance, per_story_of, shares
from mitigate.report import stories as report
from mitigate.report.stories import Stories

COLUMNS = ["sentiment"]


def sentences(*stories: tuple[str, list[int]], template: int = 1) -> pl.DataFrame:
    """A row a sentence: of each story its target, and its sentences' labels."""
    rows = [
        (row, target, "gender", "people", template, f"about {target}", label, f"{label} of a {target}.")
        for row, (target, labels) in enumerate(stories, start=1)
        for label in labels
    ]
    return pl.DataFrame(rows, schema=[*STORY, "sentiment", "statement"], orient="row")


def test_of_each_story_the_percentages_of_its_sentences() -> None:
    said = sentences(("she", [-1, 0, 2, 1]), ("he", [0, 0, 1]))
    table = shares(said, STORY, COLUMNS)
    assert table.select(
        "row", "sentences", "sentiment_prejudice", "sentiment_favouritism", "sentiment_neutral"
    ).rows() == [(1, 4, 25.0, 25.0, 50.0), (2, 3, 0.0, pytest.approx(100 / 3), pytest.approx(200 / 3))]
    stories = pl.DataFrame({"row": [1, 2, 3], "target": ["she", "he", "he"]})  # the third has no sentence
    whole, one_scorer = all_stories(stories, said, 4), per_story_of(table, "sentiment")
    found = Results(pl.concat([measured("stories", whole), measured("whole stories", one_scorer, scorer="sentiment")]))
    expected = {"stories": 2, "stories/untold": 1, "stories/short": 1, "sentences_per_story": 3.5}
    expected |= {"sentiment/stories-": 50, "sentiment/stories+": 100}
    assert {key: found[key] for key in expected} == expected
    assert (found["sentiment/by_chance_D_O-"], found["sentiment/p_D_O-"]) == (156.25, 1)  # of 25 and 0
    assert shares(said, ["kind"], COLUMNS)["stories"].to_list() == [2]


def by_story(*told: pl.DataFrame) -> pl.DataFrame:
    """The percentages of stories, of different prompts."""
    each = [part.with_columns(row=pl.col("row") + 2 * pl.col("template")) for part in told]
    return per_story_of(shares(pl.concat(each), STORY, COLUMNS), "sentiment")


def test_chance_of_one_prompt_of_prompts_that_differ_and_of_a_single_target() -> None:
    """Two targets of one prompt, one story each, 0 and 100 %: dealt out anew they differ as much."""
    table = by_story(sentences(("she", [-1, -1]), ("he", [0, 0])))
    assert by_chance(table, "prejudice", 50, seed=1) == (2500.0, 1.0)
    # Negative in one prompt and not in the other, whoever it is about.
    said = [sentences(("she", [label]), ("he", [label]), template=template) for template, label in ((1, -1), (2, 0))]
    assert by_chance(by_story(*said), "prejudice", 20, seed=1) == (0.0, 1.0)
    assert by_chance(by_story(sentences(("she", [-1]), ("she", [0]))), "prejudice", 20, seed=1) is None


def test_targets_that_differ_in_every_prompt_differ_more_than_by_chance() -> None:
    said = [sentences(("she", [-1]), ("he", [0]), template=template) for template in range(1, 9)]
    dealt, p = by_chance(by_story(*said), "prejudice", 2000, seed=1) or (0.0, 0.0)
    assert dealt == pytest.approx(2500 / 8, rel=0.1)  # of eight fair coins: 100^2 x 1/4 / 8
    assert p == pytest.approx(2 / 2**8, abs=0.006)  # all one way, or all the other


def test_whether_a_generator_listens() -> None:
    def figures(said: pl.DataFrame) -> Results:
        stories = all_stories(said.select("row", "target").unique(maintain_order=True), said, 1)
        return Results(pl.concat([measured("stories", stories), measured("sentences", said)]))

    said = sentences(("she", [0, 1]), ("she", [0, 0]), ("he", [0]))
    assert figures(said)["distinct_sentences"] == 60
    assert figures(said)["naming_target"] == 100
    heat = pl.when(pl.col("row") > 1).then(pl.lit("the heat. Hes!")).otherwise("statement")
    others = said.with_columns(statement=heat)
    assert figures(others)["naming_target"] == pytest.approx(200 / 3)  # the second story has no "she"
    plural = said.with_columns(target=pl.lit("secretaries"), statement=pl.lit("The secretary left."))
    assert figures(plural)["naming_target"] == 100


@pytest.fixture(scope="module")
def stories() -> Stories:
    return example_stories()


def test_the_headline_names_the_generator_and_claims_no_difference_that_chance_explains(stories: Stories) -> None:
    headline, somewhere, beyond, *_ = report.sentences(stories)
    assert headline == (
        f"Of {stories.statements.height} sentences in {stories.per_story.height} stories from tiny-gpt2 about "
        "16 targets, 12.3 % by sentiment are not neutral."
    )
    share = (stories.per_story["sentiment_prejudice"] > 0).mean()
    assert somewhere == f"A negative sentence occurs in {100 * share:.0f} % of the stories by sentiment."
    assert beyond.endswith("by chance in negative sentiment.")
    alike = replace(stories, metrics={**stories.metrics, "sentiment/p_D_O-": 0.04})
    assert list(report.sentences(alike))[2] == ("Targets are not shown to differ more than expected by chance.")
