"""A wheel works from any folder, and leaves no general names in site-packages."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as site-packages would have it."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(place)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def test_only_mitigate_lands_in_site_packages(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"mitigate"}
    for part in (
        "_models/comet.py",
        "py.typed",
        "_conf/config.yaml",
        "data/sample/train.txt",
        "report/page.html.jinja",
        "report/regard_card.md.jinja",
        "serve/service.html.jinja",
        "data/service.csv",
    ):
        assert (installed / "mitigate" / part).is_file()


def test_it_runs_from_another_folder_beside_other_models(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise RuntimeError('not ours')")
    command = [sys.executable, "-m", "mitigate", "dry_run=true", "tracking=none"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "to be run" in found.stdout
