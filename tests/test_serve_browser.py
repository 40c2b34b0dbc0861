"""The page of the service in a browser, from an empty start: submit, watch, compare, ask and label; by keyboard, on a
phone and in the dark; nothing is asked of another host."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import DESKTOP, PATIENCE, PHONE, TOOLS, chromium, find
from playwright.sync_api import Browser, Page
from served import fresh

REFUSED = "status of 422"  # which the browser notes by itself
pytestmark = pytest.mark.skipif(find() is None, reason="needs Chromium to open pages: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of a new service; that it had no fault is seen at the end."""
    faults = []
    with fresh(tmp_path) as (_, address):
        context = browser.new_context(viewport=DESKTOP, color_scheme="light")  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda asked: asked.url.startswith((address, "data:")) or faults.append(asked.url))
        context.on(
            "console",
            lambda said: said.type in ("error", "warning") and REFUSED not in said.text and faults.append(said.text),
        )
        context.on("weberror", lambda error: faults.append(str(error.error)))
        opened = context.new_page()
        opened.add_init_script(TOOLS)
        opened.goto(address)
        opened.get_by_role("button", name="Submit").wait_for()
        yield opened
        context.close()
    assert faults == []


def test_from_an_empty_start_to_two_generators_side_by_side(page: Page) -> None:
    """A browser and jobs start, which takes seconds: a page is used as a whole."""
    page.get_by_text("No run is finished.").wait_for()
    for number, policy in enumerate(("none", "both"), start=1):
        page.locator("#submit-form select[name=policy]").select_option(policy)
        page.locator("#submit-form").get_by_role("button").press("Enter")  # by keyboard
        page.locator(f"#job-{number} .state-done").wait_for()
        page.locator(f"#job-{number}").get_by_role("link", name="Report").wait_for()
    assert page.locator("#run-rows tr").count() == 2
    page.get_by_label("Choose both, made_up, seed 1").check()
    page.get_by_role("button", name="Compare the chosen runs").click()
    page.locator("#job-3").get_by_role("link", name="Comparison").wait_for()
    with page.context.expect_page() as opened:
        page.locator("#job-3").get_by_role("link", name="Comparison").click()
    opened.value.get_by_role("heading", name="compared").wait_for()
    assert opened.value.evaluate("self.origin") == "null"  # in a sandbox
    page.get_by_role("button", name="Output of job 1").click()
    page.locator("#log-lines").get_by_text("run folder").wait_for()

    page.get_by_role("textbox", name="Head", exact=True).fill("nurse")
    page.get_by_role("textbox", name="Head", exact=True).press("Enter")
    captions = page.locator("#answers caption")
    captions.nth(1).wait_for()
    assert captions.all_inner_texts() == ["none, seed 1: nurse CapableOf", "both, seed 1: nurse CapableOf"]
    cells = page.locator("#answers table").first.locator("tbody tr").nth(1).locator("th, td").all_inner_texts()
    assert cells == ["2", "capableof of nurse 2", "favouritism / neutral", "neutral", "0.75"]
    page.get_by_label("Texts, one a line").fill("<img src=x onerror=alert(1)> is short\nfine")
    page.locator("#label-form button").click()
    page.get_by_text("<img src=x onerror=alert(1)> is short", exact=True).first.wait_for()
    assert page.locator("#labels img").count() == 0

    for scheme in ("light", "dark"):
        for size in (DESKTOP, PHONE):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            assert page.evaluate("tools.faint()") == []
            assert page.evaluate("tools.unnamed()") == []
            assert page.evaluate("tools.overflow()") == 0
            assert page.locator(".scroll:has(#job-rows)").evaluate("node => node.scrollWidth - node.clientWidth") == 0


def test_faults_stand_beside_the_form(page: Page) -> None:
    page.get_by_label("Settings, one a line").fill("trainer.lr=fast\nmodel.base=/etc\nnothing")
    page.locator("#submit-form button").click()
    page.get_by_text("“nothing” is not a setting; write it as KEY=VALUE").wait_for()
    page.get_by_label("Settings, one a line").fill("trainer.lr=fast\nkge.run=/etc")
    page.locator("#submit-form button").click()
    faults = page.locator("#submit-faults li")
    faults.nth(1).wait_for()
    assert "trainer.lr=fast must be a number above 0" in faults.nth(0).inner_text()
    assert "'kge.run' cannot be set in this service" in faults.nth(1).inner_text()
    page.get_by_text("No job has been submitted.").wait_for()
    written = ["[nurse,a chef]", '["nurse", "a chef"]', "[1,2]", "1e-3", "both", "null"]
    given = [["nurse", "a chef"], ["nurse", "a chef"], [1, 2], 0.001, "both", None]
    assert page.evaluate("texts => texts.map(valueOf)", written) == given
