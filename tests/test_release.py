"""A release: one version everywhere, its workflow, a wheel that works from any folder, and an image of it."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import yaml
from command import ROOT

from mitigate import __version__

SCREEN = 50  # lines


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {project["version"], citation["version"], __version__} == {__version__}
    assert (citation["license"], citation["cff-version"]) == (project["license"], "1.2.0")
    assert f"software's version ({__version__})" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {__version__}\n" in changes
    assert max(len(release.splitlines()) for release in changes.split("\n## ")) <= SCREEN


def test_what_is_promised_in_security_has_a_test() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", page)
    assert len(named) > 10
    lacking = [(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert lacking == []
    rules = set(re.findall(r"\bS\d{3}\b", page))
    chosen = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["select"]
    assert rules == {rule for rule in chosen if re.fullmatch(r"S\d{3}", rule)}


def built_wheel(place: Path) -> Path:
    """The wheel of the committed files."""
    source = place / "source"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(place / "dist"), str(source)], check=True, capture_output=True)
    (wheel,) = (place / "dist").glob("*.whl")
    return wheel


def test_only_mitigate_lands_in_site_packages_and_works_outside_a_clone(tmp_path: Path) -> None:
    """A wheel is built and tried as a visitor would (outside_clone.py): half a minute, since no other test reads what
    is put into it, or runs from there."""
    installed, visit = tmp_path / "site", tmp_path / "visit"
    with zipfile.ZipFile(built_wheel(tmp_path)) as archive:
        archive.extractall(installed)
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"mitigate"}
    parts = ["models/comet.py", "py.typed", "conf/config.yaml", "data/sample/train.txt", "data/gone.csv"]
    parts += ["report/base.html.jinja", "report/generator.md.jinja", "serve/service.html.jinja"]
    assert [part for part in parts if not (installed / "mitigate" / part).is_file()] == []
    (visit / "models").mkdir(parents=True)
    (visit / "models" / "__init__.py").write_text("raise RuntimeError('not ours')")
    try_package(Path(sys.executable), visit, PYTHONPATH=str(installed))


def try_package(python: Path, folder: Path, **environment: str) -> None:
    """Run outside_clone.py in a folder."""
    command = [str(python), str(ROOT / "tests" / "outside_clone.py"), str(folder)]
    found = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
