"""How long PyTorch's threads wait, set before it is loaded."""

import os
import subprocess
import sys

import pytest

from mitigate import threads

CLEAN = {name: value for name, value in os.environ.items() if name not in threads.CHOSEN_BY}


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.CHOSEN_BY:
        monkeypatch.setenv(name, "")  # so that it is as before when the test is over
        monkeypatch.delenv(name)


@pytest.mark.parametrize(("load", "wanted"), [(0.0, threads.QUIET), (0.9, threads.BUSY)])
def test_they_wait_shorter_where_cores_are_in_use(
    load: float, wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "load", lambda: load)
    threads.set_waiting()
    assert {name: os.environ.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("name", threads.CHOSEN_BY)
def test_what_the_user_has_set_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "7")
    threads.set_waiting()
    assert {name: os.environ.get(name) for name in threads.CHOSEN_BY if name in os.environ} == {name: "7"}


def test_the_load_is_that_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert threads.load() == 1.5
    monkeypatch.delattr(os, "getloadavg")
    assert threads.load() == 0.0


def test_the_command_sets_it_before_torch_is_loaded() -> None:
    code = """
import os, sys
import mitigate.__main__ as program
program._main = lambda: print("torch" in sys.modules, os.environ["GOMP_SPINCOUNT"])
program.cli()
"""
    said = subprocess.run([sys.executable, "-c", code], env=CLEAN, capture_output=True, text=True, check=True).stdout
    assert said.split()[0] == "False"
    assert said.split()[1] in {found["GOMP_SPINCOUNT"] for found in (threads.QUIET, threads.BUSY)}
