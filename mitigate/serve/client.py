"""A client of the service in a few functions, without packages beyond Python's own.

from mitigate.serve.client import Client
client = Client("http://127.0.0.1:8765")
job = client.wait(client.submit("mitigate", {"policy": "both", "seed": 1})["id"])
client.generate("lawyer", "CapableOf", [job["run"]])
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException, HTTPMessage, IncompleteRead
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from mitigate.errors import MitigateError
from mitigate.runs.files import replacing
from mitigate.words.outside_text import escaped

Body = Mapping[str, Any] | bytes | None  # an object, or the content of a file
ENDED = ("done", "failed", "cancelled")
NOT_IN_HEADERS = re.compile(r"[^ -~\xa0-\xff]")
NOT_IN_ADDRESSES = re.compile(r"[\x00-\x20\x7f?#]")
ELSEWHERE = "free some space, or give another path"  # where a model cannot be written


@dataclass(frozen=True)
class Client:
    """The service at an address. token: your own, or the common one; by default the variable MITIGATE_TOKEN. A refusal
    raises MitigateError in the service's words; so does an address or a token of the wrong form."""

    address: str = "http://127.0.0.1:8765"
    token: str | None = field(default_factory=lambda: os.environ.get("MITIGATE_TOKEN"), repr=False)
    patience: float = 300.0  # seconds for an answer

    def __post_init__(self) -> None:
        _check_address(self.address)
        if found := NOT_IN_HEADERS.search(self.token or ""):  # named in the message, unlike the token
            is_end = found[0] in "\r\n"
            remedy = "take the line end away, as strip() does" if is_end else "give the service another token"
            raise MitigateError(
                f"the token (MITIGATE_TOKEN) holds {found[0]!r}, which no header can carry; allowed: printable "
                f"characters of Latin-1; {remedy}"
            )

    def me(self) -> dict[str, Any]:
        """Your name, your limits, and what is used of them."""
        return self._ask("/me")

    def options(self) -> dict[str, Any]:
        """The allowed submissions: recipes, options of groups, settings."""
        return self._ask("/options")

    def form(self, recipe: str = "mitigate", **groups: str) -> dict[str, Any]:
        """The settings that a submission of these options can have, with their defaults: form(policy="both")."""
        asked = [("recipe", recipe), *(("option", f"{group}={option}") for group, option in groups.items())]
        return self._ask(f"/form?{urlencode(asked)}")

    def submit(
        self,
        recipe: str,
        overrides: Mapping[str, Any],
        submitter: str | None = None,
        *,
        label: str | None = None,
        priority: int | None = None,
    ) -> dict[str, Any]:
        """Submit a job: options of groups, and settings by their dotted names."""
        given = {"recipe": recipe, "overrides": dict(overrides), "submitter": submitter}
        return self._ask("/jobs", {**given, "label": label, "priority": priority})

    def compare(self, runs: Sequence[str], baseline: str | None = None, *, label: str | None = None) -> dict[str, Any]:
        """Submit a job that compares finished runs, by the names of their folders."""
        return self._ask("/compare", {"runs": list(runs), "baseline": baseline, "label": label})

    def jobs(self) -> list[dict[str, Any]]:
        """The last jobs, the newest first."""
        return self._ask("/jobs", part="jobs")

    def job(self, number: int) -> dict[str, Any]:
        """A job, with the last lines of its output."""
        return self._ask(f"/jobs/{number}")

    def watch(self, number: int) -> Iterator[dict[str, Any]]:
        """The job each time that it changes, until it has ended. Raises UnreachableError if the stream ends before."""
        state = None
        with self._open(f"/jobs/{number}/events") as lines:
            for line in lines:
                if line.startswith(b"data:") and line.endswith(b"\n"):  # or it was cut
                    job = self._read(line[5:])
                    state = job["state"]
                    yield job
        if state not in ENDED:
            raise UnreachableError(f"the service at {self.address} has ended before job {number}; watch it again")

    def wait(self, number: int, every: float = 2.0) -> dict[str, Any]:
        """The job once it has ended, however that was; a service that is started anew meanwhile is waited for."""
        while True:
            with suppress(UnreachableError):
                if (job := self.job(number))["state"] in ENDED:
                    return job
            time.sleep(every)

    def cancel(self, number: int) -> dict[str, Any]:
        """Cancel a job."""
        return self._ask(f"/jobs/{number}", method="DELETE")

    def files(self) -> list[dict[str, Any]]:
        """Your uploaded files, by name."""
        return self._ask("/files", part="files")

    def upload(self, path: str | Path, name: str | None = None) -> list[dict[str, Any]]:
        """Upload a text table, which settings such as data.path may then name; your files. name: another one there."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise MitigateError(f"{path} cannot be read ({error.strerror}); give the path of a file") from error
        return self._ask(f"/files/{quote(name or Path(path).name, safe='')}", content, "PUT", "files")

    def remove_file(self, name: str) -> list[dict[str, Any]]:
        """Remove an uploaded file of yours; those that are left."""
        return self._ask(f"/files/{quote(name, safe='')}", method="DELETE", part="files")

    def runs(self) -> list[dict[str, Any]]:
        """The finished runs, the latest first."""
        return self._ask("/runs", part="runs")

    def run(self, name: str) -> dict[str, Any]:
        """A finished run: settings, figures, files."""
        return self._ask(f"/runs/{quote(name, safe='')}")

    def differences(self, runs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The settings in which finished runs differ, each with its value in every run."""
        return self._ask(f"/differences?{urlencode([('run', name) for name in runs])}", part="settings")

    def file(self, name: str, path: str) -> bytes:
        """The content of a file of a run, such as "report.html"; run() lists them."""
        with self._open(f"/runs/{quote(name, safe='')}/files/{quote(path)}") as answer:
            return bytes(answer.read())

    def relations(self, runs: Sequence[str]) -> dict[str, list[str]]:
        """The relations and targets that all these runs, one or two, can be asked about."""
        return self._ask(f"/relations?{urlencode([('run', name) for name in runs])}")

    def generate(self, head: str, relation: str, runs: Sequence[str]) -> list[dict[str, Any]]:
        """The best tails of one run or two, with their labels."""
        return self._ask("/generate", {"head": head, "relation": relation, "runs": list(runs)}, part="answers")

    def label(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The labels of texts, and the words that drove them."""
        return self._ask("/label", {"texts": list(texts)}, part="texts")

    def download_model(self, name: str, path: str | Path) -> Path:
        """The model of a run as a zip file at `path`."""
        asked = f"/runs/{quote(name, safe='')}/model.zip"
        with self._open(asked) as content, replacing(Path(path), ELSEWHERE) as file:
            shutil.copyfileobj(content, file)
            if content.length:  # bytes that did not come, which reading in pieces does not tell
                raise IncompleteRead(b"", content.length)
        return Path(path)

    def _ask(self, path: str, body: Body = None, method: str | None = None, part: str | None = None) -> Any:
        """The answer, or a part of it."""
        with self._open(path, body, method) as answer:
            return self._read(answer.read(), part)

    def _read(self, content: bytes, part: str | None = None) -> Any:
        """The object that the service sent, or a part of it."""
        found = None
        with suppress(ValueError, RecursionError):
            found = json.loads(content)
        if not isinstance(found, dict) or (part is not None and part not in found):
            raise MitigateError(
                f"{self.address} answers, but not as the service does: {content[:60].decode(errors='replace')!r}; give "
                "the address that recipe=serve says"
            )
        return found if part is None else found[part]

    @contextmanager
    def _open(self, path: str, body: Body = None, method: str | None = None) -> Iterator[Any]:
        """The answer, to be read."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            is_file = isinstance(body, bytes)
            headers["content-type"] = "application/octet-stream" if is_file else "application/json"
        content = json.dumps(body).encode() if isinstance(body, Mapping) else body
        try:
            request = Request(self.address.rstrip("/") + path, content, headers, method=method)
            with direct_opener().open(request, timeout=self.patience) as answer:
                yield answer
        except HTTPError as error:
            raise MitigateError(self._fault(error, path)) from error
        except (HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            message = f"no service answers at {self.address} ({reason}); start one by recipe=serve"
            raise UnreachableError(message) from error

    def _fault(self, error: HTTPError, path: str) -> str:
        """The service's faults, or a sentence about a redirection or another answer."""
        with error, suppress(ValueError, KeyError, TypeError, HTTPException, OSError):  # a Location that is no address
            if error.code not in (301, 302, 303, 307, 308):
                return "; ".join(json.load(error)["faults"])
            to = urljoin(self.address.rstrip("/") + path, error.headers.get("location", "")).removesuffix(path)
            return (
                f"{self.address} sends on to {escaped(to[:200])}, which is not followed: the token is for one address "
                "alone; give the other one if the service is there"
            )
        return f"the service answered {error.code} {error.reason}"


class UnreachableError(MitigateError):
    """The error for an address where no service answers."""


class _Staying(HTTPRedirectHandler):
    """A handler that follows no redirection, which could take the token to another host."""

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> None:
        """Leave the answer to be raised as HTTPError."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


@cache
def direct_opener() -> OpenerDirector:
    """An opener of addresses that follows no redirection."""
    return build_opener(_Staying)


def _check_address(address: str) -> None:
    """Check the address of a service. Raises MitigateError for a text that cannot be one."""
    is_right = False
    with suppress(ValueError):  # brackets, a port, a name that is too long
        parts = urlsplit(address)
        host = (parts.hostname or "").encode("idna")
        is_right = parts.scheme in ("http", "https") and bool(host) and parts.port != 0 and parts.path.isascii()
    if not is_right or "@" in parts.netloc or NOT_IN_ADDRESSES.search(address):
        raise MitigateError(
            f"{address!r} is not the address of a service; allowed: http://HOST:PORT and https://HOST:PORT, as "
            "recipe=serve prints it, such as http://127.0.0.1:8765"
        )
