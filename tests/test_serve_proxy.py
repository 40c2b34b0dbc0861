"""The service behind nginx with the configuration of the documentation: TLS, tokens, and users that nginx knows by
password."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPSConnection
from json import dumps, loads
from pathlib import Path

import pytest
from served import make_service, serving, settle

from mitigate.serve.service import Service

PAGE = Path(__file__).parents[1] / "docs" / "service.md"
NAME = "mitigate.example.org"
pytestmark = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("openssl")), reason="needs nginx and openssl: apt-get install nginx"
)


def configuration(place: Path, port: int, tls_port: int) -> str:
    """The documented server block with the ports and files of a test."""
    (block,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    given = {
        "listen 443 ssl": f"listen 127.0.0.1:{tls_port} ssl",
        "/etc/ssl/mitigate.pem": str(place / "cert.pem"),
        "/etc/ssl/mitigate.key": str(place / "key.pem"),
        "/etc/nginx/mitigate.users": str(place / "users"),
        "127.0.0.1:8765": f"127.0.0.1:{port}",
    }
    for before, after in given.items():
        assert before in block
        block = block.replace(before, after)
    user = "user root; " if os.getuid() == 0 else ""  # or it cannot read the files of a test that root runs
    logs = f"{user}error_log {place}/error.log; pid {place}/nginx.pid; daemon off; worker_processes 1; events {{}}"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{kind}_temp_path {place}/{kind};" for kind in kinds)
    return f"{logs}\nhttp {{ access_log off; {paths}\n{block} }}\n"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as free:
        made = make_service(tmp_path, listening.getsockname()[1])
        made.hosts.append(NAME)
        made.tls_port = free.getsockname()[1]  # type: ignore[attr-defined]
        free.close()
        with serving(made, listening):
            yield made
    settle(made)


def started(service: Service, place: Path, edit: dict[str, str]) -> subprocess.Popen[bytes]:
    """nginx, once it answers."""
    tls_port = service.tls_port  # type: ignore[attr-defined]
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    request += ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")]
    subprocess.run([*request, *files], check=True, capture_output=True)
    (place / "users").write_text("ann:{PLAIN}a password\n")
    text = configuration(place, int(service.hosts[0].rpartition(":")[2]), tls_port)
    for before, after in edit.items():
        text = text.replace(before, after)
    (place / "nginx.conf").write_text(text)
    process = subprocess.Popen(
        ["nginx", "-p", str(place), "-e", str(place / "error.log"), "-c", str(place / "nginx.conf")]
    )
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", tls_port)).close()
            return process
        except OSError:
            assert process.poll() is None, (place / "error.log").read_text()
            time.sleep(0.05)
    pytest.fail("nginx does not answer")


def ask(
    service: Service, place: Path, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, dict, bytes]:
    """The status, headers and content of an answer over TLS, whose certificate is checked."""
    context = ssl.create_default_context(cafile=str(place / "cert.pem"))
    connection = HTTPSConnection(NAME, timeout=30, context=context)
    there = socket.create_connection(("127.0.0.1", service.tls_port))  # type: ignore[attr-defined]
    connection.sock = context.wrap_socket(there, server_hostname=NAME)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if body is None else dumps(body)
    connection.request(method, path, content, {"content-type": "application/json", **sent})
    answer = connection.getresponse()
    try:
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_tokens_and_cookies_go_through_tls(service: Service, tmp_path: Path) -> None:
    token = service.people.create("ann")
    nginx = started(service, tmp_path, {})
    try:
        assert ask(service, tmp_path, "GET", "/jobs")[0] == 401
        assert ask(service, tmp_path, "GET", "/jobs", X_Forwarded_User="ann")[0] == 401
        status, headers, _ = ask(service, tmp_path, "POST", "/session", {"token": token}, origin=f"https://{NAME}")
        assert (status, {"HttpOnly", "Secure"} <= set(headers["set-cookie"].split("; "))) == (204, True)
        cookie = headers["set-cookie"].partition(";")[0]
        assert loads(ask(service, tmp_path, "GET", "/me", cookie=cookie)[2])["name"] == "ann"
        made = loads(ask(service, tmp_path, "POST", "/jobs", {"overrides": {"policy": "both"}}, cookie=cookie)[2])
        events = ask(service, tmp_path, "GET", f"/jobs/{made['id']}/events", authorization=f"Bearer {token}")[2]
        assert b'"state":"done"' in events.splitlines()[-2]
        assert ask(service, tmp_path, "GET", "/jobs", cookie=cookie, origin="https://evil.example")[0] == 403
    finally:
        nginx.terminate()
        nginx.wait(30)


def test_users_of_the_proxy_are_people_whatever_header_they_send(service: Service, tmp_path: Path) -> None:
    service.user_header, service.proxies = "X-Forwarded-User", ["127.0.0.1"]
    (tmp_path / "second").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        service.hosts.insert(0, f"127.0.0.1:{port}")
        with serving(service, listening):
            nginx = started(service, tmp_path, {"    # ": "    "})
            try:
                password = b64encode(b"ann:a password").decode()
                assert ask(service, tmp_path, "GET", "/me")[0] == 401
                status, _, content = ask(service, tmp_path, "GET", "/me", authorization=f"Basic {password}")
                assert (status, loads(content)["name"], loads(content)["is_admin"]) == (200, "ann", False)
                how = {"authorization": f"Basic {password}", "X_Forwarded_User": "root"}
                assert loads(ask(service, tmp_path, "GET", "/me", **how)[2])["name"] == "ann"
            finally:
                nginx.terminate()
                nginx.wait(30)
