"""Shares in processes of their own: what they send, how they fail, and that none is left over."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mitigate.child_processes import Send, share_out
from mitigate.errors import MitigateError

ROOT = Path(__file__).parents[1]


def double(number: int, send: Send) -> None:
    send(("pid", os.getpid()))
    send(("twice", 2 * number))


def fail(number: int, send: Send) -> None:
    if number == 1:
        raise MitigateError("one is one too many")
    send("sleeping")
    time.sleep(60)


def stumble(send: Send) -> None:
    raise ZeroDivisionError("by hand")


def die(number: int, send: Send) -> None:
    os.kill(os.getpid(), number)


def test_each_share_has_a_process_and_a_fault_of_one_ends_all() -> None:
    said = list(share_out(double, [(1,), (2,)]))
    assert sorted(number for what, number in said if what == "twice") == [2, 4]
    pids = {pid for what, pid in said if what == "pid"}
    assert len(pids | {os.getpid()}) == 3
    assert not any(alive(pid) for pid in pids)
    with pytest.raises(MitigateError, match=re.escape("one is one too many")):
        list(share_out(fail, [(0,), (1,)]))
    with pytest.raises(RuntimeError, match=r"(?s)in stumble.*ZeroDivisionError: by hand"):
        list(share_out(stumble, [()]))


def test_a_killed_process_is_noticed_by_the_name_of_its_signal() -> None:
    with pytest.raises(MitigateError, match="killed by SIGKILL, perhaps because memory ran out"):
        list(share_out(die, [(signal.SIGKILL,)]))


CODE = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background starts with it ignored
sys.path.insert(0, {tests!r})
from test_processes import report_and_wait, share_out
for pid in share_out(report_and_wait, [()]):
    print(pid, flush=True)
"""


def report_and_wait(send: Send) -> None:
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])  # ignored, even by the first that is started
    send(os.getpid())
    time.sleep(60)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_none_outlives_its_parent(how: signal.Signals) -> None:
    code = CODE.format(tests=str(ROOT / "tests"))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the signal goes to parent and child, as from a terminal
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        child = int(parent.stdout.readline())
        if how == signal.SIGINT:
            os.killpg(parent.pid, how)
            said = parent.stderr.read()
            assert said.count("KeyboardInterrupt") == 1  # the child has nothing to say
        else:
            parent.kill()
        parent.wait()
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
