"""The sender of a request, by the common token, a person's token, a browser's cookie, or the header of a proxy that has
asked for a password itself."""

import hmac
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from mitigate.serve.people import NAME, Limits, People, Person, session_of

COOKIE = "mitigate_session"


@dataclass(frozen=True)
class Caller:
    """The sender of a request. name: None for the common token, and where a service has no token at all; such a caller
    may do everything."""

    name: str | None = None
    is_admin: bool = True
    priority: int | None = None  # highest of a job; None: any
    limits: Limits = field(default_factory=Limits)

    def may_change(self, owner: str | None) -> bool:
        """Return whether this caller may cancel jobs, and remove files, of an owner."""
        return self.is_admin or (owner is not None and owner == self.name)


@dataclass(frozen=True)
class Access:
    """The ways to show who sends a request. token: the common one; limits: of people without their own; user_header:
    the header in which a proxy names the user; proxies: the addresses from which that header is read."""

    people: People
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    user_header: str | None = None
    proxies: Collection[str] = ()

    @property
    def is_open(self) -> bool:
        """Return whether nothing has to be shown."""
        return self.token is None and self.user_header is None and not self.people.are_named

    def caller(self, headers: Headers, address: str | None) -> Caller | None:
        """The sender of a request; None for one that is not let in. Raises MitigateError for a damaged file of
        people."""
        if self.user_header is not None and address in self.proxies and self.user_header in headers:
            return self._of_proxy(headers.getlist(self.user_header))
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (found := self.of_token(given.strip())):
            return found
        for cookie in _cookies(headers.get("cookie", "")):
            if self.token is not None and same(cookie, session_of(self.token)):
                return Caller()
            if person := self.people.by_session(cookie):
                return self._of(person)
        return Caller() if self.is_open else None

    def of_token(self, token: str) -> Caller | None:
        """The sender who shows a token."""
        if self.token is not None and same(token, self.token):
            return Caller()
        person = self.people.by_token(token)
        return self._of(person) if person else None

    def limits_of(self, owner: str | None) -> Limits:
        """The limits of an owner of jobs."""
        if owner is None:
            return Limits()
        person = self.people.by_name(owner)
        return (person.limits if person else Limits()).over(self.limits)

    def _of(self, person: Person) -> Caller:
        return Caller(person.name, person.is_admin, person.priority, person.limits.over(self.limits))

    def _of_proxy(self, names: list[str]) -> Caller | None:
        """The user that a proxy names: with the rights of the person of that name, if there is one."""
        if len(names) != 1 or not NAME.fullmatch(names[0]):
            return None
        person = self.people.by_name(names[0])
        return self._of(person) if person else Caller(names[0], is_admin=False, priority=0, limits=self.limits)


def same(one: str, other: str) -> bool:
    """Return whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _cookies(header: str) -> list[str]:
    """The values of our cookie. A browser sends those of all ports of a host, so other programs' stand beside it, in
    forms that http.cookies gives up at."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]
