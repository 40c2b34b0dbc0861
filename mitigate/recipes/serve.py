"""recipe=serve: the service, until it is stopped. Its jobs leave run folders; the service itself leaves none."""

import fcntl
import os
import socket
import sys
from pathlib import Path

from mitigate.errors import MitigateError, check_installed
from mitigate.files import system_errors
from mitigate.recipes.config import Config
from mitigate.recipes.job import say
from mitigate.serve.queue import Queue
from mitigate.serve.rules import Rules
from mitigate.settings import CONF

LOCAL = ("127.0.0.1", "localhost", "::1")  # addresses that only this machine reaches


def run(config: Config) -> None:
    """Serve until Ctrl-C or a signal, or change the tokens of people. Raises MitigateError for settings that would let
    everybody in, for an address that is not available, and where another service has the folder."""
    settings, outputs = config.serve, Path(config.paths.outputs).resolve()
    place, host = outputs / ".serve", f"[{settings.address}]" if ":" in settings.address else settings.address
    check_installed("recipe=serve", "serve", "fastapi", "uvicorn")
    if config.dry_run:
        say(f"  would serve http://{host}:{settings.port}/, jobs in {outputs}")
        return
    with system_errors(place, "choose another place with paths.outputs=DIR"):
        place.mkdir(parents=True, exist_ok=True)
    queue = Queue(place / "queue.sqlite")
    if settings.revoke is not None:
        queue.revoke_token(settings.revoke)
        say(f"  {settings.revoke} has no token any more")
    if settings.token_for is not None:
        token = queue.create_token(settings.token_for)
        say(f"  token of {settings.token_for}, which is not shown again\n\n{token}\n")
    if settings.revoke is not None or settings.token_for is not None:
        return
    check(settings.address, bool(queue.people()))
    from mitigate.serve.app import Service, serve  # loads FastAPI

    given = {"paths.cache": str(Path(config.paths.cache).resolve()), "tracking.mode": config.tracking.mode}
    if config.data.root is not None:
        os.environ["MITIGATE_DATA"] = str(Path(config.data.root).resolve())  # which jobs inherit
    options = {"cpus-per-task": settings.threads, **settings.slurm}
    service = Service(
        queue=queue,
        rules=Rules(CONF, outputs, given, [Path(root).resolve() for root in settings.roots]),
        command=[sys.executable, "-m", "mitigate"],
        hosts=hosts_of(settings.address, settings.port, settings.hosts),
        slots=settings.slots,
        threads=settings.threads,
        sbatch=[f"{name}={value}" for name, value in options.items() if value] if settings.engine == "slurm" else None,
    )
    with (place / "service.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MitigateError(
                f"another service already has {outputs}; stop it, or choose another folder by paths.outputs=DIR"
            ) from error
        try:
            family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
            listening = socket.create_server((settings.address, settings.port), family=family, backlog=512)
        except OSError as error:
            raise MitigateError(
                f"serve.address={settings.address} serve.port={settings.port} is not available "
                f"({error.strerror or error}); choose another port or address"
            ) from error
        say(f"  service     http://{host}:{settings.port}/")
        say(f"  jobs        {outputs}, {settings.slots} at once, engine {settings.engine}")
        with listening:
            serve(service, listening)


def check(address: str, has_people: bool) -> None:
    """Raise MitigateError for an address that other machines reach where nobody has a token."""
    if not has_people and address not in LOCAL:
        raise MitigateError(
            f"serve.address={address} can be reached by others, and anybody could submit jobs; give each person a "
            "token by recipe=serve serve.token_for=NAME, or leave the address out: 127.0.0.1"
        )


def hosts_of(address: str, port: int, names: list[str]) -> list[str]:
    """The allowed values of a browser's Host header. names: of a proxy, with its port where that is not 80 or 443."""
    spelt = [f"[{name}]" if name.count(":") > 1 else name for name in (address, *LOCAL, *names)]  # IPv6 in brackets
    hosts = [name.lower() for name in dict.fromkeys(spelt)]
    return [*hosts, *(f"{name}:{port}" for name in hosts)]
