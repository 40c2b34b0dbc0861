import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import get_args

import polars as pl
import pytest
import wandb
from PIL import Image

from mitigate.errors import MitigateError
from mitigate.tracking import MODES_OF_WANDB, Tracking, open_tracking, resolve

OPTIONS = {
    **{"project": "mitigate", "entity": None, "name": "a-run", "group": "sample-comet_minilm", "job_type": "mitigate"},
    **{"tags": ["policy:both"], "config": {"policy": {"name": "both"}}, "run_id": "abc123"},
}
FIGURES = [f"figure {number}" for number in range(200)]  # more than W&B takes as an artifact's metadata


def record(tracking: Tracking, folder: Path) -> None:
    tracking.log({"loss": 2.5}, step=20, stage="train")
    for _ in range(2):  # as a run that goes on
        tracking.summarise({"harm/percent": 61.5, "quality/percent": 12, "words": "few"})
    tracking.table("statements", pl.DataFrame({"statement": ["x", "y"], "sentiment": [0, 1]}))
    Image.new("RGB", (2, 2)).save(folder / "plot.png")
    tracking.pictures([("plot", "Two by two.", folder / "plot.png")])
    tracking.pictures([])
    (folder / "set.parquet").write_bytes(b"rows")
    tracking.artifact("filtered", "dataset", folder / "set.parquet", {"licence": "MIT", **dict.fromkeys(FIGURES, 1.5)})
    tracking.finish()


def inspect(folder: Path, *flags: str) -> str:
    """The record of a run in a folder, as lines of JSON."""
    (recorded,) = (folder / "wandb").glob("offline-run-*-abc123")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", *flags, "--json", str(recorded)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_an_offline_run_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no .netrc
    tracking = open_tracking("auto", folder=tmp_path, **OPTIONS)
    assert tracking.place == f"W&B offline: {tmp_path}"
    record(tracking, tmp_path)
    found = json.loads(inspect(tmp_path, "--summary"))
    tables = {name: value["nrows"] for name, value in found["summary"].items() if isinstance(value, dict)}
    assert tables == {"statements": 2, "pictures": 1}
    numbers = {name: value for name, value in found["summary"].items() if name not in tables and name[0] != "_"}
    assert numbers == {"harm/percent": 61.5, "quality/percent": 12, "words": "few"}  # and nothing of training
    assert (found["config"]["policy"]["name"], found["tags"]) == ("both", ["policy:both"])
    records = [json.loads(line) for line in inspect(tmp_path).splitlines()]
    (run,) = (record["run"] for record in records if record["type"] == "run")
    assert (run["run_group"], run["job_type"]) == ("sample-comet_minilm", "mitigate")
    logged = [record["history"]["item"] for record in records if record["type"] == "history"]
    assert {"train/loss": 2.5, "train/step": 20}.items() <= logged[0].items()
    assert [values["harm/percent"] for values in logged if "harm/percent" in values] == [61.5]  # a bar, not a curve


def test_neither_the_command_nor_the_places_of_programs_are_recorded(tmp_path: Path) -> None:
    tracking = open_tracking("offline", folder=tmp_path, **OPTIONS)
    tracking.finish()
    wandb.teardown()  # its service has then written all
    (folder,) = (tmp_path / "wandb").glob("offline-run-*-abc123")
    (content,) = folder.glob("*.wandb")
    assert b"a-run" in content.read_bytes()
    for place in (tmp_path, sys.executable, Path.home(), Path.cwd()):
        assert str(place).encode() not in content.read_bytes()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A socket on this machine; it is for the test to listen."""
    wandb.teardown()  # which knows the address of the tests before
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield server
    wandb.teardown()


class Refusing(BaseHTTPRequestHandler):
    code = 500

    def do_POST(self) -> None:
        self.send_error(self.code)

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("no server", "URL cannot be reached ([Errno 111] Connection refused)"),
        ("none", "URL did not answer within 3 seconds"),  # slow: the server has so long to answer
        (500, "URL answers HTTP 500"),
        (404, "W&B opened no run (CommError)"),
    ],
)
def test_a_run_goes_on_offline_where_no_server_takes_it(
    answer: str | int, fault: str, server: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, began = f"http://127.0.0.1:{server.getsockname()[1]}", time.monotonic()
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", url)
    with ThreadingHTTPServer(server.getsockname(), Refusing, bind_and_activate=False) as refusing:
        refusing.socket.close()
        refusing.socket = server
        monkeypatch.setattr(Refusing, "code", answer)
        if answer != "no server":
            refusing.server_activate()
        if answer in (500, 404):
            Thread(target=refusing.serve_forever, daemon=True).start()
        run = open_tracking("auto", folder=tmp_path, **OPTIONS)
        record(run, tmp_path)
        assert run.place.replace(url, "URL") == f"W&B offline, since {fault}: {tmp_path}"
        assert json.loads(inspect(tmp_path, "--summary"))["summary"]["harm/percent"] == 61.5
        if answer in (500, 404):
            refusing.shutdown()
    assert time.monotonic() - began < 60  # of which the answer may take 3; wandb itself waits for minutes


def test_wrong_modes_and_none_which_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_args(wandb.Settings.model_fields["mode"].annotation) == MODES_OF_WANDB
    monkeypatch.setenv("WANDB_MODE", "ofline")
    fault = r"unknown WANDB_MODE \(a var.*\) 'ofline' .did you mean offline.*; allowed: online"
    for mode in ("auto", "online", "offline"):
        with pytest.raises(MitigateError, match=fault):
            open_tracking(mode)
    tracking = open_tracking("none", folder=tmp_path, **OPTIONS)
    assert type(tracking) is Tracking
    record(tracking, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.png", "set.parquet"]
    for given, comes_to in (("run", "online"), ("dryrun", "offline"), ("disabled", "disabled")):
        monkeypatch.setenv("WANDB_MODE", given)
        assert resolve("auto") == comes_to
