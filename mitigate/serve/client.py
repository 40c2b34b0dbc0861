"""A client of the service in a few functions, without packages beyond Python's own.

from mitigate.serve.client import Client
client = Client("http://127.0.0.1:8765")
job = client.wait(client.submit("mitigate", {"policy": "both", "seed": 1})["id"])
client.generate("lawyer", "CapableOf", [job["run"]])
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mitigate.errors import MitigateError
from mitigate.runs.files import replacing

Body = Mapping[str, Any] | bytes | None  # an object, or the content of a file
ENDED = ("done", "failed", "cancelled")
ELSEWHERE = "free some space, or give another path"  # where a model cannot be written


@dataclass(frozen=True)
class Client:
    """The service at an address. token: your own, or the common one; by default the variable MITIGATE_TOKEN. A refusal
    raises MitigateError in the service's words."""

    address: str = "http://127.0.0.1:8765"
    token: str | None = field(default_factory=lambda: os.environ.get("MITIGATE_TOKEN"), repr=False)
    patience: float = 300.0  # seconds for an answer

    def options(self) -> dict[str, Any]:
        """Your name, and the allowed submissions: recipes, options of groups, settings."""
        return self._ask("/options")

    def submit(self, recipe: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Submit a job: options of groups, and settings by their dotted names."""
        return self._ask("/jobs", {"recipe": recipe, "overrides": dict(overrides)})

    def compare(self, runs: Sequence[str], baseline: str | None = None) -> dict[str, Any]:
        """Submit a job that compares finished runs, by the names of their folders."""
        return self._ask("/compare", {"runs": list(runs), "baseline": baseline})

    def jobs(self) -> list[dict[str, Any]]:
        """The last jobs, the newest first."""
        return self._ask("/jobs", part="jobs")

    def job(self, number: int) -> dict[str, Any]:
        """A job, with the last lines of its output."""
        return self._ask(f"/jobs/{number}")

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

    def file(self, name: str, path: str) -> bytes:
        """The content of a file of a run, such as "report.html"; run() lists them."""
        with self._open(f"/runs/{quote(name, safe='')}/files/{quote(path)}") as answer:
            return bytes(answer.read())

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
        return Path(path)

    def _ask(self, path: str, body: Body = None, method: str | None = None, part: str | None = None) -> Any:
        """The answer, or a part of it."""
        with self._open(path, body, method) as answer:
            content, found = answer.read(), None
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
        if not self.address.startswith(("http://", "https://")):
            raise MitigateError(
                f"{self.address!r} is not the address of a service; allowed: http://HOST:PORT and https"
            )
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            is_file = isinstance(body, bytes)
            headers["content-type"] = "application/octet-stream" if is_file else "application/json"
        content = json.dumps(body).encode() if isinstance(body, Mapping) else body
        try:
            request = Request(self.address.rstrip("/") + path, content, headers, method=method)
            with build_opener(_Staying).open(request, timeout=self.patience) as answer:
                yield answer
        except HTTPError as error:
            raise MitigateError(_fault(error)) from error
        except (HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            message = f"no service answers at {self.address} ({reason}); start one by recipe=serve"
            raise UnreachableError(message) from error


class UnreachableError(MitigateError):
    """The error for an address where no service answers."""


class _Staying(HTTPRedirectHandler):
    """A handler that follows no redirection, which could take the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the answer to be raised as HTTPError."""


def _fault(error: HTTPError) -> str:
    """The service's faults, or a sentence about another answer."""
    with error, suppress(ValueError, KeyError, TypeError, HTTPException, OSError):
        return "; ".join(json.load(error)["faults"])
    return f"the service answered {error.code} {error.reason}"
