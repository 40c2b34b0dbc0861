"""Work in several processes of this machine, none of which outlives the one that started it."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from mitigate.errors import MitigateError

Send = Callable[[Any], None]


class _Failure(NamedTuple):
    """The last message of a process that failed."""

    error: Exception


def share_out(work: Callable[..., None], shares: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Run work(*share, send) in a process of its own for each share, and yield their messages in the order of arrival.

    The first failure ends all of them and is raised here: a MitigateError unchanged, any other error with its
    traceback, and a killed process as a MitigateError. They also end with Ctrl-C, with the generator, and with this
    process however it ends. Processes are spawned: forked ones could use neither CUDA nor torch's threads."""
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # else it would start with the first process, and no longer ignore Ctrl-C
    started: dict[Connection, BaseProcess] = {}
    try:
        for share in shares:
            here, there = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_run, args=(work, share, there), daemon=True)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a terminal sends Ctrl-C to all of them
            try:
                process.start()  # which ignores it: its parent ends it
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            there.close()
            started[here] = process
        yield from _messages(dict(started))
    finally:
        for process in started.values():
            process.kill()
            process.join()


def signal_name(number: int) -> str:
    """The name of a signal in a message: "SIGKILL", or "signal 35" for one without a name, as most real-time signals
    are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _messages(running: dict[Connection, BaseProcess]) -> Iterator[Any]:
    """Yield the messages until all processes have ended."""
    while running:
        for connection in wait(list(running)):
            assert isinstance(connection, Connection)
            try:
                message = connection.recv()
            except EOFError:
                process = running.pop(connection)
                process.join()
                if code := process.exitcode:
                    how = f"killed by {signal_name(-code)}" if code < 0 else f"ended with status {code}"
                    raise MitigateError(
                        f"one of the processes was {how}, perhaps because memory ran out: use fewer processes or "
                        "smaller batches. Finished stages are saved; run the same command to resume."
                    ) from None
                continue
            if isinstance(message, _Failure):
                raise message.error
            yield message


def _run(work: Callable[..., None], share: tuple[Any, ...], connection: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*share, connection.send)
    except MitigateError as error:  # which needs no traceback
        connection.send(_Failure(error))
    except Exception:
        connection.send(_Failure(RuntimeError(f"in another process:\n{traceback.format_exc()}")))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
