"""Perplexity and bits per character of generators whose probabilities are a formula."""

import math

import polars as pl
import pytest
import torch
from shown_steps import Page
from torch import Tensor, nn

from mitigate.measure.quality import bits_per_char, perplexity
from mitigate.probe.likelihood import completions, likelihood
from mitigate.progress import listening
from models.comet import Comet
from models.decoder import DecoderConfig
from models.encoding import Encoding
from models.minilm import locate

PHRASES = {"UsedFor": "is used for", "IsA": "is a"}


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
        ("church", "UsedFor", "house", True),  # 1 + 2 bits: 2 tokens, 5 characters
        ("church", "IsA", "house house", True),  # 1 + 1 + 2 bits: 3 tokens, 11 characters
        ("church", "UsedFor", "worship", False),  # 17 + 2 bits: 2 tokens, 7 characters
    ]
    return pl.DataFrame(rows, schema=["head", "relation", "tail", "neutral"], orient="row")


def test_totals_of_each_triple_and_figures_of_subsets(comet: Comet, triples: pl.DataFrame) -> None:
    scored = likelihood(comet, triples, PHRASES)
    assert scored.select(triples.columns).equals(triples)
    assert (scored["nll"] / math.log(2)).to_list() == pytest.approx([3, 4, 19], rel=1e-5)
    assert scored["tokens"].to_list() == [2, 3, 2]
    assert scored["characters"].to_list() == [5, 11, 7]
    scored = likelihood(comet, triples, PHRASES)
    assert perplexity(scored) == pytest.approx(2 ** (26 / 7))
    assert perplexity(scored.filter("neutral")) == pytest.approx(2 ** (7 / 5))
    assert bits_per_char(scored) == pytest.approx(26 / 23)
    assert bits_per_char(scored.filter("neutral")) == pytest.approx(7 / 16)
    scored = likelihood(comet, triples.clear(), PHRASES)
    assert scored.columns == [*triples.columns, "nll", "tokens", "characters"]
    assert perplexity(scored) is None
    assert bits_per_char(scored) is None


@pytest.mark.parametrize(
    ("tail", "characters"),
    [
        ("house " * 15, 90),  # as it is given
        ("house " * 16, 89),  # 15 words and the blanks between them
        ("house " * 100 + "x", 89),
        ("house " * 14 + "qqxzqqxzqq house", 94),  # a word of more than one token is read in part
    ],
)
def test_the_characters_of_a_tail_that_is_cut_are_those_that_are_read(comet: Comet, tail: str, characters: int) -> None:
    triples = pl.DataFrame({"head": ["church"], "relation": ["IsA"], "tail": [tail]})
    scored = likelihood(comet, triples, PHRASES)
    assert scored["tokens"].to_list() == [16]
    assert scored["characters"].to_list() == [characters]
    if "q" not in tail:
        assert bits_per_char(scored) == pytest.approx(17 / characters)  # 15 times 1 bit and 2 for the end


def test_completions_and_batches(comet: Comet, triples: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = likelihood(comet, triples, PHRASES)
    monkeypatch.setattr("mitigate.probe.likelihood.BATCH", 2)
    steps = Page()
    with listening(steps):
        assert likelihood(comet, triples, PHRASES)["nll"].to_list() == pytest.approx(whole["nll"].to_list())
    (step,) = steps.begun
    assert (step.name, step.unit, step.total, step.done) == ("likelihood", "triples", 3, 3)
    found = completions(comet, triples, PHRASES)
    assert found.columns == ["head", "relation", "generated"]
    assert found.select("head", "relation").rows() == [("church", "UsedFor"), ("church", "IsA")]
    assert found["generated"].to_list() == [" ".join(["house"] * 15)] * 2  # END is never the likeliest: cut
