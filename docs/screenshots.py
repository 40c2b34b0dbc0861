"""The pictures of pages in this folder: python docs/screenshots.py RUN_FOLDER...

Of each folder's report.html or comparison.html it takes the top: NAME.png, beside this file. Needs Chromium, and the
packages of `.[dev]`."""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PAGES = ("report", "comparison")
WINDOW = {"viewport": {"width": 1120, "height": 1240}, "color_scheme": "light", "reduced_motion": "reduce"}
LARGEST = 300_000  # bytes: a page with several stays quick to open


def main(folders: list[Path]) -> None:
    pages = [folder / f"{name}.html" for folder in folders for name in PAGES if (folder / f"{name}.html").is_file()]
    if not pages:
        sys.exit(f"name run folders with a {'.html or a '.join(PAGES)}.html; given: {' '.join(map(str, folders))}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for page in pages:
            window = browser.new_page(**WINDOW)
            window.set_default_timeout(120_000)  # a busy machine takes its time
            window.goto(page.absolute().as_uri())
            picture = Path(__file__).with_name(f"{page.stem}.png")
            picture.write_bytes(smallest(Image.open(io.BytesIO(window.screenshot())).convert("RGB")))
            print(f"{picture}  {picture.stat().st_size / 1000:.0f} KB")
        browser.close()


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
