"""A damaged checkpoint is never trained on, and a kill at any file operation leaves one that is whole."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from shown_steps import shown
from test_train_classifiers import SETTINGS, Kinds, known
from test_train_comet import EXAMPLES, QUICK, same
from test_train_comet import train as train_comet

from mitigate.train.classifiers import fit_plausibility
from mitigate.train.harness import Checkpoints

OFTEN = replace(QUICK, checkpoint_every=1e-9)  # a checkpoint of every step
SHORT = replace(SETTINGS, epochs=1, checkpoint_every=1e-9)  # 3 steps


class StoppedError(Exception):
    pass


def flip(path: Path) -> None:
    """4,000 bytes in the middle."""
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half : half + 4000] = bytes(byte ^ 255 for byte in content[half : half + 4000])
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [flip, cut])
def test_training_starts_again_where_the_checkpoint_is_damaged(tmp_path: Path, damage: Any) -> None:
    def stop(values: dict[str, float], step: int) -> None:
        if step == 5:  # where the second epoch ends
            raise StoppedError

    with pytest.raises(StoppedError):
        train_comet(tmp_path / "stopped", OFTEN, dev=EXAMPLES, log=stop)
    damage(last := tmp_path / "stopped/last.ckpt")
    with shown() as page:
        comet, _ = train_comet(tmp_path / "stopped", dev=EXAMPLES)
    assert same(comet, train_comet(tmp_path / "whole", dev=EXAMPLES)[0])
    assert page.notices == [f"the checkpoint {last} is damaged; training starts again."]
    assert page.steps[0] == ("train", "steps", 8, 0)


class KilledError(BaseException):
    """After which a process does nothing more."""


@contextmanager
def killed_at(operation: int) -> Iterator[list[str]]:
    """The file operation of this number, from 1 on, is not done, nor any after it; yields the names of those before."""
    done: list[str] = []

    def standing_in(name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def instead(*arguments: Any, **named: Any) -> Any:
            if len(done) + 1 >= operation:
                raise KilledError
            done.append(name)
            return original(*arguments, **named)

        return instead

    with pytest.MonkeyPatch.context() as patched:
        for name in ("fsync", "replace", "rename", "unlink"):  # Path's methods call them
            patched.setattr(os, name, standing_in(name))
        yield done


def train_small(folder: Path) -> torch.Tensor:
    network: Any = Kinds()
    fit_plausibility(network, known(network.relations), SHORT, folder, fingerprint="a")
    return network.matrices


def test_a_kill_at_any_file_operation_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """Of three saves: each writes to disk, renames and unlinks once."""
    with killed_at(10**9) as operations:
        expected = train_small(tmp_path / "whole")
    assert operations.count("replace") == 3
    first = operations.index("replace") + 1
    for number in range(1, len(operations) + 1):
        folder = tmp_path / str(number)
        with pytest.raises(KilledError), killed_at(number):
            train_small(folder)
        assert (Checkpoints(folder, "a").newest() is not None) == (number > first)
        torch.testing.assert_close(train_small(folder), expected, rtol=0, atol=1e-6)
