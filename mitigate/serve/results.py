"""Finished runs in the folder of the service: their figures, their files, and questions to their generators. A run is
named by its folder, and a file by its path in the manifest, so that no path of anybody else's can be said."""

import math
import re
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.files import read_json
from mitigate.finished import FinishedRun, open_run
from mitigate.probe.answers import Answers
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
        self._asking = threading.Lock()  # one question at a time

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

    def tails(self, name: str, head: str, relation: str) -> dict[str, Any]:
        """The answer of a run to a question: its policy and seed, and the best tails with their labels. Raises
        MitigateError for a question that it cannot answer."""
        run = self.run(name)
        if run.recipe != "mitigate":
            raise MitigateError(f"{name} is a run of recipe={run.recipe}; only those of recipe=mitigate can be asked")
        with self._asking:
            asked = _opened(run.folder, _changed(run.folder / "manifest.json"))
            head, relation = asked.index.head(head), asked.index.relation(relation)
            tails = asked.tails(head, relation).drop("head", "relation")
        rows = [
            {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
            for row in tails.iter_rows(named=True)
        ]
        facts = {"run": name, "policy": run.policy, "seed": run.seed, "head": head, "relation": relation}
        return {**facts, "scorers": list(asked.index.scorers), "tails": rows}


def summary(run: FinishedRun) -> dict[str, Any]:
    """The entry of a run in a list: what it is, its first figures, and its pages."""
    figures = headlines(run.metrics) if "fingerprint" in run.metrics else {}
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


@lru_cache(maxsize=4)
def _opened(folder: Path, version: int) -> Answers:
    """A run whose generator stays loaded. version: the time of its manifest."""
    return Answers(open_run(folder, "mitigate"))


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


def _zipped(paths: Sequence[Path], folder: Path) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as held:
        with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:  # weights are not compressed by much
            for path in paths:
                archive.write(path, path.relative_to(folder))
        held.seek(0)
        yield from iter(partial(held.read, BLOCK), b"")
