"""The documentation as a site: built strictly, complete, and asking no other host for anything."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import pytest
import yaml
from command import ROOT

import mitigate
from mitigate.settings import settings

MAKE = [sys.executable, str(ROOT / "docs" / "make_site.py")]
LOADS = {"src", "srcset", "data", "poster"}  # attributes whose address a browser asks for at once; and href of <link>
NOT_ASKED = {"canonical", "alternate", "prev", "next"}  # of <link>
DEAD = "# One\n\n[page](nothing.md)\n\n[anchor](two.md#nothing)\n"
UNDESCRIBED = {"recipe.name", "recipe.run", "recipe.reads"}  # of a recipe: what the code reads


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
    built = subprocess.run([*MAKE, str(folder / "built")], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "built" / "site"


def test_every_page_is_in_the_navigation_and_built(site: Path) -> None:
    listed = set(_leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert written <= listed
    lacking = [page for page in listed if not _page(site, page).is_file()]
    assert lacking == []


def test_no_page_asks_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    asked = {(page.name, address) for page in pages for address in Asked(page).addresses}
    assert len(pages) > 30
    assert len(asked) > 100
    assert [(page, address) for page, address in asked if urlparse(address).netloc] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(http" not in styles
    assert "@import" not in styles


def test_the_reference_is_complete(site: Path) -> None:
    assert {f"mitigate.{name}" for name in mitigate.__all__} <= Asked(site / "reference" / "names.html").ids
    shown = "".join((site / "reference" / f"{name}.html").read_text() for name in ("configuration", "recipes"))
    assert [key for key in settings() if f"<code>{key}</code>" not in shown and key not in UNDESCRIBED] == []


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
