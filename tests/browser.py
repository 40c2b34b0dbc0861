"""Pages in Debian's Chromium, driven by Playwright, which brings no browser of its own: what a reader would see, and
every fault of a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request, sync_playwright

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
PAPER = {"width": 718, "height": 1047}  # A4 less the margins that browsers leave
PATIENCE = 120_000  # milliseconds: a busy machine is slow, and that is no fault of a page
NO_FETCH = ("data:", "blob:", "about:")  # addresses that lie in the page itself
NAMED = {"image", "button", "checkbox", "radio", "textbox", "searchbox", "combobox", "link", "region", "progressbar"}
TOOLS = Path(__file__).with_name("page_tools.js").read_text()  # defines `tools`


def find() -> str | None:
    """Where Chromium is, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without a window; in a container it may have no sandbox of its own."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=find(), args=flags, timeout=PATIENCE)
        yield browser
        browser.close()


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
        named = [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]
        ]
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
