"""The HTTP application: its routes behind the guard, and the thread that starts jobs while it runs.

Made by a recipe, which knows the configuration."""

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from mitigate.package_data import VERSION
from mitigate.serve.dispatcher import Dispatcher, repeat
from mitigate.serve.request_checks import Guard, add_refusals
from mitigate.serve.routes import router
from mitigate.serve.service import Service

STOP = 5  # seconds that requests have to end once the service is stopped
MOST_CONNECTIONS = 500


def make_app(service: Service) -> Guard:
    """The application, behind its guard."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.uploads.clear()
        stopped = threading.Event()
        if engine := service.engine:
            step = Dispatcher(service.path, service.slots, engine).step
            threading.Thread(target=repeat, args=(step, engine.every, stopped), name="dispatcher", daemon=True).start()
        yield
        stopped.set()

    app = FastAPI(title="mitigate", version=VERSION, lifespan=life, docs_url=None, redoc_url=None)
    app.state.service = service
    app.include_router(router)
    add_refusals(app)
    return Guard(app, set(map(str.lower, service.hosts)), service.people, service.largest_upload)


def configured(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """The settings of the server of the application."""
    how: dict[str, Any] = {
        **{"ws": "none", "timeout_graceful_shutdown": STOP, "limit_concurrency": MOST_CONNECTIONS},
        **{"proxy_headers": False, "server_header": False, "access_log": False, "log_level": "warning"},
    }
    return uvicorn.Config(app, **(how | more))


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C or a signal."""
    uvicorn.Server(configured(app)).run([listening])
