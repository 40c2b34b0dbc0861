"""Every page in Debian's Chromium, driven by Playwright: opened, read in both lights and on a phone, filled in; and
the page of the service, used by two people."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_examples import ASKED, PAGES
from playwright.sync_api import Browser, Page, Request, sync_playwright
from served import serving

from mitigate.load.ratings import read_answers
from mitigate.serve.app import Service

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
PATIENCE = 120_000  # milliseconds: a busy machine is slow, and that is no fault of a page
NO_FETCH = ("data:", "blob:", "about:")  # addresses that lie in the page itself
NAMED = {"image", "button", "checkbox", "radio", "textbox", "searchbox", "combobox", "link", "region", "progressbar"}
TOOLS = Path(__file__).with_name("page_tools.js").read_text()  # defines `tools`
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
REFUSED = ("status of 401", "status of 422")  # which the browser notes by itself
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium to open pages: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser, without a window; in a container it may have no sandbox of its own."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=flags, timeout=PATIENCE)
        yield opened
        opened.close()


class Visit:
    """A page opened from a file, and all that goes wrong on it.

    Whatever it asks of any address but its own is refused and noted, so that nothing leaves the machine."""

    def __init__(self, browser: Browser, file: Path, scheme: str = "light", size: dict[str, int] = DESKTOP) -> None:
        self.faults: list[str] = []
        self.address = file.absolute().as_uri()
        self.page: Page = browser.new_page(viewport=size, color_scheme=scheme, accept_downloads=True)
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: said.type in ("error", "warning") and self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self._note("page error", error))
        self.page.on("request", self._asked)
        self.page.route(lambda address: not self._own(address), lambda route: route.abort())
        self.page.add_init_script(TOOLS)
        self.page.goto(self.address)

    def run(self, expression: str, *given: Any) -> Any:
        """What a JavaScript expression gives on the page; `tools` are those of page_tools.js."""
        return self.page.evaluate(expression, *given)

    def nameless(self) -> list[str]:
        """The roles of pictures and controls for which Chromium, as it tells assistive technology, finds no name."""
        session = self.page.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        nodes = [node for node in nodes if not node["ignored"]]
        named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes]
        return sorted(role for role, name in named if role in NAMED and not name.strip())

    def close(self) -> list[str]:
        """The page's faults, once all that it does has been done."""
        self.run("new Promise((done) => setTimeout(done, 50))")
        self.page.close()
        return self.faults

    def _own(self, address: str) -> bool:
        return address.partition("#")[0] == self.address or address.startswith(NO_FETCH)

    def _asked(self, request: Request) -> None:
        if not self._own(request.url):
            self._note("request to", request.url)

    def _note(self, kind: str, text: object) -> None:
        self.faults.append(f"{kind}: {text}")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each page, as a file."""
    folder = tmp_path_factory.mktemp("pages")
    for name, html in PAGES.items():
        (folder / f"{name}.html").write_text(html(), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture
def visit(browser: Browser, files: dict[str, Path]) -> Iterator[Callable[..., Visit]]:
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
def test_a_page_is_in_order(visit: Callable[..., Visit], name: str) -> None:
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


def test_a_rater_answers_rests_and_saves(visit: Callable[..., Visit], tmp_path: Path) -> None:
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


def test_a_rater_stops_comes_back_and_deletes(visit: Callable[..., Visit]) -> None:
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


# The page of the service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Service, str]]:
    with serving(tmp_path, slots=2) as found:
        yield found


@pytest.fixture
def visit_service(browser: Browser, service: tuple[Service, str]) -> Iterator[Callable[[str], Page]]:
    """A maker of pages for a person; that none had a fault is seen at the end."""
    faults: list[str] = []
    contexts = []

    def visited(name: str) -> Page:
        context = browser.new_context(viewport=DESKTOP, color_scheme="light")  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda asked: asked.url.startswith((service[1], "data:")) or faults.append(asked.url))
        context.on(
            "console",
            lambda said: (
                said.type == "error" and not any(words in said.text for words in REFUSED) and faults.append(said.text)
            ),
        )
        context.on("weberror", lambda error: faults.append(str(error.error)))
        page = context.new_page()
        page.add_init_script(TOOLS)
        page.goto(service[1])
        page.get_by_label("Your token").fill(service[0].queue.create_token(name))
        page.get_by_role("button", name="Open").click()
        page.get_by_text(name, exact=True).wait_for()
        return page

    yield visited
    for context in contexts:
        context.close()
    assert faults == []


def test_two_people_upload_submit_read_and_cancel(visit_service: Callable[[str], Page], tmp_path: Path) -> None:
    """Browsers and jobs start, which takes seconds: a page is used as a whole."""
    ann, bob = visit_service("ann"), visit_service("bob")
    ann.get_by_text("No job has been submitted.").wait_for()
    (tmp_path / "mine.csv").write_text("head,relation,tail\n<b>lawyer</b>,IsA,person\n")
    ann.locator("#file-form input[type=file]").set_input_files(tmp_path / "mine.csv")
    ann.get_by_label("What to do").select_option("filter")
    ann.get_by_role("button", name="Start").press("Enter")  # by keyboard
    ann.locator("#job-1 .state-done").wait_for()
    ann.frame_locator("#report").get_by_role("heading", name="report of filter").wait_for()
    assert ann.locator("#report").element_handle().content_frame().evaluate("self.origin") == "null"  # in a sandbox
    ann.get_by_text("Files of the run").click()
    with ann.expect_download() as kept:
        ann.locator("#result-files").get_by_role("link", name="kept.tsv").click()
    assert kept.value.suggested_filename == "kept.tsv"
    assert ann.locator("#file-rows th").all_text_contents() == ["mine.csv"]
    assert bob.locator("#file-rows th").all_text_contents() == []

    bob.get_by_label("Settings, one per line").fill("seed=600")
    bob.get_by_role("button", name="Submit").click()
    bob.locator("#job-2 .state-running").wait_for()
    ann.locator("#job-2 .state-running").wait_for()
    assert ann.locator("#job-2").get_by_role("button", name="Cancel").count() == 0
    bob.on("dialog", lambda dialog: dialog.accept())
    bob.locator("#job-2").get_by_role("button", name="Cancel").click()
    bob.locator("#job-2 .state-cancelled").wait_for()
    bob.get_by_role("button", name="Show job 1").click()
    bob.frame_locator("#report").get_by_role("heading", name="report of filter").wait_for()

    for scheme in ("light", "dark"):
        for size in (DESKTOP, PHONE):
            ann.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            ann.set_viewport_size(size)  # type: ignore[arg-type]
            assert ann.evaluate("tools.faint()") == []
            assert ann.evaluate("tools.unnamed()") == []
            assert ann.evaluate("tools.overflow()") == 0
