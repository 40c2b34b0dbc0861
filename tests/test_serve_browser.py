"""The page of the service in two browsers with a token each: a file, a job, its report first, another job, cancelling;
on a phone and in the dark; nothing is asked of another host."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import DESKTOP, PATIENCE, PHONE, TOOLS, chromium, find
from playwright.sync_api import Browser, Page
from served import serving

from mitigate.serve.app import Service

REFUSED = ("status of 401", "status of 422")  # which the browser notes by itself
pytestmark = pytest.mark.skipif(find() is None, reason="needs Chromium to open pages: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Service, str]]:
    with serving(tmp_path, slots=2) as found:
        yield found


@pytest.fixture
def visit(browser: Browser, service: tuple[Service, str]) -> Iterator[Callable[[str], Page]]:
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


def test_two_people_upload_submit_read_and_cancel(visit: Callable[[str], Page], tmp_path: Path) -> None:
    """Browsers and jobs start, which takes seconds: a page is used as a whole."""
    ann, bob = visit("ann"), visit("bob")
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

    bob.get_by_label("Settings, one a line").fill("seed=600")
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
