import os
import subprocess
import sys
from pathlib import Path

import torch

TESTS = Path(__file__).parent
CODE = """
import os, sys
from pathlib import Path
import torch
from mitigate.train.comet import Settings, fit
sys.path.insert(0, {tests!r})
from test_train_comet import EXAMPLES, small_comet
comet = small_comet()
for module in comet.modules():
    module.p = 0.0  # no dropout: two processes draw other random numbers than one
comet.decoder.config.__dict__["dropout"] = 0.0
settings = Settings(max_steps=15, max_epochs=9, batch_size=8, lr=1e-2, precision="32-true")
count = int(os.environ.get("WORLD_SIZE", "1"))
how = {{"accelerator": "cpu", "devices": count, "strategy": "ddp" if count > 1 else "auto"}}
fitted = fit(comet, EXAMPLES, settings, Path.cwd(), fingerprint="one", **how)
if os.environ.get("RANK", "0") == "0":
    torch.save((fitted.train_loss, comet.state_dict()), f"{{count}}.pt")
"""


def run(folder: Path, *launcher: str) -> None:
    code = folder / "train.py"
    code.write_text(CODE.format(tests=str(TESTS)))
    surroundings = {**os.environ, "PYTHONPATH": str(TESTS.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, str(code)],
        cwd=folder,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    """Each takes half of every batch; only the order of additions differs."""
    run(tmp_path)
    run(tmp_path, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    one_loss, one = torch.load(tmp_path / "1.pt")
    two_loss, two = torch.load(tmp_path / "2.pt")
    torch.testing.assert_close(two_loss, one_loss, atol=1e-4, rtol=0)
    torch.testing.assert_close(two, one, atol=1e-3, rtol=0)
    assert (one["decoder.words.weight"] - two["decoder.words.weight"]).abs().max() < 1e-5
