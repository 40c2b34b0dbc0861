"""The service over HTTP: jobs, files, runs, people; and wrong or hostile requests, each refused in a sentence. Jobs are
not started."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from command import composed
from served import asking, finished_run, make_service
from starlette.testclient import TestClient

from mitigate.serve import app
from mitigate.serve.app import COOKIE, LARGEST_BODY, Service
from mitigate.serve.worker import log_of

TRIPLES = b"head,relation,tail\nlawyer,CapableOf,help\n"
MOST = 3 << 20  # bytes of a file


def outputs_with_runs(service: Service) -> Path:
    """A finished run with a page and a model; a secret beside the runs, and an unfinished one."""
    files = {"report.html": "<script>1</script>", "model/config.json": "{}", "metrics.json": "{}"}
    finished_run(service.rules.outputs, "mitigate-none-1", files)
    (service.rules.outputs / "mitigate-both-1").mkdir()
    (service.rules.outputs.parent / "secret.txt").write_text("secret")
    return service.rules.outputs


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return make_service(tmp_path)


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with asking(service) as opened:
        yield opened


@pytest.fixture
def by(service: Service) -> dict[str, dict[str, str]]:
    """The headers of each person."""
    return {name: bearer(service.queue.create_token(name)) for name in ("ann", "bob")}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def faults(answer: Any, status: int) -> list[str]:
    assert answer.status_code == status, answer.text
    return answer.json()["faults"]


def test_a_job_is_submitted_listed_shown_and_cancelled(client: TestClient, service: Service) -> None:
    made = client.post("/jobs", json={"overrides": {"policy": "both", "seed": 3}})
    assert (made.status_code, made.json()["state"], made.json()["place"]) == (201, "queued", 1)
    command = service.queue.read(1).command
    assert command[3:6] == ["recipe=mitigate", "policy=both", "seed=3"]
    assert not {"command", "worker", "lease"} & set(made.json())
    folder = service.rules.outputs / "mitigate-new"
    folder.mkdir()
    status = {"stage": "probe", "step": "s", "share": 0.5, "seconds_left": 7, "updated": time.time() + 60}
    (folder / "status.json").write_text(json.dumps(status))
    service.queue.claim("worker", 1)
    log = log_of(service.queue, service.queue.read(1))
    log.parent.mkdir()
    log.write_text("one\nbar 1 %\rtwo \x1b[2J\n")
    service.queue.note(1, "worker", folder=str(folder))
    found = client.get("/jobs/1").json()
    shown = [found[name] for name in ("state", "run", "stage", "share", "seconds_left", "log")]
    assert shown == ["running", "mitigate-new", "probe", 0.5, 7, ["one", "two \\x1b[2J"]]
    (folder / "status.json").write_text(json.dumps(status | {"updated": 1.0}))  # of an earlier job
    assert client.get("/jobs/1").json()["stage"] is None
    service.queue.note(1, "worker", folder="/etc")
    assert client.get("/jobs/1").json()["run"] is None
    assert [job["id"] for job in client.get("/jobs").json()["jobs"]] == [1]
    assert client.delete("/jobs/1").json()["state"] == "running"
    assert service.queue.renew(1, "worker") == "cancel"
    service.queue.path.write_bytes(b"damaged" * 999)
    assert faults(client.get("/jobs"), 503) == ["file is not a database"]


def test_people_cancel_their_own_jobs_and_read_their_own_files(client: TestClient, by: dict, service: Service) -> None:
    assert faults(client.get("/jobs"), 401) == ["a valid token is needed: Authorization: Bearer TOKEN"]
    assert client.post("/jobs", json={}, headers=by["ann"]).json()["owner"] == "ann"
    refused = faults(client.delete("/jobs/1", headers=by["bob"]), 403)
    assert refused == ["job 1 belongs to ann; only its owner can cancel it"]
    assert client.get("/jobs/1", headers=by["bob"]).json()["state"] == "queued"
    assert client.delete("/jobs/1", headers=by["ann"]).json()["state"] == "cancelled"
    service.queue.submit("audit", {}, [])  # before the first token
    assert client.delete("/jobs/2", headers=by["bob"]).json()["state"] == "cancelled"
    assert faults(client.put("/files/a.csv", content=TRIPLES), 401)
    listed = client.put("/files/a.csv", content=TRIPLES, headers=by["ann"]).json()
    assert listed == {"files": [{"name": "a.csv", "bytes": 41}]}
    assert client.get("/files", headers=by["bob"]).json() == {"files": []}
    overrides = {"data": "triples", "data.path": "a.csv", "data.columns": {"head": "a b", "tail": 3}}
    submission = {"recipe": "filter", "overrides": overrides}
    number = client.post("/jobs", json=submission, headers=by["ann"]).json()["id"]
    config = composed(*service.queue.read(number).command[3:])
    assert config.data.path == str(service.files("ann") / "a.csv")
    assert config.data.columns == {"head": "a b", "tail": 3}
    assert "you uploaded no such file" in faults(client.post("/jobs", json=submission, headers=by["bob"]), 422)[0]
    overrides["data.path"] = "../ann/a.csv"
    assert "you uploaded no such file" in faults(client.post("/jobs", json=submission, headers=by["bob"]), 422)[0]
    taken = faults(client.put("/files/a.csv", content=b"other\n", headers=by["ann"]), 409)
    assert taken == ["you have a file a.csv already; remove it or choose another name"]
    assert (service.files("ann") / "a.csv").read_bytes() == TRIPLES
    assert faults(client.delete("/files/a.csv", headers=by["bob"]), 404)
    assert client.delete("/files/a.csv", headers=by["ann"]).json() == {"files": []}
    for name in by:
        service.queue.revoke_token(name)
    assert faults(client.get("/jobs", headers=by["ann"]), 401)  # it does not become a service for all


def test_the_pages_cookie_opens_and_those_of_other_programs_lock_nobody_out(service: Service) -> None:
    token = service.queue.create_token("ann")
    own = f"{COOKIE}={token}"
    with asking(service) as client:
        assert client.get("/").status_code == 200
        for wrong in ("Bearer wrong", f"Basic {token}", token, "Bearer", "Bearer w\u00f6rong"):
            assert faults(client.get("/jobs", headers={"authorization": wrong.encode("latin-1")}), 401)
        for other in ("theme=dark", 'prefs={"dark":true}', "flag", "last=a b", "a=\xe9"):
            for cookies in (f"{other}; {own}", f"{own};{other}", f"{COOKIE}=wrong; {other}; {own}"):
                assert client.get("/jobs", headers={"cookie": cookies.encode("latin-1")}).status_code == 200, cookies
            for cookies in (other, f"{other}; {own[:-1]}", f"not_{own}", COOKIE):
                assert faults(client.get("/jobs", headers={"cookie": cookies.encode("latin-1")}), 401), cookies


def test_reports_are_in_a_sandbox_and_other_files_are_downloads(client, service: Service) -> None:
    outputs_with_runs(service)
    files = client.get("/runs/mitigate-none-1").json()["files"]
    assert files == ["report.html", "model/config.json", "metrics.json"]
    page = client.get("/runs/mitigate-none-1/files/report.html")
    assert page.text == "<script>1</script>"
    assert page.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert page.headers["x-content-type-options"] == "nosniff"
    other = client.get("/runs/mitigate-none-1/files/model/config.json")
    assert other.headers["content-disposition"] == 'attachment; filename="config.json"'
    assert other.headers["content-type"] == "application/octet-stream"


def test_the_page_lets_only_its_own_script_run(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    nonce = policy.split("nonce-")[1].split("'")[0]
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'nonce-")
    assert page.text.count(f'nonce="{nonce}"') == 2
    assert not re.search("https?://", page.text)
    assert client.get("/").headers["content-security-policy"] != policy


def test_no_name_of_a_manifest_leads_out(client: TestClient, service: Service) -> None:
    """A run folder may come from anybody, and its manifest name anything."""
    folder = outputs_with_runs(service) / "mitigate-none-1"
    (folder / "link.html").symlink_to(service.rules.outputs.parent / "secret.txt")
    (folder / "folder").symlink_to(service.rules.outputs.parent)
    names = ["link.html", "folder/secret.txt", "../../secret.txt", "model/../../../secret.txt", "a\0b", "model/"]
    names += ["model", "x" * 300, "/etc/passwd"]
    (folder / "manifest.json").write_text(json.dumps({"files": dict.fromkeys(names, "")}))
    assert client.get("/runs/mitigate-none-1").json()["files"] == []
    for path in names:
        answer = client.get(f"/runs/mitigate-none-1/files/{quote(path, safe='')}")
        assert faults(answer, 404) == ["the run has no file of that name"]


def test_a_link_among_uploads_is_not_followed(client: TestClient, service: Service, tmp_path: Path) -> None:
    folder = service.files(None)
    folder.mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("secret")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    assert client.get("/files").json() == {"files": []}
    assert faults(client.put("/files/link.csv", content=b"a\n"), 409)
    submission = {"recipe": "audit", "overrides": {"data": "triples", "data.path": "link.csv"}}
    assert "no such file" in faults(client.post("/jobs", json=submission), 422)[0]
    assert (tmp_path / "secret.csv").read_text() == "secret"


def json_body(content: Any) -> dict[str, Any]:
    """The arguments of a request with JSON, which a text is already."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return {"content": text, "headers": {"content-type": "application/json"}}


ARCHIVE = b"PK\x03\x04\x14\x00\xff\xff"  # like the beginning of a zip archive
HOSTILE: list[tuple[str, str, dict[str, Any], int, str]] = [
    # Bodies that are no submission.
    ("POST", "/jobs", json_body(b"{"), 422, "JSON"),
    ("POST", "/jobs", json_body(b"[" * 100_000), 400, "parsing"),
    ("POST", "/jobs", json_body(b'{"overrides": {"seed": NaN}}'), 422, "seed=nan must be a whole number"),
    ("POST", "/jobs", json_body(b" " * (LARGEST_BODY + 1)), 413, "the body is too long; allowed: 1,048,576 bytes"),
    ("POST", "/jobs", json_body({"recipe": "audit", "command": "rm"}), 422, "not permitted"),
    ("POST", "/jobs", {"content": (b" " for _ in range(9))}, 411, "the length of the body must be given"),
    # Submissions that name code, places and what is not there.
    ("POST", "/jobs", json_body({"recipe": "../../etc"}), 422, "unknown recipe '../../etc'; allowed: mitigate"),
    ("POST", "/jobs", json_body({"overrides": {"recipe.run": "os.getcwd"}}), 422, "'recipe.run' cannot be set"),
    ("POST", "/jobs", json_body({"overrides": {"paths.outputs": "/etc"}}), 422, "'paths.outputs' cannot be set"),
    ("POST", "/jobs", json_body({"overrides": {"seed": {"_target_": "os.getcwd"}}}), 422, "seed must be a text, a num"),
    ("POST", "/jobs", json_body(rb'{"overrides": {"probe.targets": ["\ud800"]}}'), 422, "must be a list of 1 to 1,000"),
    # Paths out of the run folders.
    ("GET", "/runs/%2e%2e", {}, 404, "no finished run of that name"),
    ("GET", "/runs/.serve/files/queue.sqlite", {}, 404, "no finished run of that name"),
    ("GET", "/runs/mitigate-both-1", {}, 404, "no finished run of that name"),
    ("GET", "/runs/" + "x" * 5000, {}, 404, "no finished run of that name"),
    ("GET", "/runs/mitigate-none-1/files/..%2f..%2fsecret.txt", {}, 404, "the run has no file"),
    ("GET", "/runs/mitigate-none-1/files//etc/passwd", {}, 404, "the run has no file"),
    ("GET", "/runs/mitigate-none-1/files/manifest.json", {}, 404, "the run has no file"),
    ("GET", "/jobs/99", {}, 404, "there is no job of that number"),
    ("GET", "/jobs/1%20OR%201=1", {}, 422, "valid integer"),
    # Files that are no text, and names that are paths.
    ("PUT", "/files/..%2F..%2Fevil.csv", {"content": b"a\n"}, 422, "a file's name has at most 50 letters"),
    ("PUT", "/files/.evil.csv", {"content": b"a\n"}, 422, "a file's name has at most 50 letters"),
    ("PUT", "/files/evil.py", {"content": b"import os\n"}, 422, "ends in .csv, .tsv, .jsonl, .txt"),
    ("PUT", "/files/evil.csv", {"content": ARCHIVE}, 422, "evil.csv is not a text in UTF-8"),
    ("PUT", "/files/evil.tsv", {"content": b"a\0b\n"}, 422, "evil.tsv is not a text: it holds zero bytes"),
    ("PUT", "/files/evil.csv.gz", {"content": TRIPLES}, 422, "ends in .csv, .tsv, .jsonl, .txt; unpack archives"),
    ("PUT", "/files/evil.csv", {"content": b""}, 422, "evil.csv is empty"),
    ("PUT", "/files/evil.csv", {"content": b"0" * (MOST + 1)}, 413, "allowed: 3,145,728 bytes"),
    ("DELETE", "/files/..%2F..%2Fqueue.sqlite", {}, 404, "you have no file of that name"),
    # Hosts and origins.
    ("GET", "/jobs", {"headers": {"host": "evil.example"}}, 421, "the Host header is not a name of this service"),
    ("POST", "/jobs", {"headers": {"origin": "http://evil.example"}}, 403, "a page of another origin may not send"),
    ("GET", "/jobs", {"headers": {"sec-fetch-site": "cross-site"}}, 403, "a page of another origin may not send"),
]


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Service]]:
    service = make_service(tmp_path_factory.mktemp("refusing"))
    outputs_with_runs(service)
    with asking(service) as opened:
        yield opened, service


@pytest.mark.parametrize(("method", "path", "more", "status", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_wrong_and_hostile_requests_are_refused_in_a_sentence_and_leave_nothing(
    refusing: tuple[TestClient, Service], method, path, more, status, words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LARGEST_FILE", MOST)
    client, service = refusing
    answer = client.request(method, path, **more)
    (sentence,) = faults(answer, status)
    assert words in sentence
    assert "secret" not in answer.text.replace("secret.txt", "")
    assert client.get("/jobs").json() == {"jobs": []}  # nothing was queued, so nothing is executed
    assert not list(service.rules.outputs.parent.rglob("*evil*"))
    assert not [path for path in service.rules.outputs.rglob("*") if path.suffix == ".part"]
