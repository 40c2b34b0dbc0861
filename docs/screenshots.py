"""The pictures of pages in this folder: python docs/screenshots.py RUN_FOLDER...

Of each folder's report.html or comparison.html it takes the top and the figures as they look on a desktop in the light,
and the top as on a phone in the dark: NAME.png, NAME-figures.png and NAME-phone.png, beside this file. Needs Chromium,
and the packages of `.[dev]`."""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PAGES = {"report": "#figures", "comparison": "#harm-against-quality"}  # a page, and the section with its figures
DESKTOP = {"viewport": {"width": 1120, "height": 1240}, "color_scheme": "light", "reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "device_scale_factor": 2}
LARGEST = 300_000  # bytes: a README with several stays quick to open


def main(folders: list[Path]) -> None:
    pages = [folder / f"{name}.html" for folder in folders for name in PAGES if (folder / f"{name}.html").is_file()]
    if not pages:
        sys.exit(f"name run folders with a {'.html or a '.join(PAGES)}.html; given: {' '.join(map(str, folders))}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for page in pages:
            for ending, look, place in (
                ("", DESKTOP, ""),
                ("-figures", DESKTOP, PAGES[page.stem]),
                ("-phone", PHONE, ""),
            ):
                picture = Path(__file__).with_name(f"{page.stem}{ending}.png")
                picture.write_bytes(smallest(taken(browser, page.absolute().as_uri() + place, look)))
                print(f"{picture}  {picture.stat().st_size / 1000:.0f} KB")
        browser.close()


def taken(browser: Browser, address: str, look: dict) -> Image.Image:
    """What the window shows of a page."""
    window = browser.new_page(**look)
    window.set_default_timeout(120_000)  # a busy machine takes its time
    window.goto(address)
    picture = Image.open(io.BytesIO(window.screenshot()))
    window.close()
    return picture.convert("RGB")


def smallest(picture: Image.Image) -> bytes:
    """As PNG, with as many colours as fit into the largest size."""
    for colours in (256, 128, 64, 32):
        stored = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(stored, "PNG", optimize=True)
        if stored.tell() <= LARGEST:
            return stored.getvalue()
    sys.exit(f"a picture is larger than {LARGEST:,} bytes even with {colours} colours; take a smaller window")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
