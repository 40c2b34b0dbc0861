"""The loss in padded tensors of few shapes is that of the packed rows, and one compilation serves all shapes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from test_train_comet import EXAMPLES, HEADS, PHRASES, TAILS, small_comet
from torch._dynamo.testing import CompileCounter

from mitigate.errors import MitigateError
from mitigate.train.comet import Settings, fit
from models.comet import Comet, Layout
from models.compiled import PaddedNll

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of the compiler's own imports


def batch(comet: Comet, first: int, last: int) -> tuple[list[list[int]], list[list[int]]]:
    texts = [(HEADS[i], PHRASES[i % 2], TAILS[i % 5]) for i in range(first, last)]
    heads, phrases, tails = zip(*texts, strict=True)
    return comet.prompts(heads, phrases), comet.tails(tails)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> CompileCounter:
    """Traces for the compiler, and counts how often; what is traced then runs as it is."""
    traced = CompileCounter()
    compile = torch.compile

    def only_trace(function: Any, options: object) -> Any:
        return compile(function, backend=traced, fullgraph=True)

    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", only_trace)
    return traced


@pytest.mark.parametrize(("layout", "compiled"), [("packed", True), ("packed", False), ("comet", False)])
def test_loss_and_gradients_are_those_of_packed_rows(layout: Layout, compiled: bool, counter: CompileCounter) -> None:
    comet = small_comet()
    comet.layout = layout
    gradients = []
    for nll in (comet.nll, PaddedNll(comet, compiled)):
        comet.zero_grad()
        found = [nll(*batch(comet, 0, 5)), nll(*batch(comet, 5, 10))]
        torch.cat(found).sum().backward()
        gradients.append([(p.grad.clone(), found) for p in comet.parameters() if p.grad is not None])
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-4)


def test_one_compilation_serves_all_shapes(counter: CompileCounter) -> None:
    comet = small_comet()
    compiled = PaddedNll(comet, compiled=True)
    prompts, tails = batch(comet, 0, 10)
    for longer in range(3):
        compiled([prompt + [7] * 4 * longer for prompt in prompts], [tail * (1 + longer) for tail in tails])
    assert counter.frame_count == 1


def test_a_training_can_be_compiled(tmp_path: Path, counter: CompileCounter) -> None:
    fitted = []
    for compiled in (False, True):
        comet = small_comet()
        for module in comet.modules():
            module.p = 0.0  # type: ignore[assignment]
        comet.decoder.config.__dict__["dropout"] = 0.0
        settings = Settings(max_steps=3, batch_size=8, precision="32-true")
        how = {"fingerprint": "one", "accelerator": "cpu", "compile": compiled}
        fitted.append(fit(comet, EXAMPLES, settings, tmp_path, **how))
    assert counter.frame_count == 1
    assert fitted[1].train_loss == pytest.approx(fitted[0].train_loss, abs=1e-4)
    with pytest.raises(MitigateError, match="unknown trainer.compile 'yes'; allowed: auto, true, false"):
        fit(comet, EXAMPLES, settings, tmp_path, fingerprint="one", compile="yes")  # type: ignore[arg-type]
