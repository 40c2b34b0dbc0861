"""Every page in a browser: opened, read in both lights and on a phone, filled in."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import PHONE, Visit, chromium, find
from page_examples import ASKED, PAGES
from playwright.sync_api import Browser, Page

from mitigate.load.ratings import read_answers

pytestmark = pytest.mark.skipif(find() is None, reason="needs Chromium to open pages: apt-get install chromium")
Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each page, as a file."""
    folder = tmp_path_factory.mktemp("pages")
    for name, html in PAGES.items():
        (folder / f"{name}.html").write_text(html(), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture
def visit(browser: Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Opens a page by name; that it had no fault is seen at the end."""
    visits: list[Visit] = []

    def opened(name: str) -> Visit:
        visits.append(Visit(browser, files[name]))
        return visits[-1]

    yield opened
    assert [visit.close() for visit in visits] == [[]] * len(visits)


def in_order(page: Visit) -> None:
    """Pictures and controls have names, texts stand out from what is behind them in either light, and a phone need
    not scroll sideways."""
    page.run("tools.open()")
    assert page.run("tools.unnamed()") == []
    assert page.nameless() == []
    assert page.run("tools.faint()") == []
    assert page.run("tools.luminance()") > 0.8
    page.page.emulate_media(color_scheme="dark")
    assert page.run("tools.faint()") == []
    assert page.run("tools.luminance()") < 0.05
    page.page.set_viewport_size(PHONE)
    assert page.run("tools.overflow()") == 0
    page.page.emulate_media(color_scheme="light")


def look_behind_warnings(page: Page, number: int) -> None:
    """Offensive statements are behind a click and a warning."""
    behind = page.locator("details:has(> summary .warning)")
    assert behind.count() == number
    for each in behind.all():
        inside = each.locator(":scope > :not(summary)").first
        assert "content warning" in each.locator("summary").first.inner_text()
        assert not inside.is_visible()
        each.locator("summary").first.click()
        assert inside.is_visible()


WARNED = {"report": 1, "audit": 1}  # of pages with a table of targets: the warnings


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_in_order(visit: Open, name: str) -> None:
    opened = visit(name)
    if name in WARNED:
        look_behind_warnings(opened.page, WARNED[name])
    in_order(opened)


def begin(page: Page) -> None:
    page.get_by_label("Your made-up name").fill("fox")
    page.get_by_label("I am 18 or older").check()
    page.get_by_role("button", name="Begin").click()


def screen(page: Page) -> str:
    return str(page.locator(".screen:visible").get_attribute("id"))


def answer(page: Page, *answers: str) -> str:
    """The screen after these answers."""
    for one in answers:
        page.get_by_label(one).check()
    page.get_by_role("button", name="Next").click()
    return screen(page)


def test_a_rater_answers_rests_and_saves(visit: Open, tmp_path: Path) -> None:
    opened = visit("survey")
    page = opened.page
    page.get_by_role("button", name="Begin").click()
    assert screen(page) == "welcome", "neither name nor consent"
    begin(page)
    assert page.locator("#statement").text_content() == "lawyer is a <b>thief</b>"
    in_order(opened)
    assert answer(page, "Negative") == "question"
    assert page.get_by_role("alert").inner_text() == "Please answer both questions, or skip this sentence."
    answer(page, "Yes")
    page.get_by_role("button", name="Skip").click()
    assert answer(page, "Neutral", "wrong, or") == "pause", "two answers are enough for a day"
    assert page.locator("#pause").inner_text().startswith("That is enough for today.")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Back").click()
    assert page.get_by_label("Neutral").is_checked()
    answer(page, "Positive")
    assert answer(page, "Positive", "Yes") == "pause"
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my answers").click()
    assert download.value.suggested_filename == "answers-5urvey-fox.csv"
    download.value.save_as(tmp_path / "answers.csv")
    ratings, notices = read_answers([tmp_path / "answers.csv"], ASKED["item"].to_list(), raters=1)
    expected = [("a1", -1, True), ("c3", 1, False), ("d4", 1, True)]
    assert ratings.select("item", "label", "quality").rows() == expected
    assert notices == ["1 of 4 items without a rating: b2"]


def test_a_rater_stops_comes_back_and_deletes(visit: Open) -> None:
    opened = visit("survey")
    page, kept = opened.page, "localStorage.getItem('5urvey answers of fox')"
    begin(page)
    answer(page, "Negative", "Yes")
    page.get_by_role("button", name="Skip").click()
    page.get_by_role("button", name="Stop").click()
    assert page.locator("#pause .done").text_content() == "1"
    page.reload()
    begin(page)
    assert page.locator("#statement").text_content() == 'she, and "he"', "the third, where the rater was"
    assert json.loads(opened.run(kept))["b2"] == {"skipped": True}
    page.get_by_role("button", name="Stop").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete my answers").click()
    page.locator("#welcome").wait_for()
    assert opened.run(kept) is None
