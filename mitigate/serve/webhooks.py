"""Messages to other programs when a job has ended: POST requests to the addresses of the configuration.

The queue notes which jobs were announced, so a service that was killed announces the rest when it is back; a message
may then come twice. A submission cannot name an address."""

import hashlib
import hmac
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from mitigate.serve import queue
from mitigate.serve.client import direct_opener
from mitigate.serve.job_table import Job

SIGNATURE = "x-mitigate-signature"
TRIES = 5  # of one message to one address
PATIENCE = 10.0  # seconds for an answer


@dataclass
class Webhooks:
    """Announces ended jobs. shown: the content of a message about a job; secret: signs messages by
    HMAC with SHA-256, None: they have no signature."""

    path: Path
    addresses: Sequence[str]
    shown: Callable[[Job], dict[str, Any]]
    secret: str | None = field(default=None, repr=False)
    every: float = 2.0
    _failures: dict[tuple[int, str], int] = field(default_factory=dict)
    _sent: set[tuple[int, str]] = field(default_factory=set)

    def step(self) -> None:
        """Send the messages that are due; one that fails is sent again at the next step, TRIES times at most."""
        with queue.opened(self.path) as table:
            for job in queue.unannounced(table):
                content = json.dumps({"event": "job ended", "job": self.shown(job)}).encode()
                settled = [self._is_settled(job.id, address, content) for address in self.addresses]
                if all(settled):
                    queue.announced(table, job.id)

    def _is_settled(self, job: int, address: str, content: bytes) -> bool:
        """Send a message, unless it was sent; return whether it was, or was given up."""
        key = (job, address)
        if key in self._sent:
            return True
        try:
            self._send(address, content)
        except (URLError, OSError, ValueError) as error:
            self._failures[key] = self._failures.get(key, 0) + 1
            if self._failures[key] < TRIES:
                return False
            sys.stderr.write(f"mitigate: {address} was not informed of job {job}, {TRIES} times: {error}\n")
        self._sent.add(key)
        return True

    def _send(self, address: str, content: bytes) -> None:
        headers = {"content-type": "application/json"}
        if self.secret is not None:
            headers[SIGNATURE] = f"sha256={hmac.new(self.secret.encode(), content, hashlib.sha256).hexdigest()}"
        with direct_opener().open(Request(address, content, headers), timeout=PATIENCE) as answer:
            answer.read(1)
