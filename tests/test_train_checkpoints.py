"""A damaged checkpoint is never trained on, and a kill at any file operation leaves one that is whole."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from shown_steps import Page, shown
from test_train_classifiers import SETTINGS, Kinds, known
from test_train_comet import EXAMPLES, QUICK, same
from test_train_comet import train as train_comet

from mitigate.train.checkpoints import Checkpoints
from mitigate.train.classifiers import fit_plausibility
from models.comet import Comet

OFTEN = replace(QUICK, checkpoint_every=1e-9)  # a checkpoint of every step
SHORT = replace(SETTINGS, epochs=2, checkpoint_every=1e-9)  # 6 steps


@pytest.fixture
def page() -> Iterator[Page]:
    with shown() as found:
        yield found


class StoppedError(Exception):
    pass


def interrupted(folder: Path, settings: Any = OFTEN) -> Path:
    """A folder of checkpoints: last.ckpt of step 4 and previous.ckpt of step 3 of 8."""

    def stop(values: dict[str, float], step: int) -> None:
        if step == 5:  # where the second epoch ends
            raise StoppedError

    with pytest.raises(StoppedError):
        train_comet(folder, settings, dev=EXAMPLES, log=stop)
    steps = [torch.load(folder / f"{name}.ckpt", weights_only=True)["global_step"] for name in ("last", "previous")]
    assert steps == [4, 3]
    return folder


def flip(path: Path) -> None:
    """4,000 bytes in the middle."""
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half : half + 4000] = bytes(byte ^ 255 for byte in content[half : half + 4000])
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Comet:
    return train_comet(tmp_path_factory.mktemp("whole"), dev=EXAMPLES)[0]


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interrupted(tmp_path_factory.mktemp("halfway"))


def copy_of(folder: Path, place: Path) -> Path:
    return shutil.copytree(folder, place, dirs_exist_ok=True)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [(flip, "its checksum is not that of its content"), (cut, "it ends before its checksum")],
)
def test_training_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path, page, undisturbed, halfway, damage, fault):
    last = copy_of(halfway, tmp_path) / "last.ckpt"
    damage(last)
    damaged = last.read_bytes()
    page.steps.clear()
    comet, _ = train_comet(tmp_path, dev=EXAMPLES)
    assert same(comet, undisturbed)
    assert page.notices == [
        f"the checkpoint {last} is damaged ({fault}) and was set aside as last.ckpt.damaged; "
        "training resumes from previous.ckpt."
    ]
    assert (tmp_path / "last.ckpt.damaged").read_bytes() == damaged
    assert page.steps[0] == ("train", "steps", 8, 3)
    assert page.steps[-1] == ("train", "steps", 8, 8)


def test_it_starts_anew_when_both_are_damaged(tmp_path: Path, page: Page, undisturbed: Comet, halfway) -> None:
    copy_of(halfway, tmp_path)
    (tmp_path / "last.ckpt.damaged").write_text("of an earlier time")
    flip(tmp_path / "last.ckpt")
    cut(tmp_path / "previous.ckpt")
    page.steps.clear()
    comet, _ = train_comet(tmp_path, dev=EXAMPLES)
    assert same(comet, undisturbed)
    assert [re.sub(".*/", "", notice) for notice in page.notices] == [
        "last.ckpt is damaged (its checksum is not that of its content) and was set aside as last.ckpt.damaged; "
        "training starts again.",
        "previous.ckpt is damaged (it ends before its checksum) and was set aside as previous.ckpt.damaged; "
        "training starts again.",
    ]
    assert page.steps[0] == ("train", "steps", 8, 0)
    assert (tmp_path / "last.ckpt.damaged").stat().st_size > 400_000


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


def train_small(folder: Path, epochs: int = 2) -> torch.Tensor:
    network: Any = Kinds()
    settings = replace(SHORT, epochs=epochs)
    fit_plausibility(network, known(network.relations), settings, folder, fingerprint="a")
    return network.matrices


def test_a_kill_at_any_file_operation_leaves_a_whole_checkpoint(tmp_path: Path, page: Page) -> None:
    """Of three saves: each writes to disk twice, renames once or, from the second on, twice, and unlinks once."""
    with killed_at(10**9) as operations:
        expected = train_small(tmp_path / "whole", epochs=1)
    assert operations.count("replace") == 3 + 2
    first = operations.index("replace") + 1
    for number in range(1, len(operations) + 1):
        folder = tmp_path / str(number)
        with pytest.raises(KilledError), killed_at(number):
            train_small(folder, epochs=1)
        assert (Checkpoints(folder, "a").newest() is not None) == (number > first)
        torch.testing.assert_close(train_small(folder, epochs=1), expected, rtol=0, atol=1e-6)
    assert page.notices == []
