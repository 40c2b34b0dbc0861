"""What an answer of the generator loads: PyTorch, and neither transformers nor Lightning, which take longer than all
else that an answer needs."""

import subprocess
import sys

from command import ROOT

SCRIPT = """
import sys
import models.comet, models.kinds
import mitigate.tasks.ask.answers, mitigate.tasks.probe, mitigate.tasks.label
import mitigate.score.vader, mitigate.score.regard, mitigate.score.plausibility
print(sorted({name.partition('.')[0] for name in sys.modules}))
"""
SLOW = ("transformers", "huggingface_hub", "pytorch_lightning", "lightning_fabric", "matplotlib", "scipy", "wandb")


def test_an_answer_loads_no_library_that_it_does_without() -> None:
    found = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'torch'" in found.stdout
    assert [name for name in SLOW if f"'{name}'" in found.stdout] == []
