"""Uploaded files: kept for their owner, named in submissions, and hostile ones refused in a sentence."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import composed
from starlette.testclient import TestClient
from test_serve_http import HOST, faults, make_outputs, open_client

from mitigate.serve import queue
from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.service import Service

CONF = Path(__file__).parents[1] / "conf"
MOST = 3 << 20  # bytes of a file
TRIPLES = b"head,relation,tail\nlawyer,CapableOf,help\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    rules = Rules(CONF, {"paths.outputs": "/srv/outputs"}, models=["gpt2", "/srv/models/own"])
    outputs = make_outputs(tmp_path_factory.mktemp("files"))
    return Service(rules, outputs, list, hosts=[HOST], largest_upload=MOST)


@pytest.fixture(scope="module")
def by(service: Service) -> dict[str, dict[str, str]]:
    tokens = {"ann": service.people.create("ann"), "bob": service.people.create("bob")}
    return {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}


@pytest.fixture(scope="module")
def client(service: Service, by: dict[str, dict[str, str]]) -> Iterator[TestClient]:
    with open_client(service) as opened:
        yield opened


def names(answer: object) -> list[str]:
    return [row["name"] for row in answer.json()["files"]]  # type: ignore[attr-defined]


def test_files_are_their_owners_and_submissions_name_them(client: TestClient, by: dict, service: Service) -> None:
    assert faults(client.put("/files/a.csv", content=TRIPLES), 401)
    assert names(client.put("/files/a.csv", content=TRIPLES, headers=by["ann"])) == ["a.csv"]
    packed = gzip.compress(TRIPLES)
    assert names(client.put("/files/b.csv.gz", content=packed, headers=by["ann"])) == ["a.csv", "b.csv.gz"]
    client.put("/files/targets.csv", content=b"target,category\nbaker,profession\n", headers=by["ann"])
    assert client.get("/files", headers=by["bob"]).json() == {"files": []}
    overrides = {"data": "triples", "data.path": "a.csv", "data.columns": {"head": "a b", "tail": 3}}
    overrides |= {"probe.targets": "targets.csv"}
    submission = {"recipe": "filter", "overrides": overrides | {"policy": "both_neutral"}}
    labels = {"recipe": "labels", "overrides": {"texts": "a.csv"}}
    made = [client.post("/jobs", json=asked, headers=by["ann"]).json()["id"] for asked in (submission, labels)]
    with queue.opened(service.path) as table:
        filtered, labelled = (queue.read(table, number).command for number in made)
    config = composed(*filtered[3:])
    folder = service.place / "files" / "ann"
    assert config.data.path == str(folder / "a.csv")
    assert config.data.columns == {"head": "a b", "tail": 3}
    assert config.probe.targets == str(folder / "targets.csv")
    assert f"texts=@{folder / 'a.csv'}" in labelled
    others = client.post("/jobs", json=submission, headers=by["bob"])
    assert "data.path: you uploaded no such file, and the folders of this service have none" in faults(others, 422)
    submission["overrides"]["data.path"] = "../bob/a.csv"
    assert "no such file" in faults(client.post("/jobs", json=submission, headers=by["ann"]), 422)[0]
    taken = faults(client.put("/files/a.csv", content=b"other\n", headers=by["ann"]), 409)
    assert taken == ["you have a file a.csv already; remove it first, or choose another name"]
    assert (folder / "a.csv").read_bytes() == TRIPLES
    assert faults(client.delete("/files/a.csv", headers=by["bob"]), 404)
    assert names(client.delete("/files/a.csv", headers=by["ann"])) == ["b.csv.gz", "targets.csv"]
    log = (service.place / "actions.jsonl").read_text()
    assert '"who": "ann", "action": "upload", "file": "a.csv", "bytes": 41' in log


ARCHIVE = b"PK\x03\x04\x14\x00\xff\xff"  # like the beginning of a zip archive
HOSTILE: dict[str, tuple[str, bytes, int, str]] = {
    "a path": ("..%2F..%2Fevil.csv", b"a\n", 422, "no folders"),
    "a hidden file": (".evil.csv", b"a\n", 422, "a letter or digit first"),
    "a zero byte": ("evil%00.csv", b"a\n", 422, "a file's name has letters"),
    "a long name": ("a" * 300 + ".csv", b"a\n", 422, "100 at most"),
    "a program": ("evil.py", b"import os\n", 422, "evil.py cannot be uploaded; allowed: .csv, .tsv, .jsonl, .txt"),
    "a zip archive": ("evil.zip", ARCHIVE, 422, "unpack archives"),
    "a zip archive with another name": ("evil.csv", ARCHIVE, 422, "evil.csv is not a text in UTF-8"),
    "a pickle": ("evil.txt", b"\x80\x04\x95\x00\x00\x00", 422, "evil.txt is not a text in UTF-8"),
    "zero bytes": ("evil.tsv", b"a\0b\n", 422, "evil.tsv is not a text: it holds zero bytes"),
    "a bomb": ("evil.csv.gz", gzip.compress(b"0" * (MOST + 1)), 422, "evil.csv.gz has more than 3 MiB of text when it"),
    "a bomb without its ending": ("evil.csv", gzip.compress(b"0" * (MOST + 1)), 422, "more than 3 MiB of text"),
    "half of a gzip file": ("evil.csv.gz", gzip.compress(TRIPLES)[:-9], 422, "evil.csv.gz cannot be unpacked"),
    "no gzip file": ("evil.csv.gz", TRIPLES, 422, "is named .gz and is not a gzip file"),
    "nothing": ("evil.csv", b"", 422, "evil.csv is empty"),
    "too much": ("evil.csv", b"0" * (MOST + 1), 413, f"allowed: {MOST:,} bytes"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_uploads_are_refused_in_a_sentence_and_leave_nothing(client, by, service: Service, kind: str) -> None:
    name, content, status, sentence = HOSTILE[kind]
    (found,) = faults(client.put(f"/files/{name}", content=content, headers=by["bob"]), status)
    assert sentence in found
    assert list((service.place / "files" / "bob").glob("*")) == []
    assert not list(service.outputs.parent.rglob("evil*"))


def test_a_body_without_a_length_is_counted_and_a_link_is_not_followed(client, by, service: Service, tmp_path) -> None:
    pieces = (b"0" * (1 << 19) for _ in range(10))
    assert "too long" in faults(client.put("/files/evil.csv", content=pieces, headers=by["bob"]), 413)[0]
    folder = service.place / "files" / "bob"
    (tmp_path / "secret.csv").write_text("secret")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    assert client.get("/files", headers=by["bob"]).json() == {"files": []}
    assert faults(client.put("/files/link.csv", content=b"a\n", headers=by["bob"]), 409)
    submission = {"recipe": "audit", "overrides": {"data": "triples", "data.path": "link.csv"}}
    assert "no such file" in faults(client.post("/jobs", json=submission, headers=by["bob"]), 422)[0]
    assert (tmp_path / "secret.csv").read_text() == "secret"
    (folder / "link.csv").unlink()
    (folder / ".cut-off.part").touch()
    service.uploads.clear()
    assert list(folder.iterdir()) == []


def test_models_are_those_of_the_service(client: TestClient, by: dict, service: Service) -> None:
    assert {"hf", "seq2seq"} <= set(client.get("/options", headers=by["ann"]).json()["groups"]["model"])
    assert not {"hf", "seq2seq"} & set(Rules(CONF).options()["model"])
    right = {"model": "hf", "model.base": "gpt2", "policy": "none", "train": False}
    assert client.post("/jobs", json={"overrides": right}, headers=by["ann"]).status_code == 201
    wrong = client.post("/jobs", json={"overrides": right | {"model.base": "/etc"}}, headers=by["ann"])
    assert faults(wrong, 422)[0] == "unknown model.base '/etc'; allowed: gpt2, /srv/models/own (serve.models)"
    without = client.post("/jobs", json={"overrides": {"model": "seq2seq"}}, headers=by["ann"])
    assert faults(without, 422) == ["model.base must be given"]
