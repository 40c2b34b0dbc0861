"""Products with weights laid out for the processor against torch's own."""

import pytest
import torch
from texts_apart import TextsApart, rows_of
from torch import nn
from torch.nn import functional as F

from models.decoder import Decoder, DecoderConfig
from models.products import Product, lay_out

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
def test_float32_is_left_to_mkl_where_the_processor_has_avx2_alone(
    monkeypatch: pytest.MonkeyPatch, capability: str, mkl: bool, laid_out: bool
) -> None:
    if not torch.backends.mkldnn.is_available():
        pytest.skip("oneDNN is not here")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    with torch.inference_mode():
        assert Product(torch.ones(2, 3), None).laid_out == laid_out
