"""People: the named tokens of a service, in a file that holds hashes of them; who sends a request, by such a token
or the common one, and the append-only log of actions.

The file is read again whenever it changes, so a token that was created or revoked counts at the next request."""

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mitigate.errors import MitigateError, did_you_mean
from mitigate.runs.files import replacing

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,49}")
FILE = "people.json"
LOG = "actions.jsonl"
COOKIE = "mitigate_token"  # which the page sets


@dataclass(frozen=True)
class Person:
    """A person with a token. token: its SHA-256."""

    name: str
    token: str = field(repr=False)
    created: float
    is_admin: bool = False


@dataclass(frozen=True)
class Caller:
    """The sender of a request. name: None for the common token, and where a service has no token at all; such a caller
    may do everything."""

    name: str | None = None
    is_admin: bool = True

    def may_change(self, owner: str | None) -> bool:
        """Return whether this caller may cancel jobs of an owner."""
        return self.is_admin or (owner is not None and owner == self.name)


class People:
    """The people of the service whose own files are in `place`. common: the token of everybody."""

    def __init__(self, place: Path, common: str | None = None) -> None:
        self.path = place / FILE
        self.common = None if common is None else digest(common)
        self._read: tuple[Any, list[Person]] = (None, [])
        self._were_named = False

    @property
    def are_named(self) -> bool:
        """Return whether a token was ever created: from then on all requests need one, also when all are revoked, or
        the file is moved away from a service that runs."""
        self._were_named = self._were_named or self.path.exists()
        return self._were_named

    @property
    def is_open(self) -> bool:
        """Return whether no token has to be shown."""
        return self.common is None and not self.are_named

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """The sender of a request; None for one that is not let in. Raises MitigateError for a damaged file of
        people."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        tokens = [given.strip()] if scheme.lower() == "bearer" else _cookies(headers.get("cookie", ""))
        for token in map(digest, tokens):
            if self.common is not None and hmac.compare_digest(token, self.common):
                return Caller()
            for person in self.all():
                if hmac.compare_digest(token, person.token):
                    return Caller(person.name, person.is_admin)
        return Caller() if self.is_open else None

    def all(self) -> list[Person]:
        """All people by name. Raises MitigateError for a damaged file."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return []
        self._were_named = True
        version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if self._read[0] != version:
            self._read = (version, self._people())
        return self._read[1]

    def create(self, name: str, *, is_admin: bool = False) -> str:
        """Add a person and return the new token, which is stored nowhere. Raises MitigateError for a name that is taken
        or not allowed."""
        if not NAME.fullmatch(name):
            raise MitigateError(
                f"{name!r} cannot be the name of a person; allowed: 50 letters, digits, dots, dashes, underscores, @ "
                "at most, a letter or digit first"
            )
        token = f"mitigate_{secrets.token_urlsafe(32)}"
        with self._changing() as people:
            if any(person.name == name for person in people):
                raise MitigateError(f"{name} has a token already; revoke it first: serve.revoke={name}")
            people.append(Person(name, digest(token), time.time(), is_admin))
        return token

    def revoke(self, name: str) -> None:
        """Remove a person's token. Raises MitigateError for an unknown name."""
        with self._changing() as people:
            kept = [person for person in people if person.name != name]
            if len(kept) == len(people):
                names = [person.name for person in people]
                raise MitigateError(
                    f"{name} has no token; people with one: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
                )
            people[:] = kept

    @contextmanager
    def _changing(self) -> Iterator[list[Person]]:
        """The people, written back at the end; one process at a time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            people = list(self.all())
            yield people
            people.sort(key=lambda person: person.name)
            with replacing(self.path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps({"people": [asdict(person) for person in people]}, indent=1).encode())

    def _people(self) -> list[Person]:
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8"))["people"]
            return [Person(*(row[name] for name in ("name", "token", "created", "is_admin"))) for row in rows]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise MitigateError(
                f"{self.path} cannot be read ({type(error).__name__}), so nobody is let in; restore it, or move it "
                "away and create the tokens again"
            ) from error


def digest(secret: str) -> str:
    """The SHA-256 of a secret. It is enough for 256 random bits: there is nothing to guess by a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _cookies(header: str) -> list[str]:
    """The values of our cookie. A browser sends those of all ports of a host, so other programs' stand beside it, in
    forms that http.cookies gives up at."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return [unquote(value) for name, _, value in pairs if name == COOKIE]


def record(place: Path, who: str | None, action: str, **facts: Any) -> None:
    """Append a line to the log of actions: who did what, and when. A disk that is full does not undo the action."""
    row = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "who": who, "action": action, **facts}
    try:
        place.mkdir(parents=True, exist_ok=True)
        file = os.open(place / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, (json.dumps(row) + "\n").encode())
        finally:
            os.close(file)
    except OSError as error:
        sys.stderr.write(f"mitigate: the log of actions cannot be written: {error}\n")
