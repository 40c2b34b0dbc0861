"""The application on a socket, until it is stopped."""

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

STOP = 5  # seconds that requests have to end once the service is stopped
MOST_CONNECTIONS = 500
LONGEST_HEADERS = 20.0  # seconds for the headers of a request


class Prompt(H11Protocol):
    """A connection that is closed when no request has begun on it for LONGEST_HEADERS: uvicorn itself waits for ever
    for headers that come letter by letter."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request is waited for."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close without waiting."""
        super().connection_lost(exc)
        if self._patience is not None:
            self._patience.cancel()

    def _wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(LONGEST_HEADERS, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def configured(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """The settings of the server of the application. Streams of events are cut after STOP seconds."""
    how: dict[str, Any] = {
        **{"http": Prompt, "ws": "none", "timeout_graceful_shutdown": STOP, "limit_concurrency": MOST_CONNECTIONS},
        **{"proxy_headers": False, "server_header": False, "access_log": False, "log_level": "warning"},
    }
    return uvicorn.Config(app, **(how | more))


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C or a signal."""
    uvicorn.Server(configured(app)).run([listening])
