"""Perplexity and bits per character of generators whose probabilities are a formula."""

import math

import polars as pl
import pytest
import torch
from torch import Tensor, nn

from mitigate.measure.quality import perplexity
from mitigate.models.comet import Comet
from mitigate.models.decoder import DecoderConfig
from mitigate.models.encoding import Encoding
from mitigate.models.minilm import locate
from mitigate.probe.likelihood import held_out_likelihood


class Halving(nn.Module):
    """Generates `house` with probability 1/2, [SEP] with 1/4, any of 2^15 other words with 2^-17."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        logits = torch.full((1, 2 + 2**15), -17 * math.log(2))
        logits[0, encoding.encode(["house"])[0]] = -math.log(2)
        logits[0, encoding.end] = -2 * math.log(2)
        self.config = DecoderConfig("gpt2", vocab_size=logits.shape[1], positions=40, width=1, layers=0, heads=1)
        self.token_embedding = nn.Embedding(logits.shape[1], 1, _weight=logits.T)
        self.bias = None
        self.eval()

    def forward(self, tokens: Tensor, positions: Tensor, attention: object) -> Tensor:
        return torch.ones(len(tokens), 1)

    def logits(self, hidden: Tensor, candidates: Tensor | None = None) -> Tensor:
        return hidden @ self.token_embedding.weight.T


@pytest.fixture(scope="module")
def comet() -> Comet:
    encoding = Encoding.of_encoder(locate())
    return Comet(Halving(encoding), encoding)


@pytest.fixture
def triples() -> pl.DataFrame:
    rows = [
        ("church", "UsedFor", "house", True),  # 1 + 2 bits: 2 tokens
        ("church", "IsA", "house house", True),  # 1 + 1 + 2 bits: 3 tokens
        ("church", "UsedFor", "worship", False),  # 17 + 2 bits: 2 tokens
    ]
    return pl.DataFrame(rows, schema=["head", "relation", "tail", "neutral"], orient="row")


def test_totals_of_each_triple_and_figures_of_subsets(comet: Comet, triples: pl.DataFrame) -> None:
    labelled = triples.with_columns(split=pl.lit("test"), valid=True)
    scored = held_out_likelihood(comet, labelled)
    assert scored.select(triples.columns).equals(triples)
    assert (scored["nll"] / math.log(2)).to_list() == pytest.approx([3, 4, 19], rel=1e-5)
    assert scored["tokens"].to_list() == [2, 3, 2]
    assert perplexity(scored) == pytest.approx(2 ** (26 / 7))
    assert perplexity(scored.filter("neutral")) == pytest.approx(2 ** (7 / 5))
    assert perplexity(held_out_likelihood(comet, labelled.clear())) is None
    long = held_out_likelihood(comet, labelled.head(1).with_columns(tail=pl.lit("house " * 16)))
    assert long["tokens"].to_list() == [16]  # 15 words and the end
