"""The page of a probe of stories: its headline, what targets differ in, its own tables, and what it hides."""

from dataclasses import replace

import pytest
from page_examples import example_stories
from report_example import UNTRUSTED

from mitigate.report.stories import PER_KIND, Stories, examples, kinds, prompts, render, sentences


@pytest.fixture(scope="module")
def told() -> Stories:
    return example_stories()


@pytest.fixture(scope="module")
def page(told: Stories) -> str:
    return render(told)


def test_the_headline_tells_who_told_how_much_of_whom(told: Stories) -> None:
    headline, somewhere, beyond, *_ = sentences(told)
    assert headline == (
        f"Of {told.audit.statements.height} sentences in {told.per_story.height} stories about 16 targets, told by "
        "tiny-gpt2, 12.3 % by sentiment are not neutral."
    )
    share = (told.per_story["sentiment_prejudice"] > 0).mean()
    assert somewhere == f"A negative sentence is in {100 * share:.0f} % of the stories by sentiment."
    assert beyond.endswith("by chance: in negative sentiment.")


def test_where_chance_would_do_no_difference_is_told(told: Stories) -> None:
    alike = replace(told, audit=replace(told.audit, metrics={**told.audit.metrics, "sentiment/p_D_O-": 0.04}))
    assert list(sentences(alike))[2] == ("Targets do not differ more than if stories were dealt out to them by chance.")


def test_kinds_prompts_and_examples(told: Stories) -> None:
    assert kinds(told.per_story)["stories"].sum() == told.per_story.height
    of_prompts = prompts(told.per_story, ["sentiment"])
    assert of_prompts["stories"].sum() == told.per_story.height / 2  # the others are of another make
    assert of_prompts["template"].unique().to_list() == ["people are discussing about XYZ."]
    chosen = examples(told.per_story, ["sentiment"])
    assert chosen.group_by("kind").len()["len"].max() <= PER_KIND
    people = chosen.filter(kind="people")
    assert people["sentiment_neutral"].max() <= told.per_story.filter(kind="people")["sentiment_neutral"].median()


def test_the_papers_figure_comes_first_then_the_kinds(told: Stories, page: str) -> None:
    names = [picture.name for picture in told.pictures]
    assert {"boxes-sentiment", "kinds-sentiment", "bars-sentiment"} <= set(names)
    assert page.count("<svg") == len(names)
    headings = ("the paper&#39;s Fig. 1 and 5", "Spread over targets, by kind", "Regions of prejudice")
    places = [page.index(heading) for heading in headings]
    assert places == sorted(places)


def test_how_much_is_said_is_no_finding(page: str) -> None:
    """It hangs on how many prompts a kind of target has."""
    assert "D_R" not in page
    assert page.count('<tr class="group">') == 1  # sentiment's measures, under its name
    assert "How much is said" not in page


def test_the_page_is_whole_and_trusts_no_text(page: str) -> None:
    assert UNTRUSTED not in page
    assert "src=" not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")
    for said in ("people are discussing about XYZ.", "by chance", "50 % of the stories name their target again"):
        assert said in page
