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


def signed_in(browser: Browser, address: str, token: str) -> Page:
    """The page of a person, in a browser of its own."""
    page = browser.new_context(viewport=DESKTOP).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.get_by_label("Your token").fill(token)
    page.get_by_label("Your token").press("Enter")
    page.get_by_role("button", name="Submit").wait_for()
    return page


def test_people_see_owners_and_cancel_their_own_jobs(browser: Browser, tmp_path: Path) -> None:
    """Browsers and jobs start, which takes seconds. Jobs of seed 600 run until they are cancelled."""
    with fresh(tmp_path) as (service, address):
        ann, bob = (signed_in(browser, address, service.people.create(name)) for name in ("ann", "bob"))
        ann.get_by_label("Settings, one a line").fill("seed=600")
        for number in (1, 2, 3):
            ann.locator("#submit-form button").click()
            ann.locator(f"#job-{number}").wait_for()
        bob.locator("#job-1 .state-running").wait_for()
        bob.locator("#job-3").get_by_text("place 1 in the queue").wait_for()
        assert bob.locator("#job-1 .owner").inner_text() == "ann"
        assert bob.get_by_role("button", name="Cancel job 1").count() == 0
        refused = "ask('/jobs/1', null, 'DELETE').catch((error) => error.message)"
        assert bob.evaluate(refused) == "job 1 belongs to ann; its owner or an admin can cancel it"
        ann.once("dialog", lambda asked: asked.dismiss())
        ann.get_by_role("button", name="Cancel job 1").click()
        assert ann.locator("#job-1 .state-running").count() == 1
        ann.on("dialog", lambda asked: asked.accept())
        for number in (3, 2, 1):
            ann.get_by_role("button", name=f"Cancel job {number}").click()
            ann.locator(f"#job-{number} .state-cancelled").wait_for()
        ann.get_by_role("button", name="Forget the token").click()
        ann.get_by_label("Your token").wait_for()
        assert ann.evaluate("fetch('/jobs').then((answer) => answer.status)") == 401
        for page in (ann, bob):
            page.context.close()


def test_a_file_of_ones_own_is_uploaded_and_submitted(page: Page) -> None:
    """A browser starts, which takes seconds."""
    page.get_by_text("Your files").click()
    page.get_by_label("File", exact=True).set_input_files({"name": "mine.zip", "mimeType": "", "buffer": b"PK"})
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("mine.zip cannot be uploaded; allowed: .csv, .tsv, .jsonl, .txt, each also with .gz").wait_for()
    page.get_by_label("File", exact=True).set_input_files({"name": "mine.txt", "mimeType": "", "buffer": b"one line\n"})
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Remove mine.txt").wait_for()
    page.locator("#submit-form select[name=recipe]").select_option("labels")
    page.get_by_label("Settings, one a line").fill("texts=mine.txt")
    page.locator("#submit-form button").click()
    page.locator("#job-1 .settings").wait_for()
    assert page.locator("#job-1 .settings").inner_text() == "texts=mine.txt"


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
