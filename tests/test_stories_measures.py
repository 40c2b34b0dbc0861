"""Percentages of stories by kind and prompt, differences by chance, and the page of a probe of stories."""

import polars as pl
import pytest
from audit_example import UNTRUSTED, example_stories, told
from page_elements import Elements

from mitigate.measure.results import Results, measured
from mitigate.measure.stories import SHARES, STORY, by_chance, shares, story_numbers
from mitigate.report.page import render

COLUMNS = ["sentiment"]


def sentences(*stories: tuple[str, list[int]], template: int = 1) -> pl.DataFrame:
    """A row a sentence: of each story its target, and its sentences' labels."""
    rows = [
        (row, target, "gender", "people", template, f"about {target}", label, f"{label} of a {target}.")
        for row, (target, labels) in enumerate(stories, start=1)
        for label in labels
    ]
    return pl.DataFrame(rows, schema=[*STORY, "sentiment", "statement"], orient="row")


def of_sentiment(table: pl.DataFrame) -> pl.DataFrame:
    """The table `whole stories` of one column of labels."""
    return table.select(*STORY, "sentences", **{share: f"sentiment_{share}" for share in SHARES})


def test_of_each_story_the_percentages_of_its_sentences() -> None:
    said = sentences(("she", [-1, 0, 2, 1]), ("he", [0, 0, 1]))
    table = shares(said, COLUMNS)
    assert table.select(
        "row", "sentences", "sentiment_prejudice", "sentiment_favouritism", "sentiment_neutral"
    ).rows() == [(1, 4, 25.0, 25.0, 50.0), (2, 3, 0.0, pytest.approx(100 / 3), pytest.approx(200 / 3))]
    stories = pl.DataFrame({"row": [1, 2, 3], "target": ["she", "he", "he"]})  # the third has no sentence
    whole = measured("whole stories", of_sentiment(table), scorer="sentiment")
    found = Results(pl.concat([measured("numbers", story_numbers(stories, said, 4)), whole]))
    expected = {"stories": 2, "stories/untold": 1, "stories/short": 1, "sentences_per_story": 3.5}
    expected |= {"sentiment/stories-": 50, "sentiment/stories+": 100}
    assert {key: found[key] for key in expected} == expected
    assert (found["sentiment/by_chance_D_O-"], found["sentiment/p_D_O-"]) == (156.25, 1)  # of 25 and 0


def by_story(*told: pl.DataFrame) -> pl.DataFrame:
    """The percentages of stories, of different prompts."""
    each = [part.with_columns(row=pl.col("row") + 2 * pl.col("template")) for part in told]
    return of_sentiment(shares(pl.concat(each), COLUMNS))


def test_chance_of_one_prompt_of_prompts_that_differ_and_of_a_single_target() -> None:
    """Two targets of one prompt, one story each, 0 and 100 %: dealt out anew they differ as much."""
    table = by_story(sentences(("she", [-1, -1]), ("he", [0, 0])))
    assert by_chance(table, "prejudice", 50, seed=1) == (2500.0, 1.0)
    # Negative in one prompt and not in the other, whoever it is about.
    said = [sentences(("she", [label]), ("he", [label]), template=template) for template, label in ((1, -1), (2, 0))]
    assert by_chance(by_story(*said), "prejudice", 20, seed=1) == (0.0, 1.0)
    assert by_chance(by_story(sentences(("she", [-1]), ("she", [0]))), "prejudice", 20) is None


def test_targets_that_differ_in_every_prompt_differ_more_than_by_chance() -> None:
    said = [sentences(("she", [-1]), ("he", [0]), template=template) for template in range(1, 9)]
    dealt, p = by_chance(by_story(*said), "prejudice", 2000, seed=1) or (0.0, 0.0)
    assert dealt == pytest.approx(2500 / 8, rel=0.1)  # of eight fair coins: 100^2 x 1/4 / 8
    assert p == pytest.approx(2 / 2**8, abs=0.006)  # all one way, or all the other


def test_whether_a_generator_listens() -> None:
    def figures(said: pl.DataFrame) -> dict[str, float]:
        return story_numbers(said.select("row", "target").unique(maintain_order=True), said, 1)

    said = sentences(("she", [0, 1]), ("she", [0, 0]), ("he", [0]))
    assert figures(said)["distinct_sentences"] == 60
    assert figures(said)["naming_target"] == 100
    heat = pl.when(pl.col("row") > 1).then(pl.lit("the heat. Hes!")).otherwise("statement")
    others = said.with_columns(statement=heat)
    assert figures(others)["naming_target"] == pytest.approx(200 / 3)  # the second story has no "she"
    plural = said.with_columns(target=pl.lit("secretaries"), statement=pl.lit("The secretary left."))
    assert figures(plural)["naming_target"] == 100


def test_the_first_screen_says_how_much_in_how_many_stories_and_what_chance_explains() -> None:
    """Each target has the same shares but for the first, whose sentences are all negative."""
    made = example_stories()
    asked, said = told()
    assert made.state == "Targets differ by more than chance"
    assert made.hedge.startswith(f"In negative sentiment. Of {said.height:,} sentences in {asked.height} stories from")
    neutral, negative, spread = made.numbers
    share = said.group_by("row").agg((pl.col("sentiment") == -1).any())["sentiment"].mean()
    assert negative.value == f"{100 * share:.1f} %"
    assert neutral.note.endswith("mean over targets")
    assert spread.note.endswith(("p < 0.001", "p 0.001"))
    html = render(made)
    Elements(html).check()
    assert UNTRUSTED not in html
    assert "Differences between targets" in html
    assert not any(picture.group == "counts" for picture in made.pictures)
    assert ">prompt<" in html
