"""A damaged checkpoint is never trained on, a kill at any file operation leaves one that is whole, and several
processes train as one."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from command import SMALL, apart, metrics_of
from shown_steps import shown
from test_train_classifiers import SETTINGS, Kinds, known
from test_train_comet import EXAMPLES, QUICK, same, small_comet
from test_train_comet import train as train_comet

from mitigate.errors import MitigateError
from mitigate.models.comet import Comet
from mitigate.train import comet as training
from mitigate.train import launch
from mitigate.train.classifiers import fit_plausibility
from mitigate.train.comet import Settings
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


FIFTEEN = Settings(max_steps=15, max_epochs=9, batch_size=8, lr=1e-2, precision="32-true", checkpoint_every=1e-9)


def calm_comet() -> Comet:
    """Without dropout: two processes draw other random numbers than one."""
    comet = small_comet()
    for module in comet.modules():
        module.p = 0.0  # type: ignore[assignment]
    comet.decoder.config.__dict__["dropout"] = 0.0
    return comet


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_train_as_one(strategy: str, tmp_path: Path) -> None:
    """Each takes half of every batch; only the order of additions differs. Stopped after the tenth step, the training
    goes on from there."""
    how = {"fingerprint": "one", "dev": EXAMPLES, "accelerator": "cpu"}
    one = calm_comet()
    expected = training.fit(one, EXAMPLES, FIFTEEN, tmp_path / "one", **how)
    how |= {"folder": tmp_path / "two", "devices": 2}

    def stop(values: dict[str, float], step: int) -> None:
        if step == 13:  # where the fifth epoch ends
            raise StoppedError

    with pytest.raises(StoppedError):
        launch.fit(calm_comet(), EXAMPLES, FIFTEEN, strategy=strategy, log=stop, **how)
    assert torch.load(tmp_path / "two" / "last.ckpt", weights_only=True)["global_step"] == 10
    told: list[int] = []
    two = calm_comet()
    with shown() as page:
        fitted = launch.fit(two, EXAMPLES, FIFTEEN, strategy=strategy, log=lambda _, step: told.append(step), **how)
    assert sorted(set(told)) == [13, 15]
    assert page.steps == [("train", "steps", 15, done) for done in range(10, 16)]
    assert fitted.train_loss == pytest.approx(expected.train_loss, abs=1e-4)
    assert fitted.dev_perplexity == pytest.approx(expected.dev_perplexity, rel=1e-4)
    torch.testing.assert_close(two.state_dict(), one.state_dict(), atol=1e-3, rtol=0)
    assert (two.decoder.token_embedding.weight - one.decoder.token_embedding.weight).abs().max() < 1e-5


@pytest.mark.thorough
def test_from_the_command_line_one_process_writes(tmp_path: Path) -> None:
    done = apart("trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu", f"paths.outputs={tmp_path}", *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("run folder") == 1
    assert "leaked" not in done.stderr  # a process that is killed leaves no lock behind
    (folder,) = tmp_path.glob("[!.]*")
    assert len(list((folder / "wandb").glob("offline-run-*"))) == 1
    assert metrics_of(folder)["statements"] == 3 * 3 * 10


def test_what_cannot_be_done_is_said_beforehand() -> None:
    launch.check(FIFTEEN, accelerator="cpu", devices=2, strategy="ddp")
    with pytest.raises(MitigateError, match="trainer.batch_size=8 is smaller than the number of devices, 9"):
        launch.check(FIFTEEN, accelerator="cpu", devices=9, strategy="ddp")
    with pytest.raises(MitigateError, match=re.escape("trainer.accelerator=cpu with trainer.devices=[0, 1]: ")):
        launch.count_devices("cpu", [0, 1])
