"""Losses of packed trees, of padded tensors and of weights laid out for the processor: those of plain texts."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from test_train_comet import EXAMPLES, HEADS, PHRASES, TAILS, small_comet
from texts_apart import TextsApart, rows_of
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional as F

from mitigate.errors import MitigateError
from mitigate.train.comet import Settings, fit
from models.comet import Comet
from models.compiled import PaddedNll
from models.decoder import Decoder, DecoderConfig
from models.packing import BIN, TREE, pack
from models.products import Product, lay_out
from models.tail_prompts import Layout

PROMPT, OTHER = [5, 6], [7, 8, 9]


def test_a_prompt_stands_once_before_all_its_tails() -> None:
    packed = pack([PROMPT, PROMPT, OTHER], [[10, 11, 1], [12, 1], [13, 1]])
    assert packed.tokens.tolist()[:9] == [5, 6, 10, 11, 12, 7, 8, 9, 13]
    assert packed.positions.tolist()[:9] == [0, 1, 2, 3, 2, 0, 1, 2, 3]
    assert packed.before.tolist() == [1, 2, 3, 1, 4, 7, 8]  # the end token comes after the last row of its tail
    assert not packed.tokens[9:].any()
    assert packed.held.tolist() == list(range(16))  # nine rows, filled up
    sees = {row: packed.seen[0, row].nonzero()[:, 0].tolist() for row in range(9)}
    assert sees[3] == [0, 1, 2, 3]
    assert sees[4] == [0, 1, 4]  # not the other tail
    assert sees[8] == [5, 6, 7, 8]
    packed = pack([PROMPT, OTHER, PROMPT], [[10, 1]] * 3)
    assert packed.tokens.tolist()[:10].count(5) == 2
    assert packed.before.tolist() == [5, 6, 2, 3, 8, 9]  # the largest tree comes first


def test_bins_are_of_one_size_and_trees_are_cut() -> None:
    """40 tails of four read tokens and a prompt of two are more than one tree may hold; one long text is not cut."""
    packed = pack([PROMPT] * 40, [[10, 11, 12, 13, 1]] * 40)
    assert packed.seen.shape[1] == TREE
    assert int((packed.tokens == 5).sum()) == math.ceil(40 * 4 / (TREE - 2))
    long = pack([list(range(2, 2 + 2 * TREE))], [[10, 1]])
    assert long.seen.shape[0] == 1
    assert long.seen.shape[1] >= 2 * TREE + 1
    short = pack([[2, number] for number in range(100)], [[10, 1]] * 100)
    assert short.seen.shape == (math.ceil(100 / (BIN // 3)), BIN, BIN)
    assert len(short.held) == math.ceil(3 * 100 / 16) * 16
    assert {*short.before.tolist()} < {*short.held.tolist()}


@pytest.mark.parametrize("layout", ["packed", "comet"])
def test_the_loss_is_that_of_each_text_by_itself(layout: str) -> None:
    comet = Comet(small_comet().decoder, small_comet().encoding, layout)  # type: ignore[arg-type]
    heads = ["lawyer", "a very old and quiet man", "rain"]
    asked = sorted(product(heads, ["is capable of", "wants"], ["win a case", "help", "run after a very fast cat"]))
    prompts = comet.prompts([head for head, _, _ in asked], [phrase for _, phrase, _ in asked])
    tails = comet.tails([tail for _, _, tail in asked])
    expected = []
    for prompt, tail in zip(prompts, tails, strict=True):
        text = [*prompt, *tail[:-1]]
        unseen = torch.tensor([token == comet.unseen and place < 15 for place, token in enumerate(text)])
        hidden = comet.decoder(*rows_of([text]), TextsApart([len(text)], unseen))[len(prompt) - 1 :]
        expected.append(F.cross_entropy(comet.decoder.logits(hidden), torch.tensor(tail), reduction="none"))
    torch.testing.assert_close(comet.nll(prompts, tails), torch.cat(expected), atol=1e-5, rtol=1e-5)
    gradients = torch.autograd.grad(comet.nll(prompts, tails).sum(), list(comet.parameters()))
    alone = torch.autograd.grad(torch.cat(expected).sum(), list(comet.parameters()))
    torch.testing.assert_close(gradients, alone, atol=1e-4, rtol=1e-4)


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


TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}


@pytest.fixture(params=[True, False], ids=["onednn", "without"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With oneDNN wherever it is installed, and as on a machine without."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    if not request.param:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("gelu", [None, "none", "tanh"])
@pytest.mark.parametrize("rows", [1, 33])
def test_a_product_is_a_linear_layer(kernels: bool, dtype: torch.dtype, bias: bool, gelu: str | None, rows: int):
    torch.manual_seed(0)
    linear = nn.Linear(48, 70, bias=bias).to(dtype)
    hidden = torch.randn(rows, 48, dtype=dtype)
    with torch.inference_mode():
        expected = linear(hidden)
        expected = expected if gelu is None else F.gelu(expected, approximate=gelu)
        product = Product(linear.weight, linear.bias, gelu)
        found = product(hidden)
    assert kernels or not product.laid_out
    assert found.dtype == dtype
    assert torch.allclose(found, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("kind", ["gpt1", "gpt2", "minilm"])
def test_a_decoder_laid_out_says_the_same(kernels: bool, kind: str):
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(kind, vocab_size=90, positions=24, width=32, layers=2, heads=4, inner=128)).eval()
    before = {name: tensor.clone() for name, tensor in decoder.state_dict().items()}
    inputs = *rows_of([[3, 4, 5], [6, 7]]), TextsApart([3, 2])
    with torch.inference_mode():
        laid_out = lay_out(decoder)
        assert torch.allclose(laid_out(*inputs), decoder(*inputs), atol=1e-5)
    assert laid_out.words.weight is decoder.words.weight  # shared, not copied
    assert all(torch.equal(tensor, before[name]) for name, tensor in decoder.state_dict().items())


@pytest.mark.parametrize(
    ("capability", "mkl", "laid_out"),
    [("AVX2", True, False), ("AVX2", False, True), ("AVX512", True, True), ("DEFAULT", False, True)],
)
def test_float32_is_left_to_mkl_where_the_processor_has_avx2_alone(monkeypatch, capability, mkl, laid_out) -> None:
    if not torch.backends.mkldnn.is_available():
        pytest.skip("oneDNN is not here")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    with torch.inference_mode():
        assert Product(torch.ones(2, 3), None).laid_out == laid_out
