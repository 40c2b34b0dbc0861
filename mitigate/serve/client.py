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
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from mitigate.errors import MitigateError
from mitigate.files import replacing

ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Client:
    """The service at an address. token: that of the service; by default the variable MITIGATE_TOKEN. What is refused is
    raised as MitigateError, in the service's words."""

    address: str = "http://127.0.0.1:8765"
    token: str | None = field(default_factory=lambda: os.environ.get("MITIGATE_TOKEN"), repr=False)
    patience: float = 300.0  # seconds for an answer

    def submit(self, recipe: str, overrides: Mapping[str, Any], submitter: str | None = None) -> dict[str, Any]:
        """Submit a job: options of groups, and settings by their dotted names."""
        return self._ask("/jobs", {"recipe": recipe, "overrides": dict(overrides), "submitter": submitter})

    def compare(self, runs: Sequence[str], baseline: str | None = None) -> dict[str, Any]:
        """Submit a job that compares finished runs, by the names of their folders."""
        return self._ask("/compare", {"runs": list(runs), "baseline": baseline})

    def jobs(self) -> list[dict[str, Any]]:
        """The last jobs, the newest first."""
        return self._ask("/jobs")["jobs"]

    def job(self, number: int) -> dict[str, Any]:
        """A job, with the last lines of its output."""
        return self._ask(f"/jobs/{number}")

    def watch(self, number: int) -> Iterator[dict[str, Any]]:
        """The job each time that it changes, until it has ended. Raises UnreachableError if the stream ends before."""
        state = None
        with self._open(f"/jobs/{number}/events") as lines:
            for line in lines:
                if line.startswith(b"data:") and line.endswith(b"\n"):  # or it was cut
                    job = json.loads(line[5:])
                    state = job["state"]
                    yield job
        if state not in ENDED:
            raise UnreachableError(f"the service at {self.address} has ended before job {number}; watch it again")

    def wait(self, number: int, every: float = 2.0) -> dict[str, Any]:
        """The job once it has ended, however that was; a service that is started anew meanwhile is waited for."""
        while True:
            try:
                if (job := self.job(number))["state"] in ENDED:
                    return job
            except UnreachableError:
                pass
            time.sleep(every)

    def cancel(self, number: int) -> dict[str, Any]:
        """Cancel a job."""
        return self._ask(f"/jobs/{number}", method="DELETE")

    def runs(self) -> list[dict[str, Any]]:
        """The finished runs, the latest first."""
        return self._ask("/runs")["runs"]

    def run(self, name: str) -> dict[str, Any]:
        """A finished run: settings, figures, files."""
        return self._ask(f"/runs/{quote(name, safe='')}")

    def generate(self, head: str, relation: str, runs: Sequence[str]) -> list[dict[str, Any]]:
        """The best tails of one run or two, with their labels."""
        return self._ask("/generate", {"head": head, "relation": relation, "runs": list(runs)})["answers"]

    def label(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The labels of texts, and the words that drove them."""
        return self._ask("/label", {"texts": list(texts)})["texts"]

    def download_model(self, name: str, path: str | Path) -> Path:
        """The model of a run as a zip file at `path`."""
        with self._open(f"/runs/{quote(name, safe='')}/model.zip") as content, replacing(Path(path)) as file:
            shutil.copyfileobj(content, file)
            if content.length:  # bytes that did not come, which reading in pieces does not tell
                raise IncompleteRead(b"", content.length)
        return Path(path)

    def _ask(self, path: str, body: Mapping[str, Any] | None = None, method: str | None = None) -> Any:
        with self._open(path, body, method) as answer:
            return json.load(answer)

    @contextmanager
    def _open(self, path: str, body: Mapping[str, Any] | None = None, method: str | None = None) -> Iterator[Any]:
        """The answer, to be read."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["content-type"] = "application/json"
        try:
            request = Request(self.address.rstrip("/") + path, content, headers, method=method)
            with urlopen(request, timeout=self.patience) as answer:
                yield answer
        except HTTPError as error:
            raise MitigateError(_said(error)) from error
        except (HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise UnreachableError(
                f"no service answers at {self.address} ({reason}); start one by recipe=serve"
            ) from error


class UnreachableError(MitigateError):
    """No service answers."""


def _said(error: HTTPError) -> str:
    try:
        return "; ".join(json.load(error)["faults"])
    except (ValueError, KeyError, TypeError, HTTPException, OSError):
        return f"the service answered {error.code} {error.reason}"
