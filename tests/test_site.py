"""The documentation as a site, which is complete and asks no other host; and its notebooks, which are executed."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest
from command import ROOT
from compared_runs import configured, make_run, seal
from nbclient import NotebookClient

import mitigate
from mitigate.settings import settings

MAKE = [sys.executable, str(ROOT / "docs" / "make_site.py")]
LOADS = {"src", "srcset", "data", "poster"}  # attributes whose address a browser asks for at once; and href of <link>
NOT_ASKED = {"canonical", "alternate", "prev", "next"}  # of <link>
UNDESCRIBED = {"recipe.name", "recipe.run", "recipe.reads", "policy.first", "policy.second"}  # what the code reads


class Asked(HTMLParser):
    """What a page makes a browser ask for, and the text of its tags."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {found.get("id") or ""}
        self.addresses += [value for name, value in attrs if name in LOADS and value]
        if tag == "link" and not NOT_ASKED & set((found.get("rel") or "").split()):
            self.addresses.append(found.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for policy, own in (("none", False), ("both", True)):
        run = configured(make_run(folder / "runs", policy), data={"own_texts": own})
        (run / "report.html").write_text(f"<!doctype html><title>policy {policy}</title>")
        seal(run)
    command = [*MAKE, str(folder / "built"), str(folder / "runs")]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "built" / "site"


def test_every_page_is_in_the_navigation_and_built(site: Path) -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")} <= listed
    built = {page: (site / page.replace("README.md", "index.md")).with_suffix(".html") for page in listed}
    assert [page for page, path in built.items() if not path.is_file()] == []


def test_no_page_asks_another_host_and_the_reference_is_complete(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    asked = {(page.name, address) for page in pages for address in Asked(page).addresses}
    assert len(pages) > 30
    assert len(asked) > 100
    assert [(page, address) for page, address in asked if urlparse(address).netloc] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(http" not in styles
    assert "@import" not in styles
    assert {f"mitigate.{name}" for name in mitigate.__all__} <= Asked(site / "reference" / "names.html").ids
    shown = "".join((site / "reference" / f"{name}.html").read_text() for name in ("configuration", "recipes"))
    assert [key for key in settings() if f"<code>{key}</code>" not in shown and key not in UNDESCRIBED] == []


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NEAR = 3.0  # percentage points or triples by which another processor's rounding may change a label's count
LARGEST = 60_000  # bytes of a notebook with its results
SECONDS = 400


def outputs(notebook: nbformat.NotebookNode) -> tuple[list[str], int]:
    """What each cell prints, and the number of pictures."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [output for output in found if "image/png" in output.get("data", {})]
    return [output["text"] for output in found if output.get("name") == "stdout"], len(pictures)


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_what_is_stored_in_it(path: Path) -> None:
    stored, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=SECONDS, startup_timeout=SECONDS, resources=where).execute()
    (before, pictures), (after, again) = outputs(stored), outputs(notebook)
    assert (len(before) > 2, pictures, again) == (True, 1, 1)
    for old, new in zip(before, after, strict=True):
        numbers = [[float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)] for text in (old, new)]
        assert numbers[1] == pytest.approx(numbers[0], abs=NEAR)
        assert sorted(re.findall(r"[a-z]{4,}", new)) == sorted(re.findall(r"[a-z]{4,}", old))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_and_clean(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    cells = nbformat.read(path, as_version=4).cells
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.get("outputs", ()))
    assert "/tmp" not in path.read_text(encoding="utf-8")
    install, *code = (cell.source for cell in cells if cell.cell_type == "code")
    assert f'WHEEL = "mitigate-{mitigate.__version__}-py3-none-any.whl"' in install
    assert not any("../" in source for source in code)  # there is no clone where a wheel is installed
