"""A release: one version everywhere, its workflow, and a wheel that works from any folder."""

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

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {project["version"], citation["version"], __version__} == {__version__}
    assert (citation["license"], citation["cff-version"]) == (project["license"], "1.2.0")
    assert f"software's version ({__version__})" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_release_builds_and_checks_without_upload() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    commands = "\n".join(step.get("run", "") for step in workflow["jobs"]["wheel"]["steps"])
    for command in ("python -m build", "twine check --strict dist/*", "mitigate --version", "dry_run=true"):
        assert command in commands
    assert "upload" not in text.replace("Nothing is uploaded.", "")
    assert workflow["permissions"] == {"contents": "read"}
    versions = workflow["jobs"]["wheel"]["strategy"]["matrix"]["python"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    assert [f"Programming Language :: Python :: {version}" for version in versions] == [
        name for name in classifiers if name.startswith("Programming Language")
    ]


def test_what_is_promised_in_security_has_a_test() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", page)
    assert len(named) > 10
    lacking = [(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert lacking == []
    rules = set(re.findall(r"\bS\d{3}\b", page))
    chosen = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["select"]
    assert rules == {rule for rule in chosen if re.fullmatch(r"S\d{3}", rule)}


def test_only_mitigate_lands_in_site_packages_and_runs_beside_other_models(tmp_path: Path) -> None:
    """A wheel is built, which takes seconds, since no other test reads what setup.py puts into it."""
    source, installed = tmp_path / "source", tmp_path / "site"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(tmp_path), str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"mitigate"}
    parts = ["_models/comet.py", "py.typed", "_conf/config.yaml", "data/sample/train.txt", "data/service.csv"]
    parts += ["report/page.html.jinja", "report/regard_card.md.jinja", "serve/service.html.jinja"]
    assert [part for part in parts if not (installed / "mitigate" / part).is_file()] == []
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise RuntimeError('not ours')")
    command = [sys.executable, "-m", "mitigate", "dry_run=true", "tracking=none"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "to be run" in found.stdout
