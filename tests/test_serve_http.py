"""The service over HTTP: jobs and results, and what it refuses. Jobs are not started."""

import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from compared_runs import make_run, seal
from starlette.testclient import TestClient

from mitigate.files import sealed
from mitigate.serve import queue
from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.app import make_app
from mitigate.serve.people import COOKIE, Caller
from mitigate.serve.request_checks import LARGEST_BODY
from mitigate.serve.service import Service
from mitigate.serve.worker import log_of

CONF = Path(__file__).parents[1] / "conf"
HOST = "127.0.0.1:8765"
TOKEN = "a token of more than sixteen characters"


def make_outputs(place: Path) -> Path:
    """Two finished runs, the first with a page and a model; a secret beside them."""
    folder = make_run(place / "out", "none")
    (folder / "report.html").write_text("<script>1</script>")
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "model" / "model.safetensors").write_bytes(b"w" * 100)
    seal(folder)
    make_run(place / "out", "both", lr=0.5)
    (place / "secret.txt").write_text("secret")
    return place / "out"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return make_outputs(tmp_path)


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules(CONF, {"paths.outputs": "/srv/outputs", "tracking.mode": "none"})


@pytest.fixture
def service(outputs: Path, rules: Rules) -> Service:
    return Service(rules, outputs, list, most_queued=3, hosts=[HOST])


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with open_client(service) as opened:
        yield opened


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, rules: Rules) -> Iterator[TestClient]:
    """A client for tests of what is refused, which changes nothing: it has no job before and after each."""
    place = tmp_path_factory.mktemp("refusing")
    with open_client(Service(rules, make_outputs(place), list, most_queued=3, hosts=[HOST])) as opened:
        yield opened


def open_client(service: Service) -> TestClient:
    return TestClient(make_app(service), base_url=f"http://{HOST}", raise_server_exceptions=True)


def faults(answer: Any, status: int) -> list[str]:
    assert answer.status_code == status, answer.text
    return answer.json()["faults"]


def command_of(service: Service, number: int) -> list[str]:
    with queue.opened(service.path) as table:
        return queue.read(table, number).command


def test_a_job_is_submitted_listed_and_cancelled(client: TestClient, service: Service) -> None:
    made = client.post("/jobs", json={"overrides": {"policy": "both", "seed": 3}})
    assert made.status_code == 201
    assert (made.json()["id"], made.json()["state"], made.json()["place"]) == (1, "queued", 1)
    set_here = ["paths.outputs='/srv/outputs'", "tracking.mode='none'"]
    assert command_of(service, 1)[1:] == ["-m", "mitigate", "recipe=mitigate", "policy=both", "seed=3", *set_here]
    assert [row["owner"] for row in client.get("/jobs?state=queued").json()["jobs"]] == [None]
    assert client.get("/jobs?state=failed").json() == {"jobs": []}
    assert client.post("/jobs", json={}).json()["place"] == 2
    cancelled = client.delete("/jobs/1").json()
    assert (cancelled["state"], cancelled["error"]) == ("cancelled", None)
    assert faults(client.get("/jobs/3"), 404) == ["there is no such job; the list of jobs has all"]


def test_progress_is_that_of_the_runs_status(client: TestClient, service: Service, outputs: Path) -> None:
    service.submit("mitigate", {}, [], Caller())
    folder = outputs / "mitigate-new"
    folder.mkdir()
    with queue.opened(service.path) as table:
        job = queue.claim(table, "worker", 1)
        assert job
        queue.note(table, 1, "worker", folder=str(folder), starts=1)
    status = {"stage": "probe", "share": 0.5, "seconds_left": 7, "step": "probe", "done": ["score"]}
    status["updated"] = time.time() - 3600
    (folder / "status.json").write_text(json.dumps(status))
    assert client.get("/jobs/1").json()["stage"] is None  # it is from before the job
    (folder / "status.json").write_text(json.dumps(status | {"updated": time.time() + 1}))
    log_of(service.place, job).parent.mkdir()
    log_of(service.place, job).write_text("one\ntwo \x1b[2J\n")
    found = client.get("/jobs/1").json()
    assert [found[name] for name in ("state", "run", "stage", "share", "seconds_left", "done")] == [
        *("running", "mitigate-new", "probe", 0.5, 7, ["score"])
    ]
    assert found["log"] == ["one", "two \\x1b[2J"]
    with queue.opened(service.path) as table:
        queue.note(table, 1, "worker", folder="/etc")
    assert client.get("/jobs/1").json()["run"] is None


def test_faults_and_a_full_queue_are_errors(client: TestClient, service: Service) -> None:
    wrong = {"policy": "x", "_target_": "os.getcwd", "seed": -1}
    assert len(faults(client.post("/jobs", json={"overrides": wrong}), 422)) == 3
    for _ in range(3):
        service.submit("mitigate", {}, [], Caller())
    full = client.post("/jobs", json={})
    assert faults(full, 429) == ["3 jobs are queued, which is the most; wait until some have run, or cancel some"]
    assert full.headers["retry-after"] == "5"


def test_runs_are_listed_and_compared_by_a_job(client: TestClient, service: Service, outputs: Path) -> None:
    found = {run["policy"]: (run["pages"], run["has_model"]) for run in client.get("/runs").json()["runs"]}
    assert found == {"none": (["report.html"], True), "both": ([], False)}
    names = ["mitigate-none-1-", "mitigate-both-1-0.5"]
    whole = client.get(f"/runs/{names[0]}").json()
    assert (whole["settings"]["policy.name"], "report.html" in whole["files"]) == ("none", True)
    made = client.post("/compare", json={"runs": names, "baseline": names[0]})
    assert made.status_code == 201
    command = command_of(service, made.json()["id"])
    assert f"compare.runs=['{outputs / names[0]}','{outputs / names[1]}']" in command
    assert f"compare.baseline='{outputs / names[0]}'" in command
    assert faults(client.post("/compare", json={"runs": [names[0], "../.."]}), 404)
    assert "two runs or more" in faults(client.post("/compare", json={"runs": [names[0], names[0]]}), 422)[0]


def test_a_report_is_in_a_sandbox_and_other_files_are_downloads(client: TestClient, outputs: Path) -> None:
    page = client.get("/runs/mitigate-none-1-/files/report.html")
    assert page.text == "<script>1</script>"
    assert page.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert page.headers["x-content-type-options"] == "nosniff"
    other = client.get("/runs/mitigate-none-1-/files/model/config.json")
    assert other.headers["content-disposition"] == 'attachment; filename="config.json"'
    assert other.headers["content-type"] == "application/octet-stream"
    model = client.get("/runs/mitigate-none-1-/model.zip")
    with zipfile.ZipFile(io.BytesIO(model.content)) as archive:
        assert archive.testzip() is None
        assert archive.read("model/model.safetensors") == b"w" * 100
    assert "none was trained" in faults(client.get("/runs/mitigate-both-1-0.5/model.zip"), 404)[0]
    (outputs / "mitigate-none-1-" / "report.html").write_text("changed")
    assert "is damaged" in faults(client.get("/runs/mitigate-none-1-/files/report.html"), 422)[0]


@pytest.mark.parametrize(
    "path",
    [
        *("/runs/%2e%2e", "/runs/..%2f..", "/runs/.serve", "/runs/mitigate-none-1-%00", "/runs/%ff"),
        *("/runs/mitigate-none-1-/files/..%2f..%2fsecret.txt", "/runs/mitigate-none-1-/files/%2e%2e/%2e%2e/secret.txt"),
        *("/runs/mitigate-none-1-/files//etc/passwd", "/runs/mitigate-none-1-/files/manifest.json", "/../secret.txt"),
        *("/runs/../secret.txt/model.zip", "/runs/" + "x" * 5000, "/docs", "/absent"),
    ],
)
def test_no_path_leads_out(refusing: TestClient, path: str) -> None:
    answer = refusing.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.txt", "")


def test_no_name_of_a_manifest_leads_out(client: TestClient, outputs: Path) -> None:
    """A run folder may come from anybody, and its manifest name anything."""
    folder, secret = outputs / "mitigate-none-1-", outputs.parent / "secret.txt"
    (folder / "link.html").symlink_to(secret)
    (folder / "folder").symlink_to(secret.parent)
    manifest = json.loads((folder / "manifest.json").read_text())
    names = ["link.html", "folder/secret.txt", "../../secret.txt", "model/../../../secret.txt", "a\0b", "model/"]
    for path in (*names, "model", "x" * 300):
        files = manifest["files"] | {path: hashlib.sha256(secret.read_bytes()).hexdigest()}
        (folder / "manifest.json").write_text(json.dumps(sealed(manifest | {"files": files})))
        address = f"/runs/mitigate-none-1-/files/{quote(path, safe='')}"
        assert faults(client.get(address), 404) == ["the run has no such file; the list of its files has all"]


ASKED = {"relation": "IsA", "runs": ["a"]}
HOSTILE: list[tuple[str, Any, int]] = [
    ("/generate", {**ASKED, "head": "x" * 101}, 422),
    ("/generate", {**ASKED, "head": "a\0b"}, 422),
    ("/generate", {**ASKED, "head": "lawyer", "runs": ["a", "b", "c"]}, 422),
    ("/label", {"texts": ["x"] * 65}, 422),
    ("/label", {"texts": ["x" * 1001]}, 422),
    ("/label", {"texts": ["\x1b[2J"]}, 422),
    ("/label", {"texts": ["ok"], "more": 1}, 422),
    ("/jobs", {"overrides": dict.fromkeys(map(str, range(101)), 1)}, 422),
    ("/jobs", {"overrides": {"seed": [[[[1]]]]}}, 422),
    ("/jobs", {"recipe": "../../etc"}, 422),
    ("/jobs", None, 422),
    ("/jobs", b"{", 422),
    ("/jobs", b"[" * 100_000, 400),
    ("/jobs", b'{"overrides": {"seed": ' + b"9" * 5_000 + b"}}", 400),
    ("/jobs", b'{"overrides": {"seed": NaN}}', 422),
    ("/jobs", b'{"overrides": {"policy": ' + b"[" * 700 + b"]" * 700 + b"}}", 422),
    ("/jobs", rb'{"overrides": {"probe.targets": ["\ud800"]}}', 422),
    ("/jobs", b'{"recipe": "\xff"}', 400),
    ("/jobs", b" " * (LARGEST_BODY + 1), 413),
]


@pytest.mark.parametrize(("path", "body", "status"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_body_that_is_too_long_or_no_submission_is_a_4xx(refusing: TestClient, path, body: Any, status: int) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body)
    assert faults(refusing.post(path, content=content, headers={"content-type": "application/json"}), status)
    assert refusing.get("/jobs").json() == {"jobs": []}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": f"{HOST}.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"http://{HOST}.evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_another_host_or_origin_is_refused(refusing: TestClient, headers: dict[str, str], status: int) -> None:
    for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("DELETE", "/jobs/1")):
        assert faults(refusing.request(method, path, headers=headers), status)
    same = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    assert refusing.get("/jobs", headers=same).status_code == 200
    link = {"sec-fetch-site": "cross-site"}  # a link from elsewhere may lead to the page
    assert refusing.get("/", headers=link).status_code == 200


def test_a_token_is_asked_for(service: Service) -> None:
    service.token = TOKEN
    with open_client(service) as client:
        assert client.get("/").status_code == 200
        assert faults(client.get("/jobs"), 401) == ["a token is needed: Authorization: Bearer TOKEN"]
        for wrong in ("Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer w\u00f6rong"):
            assert faults(client.get("/jobs", headers={"authorization": wrong.encode("latin-1")}), 401)
        assert client.get("/jobs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_pages_cookie_opens_and_those_of_other_programs_lock_nobody_out(service: Service) -> None:
    service.token = TOKEN
    own = f"{COOKIE}={quote(TOKEN)}"
    with open_client(service) as client:
        for other in ("theme=dark", 'prefs={"dark":true}', "flag", "ui[open]=1", "last=a b", "a=\xe9"):
            for cookies in (f"{other}; {own}", f"{own};{other}", f"{COOKIE}=wrong; {other}; {own}"):
                assert client.get("/jobs", headers={"cookie": cookies.encode("latin-1")}).status_code == 200, cookies
            for cookies in (other, f"{other}; {own[:-1]}", f"not_{own}", f"{other}={own}", COOKIE):
                assert faults(client.get("/jobs", headers={"cookie": cookies.encode("latin-1")}), 401), cookies


def test_the_page_lets_only_its_own_script_run(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'nonce-")
    nonce = policy.split("nonce-")[1].split("'")[0]
    assert page.text.count(f'nonce="{nonce}"') == 2
    assert not re.search("https?://", page.text)
    assert client.get("/").headers["content-security-policy"] != policy
