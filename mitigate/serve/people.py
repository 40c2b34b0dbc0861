"""People: the named tokens of a service with each one's limits, in a file that holds hashes of tokens only, and the
append-only log of actions.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError, did_you_mean
from mitigate.runs.files import replacing

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,49}")
FILE = "people.json"
LOG = "actions.jsonl"
MOST_PRIORITY = 10


@dataclass(frozen=True)
class Limits:
    """The limits of one person; None: no limit. disk: GiB of run folders and uploaded files."""

    running: int | None = None
    queued: int | None = None
    disk: float | None = None

    def over(self, default: "Limits") -> "Limits":
        """These limits, with the default where there is none."""
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return Limits(**(asdict(default) | own))


@dataclass(frozen=True)
class Person:
    """A person with a token. token, session: SHA-256 of the token and of the cookie that stands for it; priority: the
    highest of this person's jobs."""

    name: str
    token: str = field(repr=False)
    session: str = field(repr=False)
    created: float
    is_admin: bool = False
    priority: int = 0
    limits: Limits = field(default_factory=Limits)


class People:
    """The people of the service whose own files are in `place`."""

    def __init__(self, place: Path) -> None:
        self.path = place / FILE
        self._read: tuple[Any, list[Person]] = (None, [])
        self._were_named = False

    @property
    def are_named(self) -> bool:
        """Return whether a token was ever created: from then on all requests need one, also when all are revoked, or
        the file is moved away from a service that runs."""
        self._were_named = self._were_named or self.path.exists()
        return self._were_named

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

    def by_token(self, token: str) -> Person | None:
        """The person with this token."""
        return self._by("token", token)

    def by_session(self, cookie: str) -> Person | None:
        """The person with this cookie."""
        return self._by("session", cookie)

    def by_name(self, name: str) -> Person | None:
        """The person of this name."""
        return next((person for person in self.all() if person.name == name), None)

    def create(self, name: str, *, is_admin: bool = False, priority: int = 0, limits: Limits | None = None) -> str:
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
            digests = (digest(token), digest(session_of(token)))
            people.append(Person(name, *digests, time.time(), is_admin, priority, limits or Limits()))
        return token

    def revoke(self, name: str) -> None:
        """Remove a person's token, with the cookies that stand for it. Raises MitigateError for an unknown name."""
        with self._changing() as people:
            kept = [person for person in people if person.name != name]
            if len(kept) == len(people):
                names = [person.name for person in people]
                raise MitigateError(
                    f"{name} has no token; people with one: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
                )
            people[:] = kept

    def _by(self, part: str, secret: str) -> Person | None:
        given, found = digest(secret), None
        for person in self.all():  # all of them, so that the time says nothing of the place
            if hmac.compare_digest(given, getattr(person, part)):
                found = person
        return found

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
            return [Person(**(row | {"limits": Limits(**row["limits"])})) for row in rows]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise MitigateError(
                f"{self.path} cannot be read ({type(error).__name__}), so nobody is let in; restore it, or move it "
                "away and create the tokens again"
            ) from error


def digest(secret: str) -> str:
    """The SHA-256 of a secret. It is enough for 256 random bits: there is nothing to guess by a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def session_of(token: str) -> str:
    """The value that a browser keeps in place of the token."""
    return hmac.new(token.encode("utf-8", "surrogatepass"), b"mitigate session", hashlib.sha256).hexdigest()


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


def size_of(folders: Sequence[Path]) -> int:
    """The bytes of all files below these folders; links are not followed."""
    total = 0
    for folder in folders:
        for path, _, names in os.walk(folder):
            for name in names:
                try:
                    total += (Path(path) / name).lstat().st_size
                except OSError:
                    continue  # removed meanwhile
    return total
