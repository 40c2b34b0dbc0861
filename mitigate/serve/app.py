"""The HTTP application: its routes behind the guard, and the threads that work while it runs.

Made by a recipe, which knows the configuration."""

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from mitigate import __version__
from mitigate.serve import job_routes, people_routes, run_routes
from mitigate.serve.batching import Batcher
from mitigate.serve.dispatcher import Dispatcher
from mitigate.serve.engines.local import Local
from mitigate.serve.job_table import Job
from mitigate.serve.refusals import FAULTS, add_refusals
from mitigate.serve.request_checks import Guard
from mitigate.serve.service import Service
from mitigate.serve.webhooks import Webhooks

MOST_THREADS = 4  # that answer questions; each batch takes 100 MiB while it is searched
ROUTERS = (job_routes.router, people_routes.router, people_routes.open_router, run_routes.router)
TOKEN = HTTPBearer(
    scheme_name="token",
    description="the token of a person (serve.token_for) or the common one; a service without tokens needs none",
    auto_error=False,  # the guard has checked it
)


def make_app(service: Service, *, starts_jobs: bool = True) -> Guard:
    """The application, behind its guard. starts_jobs: whether it has a dispatcher."""

    def ended(job: Job) -> dict[str, Any]:
        return service.shown(job).model_dump(mode="json")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(threads, "models") as pool:
            how: Any = {"executor": pool, "most": service.batch, "threads": threads}
            app.state.generate = Batcher(service.models.generate, **how)
            app.state.label = Batcher(service.models.label, **how)
            app.state.streams = 0
            service.uploads.clear()
            engine = service.engine or Local(service.path)
            dispatcher = Dispatcher(service.path, service.slots, engine, most_running=service.most_running)
            webhooks = Webhooks(service.path, service.webhooks, ended, service.webhook_secret)
            stopped = threading.Event()
            if starts_jobs:
                _start("dispatcher", dispatcher.step, engine.every, "no job can be started now", stopped)
            if starts_jobs and service.webhooks:
                _start("webhooks", webhooks.step, webhooks.every, "ended jobs cannot be announced now", stopped)
            tending = asyncio.create_task(_tend(service, pool))
            async with tools.run() if tools else nullcontext():
                yield
            tending.cancel()
            stopped.set()

    app = FastAPI(
        title="mitigate",
        version=__version__,
        description="Jobs that mitigate and measure harms, their results, and questions to generators and scorers.",
        lifespan=life,
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
        responses=FAULTS,
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router, dependencies=[] if router is people_routes.open_router else [Depends(TOKEN)])
    add_refusals(app, [*app.routes, *(route for router in ROUTERS for route in router.routes)])
    tools = None
    if service.mcp:
        from mitigate.serve import mcp_tools  # a package that only this needs

        tools = mcp_tools.mount(app)
    return Guard(app, set(map(str.lower, service.hosts)), service.access, service.largest_upload)


def _start(name: str, *loop: Any) -> None:
    threading.Thread(target=repeat, args=loop, name=name, daemon=True).start()


def repeat(step: Callable[[], object], every: float, fault: str, stopped: threading.Event) -> None:
    """Step until `stopped` is set. A step that fails is reported and tried again after ten times as long."""
    while not stopped.wait(every):
        try:
            step()
        except Exception as error:  # a full disk, no more processes: the service still answers
            sys.stderr.write(f"mitigate: {fault}: {error}\n")
            stopped.wait(10 * every)


async def _tend(service: Service, pool: ThreadPoolExecutor) -> None:
    """Release models that nobody uses, and stop jobs of people who are over their disk limit."""
    while True:
        try:
            await run_in_threadpool(service.stop_over_disk)
        except sqlite3.OperationalError as error:
            sys.stderr.write(f"mitigate: disk limits cannot be checked now: {error}\n")
        await asyncio.sleep(min(10.0, service.models.idle))
        await asyncio.get_running_loop().run_in_executor(pool, service.models.release)
