"""The application on a socket, until it is stopped."""

import socket

import uvicorn
from starlette.types import ASGIApp

STOP = 5  # seconds that requests have to end once the service is stopped
MOST_CONNECTIONS = 500


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C or a signal. Streams of events are cut after STOP seconds."""
    how = uvicorn.Config(
        app,
        timeout_graceful_shutdown=STOP,
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="warning",
    )
    uvicorn.Server(how).run([listening])
