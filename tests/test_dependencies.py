"""Every stage of every recipe is computed anew after an edit of what its result depends on, and of nothing else.

What a stage runs and reads is observed while it is computed: the sources whose functions are called, and the files
below the package that are opened. All of that must be in its fingerprint, which is derived from the sources without
running them. Then each source and data file that is reached counts as edited in turn."""

import ast
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from types import FrameType
from typing import Any, NamedTuple

import pytest
from command import here
from few_terms import use_few_terms
from kept_runs import RUNS
from recipe_commands import SMALL, arguments_of

from mitigate.runs import fingerprints, import_tracing
from mitigate.runs.fingerprints import PACKAGE, digest_of_stage, reached, reached_by_stage
from mitigate.runs.store import Run

PROJECT = PACKAGE.parent
AROUND = {
    *("__main__", "errors", "settings", "words/outside_text", "tracking/record"),
    *(
        f"runs/{name}"
        for name in ("fingerprints", "import_tracing", "progress", "files", "store", "status", "label_cache")
    ),
}
KEPT = max(path for path in RUNS.iterdir() if path.is_dir())
COMPARED = {"compare": ("none", "both")}
"""Runs of KEPT that a recipe compares."""
TRIED = 40
"""Files that count as edited in turn, for each recipe."""

RECIPES = (
    *("mitigate", "audit", "stories", "stories_trained", "humans", "survey"),
    *("labels", "agreement", "filter", "compare"),
)


class Observed(NamedTuple):
    """A stage that was computed: its function, and the files of the project that it ran and read."""

    stage: str
    depends: tuple[object, object]  # its function and the values it was given: what its code is found from
    ran: set[Path]
    read: set[Path]

    @property
    def digest(self) -> str:
        """The hash of the code that it reaches, as a new process would find it."""
        return digest_of_stage(*self.depends)

    @property
    def reached(self) -> set[Path]:
        """The sources and data files that it reaches."""
        return {path for part in reached_by_stage(*self.depends) for path in part}

    @property
    def known(self) -> set[Path]:
        """And those of the objects among its values that have a fingerprint of their own, such as scorers."""
        objects = [value for value in _flat(self.depends[1]) if isinstance(getattr(value, "fingerprint", None), str)]
        return self.reached | {path for value in objects for part in reached(value) for path in part}


def _flat(value: object) -> list[object]:
    if isinstance(value, dict):
        value = list(value.values())
    return [part for item in value for part in _flat(item)] if isinstance(value, list | tuple) else [value]


class Watch:
    """Notes which of the project's sources run, and which of its files are opened, while it is on."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.read: set[str] = set()
        self.on = False
        sys.addaudithook(self._opened)

    def _opened(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event == "open" and isinstance(arguments[0], str):
            self.read.add(arguments[0])

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        """Notes calls of Python functions alone: tracing ends where it returns None, and no call in C is traced."""
        self.ran.add(frame.f_code.co_filename)

    def during(self, work: Callable[[], Any]) -> tuple[Any, set[Path], set[Path]]:
        self.ran, self.read, self.on = set(), set(), True
        before = sys.gettrace()
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            found = work()
        finally:
            sys.settrace(before)
            threading.settrace(None)  # type: ignore[arg-type]
            self.on = False
        return found, own(self.ran), own(self.read)


def own(names: set[str]) -> set[Path]:
    """Those that are the project's and can change a result."""
    paths = {Path(name) for name in names if name.startswith((f"{PACKAGE}/", f"{PROJECT / 'models'}/"))}
    return {path for path in paths if not is_around(path)}


def is_around(path: Path) -> bool:
    parts = path.relative_to(PROJECT).with_suffix("").parts
    around = parts[0] == "mitigate" and (parts[1] in {"recipes", "cli"} or "/".join(parts[1:]) in AROUND)
    return around or path.suffix not in {".py", ".csv", ".jinja", ".safetensors", ".json", ".txt"}


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


def observe(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> list[Observed]:
    """The stages that are computed from here on, as they come."""
    found: list[Observed] = []
    whole = Run.stage

    def stage(self: Run, name: str, function: Callable[..., Any], *values: Any, **more: Any) -> Any:
        @functools.wraps(function)
        def watched(*given: Any, **named: Any) -> Any:
            result, ran, read = watch.during(lambda: function(*given, **named))
            found.append(Observed(name, depends, ran, read))
            return result

        kept = ("using", "after", "leaves", "scratch", "may_be_kept")
        depends = (function, [values, {key: value for key, value in more.items() if key not in kept}])
        return whole(self, name, watched, *values, **more)

    monkeypatch.setattr(Run, "stage", stage)
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_stage_runs_and_reads_is_in_its_fingerprint(name: str, watch: Watch, tmp_path, monkeypatch) -> None:
    """A recipe runs as a whole, which takes seconds: what its stages run and read is seen in no other way."""
    arguments = [*arguments_of(name, tmp_path), f"paths.outputs={tmp_path / 'out'}"]
    for number, run in enumerate(COMPARED.get(name, ())):
        shutil.copytree(KEPT / run, tmp_path / "compared" / str(number))
    use_few_terms(monkeypatch)
    observed = observe(watch, monkeypatch)
    assert here(monkeypatch, *arguments) == 0
    assert observed
    for stage in observed:
        assert stage.ran - stage.known == set(), f"{stage.stage} runs code that its fingerprint does not know"
        assert stage.read - stage.known == set(), f"{stage.stage} reads files that its fingerprint does not know"
    monkeypatch.undo()
    each_edit_is_noticed(tmp_path / "out", observed, monkeypatch)


def each_edit_is_noticed(outputs: Path, stages: list[Observed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a stage reaches makes its record one of other code, and a file that it does not reach does not. Of
    hundreds of files some are tried, others for each recipe."""
    (folder,) = [path for path in outputs.iterdir() if path.is_dir()]
    records = {path.stem: json.loads(path.read_text()) for path in (folder / "stages").glob("*.json")}
    everything = sorted({file for stage in stages for file in stage.reached})
    depends = {stage.stage: stage.reached for stage in stages}
    assert everything
    for file in random.Random(outputs.parent.name).sample(everything, min(TRIED, len(everything))):
        with monkeypatch.context() as edited:
            edit(file, edited)
            for stage in stages:
                is_new = stage.digest != records[stage.stage]["code"]
                assert is_new is (file in depends[stage.stage]), f"{stage.stage} after an edit of {file.name}"
    fingerprints.forget()


def edit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file counts as edited. The edit changes no import, so what else was read of the sources stays."""
    import_tracing.digest_of_reached.cache_clear()
    code, digest = import_tracing._code, import_tracing._digest_of_file
    if file.suffix == ".py":
        other = ast.dump(ast.parse(file.read_text(encoding="utf-8") + "\nEDITED = True\n"))
        monkeypatch.setattr(import_tracing, "_code", lambda path: other if path == file else code(path))
    else:
        monkeypatch.setattr(import_tracing, "_digest_of_file", lambda path: "edited" if path == file else digest(path))


# One of each kind; which other files a stage reaches, test_fingerprints.py and the test above check without a process.
EDITS = [  # (file, text, what stands in its place, the first stage of the main job that is to be run, or None)
    ("mitigate/data/relations.csv", "is capable of", "is able to do", "score"),
    ("mitigate/data/people.csv", None, "somebody new\n", "ledger"),
    ("mitigate/score/vader.py", "THRESHOLD = 0.05", "THRESHOLD = 0.06", "score"),
    ("mitigate/probe/likelihood.py", "BATCH = 128", "BATCH = 64", "likelihood"),
    ("models/beam.py", None, "EDITED = True\n", "train"),
    ("mitigate/report/page.html.jinja", "{% extends", "{# edited #}{% extends", "report"),
    ("mitigate/verbalise.py", '"""Sentences from triples', '"""The sentences from triples', None),
]


FORKING = """
import json, os, runpy, sys
import hydra, wandb, mitigate.recipes.mitigate.recipe
for name in [*sys.modules]:
    if name.partition(".")[0] in ("mitigate", "models"):
        del sys.modules[name]
for line in sys.stdin:
    process = os.fork()
    if not process:
        sys.argv = ["mitigate", *json.loads(line)]
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        runpy.run_module("mitigate", run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
"""Runs the command for each line of arguments, in a process that has no module of this project yet, but the libraries,
which take most of a command's start."""


class Copied(NamedTuple):
    """A copy of the project, with a finished run of the main job."""

    place: Path
    commands: subprocess.Popen[str]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    place = tmp_path_factory.mktemp("copied")
    labels = tmp_path_factory.getbasetemp() / "cache"  # of this session's other tests
    labels.mkdir(exist_ok=True)
    (place / "cache").symlink_to(labels)
    for name in ("mitigate", "models", "conf"):
        shutil.copytree(PROJECT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(place)}
    line = [sys.executable, "-c", FORKING]
    with subprocess.Popen(line, cwd=place, env=environment, stdin=PIPE, stdout=PIPE, text=True) as commands:
        found = Copied(place, commands)
        assert rehearse(found, dry_run=False) == []
        assert rehearse(found) == []
        yield found
        commands.communicate()


def rehearse(copied: Copied, dry_run: bool = True) -> list[str]:
    """The stages that a rehearsal in the copy finds to be run."""
    place, commands = copied
    assert commands.stdin
    assert commands.stdout
    where = [f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}", f"dry_run={str(dry_run).lower()}"]
    commands.stdin.write(json.dumps(["policy=both", *SMALL, *where]) + "\n")
    commands.stdin.flush()
    status = int(commands.stdout.readline())
    said = (place / "said").read_text()
    assert status == 0, said
    return [line.split()[0] for line in said.splitlines() if line.endswith("to be run")]


@pytest.mark.parametrize(("file", "text", "instead", "first"), EDITS, ids=[edit[0] for edit in EDITS])
def test_an_edit_makes_a_rehearsal_say_what_is_to_be_run(copied, file, text, instead, first) -> None:
    """A process imports the copy anew, which takes seconds: only so is an edit of a source met as by a user."""
    path = copied.place / file
    before = path.read_text(encoding="utf-8")
    after = before + instead if text is None else before.replace(text, instead)
    assert after != before
    path.write_text(after, encoding="utf-8")
    try:
        stages = rehearse(copied)
        assert (stages[0] if stages else None) == first
    finally:
        path.write_text(before, encoding="utf-8")
