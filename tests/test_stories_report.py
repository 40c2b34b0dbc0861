"""The page of a probe of stories: its headline, what targets differ in, its own tables, and what it hides."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import example_stories
from report_example import UNTRUSTED

from mitigate.report.stories import PER_KIND, Stories, examples, kinds, prompts, render, sentences


@pytest.fixture(scope="module")
def stories() -> Stories:
    return example_stories()


@pytest.fixture(scope="module")
def page(stories: Stories) -> str:
    return render(stories)


def test_the_headline_names_the_generator_and_the_numbers(stories: Stories) -> None:
    headline, somewhere, beyond, *_ = sentences(stories)
    assert headline == (
        f"Of {stories.audit.statements.height} sentences in {stories.per_story.height} stories from tiny-gpt2 about "
        "16 targets, 12.3 % by sentiment are not neutral."
    )
    share = (stories.per_story["sentiment_prejudice"] > 0).mean()
    assert somewhere == f"A negative sentence occurs in {100 * share:.0f} % of the stories by sentiment."
    assert beyond.endswith("by chance in negative sentiment.")


def test_a_difference_that_chance_explains_is_not_claimed(stories: Stories) -> None:
    alike = replace(stories, audit=replace(stories.audit, metrics={**stories.audit.metrics, "sentiment/p_D_O-": 0.04}))
    assert list(sentences(alike))[2] == ("Targets are not shown to differ more than expected by chance.")


def test_kinds_prompts_and_examples(stories: Stories) -> None:
    assert kinds(stories.per_story)["stories"].sum() == stories.per_story.height
    of_prompts = prompts(stories.per_story, ["sentiment"])
    assert of_prompts["stories"].sum() == stories.per_story.height / 2  # the others are of another make
    assert of_prompts["template"].unique().to_list() == ["people are discussing about XYZ."]
    chosen = examples(stories.per_story, ["sentiment"])
    assert chosen.group_by("kind").len()["len"].max() <= PER_KIND
    people = chosen.filter(kind="people")
    assert people["sentiment_neutral"].max() <= stories.per_story.filter(kind="people")["sentiment_neutral"].median()


def test_the_papers_figure_comes_first_then_the_kinds(stories: Stories, page: str) -> None:
    names = [picture.name for picture in stories.pictures]
    assert {"boxes-sentiment", "kinds-sentiment", "bars-sentiment"} <= set(names)
    assert page.count("<svg") == len(names)
    headings = ("the paper&#39;s Fig. 1 and 5", "Spread over targets, by kind", "Targets with more prejudice")
    places = [page.index(heading) for heading in headings]
    assert places == sorted(places)


def test_targets_are_drawn_by_the_kind_that_their_prompts_have(stories: Stories) -> None:
    """Also own ones, of which a file says the kind."""
    of_one_kind = replace(stories, per_story=stories.per_story.with_columns(kind=pl.lit("locations")))
    (picture,) = [picture for picture in of_one_kind.pictures if picture.group == "kinds"]
    assert "negative and positive: locations " in picture.alt
    assert "people" not in picture.alt


def test_how_much_is_said_is_no_finding(page: str) -> None:
    """It hangs on how many prompts a kind of target has."""
    assert "D_R" not in page
    assert page.count('<tr class="group">') == 1  # sentiment's measures, under its name


def test_the_page_is_whole_and_trusts_no_text(page: str) -> None:
    assert UNTRUSTED not in page
    assert "src=" not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")
    for said in ("people are discussing about XYZ.", "by chance", "50 % of the stories name their target again"):
        assert said in page
