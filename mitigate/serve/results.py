"""Finished runs in the folder of the service: their figures, what differs in their settings, and their files. A run is
named by its folder, and a file by its path in the manifest, so that no path of anybody else's can be said."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.runs.files import read_json
from mitigate.runs.finished import FinishedRun, open_run
from mitigate.tracking.headlines import headlines

NAME = re.compile(r"\w[\w.,=+-]*")
LONGEST_NAME = 255  # bytes, of a folder
BLOCK = 1 << 20  # bytes
NOT_FIGURES = ("manifest.json", "status.json", "report.json")


class UnknownError(MitigateError):
    """A run or a file that there is not."""


class Results:
    """The runs in a folder. Each is read once, and again when its manifest changes."""

    def __init__(self, outputs: Path) -> None:
        self.outputs = outputs
        self._known: dict[str, tuple[int, FinishedRun]] = {}

    def runs(self) -> list[FinishedRun]:
        """All finished runs that can be read, the latest first."""
        manifests = sorted(self.outputs.glob("[!.]*/manifest.json"), key=_changed, reverse=True)
        found = []
        for manifest in manifests:
            try:
                found.append(self.run(manifest.parent.name))
            except MitigateError:
                continue  # damaged, or just being removed: asked for by name, it says so
        return found

    def run(self, name: str) -> FinishedRun:
        """The finished run of that name. Raises UnknownError where there is none, MitigateError for a damaged one."""
        manifest = self.outputs / name / "manifest.json"
        if not NAME.fullmatch(name) or len(name.encode()) > LONGEST_NAME or not manifest.is_file():
            raise UnknownError("there is no finished run of that name; the list of runs has all")
        changed = _changed(manifest)
        if name not in self._known or self._known[name][0] != changed:
            self._known[name] = (changed, open_run(manifest.parent, figures=_figures(manifest.parent)))
        return self._known[name][1]

    def file(self, name: str, path: str) -> Path:
        """A file that a run's manifest names. Raises UnknownError for any other, MitigateError for a damaged one."""
        run = self.run(name)
        if path not in run.files or not _is_within(run.folder, path):
            raise UnknownError("the run has no such file; the list of its files has all")
        if fault := run.fault(path):
            raise MitigateError(fault)
        return run.folder / path

    def archive(self, name: str) -> Iterator[bytes]:
        """The model of a run as a zip file, in pieces. Raises UnknownError where it kept none."""
        run = self.run(name)
        paths = [self.file(name, path) for path in run.below("model")]
        if not paths:
            raise UnknownError("the run kept no model, because none was trained")
        return _zipped(paths, run.folder)


def summary(run: FinishedRun) -> dict[str, Any]:
    """The entry of a run in a list: what it is, its first figures, and its pages."""
    figures = headlines(run.metrics, run.recipe) if "fingerprint" in run.metrics else {}
    compared = run.metrics.get("contrasts", [])
    return {
        "name": run.folder.name,
        "recipe": run.recipe,
        **{part: run.text(f"{part}.name") for part in ("policy", "data", "model")},
        "seed": run.setting("seed"),
        "demonstration": bool(run.setting("data.demonstration")),
        "verdict": " ".join(contrast["sentence"] for contrast in compared) or _reported(run).get("verdict"),
        "figures": [
            {"key": row.key, "label": row.label, "better": row.metric.better, "value": value}
            for row, value in figures.items()
        ],
        "pages": [path for path in run.files if path.endswith(".html")],
        "has_model": bool(run.below("model")),
        "finished": _changed(run.folder / "manifest.json") / 1e9,
    }


def _reported(run: FinishedRun) -> dict[str, Any]:
    """The result of the stage that wrote the run's page; nothing where it is missing or damaged."""
    name = "report.json"
    return (read_json(run.folder / name) or {}) if name in run.files and not run.fault(name) else {}


def differing(runs: Sequence[FinishedRun]) -> dict[str, dict[str, Any]]:
    """The settings that decide what a run finds and are not the same in all these runs, by name and run."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    rows = {key: {run.folder.name: run.settings.get(key) for run in runs} for key in keys}
    return {key: row for key, row in rows.items() if len({repr(value) for value in row.values()}) > 1}


def _figures(folder: Path) -> str:
    """The file of a recipe's figures: metrics.json, or for a comparison its own."""
    others = sorted(path.name for path in folder.glob("*.json") if path.name not in NOT_FIGURES)
    return "metrics.json" if "metrics.json" in others or not others else others[0]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _is_within(folder: Path, path: str) -> bool:
    """Return whether a path in a manifest stays within the run's folder and is no folder."""
    try:
        place = (folder / path).resolve()
        return place.is_relative_to(folder.resolve()) and not place.is_dir()
    except (OSError, ValueError):  # a name that is too long, or has a zero byte
        return False


class _Pieces(io.RawIOBase):
    """A file that is written to and emptied, and cannot go back."""

    def __init__(self) -> None:
        self.held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.held += content
        return len(content)

    def taken(self) -> bytes:
        held, self.held = bytes(self.held), bytearray()
        return held


def _zipped(paths: Sequence[Path], folder: Path) -> Iterator[bytes]:
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED) as archive:  # weights are not compressed by much
        for path in paths:
            with path.open("rb") as file, archive.open(str(path.relative_to(folder)), "w", force_zip64=True) as entry:
                while block := file.read(BLOCK):
                    entry.write(block)
                    yield pieces.taken()
    yield pieces.taken()
