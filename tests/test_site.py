"""The documentation as a site, which is complete and asks no other host; and its notebooks, which are executed."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest
import yaml
from command import ROOT
from compared_runs import configured, make_run, seal
from nbclient import NotebookClient

import mitigate
from mitigate.settings import settings

MAKE = [sys.executable, str(ROOT / "docs" / "make_site.py")]
LOADS = {"src", "srcset", "data", "poster"}  # attributes whose address a browser asks for at once; and href of <link>
NOT_ASKED = {"canonical", "alternate", "prev", "next"}  # of <link>
DEAD = "# One\n\n[page](nothing.md)\n\n[anchor](two.md#nothing)\n"
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
    listed = set(_leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert written <= listed
    lacking = [page for page in listed if not _page(site, page).is_file()]
    assert lacking == []


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


def test_the_gallery_has_pages_of_runs_as_they_are_but_not_of_own_texts(site: Path) -> None:
    assert [page.name for page in (site / "gallery").iterdir()] == ["report.html"]
    assert (site / "gallery" / "report.html").read_text() == "<!doctype html><title>policy none</title>"
    assert 'href="gallery/report.html"' in (site / "gallery.html").read_text(encoding="utf-8")
    assert "Gallery of pages" in (site / "index.html").read_text(encoding="utf-8")


def test_a_dead_link_and_a_dead_anchor_are_errors(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one.md").write_text(DEAD)
    (tmp_path / "pages" / "two.md").write_text("# Two\n")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    del config["nav"]
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    found = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode != 0
    assert "page does not exist" in found.stdout + found.stderr
    assert "anchor does not exist" in found.stdout + found.stderr


def _leaves(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [leaf for part in parts for leaf in _leaves(part)]


def _page(site: Path, source: str) -> Path:
    """Where a page is built; a README is the first page of its folder."""
    path = site / source
    return path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html")


NOTEBOOKS = ROOT / "docs" / "notebooks"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NEAR = 3.0  # percentage points or triples by which another processor's rounding may change a label's count
LARGEST = 60_000  # bytes of a notebook with its results
SECONDS = 400


def executed(name: str) -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    where = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=SECONDS, startup_timeout=SECONDS, resources=where).execute()
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell prints."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["text"] for output in outputs if output.get("name") == "stdout"]


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_shows_what_is_stored_in_it(name: str) -> None:
    stored, found = nbformat.read(NOTEBOOKS / name, as_version=4), executed(name)
    assert len(texts(stored)) > 2
    for old, new in zip(texts(stored), texts(found), strict=True):
        assert numbers(new) == pytest.approx(numbers(old), abs=NEAR)
        assert sorted(re.findall(r"[a-z]{4,}", new)) == sorted(re.findall(r"[a-z]{4,}", old))
    assert len(pictures(stored)) == len(pictures(found)) == 1


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_small_and_clean(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    cells = nbformat.read(path, as_version=4).cells
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.get("outputs", ()))
    assert "/tmp" not in path.read_text(encoding="utf-8")
    install, *code = (cell.source for cell in cells if cell.cell_type == "code")
    assert f'WHEEL = "mitigate-{mitigate.__version__}-py3-none-any.whl"' in install
    assert not any("../" in source for source in code)  # there is no clone where a wheel is installed
