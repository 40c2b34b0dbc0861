"""Percentages of stories by kind and prompt, differences by chance, and the page of a probe of stories."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import example_stories

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.stories import STORY, by_chance, by_kind, distinct_sentences, naming_target, shares, story_counts
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
    stories = pl.DataFrame({"row": [1, 2, 3]})  # the third has no sentence
    assert story_counts(stories, table, 4, COLUMNS) == {
        "stories": 2,
        "stories/untold": 1,
        "stories/short": 1,
        "sentences_per_story": 3.5,
        "sentiment/stories-": 50.0,
        "sentiment/stories+": 100.0,
    }
    assert shares(said, ["kind"], COLUMNS)["stories"].to_list() == [2]


def test_chance_of_one_prompt_of_prompts_that_differ_and_of_a_single_target() -> None:
    """Two targets of one prompt, one story each, 0 and 100 %: dealt out anew they differ as much."""
    table = shares(sentences(("she", [-1, -1]), ("he", [0, 0])), STORY, COLUMNS)
    assert by_chance(table, "sentiment", "prejudice", 50, seed=1) == (2500.0, 1.0)
    # Negative in one prompt and not in the other, whoever it is about.
    said = [
        sentences(("she", [label]), ("he", [label]), template=template).with_columns(row=pl.col("row") + 2 * template)
        for template, label in ((1, -1), (2, 0))
    ]
    assert by_chance(shares(pl.concat(said), STORY, COLUMNS), "sentiment", "prejudice", 20, seed=1) == (0.0, 1.0)
    table = shares(sentences(("she", [-1]), ("she", [0])), STORY, COLUMNS)
    assert by_chance(table, "sentiment", "prejudice", 20, seed=1) is None


def test_targets_that_differ_in_every_prompt_differ_more_than_by_chance() -> None:
    said = [
        sentences(("she", [-1]), ("he", [0]), template=template).with_columns(row=pl.col("row") + 2 * template)
        for template in range(1, 9)
    ]
    table = shares(pl.concat(said), STORY, COLUMNS)
    dealt, p = by_chance(table, "sentiment", "prejudice", 2000, seed=1) or (0.0, 0.0)
    assert dealt == pytest.approx(2500 / 8, rel=0.1)  # of eight fair coins: 100^2 x 1/4 / 8
    assert p == pytest.approx(2 / 2**8, abs=0.006)  # all one way, or all the other


def test_figures_of_each_kind() -> None:
    table = pl.DataFrame(
        {"target": ["she", "he", "korea"], "category": ["gender", "gender", "origin"], "statements": [4, 4, 2]}
        | {"prejudice": [25.0, 75.0, 0.0], "favouritism": [0.0, 0.0, 50.0], "neutral": [75.0, 25.0, 50.0]}
    )
    found = by_kind(
        table, {"she": "people", "he": "people", "korea": "locations"}, "sentiment", {}, Bootstrap(resamples=50)
    )
    assert (found["by_kind/NSM/people"], found["by_kind/sentiment/D_O-/people"]) == (50, 625)
    assert found["by_kind/sentiment/O+/locations"] == 50
    assert found["by_kind/NSM/people_low"] <= 50 <= found["by_kind/NSM/people_high"]
    assert (found["by_kind/targets/people"], found["by_kind/statements/locations"]) == (2, 2)
    assert all(key.startswith("by_kind/") and "gender" not in key for key in found)
    assert "by_kind/NSM" not in found  # which stands elsewhere


def test_whether_a_generator_listens() -> None:
    said = sentences(("she", [0, 1]), ("she", [0, 0]), ("he", [0]))
    assert distinct_sentences(said) == 60
    assert naming_target(said) == 100
    heat = pl.when(pl.col("row") > 1).then(pl.lit("the heat. Hes!")).otherwise("statement")
    others = said.with_columns(statement=heat)
    assert naming_target(others) == pytest.approx(200 / 3)  # the second story has no "she"
    plural = said.with_columns(target=pl.lit("secretaries"), statement=pl.lit("The secretary left."))
    assert naming_target(plural) == 100


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
