"""People of a service: their tokens, their jobs, the log of actions, and the command that makes tokens."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from test_serve_http import HOST, TOKEN, faults, make_outputs, open_client

from mitigate.errors import MitigateError
from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.people import COOKIE, Caller, People
from mitigate.serve.service import Service

CONF = Path(__file__).parents[1] / "conf"


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(Rules(CONF), make_outputs(tmp_path), list, hosts=[HOST])


@pytest.fixture
def by(service: Service) -> dict[str, dict[str, str]]:
    """The headers of each person."""
    tokens = {name: service.people.create(name, is_admin=name == "root") for name in ("ann", "bob", "root")}
    return {name: bearer(token) for name, token in tokens.items()}


@pytest.fixture
def client(service: Service, by: dict[str, dict[str, str]]) -> Iterator[TestClient]:
    with open_client(service) as opened:
        yield opened


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_tokens_are_random_stored_as_hashes_and_end_when_revoked(tmp_path: Path) -> None:
    people = People(tmp_path)
    assert (people.all(), people.are_named, people.caller({})) == ([], False, Caller())
    ann, bob = people.create("ann"), people.create("b.ob@example.org", is_admin=True)
    assert ann != bob
    assert len(ann) > 43  # 256 bits
    stored = people.path.read_text()
    assert ann.removeprefix("mitigate_") not in stored
    assert people.path.stat().st_mode & 0o777 == 0o600
    other = People(tmp_path)  # of the service that runs meanwhile
    assert other.caller(bearer(bob)) == Caller("b.ob@example.org", True)
    for wrong in ("", ann[:-1], other.all()[0].token, "ann", "\ud800"):
        assert other.caller(bearer(wrong)) is None
        assert other.caller({"cookie": f"{COOKIE}={wrong}"}) is None
    people.revoke("ann")
    assert other.caller(bearer(ann)) is None
    common = People(tmp_path, TOKEN)  # which goes on beside those of people
    assert (common.caller(bearer(TOKEN)), common.caller(bearer(ann)), common.caller({})) == (Caller(), None, None)
    assert common.caller(bearer(bob))
    people.revoke("b.ob@example.org")
    assert (other.all(), other.are_named, other.caller({})) == ([], True, None)


def test_tokens_of_version_0_2_still_open(tmp_path: Path) -> None:
    """Its file has limits, a priority and the hash of a cookie besides."""
    token = People(tmp_path).create("ann")
    (row,) = json.loads((tmp_path / "people.json").read_text())["people"]
    row |= {"session": "0" * 64, "priority": 0, "limits": {"running": None, "queued": 3, "disk": None}}
    (tmp_path / "people.json").write_text(json.dumps({"people": [row]}))
    assert People(tmp_path).caller(bearer(token)) == Caller("ann", False)


def test_names_that_are_no_names_and_names_taken_or_unknown_are_refused(tmp_path: Path) -> None:
    people = People(tmp_path)
    for name in ("", "../x", "a b", ".hidden", "a/b", "é", "a\n", "a" * 51):
        with pytest.raises(MitigateError, match="cannot be the name of a person; allowed: 50 letters"):
            people.create(name)
    people.create("ann")
    with pytest.raises(MitigateError, match="ann has a token already; revoke it first: serve.revoke=ann"):
        people.create("ann")
    with pytest.raises(MitigateError, match="anne has no token; people with one: ann; did you mean ann"):
        people.revoke("anne")


def test_jobs_have_owners_who_alone_and_admins_cancel_them(client: TestClient, by: dict, service: Service) -> None:
    assert faults(client.get("/jobs"), 401)
    assert client.post("/jobs", json={}, headers=by["ann"]).json()["owner"] == "ann"
    refused = faults(client.delete("/jobs/1", headers=by["bob"]), 403)
    assert refused == ["job 1 belongs to ann; its owner or an admin can cancel it"]
    assert client.get("/jobs/1", headers=by["bob"]).json()["state"] == "queued"
    assert client.delete("/jobs/1", headers=by["ann"]).json()["state"] == "cancelled"
    client.post("/jobs", json={}, headers=by["bob"])
    assert client.delete("/jobs/2", headers=by["root"]).json()["state"] == "cancelled"
    service.submit("mitigate", {}, [], Caller())
    assert "belongs to the common token" in faults(client.delete("/jobs/3", headers=by["bob"]), 403)[0]
    lines = [json.loads(line) for line in (service.place / "actions.jsonl").read_text().splitlines()]
    assert [line["who"] for line in lines] == ["ann", "ann", "bob", "root", None]
    assert (lines[3]["action"], lines[3]["job"], lines[3]["owner"]) == ("cancel", 2, "bob")


def test_a_damaged_file_of_people_lets_nobody_in(client: TestClient, by: dict, service: Service, capsys) -> None:
    service.people.path.write_text("{")
    assert "nobody can be let in now" in faults(client.get("/jobs", headers=by["ann"]), 503)[0]
    assert "people.json cannot be read (JSONDecodeError)" in capsys.readouterr().err
    service.people.path.unlink()
    assert faults(client.get("/jobs"), 401)  # it does not become a service for all


def test_the_command_creates_and_revokes(tmp_path: Path, job) -> None:
    made = job("recipe=serve", "serve.token_for=ann")
    assert made.status == 0, made.complaint
    token = next(line for line in made.said.splitlines() if line.startswith("mitigate_"))
    people = People(tmp_path / "outputs" / ".serve")
    assert people.caller(bearer(token)) == Caller("ann", False)
    assert job("recipe=serve", "serve.token_for=ann", "serve.revoke=ann", "dry_run=true").status == 0
    assert people.caller(bearer(token))
    assert job("recipe=serve", "serve.token_for=ann", "serve.revoke=ann").status == 0
    assert (people.caller(bearer(token)), len(people.all())) == (None, 1)
    assert job("recipe=serve", "serve.revoke=ann").status == 0
    assert people.all() == []
    log = [json.loads(line)["action"] for line in (people.path.parent / "actions.jsonl").read_text().splitlines()]
    assert log == ["create token", "revoke token"] * 2
