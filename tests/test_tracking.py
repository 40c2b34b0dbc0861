import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
import wandb

from mitigate import tracking
from mitigate.errors import MitigateError
from mitigate.tracking import NoTracking, Tracking, open_tracking

OPTIONS = {
    "project": "mitigate",
    "entity": None,
    "name": "a-run",
    "group": "sample-comet_minilm",
    "job_type": "mitigate",
    "tags": ["policy:both"],
    "config": {"policy": {"name": "both"}},
}


def record(tracking: Tracking, folder: Path) -> None:
    tracking.log({"loss": 2.5}, step=20, stage="train")
    tracking.summarise({"NSM": 66.0, "NSM/origin": 61.5})
    tracking.table("statements", pl.DataFrame({"statement": ["x", "y"], "sentiment": [0, 1]}))
    (folder / "set.parquet").write_bytes(b"rows")
    tracking.artifact("filtered", "dataset", folder / "set.parquet", {"licence": "MIT"})
    tracking.finish()


def test_an_offline_run_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no .netrc
    tracking = open_tracking("auto", folder=tmp_path, run_id="abc123", **OPTIONS)
    assert tracking.place == f"W&B offline: {tmp_path}"
    record(tracking, tmp_path)
    (folder,) = (tmp_path / "wandb").glob("offline-run-*-abc123")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(folder)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert found["summary"]["NSM/origin"] == 61.5
    assert found["summary"]["train/loss"] == 2.5
    assert found["summary"]["statements"]["nrows"] == 2
    assert found["config"]["policy"]["name"] == "both"
    assert found["tags"] == ["policy:both"]
    command.remove("--summary")
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    records = [json.loads(line) for line in lines]
    (run,) = (record["run"] for record in records if record["type"] == "run")
    assert (run["run_group"], run["job_type"]) == ("sample-comet_minilm", "mitigate")
    better = {record["metric"].get("name"): record["metric"].get("summary") for record in records if "metric" in record}
    assert better["neutral_template/NRM"] == {"max": True}
    assert better["quality/perplexity/all"] == better["NSV"] == {"min": True}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A socket on this machine; it is for the test to listen."""
    wandb.teardown()  # which knows the address of the tests before
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield server
    wandb.teardown()


def online(server: socket.socket, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Where a run that is to be online at that server was recorded, and the address; its record is read back."""
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", url)
    run = open_tracking("auto", folder=folder, run_id="abc123", **OPTIONS)
    record(run, folder)
    (recorded,) = (folder / "wandb").glob("offline-run-*-abc123")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(recorded)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert (found["summary"]["NSM/origin"], found["summary"]["train/loss"]) == (61.5, 2.5)
    return run.place, url


def test_a_run_goes_on_offline_where_nothing_listens(
    server: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, url = online(server, tmp_path, monkeypatch)
    assert place == f"W&B offline, since {url} cannot be reached ([Errno 111] Connection refused): {tmp_path}"


def test_a_run_goes_on_offline_where_nothing_answers(
    server: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.listen()
    place, url = online(server, tmp_path, monkeypatch)
    assert place == f"W&B offline, since {url} did not answer within 3 seconds: {tmp_path}"


@pytest.mark.parametrize(("code", "fault"), [(500, "{url} answers HTTP 500"), (404, "W&B opened no run (CommError)")])
def test_a_run_goes_on_offline_where_the_server_refuses(
    code: int, fault: str, server: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(code)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(server.getsockname(), Refusing, bind_and_activate=False) as refusing:
        refusing.socket.close()
        refusing.socket = server
        refusing.server_activate()
        Thread(target=refusing.serve_forever, daemon=True).start()
        place, url = online(server, tmp_path, monkeypatch)
        refusing.shutdown()
    assert place == f"W&B offline, since {fault.format(url=url)}: {tmp_path}"


def test_offline_within_ten_seconds() -> None:
    assert tracking.ANSWER + tracking.INIT < 10


def test_none_records_nothing(tmp_path: Path) -> None:
    tracking = open_tracking("none", folder=tmp_path, run_id="abc123", **OPTIONS)
    assert isinstance(tracking, NoTracking)
    record(tracking, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["set.parquet"]


def test_unknown_mode() -> None:
    with pytest.raises(MitigateError, match="unknown tracking.mode 'cloud'; allowed: auto, online, offline, none"):
        open_tracking("cloud")
