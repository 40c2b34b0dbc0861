"""People of the service: named tokens, owners, limits, a proxy's user header, and the log of actions."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import fresh
from starlette.datastructures import Headers
from starlette.testclient import TestClient
from test_serve_http import HOST, TOKEN, Formula, faults, make_outputs, open_client

from mitigate.errors import MitigateError
from mitigate.serve import queue
from mitigate.serve.access import COOKIE, Access, Caller
from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.client import Client
from mitigate.serve.people import Limits, People, record
from mitigate.serve.service import Service

CONF = Path(__file__).parents[1] / "conf"
PEOPLE = {
    "ann": {"limits": Limits(queued=2), "priority": 3},
    "bob": {},
    "root": {"is_admin": True, "priority": 10},
}


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules(CONF, {"paths.outputs": "/srv/outputs"})


@pytest.fixture
def service(tmp_path: Path, rules: Rules) -> Service:
    return Service(rules, make_outputs(tmp_path), Formula(), hosts=[HOST], limits=Limits(running=1, queued=5))


@pytest.fixture
def tokens(service: Service) -> dict[str, str]:
    return {name: service.people.create(name, **facts) for name, facts in PEOPLE.items()}


@pytest.fixture
def client(service: Service, tokens: dict[str, str]) -> Iterator[TestClient]:
    with open_client(service) as opened:
        yield opened


@pytest.fixture
def by(tokens: dict[str, str]) -> dict[str, dict[str, str]]:
    """The headers of each person."""
    return {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}


def test_tokens_are_random_stored_as_hashes_and_end_when_revoked(tmp_path: Path) -> None:
    people = People(tmp_path)
    assert (people.all(), people.are_named, people.by_token("")) == ([], False, None)
    ann, bob = people.create("ann"), people.create("b.ob@example.org", is_admin=True, limits=Limits(running=2))
    assert ann != bob
    assert len(ann) > 43  # 256 bits
    stored = people.path.read_text()
    assert ann.removeprefix("mitigate_") not in stored
    assert people.path.stat().st_mode & 0o777 == 0o600
    other = People(tmp_path)  # of the service that runs meanwhile
    found = other.by_token(bob)
    assert found
    assert (found.name, found.is_admin, found.limits) == ("b.ob@example.org", True, Limits(running=2))
    assert found.token not in repr(found)
    for wrong in ("", ann[:-1], found.token, found.session, "ann", "\ud800"):
        assert other.by_token(wrong) is None
        assert other.by_session(wrong) is None
    people.revoke("ann")
    assert other.by_token(ann) is None
    people.revoke("b.ob@example.org")
    assert (other.all(), other.are_named) == ([], True)


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "a/b", "é", "a\n", "a" * 51])
def test_names_that_are_no_names_and_names_taken_or_unknown_are_refused(tmp_path: Path, name: str) -> None:
    people = People(tmp_path)
    with pytest.raises(MitigateError, match="cannot be the name of a person; allowed: 50 letters"):
        people.create(name)
    people.create("ann")
    with pytest.raises(MitigateError, match="ann has a token already; revoke it first: serve.revoke=ann"):
        people.create("ann")
    with pytest.raises(MitigateError, match="anne has no token; people with one: ann; did you mean ann"):
        people.revoke("anne")


def test_jobs_have_owners_who_alone_and_admins_cancel_them(client: TestClient, by: dict, service: Service) -> None:
    assert faults(client.get("/jobs"), 401)
    made = client.post("/jobs", json={"label": "my first", "submitter": "root"}, headers=by["ann"]).json()
    assert (made["owner"], made["label"], made["priority"], made["submitter"]) == ("ann", "my first", 0, "root")
    refused = faults(client.delete("/jobs/1", headers=by["bob"]), 403)
    assert refused == ["job 1 belongs to ann; its owner or an admin can cancel it"]
    assert client.get("/jobs/1", headers=by["bob"]).json()["state"] == "queued"
    assert client.delete("/jobs/1", headers=by["ann"]).json()["state"] == "cancelled"
    client.post("/jobs", json={}, headers=by["bob"])
    assert client.delete("/jobs/2", headers=by["root"]).json()["state"] == "cancelled"
    service.submit("mitigate", {}, [], None)
    assert "belongs to the common token" in faults(client.delete("/jobs/3", headers=by["bob"]), 403)[0]
    lines = [json.loads(line) for line in (service.place / "actions.jsonl").read_text().splitlines()]
    assert [(line["who"], line["action"], line["job"]) for line in lines] == [
        *(("ann", "submit", 1), ("ann", "cancel", 1), ("bob", "submit", 2), ("root", "cancel", 2)),
        (None, "submit", 3),
    ]
    assert lines[3]["owner"] == "bob"


def test_a_persons_limits_and_priority_are_kept_and_shown(client, by, service: Service, tokens) -> None:
    too_high = client.post("/jobs", json={"priority": 4}, headers=by["ann"])
    assert faults(too_high, 422) == ["priority=4 is above yours, 3; give that or less"]
    assert faults(client.post("/jobs", json={"priority": 11}, headers=by["root"]), 422)
    for priority in (-1, 3):
        assert client.post("/jobs", json={"priority": priority}, headers=by["ann"]).status_code == 201
    full = client.post("/jobs", json={}, headers=by["ann"])
    assert faults(full, 429) == ["you have 2 jobs queued, your limit; wait until one starts, or cancel one"]
    assert client.post("/jobs", json={}, headers=by["bob"]).json()["place"] == 2  # between ann's
    me = client.get("/me", headers=by["ann"]).json()
    assert me == {
        **{"name": "ann", "is_admin": False, "priority": 3, "running": 0, "most_running": 1, "queued": 2},
        **{"most_queued": 2, "disk": None, "most_disk": None},
    }
    assert [service.most_running(name) for name in ("ann", "absent", None)] == [1, 1, None]
    folder = service.outputs / "mitigate-none-1-"
    with queue.opened(service.path) as table:
        assert queue.claim(table, "worker", 1)
        queue.note(table, 2, "worker", folder=str(folder))
    service.people.revoke("ann")
    assert faults(client.get("/jobs", headers=by["ann"]), 401)
    again = service.people.create("ann", limits=Limits(disk=1e-9))
    full = client.post("/jobs", json={}, headers={"authorization": f"Bearer {again}"})
    assert "and 1e-09 GiB are allowed; remove files, or ask" in faults(full, 429)[0]
    service.stop_over_disk()
    with queue.opened(service.path) as table:
        assert queue.renew(table, 2, "worker") == "cancel"
        queue.cancel(table, 2)  # by its owner too: the reason stays
        queue.finish(table, 2, "worker", "failed", error="killed")
    stopped = client.get("/jobs/2", headers=by["bob"]).json()
    assert (stopped["state"], stopped["error"][:31]) == ("cancelled", "stopped: your runs and files ta")
    assert stopped["error"].endswith("; submitted again, it resumes")


def test_a_persons_queued_jobs_wait_while_the_disk_limit_is_reached(client, by, service: Service, tokens) -> None:
    for name in ("ann", "ann", "bob"):
        assert client.post("/jobs", json={}, headers=by[name]).status_code == 201
    client.put("/files/a.csv", content=b"a,b\n", headers=by["ann"])
    service.people.revoke("ann")
    own = {"authorization": f"Bearer {service.people.create('ann', limits=Limits(disk=1e-9, running=1))}"}
    service.stop_over_disk()

    def claimed() -> int | None:
        with queue.opened(service.path) as table:
            job = queue.claim(table, "worker", 9, most_running=service.most_running)
        return job and job.id

    assert [claimed(), claimed()] == [3, None]  # bob's alone
    client.delete("/files/a.csv", headers=own)
    assert client.post("/jobs", json={}, headers=own).status_code == 201  # at once, without another check
    assert [claimed(), claimed()] == [1, None]


SUMS = """
import pathlib, sys, time
outputs, go, *arguments = sys.argv[1:]
run = pathlib.Path(outputs, "mitigate-" + dict(argument.split("=", 1) for argument in arguments)["seed"])
run.mkdir(exist_ok=True)
print(f"  run folder  {run}", flush=True)
checkpoint = run / "checkpoint"
step, total = map(int, checkpoint.read_text().split()) if checkpoint.exists() else (0, 0)
while step < 10:
    while step == 5 and not pathlib.Path(go).exists(): time.sleep(0.02)
    step, total = step + 1, 3 * total + step
    if step == 5: (run / "weights").write_bytes(b"0" * 2**20)
    checkpoint.write_text(f"{step} {total}")
    print(f"step {step}", flush=True)
(run / "metrics.json").write_text(str(total))
(run / "manifest.json").touch()
"""


@pytest.mark.parametrize("remedy", ["a file is removed", "the limit is raised"])
def test_a_job_that_is_stopped_for_its_owners_disk_limit_resumes_and_ends_the_same(tmp_path: Path, remedy: str) -> None:
    """A service and processes start, which takes seconds. A job adds up ten numbers; it writes 1 MiB at the fifth."""
    go = tmp_path / "go"
    with fresh(tmp_path, limits=Limits(disk=1.5 / 1024)) as (service, address):
        service.command = [sys.executable, "-c", SUMS, str(service.outputs), str(go)]
        ann, bob = (Client(address, service.people.create(name)) for name in ("ann", "bob"))
        (tmp_path / "a.csv").write_bytes(b"0" * 2**20)
        ann.upload(tmp_path / "a.csv")
        stopped = ann.submit("mitigate", {"seed": 1})["id"]
        while "step 5" not in ann.job(stopped)["log"]:
            time.sleep(0.05)
        service.stop_over_disk()
        found = ann.wait(stopped, 0.05)
        assert (found["state"], found["run"]) == ("cancelled", "mitigate-1")
        assert found["error"].startswith(
            "stopped: your runs and files take 0.00195 GiB, and 0.00146484 GiB are allowed"
        )
        go.touch()
        with pytest.raises(MitigateError, match="0.00146484 GiB are allowed; remove files, or ask whoever runs"):
            ann.submit("mitigate", {"seed": 1})
        if remedy == "a file is removed":
            ann.remove_file("a.csv")
        else:
            service.people.revoke("ann")
            ann = Client(address, service.people.create("ann", limits=Limits(disk=1.0)))
        resumed = ann.wait(ann.submit("mitigate", {"seed": 1})["id"], 0.05)
        whole = bob.wait(bob.submit("mitigate", {"seed": 2})["id"], 0.05)
        assert [(job["state"], job["is_finished"]) for job in (resumed, whole)] == [("done", True)] * 2
        steps = [line for job in (found, resumed) for line in ann.job(job["id"])["log"] if line.startswith("step")]
        assert steps == [f"step {number}" for number in range(1, 11)]  # none twice
        one, other = ((service.outputs / job["run"] / "metrics.json").read_text() for job in (resumed, whole))
        assert one == other


def test_a_stream_of_events_ends_when_its_token_is_revoked(client, by, service: Service) -> None:
    client.post("/jobs", json={}, headers=by["ann"])
    with client.stream("GET", "/jobs/1/events", headers=by["ann"]) as stream:
        service.people.revoke("ann")
        lines = list(stream.iter_lines())
    assert len([line for line in lines if line.startswith("data:")]) <= 1


def test_a_browser_keeps_a_cookie_of_each_person_and_a_common_token_goes_on(client, tokens, by, service) -> None:
    assert faults(client.post("/session", json={"token": tokens["ann"][:-1]}), 401)
    shown = client.post("/session", json={"token": tokens["ann"]})
    assert {"HttpOnly", "SameSite=strict"} <= set(shown.headers["set-cookie"].split("; "))
    assert "Secure" not in shown.headers["set-cookie"]
    assert tokens["ann"] not in shown.headers["set-cookie"]
    assert client.get("/me").json()["name"] == "ann"
    behind_tls = client.post("/session", json={"token": tokens["ann"]}, headers={"origin": f"https://{HOST}"})
    assert "Secure" in behind_tls.headers["set-cookie"]
    client.cookies.clear()
    for secret in (service.people.by_name("ann").session, service.people.by_name("ann").token):
        assert faults(
            client.get("/me", headers={"cookie": f"{COOKIE}={secret}"}), 401
        )  # what the file has opens nothing
    client.post("/session", json={"token": tokens["bob"]})
    client.delete("/session")
    assert faults(client.get("/me"), 401)
    service.token = TOKEN
    with open_client(service) as common:
        me = common.get("/me", headers={"authorization": f"Bearer {TOKEN}"}).json()
        assert (me["name"], me["is_admin"], me["priority"]) == (None, True, None)
        assert common.get("/me", headers=by["bob"]).json()["name"] == "bob"
        log = (service.place / "actions.jsonl").read_text()
        assert not any(token in log for token in (*tokens.values(), TOKEN))


def test_a_proxys_header_counts_from_its_address_alone_and_once(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.create("root", is_admin=True)
    access = Access(people, limits=Limits(queued=4), user_header="X-Forwarded-User", proxies=["10.0.0.2"])
    named = Headers({"x-forwarded-user": "ann"})
    assert access.caller(named, "10.0.0.2") == Caller("ann", False, 0, Limits(queued=4))
    assert access.caller(Headers({"x-forwarded-user": "root"}), "10.0.0.2").is_admin
    twice = Headers(raw=[(b"x-forwarded-user", b"ann"), (b"x-forwarded-user", b"root")])
    for headers, address in (
        *((named, other) for other in ("10.0.0.3", "127.0.0.1", None)),
        *((Headers({"x-forwarded-user": name}), "10.0.0.2") for name in ("", "a b", "ann,root", "../x")),
        *((twice, "10.0.0.2"), (Headers({}), "10.0.0.2")),
    ):
        assert access.caller(headers, address) is None


def test_a_damaged_file_of_people_lets_nobody_in(client: TestClient, by: dict, service: Service, capsys) -> None:
    service.people.path.write_text("{")
    assert "nobody can be let in now" in faults(client.get("/jobs", headers=by["ann"]), 503)[0]
    assert "people.json cannot be read (JSONDecodeError)" in capsys.readouterr().err
    service.people.path.unlink()
    assert faults(client.get("/jobs"), 401)  # it does not become a service for all
    assert client.get("/").text.count('data-needs-token="true"') == 1


def test_a_log_that_cannot_be_written_is_a_message(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").touch()
    record(tmp_path / "file", "ann", "submit")
    assert "the log of actions cannot be written" in capsys.readouterr().err


def test_the_command_creates_and_revokes(tmp_path: Path, job) -> None:
    made = job("recipe=serve", "serve.token_for=ann")
    assert made.status == 0, made.complaint
    token = next(line for line in made.said.splitlines() if line.startswith("mitigate_"))
    people = People(tmp_path / "outputs" / ".serve")
    assert people.by_token(token) == people.by_name("ann")
    assert job("recipe=serve", "serve.token_for=ann").status == 2
    assert job("recipe=serve", "serve.token_for=ann", "serve.revoke=ann", "dry_run=true").status == 0
    assert people.by_token(token)
    assert job("recipe=serve", "serve.token_for=ann", "serve.revoke=ann").status == 0
    assert people.by_token(token) is None
    assert job("recipe=serve", "serve.revoke=ann").status == 0
    assert people.all() == []
    log = [json.loads(line)["action"] for line in (people.path.parent / "actions.jsonl").read_text().splitlines()]
    assert log == ["create token", "revoke token", "create token", "revoke token"]
