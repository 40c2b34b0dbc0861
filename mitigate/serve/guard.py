"""Checks before every request: its Host and its Origin are the service's, its token is right, and its body is small and
arrives soon. And the headers that every answer has.

A page elsewhere cannot reach the service: a browser says where a request comes from (Origin, Sec-Fetch-Site), and a
name that was made to point here is not among the Hosts."""

import asyncio
import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "mitigate_session"
OPEN = ("/", "/session")  # without a token: the page, which holds nothing, and where it hands one over
LARGEST_BODY = 1 << 20  # bytes
LONGEST_WAIT = 20.0  # seconds for a body
STRICT = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass
class Guard:
    """An ASGI application before another. hosts: as browsers name the service, such as "127.0.0.1:8765"; token: what
    requests must show; None: nothing."""

    app: ASGIApp
    hosts: Collection[str]
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass permitted requests on, and refuse the others."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":  # a web socket: there is none
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self._refused(scope["path"], Headers(scope=scope)):
            await JSONResponse({"faults": [refused[1]]}, refused[0])(scope, receive, _with_headers(send))
        else:
            await self.app(scope, _limited(receive, Headers(scope=scope)), _with_headers(send))

    def _refused(self, path: str, headers: Headers) -> tuple[int, str] | None:
        """The status and the sentence that refuse a request; None for one that may pass."""
        if headers.get("host", "").lower() not in self.hosts:
            return 421, "this service is not called so: the Host header is none of its names (serve.hosts)"
        origin = headers.get("origin")
        ours = {f"{scheme}://{host}" for scheme in ("http", "https") for host in self.hosts}
        is_from_elsewhere = headers.get("sec-fetch-site") == "cross-site" and path != "/"  # which a link may lead to
        if (origin is not None and origin.lower() not in ours) or is_from_elsewhere:
            return 403, "a page of another origin may not ask this service"
        if path not in OPEN and not self.is_known(headers):
            return 401, "a token is needed: Authorization: Bearer TOKEN"
        return None

    def is_known(self, headers: Headers) -> bool:
        """Return whether a request has the token, or the cookie that stands for it; True for all if there is no
        token."""
        if self.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same(given.strip(), self.token):
            return True
        return any(same(value, session_of(self.token)) for value in _sessions(headers.get("cookie", "")))


def session_of(token: str) -> str:
    """The value that a browser keeps in place of the token."""
    return hmac.new(token.encode(), b"mitigate session", hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Return whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _sessions(header: str) -> list[str]:
    """The values of our cookie. A browser sends those of all ports of a host, so other programs' stand beside it, in
    forms that http.cookies gives up at."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]


def _limited(receive: Receive, headers: Headers) -> Receive:
    """The body. Reading it raises HTTPException, which the application answers, when it is too long or too slow; what
    comes after it (that the client has gone) may take its time."""
    said = headers.get("content-length", "0")
    size, whole, end = 0, False, asyncio.get_running_loop().time() + LONGEST_WAIT

    async def limited() -> Message:
        nonlocal size, whole
        if whole:
            return await receive()
        if said.isdigit() and int(said[:20]) > LARGEST_BODY:
            raise HTTPException(413, f"the body is too long; allowed: {LARGEST_BODY:,} bytes")
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, f"the body did not come within {LONGEST_WAIT:.0f} seconds") from error
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > LARGEST_BODY:
            raise HTTPException(413, f"the body is too long; allowed: {LARGEST_BODY:,} bytes")
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {**HEADERS, "content-security-policy": STRICT}.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
