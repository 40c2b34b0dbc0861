"""Training in several processes: the numbers of one, a checkpoint to go on from, and one process that writes."""

import json
import re
from pathlib import Path

import pytest
import torch
from command import SMALL, apart
from shown_steps import shown
from test_train_checkpoints import StoppedError
from test_train_comet import EXAMPLES, small_comet

from mitigate.errors import MitigateError
from mitigate.models.comet import Comet
from mitigate.train import comet as training
from mitigate.train import launch
from mitigate.train.comet import Settings

SETTINGS = Settings(max_steps=15, max_epochs=9, batch_size=8, lr=1e-2, precision="32-true", checkpoint_every=1e-9)


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
    expected = training.fit(one, EXAMPLES, SETTINGS, tmp_path / "one", **how)
    how |= {"folder": tmp_path / "two", "devices": 2}

    def stop(values: dict[str, float], step: int) -> None:
        if step == 13:  # where the fifth epoch ends
            raise StoppedError

    with pytest.raises(StoppedError):
        launch.fit(calm_comet(), EXAMPLES, SETTINGS, strategy=strategy, log=stop, **how)
    assert torch.load(tmp_path / "two" / "last.ckpt", weights_only=True)["global_step"] == 10
    told: list[int] = []
    two = calm_comet()
    with shown() as page:
        fitted = launch.fit(two, EXAMPLES, SETTINGS, strategy=strategy, log=lambda _, step: told.append(step), **how)
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
    assert json.loads((folder / "metrics.json").read_text())["statements"] == 3 * 3 * 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": 9}, "trainer.batch_size=8 is smaller than the number of devices, 9"),
    ],
)
def test_what_cannot_be_done_is_said_beforehand(given: dict, message: str) -> None:
    launch.check(SETTINGS, accelerator="cpu", devices=2, strategy="ddp")
    where = {"accelerator": "cpu", "devices": 1, "strategy": "ddp"}
    with pytest.raises(MitigateError, match=re.escape(message)):
        launch.check(SETTINGS, **where | given)
    with pytest.raises(MitigateError, match=re.escape("trainer.accelerator=cpu with trainer.devices=[0, 1]: ")):
        launch.count_devices("cpu", [0, 1])
