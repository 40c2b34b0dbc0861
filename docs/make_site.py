"""The documentation as a site: python docs/make_site.py [FOLDER [RUNS]], by default build/docs and outputs; its first
page is FOLDER/site/index.html. Needs the packages of `.[docs]`. The gallery shows pages of the finished runs in RUNS.

README.md, docs/ and every file that they link to lie in FOLDER/pages as they lie in the repository, so that a link
works there as it does here; the reference is written among them. Zensical ends with an error where a link or an anchor
is dead."""

import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import nbformat
import reference_pages

from mitigate.errors import MitigateError
from mitigate.finished import open_run

ROOT = Path(__file__).resolve().parents[1]
STARTS = ("README.md", "CHANGELOG.md")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
GALLERY = {  # a page of a run: its title
    "report": "A run: what a filter changed, and what it cost",
    "comparison": "Runs side by side, with intervals",
    "audit": "The harms of a resource as it is",
    "stories": "Stories about groups",
    "frames": "Social Bias Frames",
    "kge": "Embeddings of a knowledge graph",
    "survey": "A survey for raters",
    "humans": "The answers of raters",
}
NO_RUNS = "This site was built without runs. `make demo`, then `make docs`, shows the pages of the demonstration here."
NOT_SHOWN = shutil.ignore_patterns("*.py", "__pycache__", ".ipynb_checkpoints")  # linked scripts are copied as linked


def main(folder: Path, runs: Path) -> None:
    """Builds the site; the exit status is Zensical's."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=NOT_SHOWN)
    copy_linked(pages)
    for notebook in sorted((pages / "docs" / "notebooks").glob("*.ipynb")):
        write_notebook(notebook)
    for page in pages.rglob("*.md"):
        page.write_text(page.read_text(encoding="utf-8").replace(".ipynb)", ".md)"), encoding="utf-8")
    write_gallery(pages, runs)
    for name, text in reference_pages.pages(pages).items():
        page = pages / "reference" / f"{name}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.exit(subprocess.run(build, cwd=folder, env={**os.environ, "PYTHONPATH": paths}).returncode)


def copy_linked(pages: Path) -> None:
    """Copies the first pages, the files that pages link to, those that these link to, and so on. A link to what is
    missing stays as it is, for Zensical to find."""
    waiting = [ROOT / name for name in STARTS] + sorted((ROOT / "docs").glob("**/*.md"))
    seen = set(waiting)
    while waiting:
        file = waiting.pop()
        copy = pages / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        links = LINK.findall(file.read_text(encoding="utf-8")) if file.suffix == ".md" else ()
        linked = {(file.parent / link).resolve() for link in links}
        new = {path for path in linked - seen if path.is_file() and path.is_relative_to(ROOT)}
        seen |= new
        waiting += sorted(new)


def write_notebook(notebook: Path) -> None:
    """Writes a notebook as a page beside it: its texts, its code, and the results as they are stored in it."""
    parts = []
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        if cell.cell_type != "code":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in (output for output in cell.outputs if output.get("name") != "stderr"):
            data = output.get("data", {})
            if "image/png" in data:
                picture = notebook.with_name(f"{notebook.stem}-{number}.png")
                picture.write_bytes(b64decode(data["image/png"]))
                parts.append(f"![{cell.metadata.get('alt', 'figure')}]({picture.name})")
            else:
                parts.append(f"```text\n{output.get('text') or data.get('text/plain', '')}\n```")
    notebook.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_gallery(pages: Path, runs: Path) -> None:
    """Writes gallery.md with the latest page of each kind, as it is, of the finished runs on published data or on the
    sample, and names it on the first page. Runs on a user's own texts are left out."""
    found: dict[str, Path] = {}
    for manifest in sorted(runs.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime):
        try:
            run = open_run(manifest.parent)
        except MitigateError:  # damaged, or of figures that this version does not read
            continue
        if run.setting("data.own_texts", True) is False:
            found |= {page.stem: page for page in run.folder.rglob("*.html") if page.stem in GALLERY}
    (pages / "gallery").mkdir()
    lines = ["# Gallery", "Pages that commands wrote, each one file that opens in any browser." if found else NO_RUNS]
    for name in filter(found.__contains__, GALLERY):
        shutil.copy(found[name], pages / "gallery" / f"{name}.html")
        lines.append(f"- [{GALLERY[name]}](gallery/{name}.html)")
    (pages / "gallery.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    first = pages / "README.md"
    text = first.read_text(encoding="utf-8")
    first.write_text(text.replace("[All pages](", "[Gallery of pages](gallery.md) · [All pages]("), encoding="utf-8")


if __name__ == "__main__":
    places = [ROOT / "build" / "docs", ROOT / "outputs"]
    places[: len(sys.argv) - 1] = [Path(argument).resolve() for argument in sys.argv[1:]]
    main(*places)
