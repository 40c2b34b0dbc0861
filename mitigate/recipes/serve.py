"""recipe=serve: the service, until it is stopped. Its jobs leave run folders; the service itself leaves none."""

import errno
import fcntl
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from mitigate.errors import MitigateError, check_installed
from mitigate.recipes.job import Config, say
from mitigate.recipes.scorers import Scorers

SHORTEST_TOKEN = 16  # characters


def run(config: Config) -> None:
    """Serve until Ctrl-C or a signal, or change the tokens of people. Raises MitigateError for settings that would let
    everybody in, for an address that is not available, and where another service has the folder."""
    if config.serve.token_for is not None or config.serve.revoke is not None:
        change_tokens(config)
        return
    check(config)
    if config.dry_run:
        say(f"  would serve {address_of(config)}, jobs in {config.paths.outputs}")
        return
    from mitigate.serve import queue
    from mitigate.serve.app import make_app, serve  # loads FastAPI

    outputs = Path(config.paths.outputs).resolve()
    with _alone(outputs / ".serve"), _listening(config) as listening:
        service = service_of(config, outputs)
        with queue.opened(service.path):  # refused here if its file is damaged, before anybody submits
            pass
        say(f"  service     {address_of(config)}")
        say(f"  jobs        {outputs}, {config.serve.slots} at once, engine {config.serve.engine}")
        serve(make_app(service), listening)


def change_tokens(config: Config) -> None:
    """Revoke the token of serve.revoke, and create one for serve.token_for. Raises MitigateError for a name that is
    taken, unknown or not allowed."""
    from mitigate.serve.people import People, record

    revoked, name, place = config.serve.revoke, config.serve.token_for, Path(config.paths.outputs).resolve() / ".serve"
    people = People(place)
    if config.dry_run:
        say(f"  would change {people.path}")
        return
    if revoked is not None:
        people.revoke(revoked)
        record(place, None, "revoke token", person=revoked)
        say(f"  {revoked} has no token any more")
    if name is not None:
        token = people.create(name)
        record(place, None, "create token", person=name)
        say(f"  token of {name}, which is not shown again\n\n{token}\n")


def check(config: Config) -> None:
    """Raise MitigateError where packages are missing, and for an address without a token."""
    check_installed("recipe=serve", "serve", "fastapi", "uvicorn")
    from mitigate.serve.people import People

    token, people = config.serve.token, People(Path(config.paths.outputs) / ".serve")
    if token is None and not people.are_named and not _is_loopback(config.serve.address):
        raise MitigateError(
            f"serve.address={config.serve.address} can be reached by others, and anybody could submit jobs; give each "
            "person a token by recipe=serve serve.token_for=NAME, or set a common one in the environment, "
            "MITIGATE_TOKEN=..., or leave the address out: 127.0.0.1"
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise MitigateError(
            f"the token (serve.token or MITIGATE_TOKEN) has {len(token)} characters; give {SHORTEST_TOKEN} or more, "
            "such as those of: python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    if absent := [root for root in config.serve.roots if not Path(root).is_dir()]:
        raise MitigateError(f"serve.roots: {' and '.join(absent)}: no such folder")


def service_of(config: Config, outputs: Path) -> Any:
    """The settings and parts of the application. Raises MitigateError where the packages of SLURM, or SLURM itself, are
    absent."""
    from mitigate.serve.allowed_jobs import Rules
    from mitigate.serve.dispatcher import Local
    from mitigate.serve.service import Service
    from mitigate.serve.slurm import Remote, Slurm

    settings = config.serve
    (conf,) = [source.path for source in HydraConfig.get().runtime.config_sources if source.provider == "main"]
    given = {
        "paths.outputs": str(outputs),
        "paths.cache": str(Path(config.paths.cache).resolve()),
        "tracking.mode": config.tracking.mode,
    }
    if config.data.root is not None:
        given["data.root"] = str(Path(config.data.root).resolve())
    service = Service(
        rules=Rules(Path(conf), given, [Path(root).resolve() for root in settings.roots], settings.models),
        outputs=outputs,
        make_scorers=lambda: Scorers(config.score).labelling,
        slots=settings.slots,
        token=settings.token,
        hosts=hosts_of(settings.address, settings.port, settings.hosts),
    )
    if settings.engine == "local":
        service.engine = Local(service.path, settings.threads)
    else:
        slurm = Slurm(service.place / "slurm", threads=settings.threads, **settings.slurm)
        service.engine = Remote(service.path, slurm)
    return service


def hosts_of(address: str, port: int, names: list[str]) -> list[str]:
    """The allowed values of a browser's Host header."""
    here = ["127.0.0.1", "localhost", "[::1]"] if _is_loopback(address) or _is_any(address) else []
    own = [] if _is_any(address) else [f"[{address}]" if ":" in address else address]
    all_names = dict.fromkeys([*own, *here, *names])
    return [f"{name}:{port}" for name in all_names] + ([*names, *(all_names if port in (80, 443) else ())])


def address_of(config: Config) -> str:
    """The address for a browser."""
    address = config.serve.address
    host = "127.0.0.1" if _is_any(address) else f"[{address}]" if ":" in address else address
    return f"http://{host}:{config.serve.port}/"


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Hold the folder for this service. Raises MitigateError where another service has it, or it cannot be written
    to."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        opened = (place / "service.lock").open("w")
    except OSError as error:
        raise MitigateError(
            f"cannot write to {place} ({error.strerror}); choose another place with paths.outputs=DIR"
        ) from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MitigateError(
                f"another service already has {place.parent}; stop it, or choose another folder by paths.outputs=DIR"
            ) from error
        yield


@contextmanager
def _listening(config: Config) -> Iterator[socket.socket]:
    address, port = config.serve.address, config.serve.port
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        made = socket.create_server((address, port), family=family, backlog=512)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error  # below 0: of a name
        other = "port" if error.errno == errno.EADDRINUSE else "port or address"
        raise MitigateError(
            f"serve.address={address} serve.port={port} is not available ({reason}); choose another {other}"
        ) from error
    with made:
        yield made


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _is_any(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False
