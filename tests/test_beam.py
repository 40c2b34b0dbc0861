"""Beam search against a slow and obvious reading of its rule, and against beams one can work out by hand."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from small_models import TextsApart, rows_of
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.models.beam import beam_search
from mitigate.models.decoder import Decoder, DecoderConfig, DecoderReading
from mitigate.models.tail_prompts import Beam

END = 0
SMALL = DecoderConfig("gpt2", vocab_size=90, positions=24, width=32, layers=2, heads=4, inner=64, dropout=0.0)


class Formula(nn.Module):
    """A decoder whose next token depends on the last one only, by a table of probabilities."""

    def __init__(self, table: list[list[float]]) -> None:
        super().__init__()
        logits = torch.tensor(table).log()
        self.config = replace(SMALL, vocab_size=len(table), width=len(table), layers=0, heads=1)
        self.words = nn.Embedding(len(table), len(table), _weight=torch.eye(len(table)))
        self.bias = None
        self.table = logits.clamp(min=-1e4)  # 0 x inf would spoil the product with the embeddings
        self.eval()

    def forward(self, tokens: Tensor, positions: Tensor, attention: object) -> Tensor:
        return self.table[tokens]

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden


def random_decoder(seed: int, end_logit: float = 0.0, **changes: object) -> Decoder:
    """Random weights, peaked enough that beams differ; END likelier by end_logit."""
    torch.manual_seed(seed)
    decoder = Decoder(replace(SMALL, **changes)).eval()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    decoder.bias = nn.Parameter(torch.zeros(decoder.config.vocab_size))
    with torch.no_grad():
        decoder.bias[END] = end_logit
    return decoder


def random_prompts(number: int, vocab_size: int) -> list[list[int]]:
    """Of 1 to 7 tokens; neighbours share a beginning, as the prompts of one target do."""
    generator = torch.Generator().manual_seed(0)
    heads = torch.randint(1, vocab_size, (number // 5 + 1, 3), generator=generator).tolist()
    ends = torch.randint(1, vocab_size, (number, 4), generator=generator).tolist()
    sizes = torch.randint(0, 4, (number, 2), generator=generator).tolist()
    return [heads[i // 5][: sizes[i][0]] + ends[i][: 1 + sizes[i][1]] for i in range(number)]


def search(decoder: Decoder, prompts: list[list[int]], unseen: int | None = None, **how: int) -> list[list[Beam]]:
    return beam_search(partial(DecoderReading, decoder, unseen), prompts, device=torch.device("cpu"), **how)


@torch.inference_mode()
def obvious(decoder: Decoder, prompt: list[int], beams: int, max_length: int, unseen: int | None = None) -> list[Beam]:
    """The rule in plain words: no cache, no batch, nothing shared, all padding computed."""
    padding = torch.tensor([token == unseen for token in prompt])
    kept = [Beam((), 0.0, 0.0, False)]
    for length in range(1, max_length + 1):
        candidates = []  # (beam, token, what it would become)
        for number, beam in enumerate(kept):
            if beam.ended:
                candidates.append((number, -1, beam))
                continue
            sequence = [*prompt, *beam.tokens]
            skipped = F.pad(padding, (0, len(beam.tokens)))
            hidden = decoder(*rows_of([sequence]), TextsApart([len(sequence)], unseen=skipped))
            log_probs = decoder.logits(hidden[-1:]).log_softmax(-1)[0].tolist()
            for token in sorted(range(len(log_probs)), key=lambda token: (-log_probs[token], token))[:beams]:
                tokens = beam.tokens if token == END else (*beam.tokens, token)
                log_prob = beam.log_prob + log_probs[token]
                candidates.append((number, token, Beam(tokens, log_prob, log_prob / length, token == END)))
        candidates.sort(key=lambda c: (-c[2].score, c[0], c[1]))
        kept = [beam for _, _, beam in candidates[:beams]]
        if all(beam.ended for beam in kept):
            break
    return kept


def assert_same(found: list[Beam], expected: list[Beam]) -> None:
    assert [(beam.tokens, beam.ended) for beam in found] == [(beam.tokens, beam.ended) for beam in expected]
    for number in ("log_prob", "score"):
        values = [[getattr(beam, number) for beam in beams] for beams in (found, expected)]
        assert values[0] == pytest.approx(values[1], abs=2e-4)


@pytest.mark.parametrize(
    ("changes", "end_logit", "beams", "max_length", "rows"),
    [
        ({}, 0.0, 10, 6, 90),
        ({"kind": "minilm"}, 3.0, 10, 7, 512),  # beams end at all lengths
        ({"kind": "gpt1", "inner": 128}, 5.0, 10, 15, 90),  # most end at once
        ({"vocab_size": 7}, 0.5, 10, 5, 1),  # fewer words than beams; each prompt by itself
        ({}, 1.0, 1, 8, 70),
        ({}, 2.0, 3, 1, 27),
    ],
)
def test_equals_the_obvious_search(changes: dict, end_logit: float, beams: int, max_length: int, rows: int) -> None:
    """And so a prompt's beams do not depend on the other prompts of its batch."""
    decoder = random_decoder(3, end_logit, **changes)
    prompts = random_prompts(40, decoder.config.vocab_size)
    found = search(decoder, prompts, end=END, beams=beams, max_length=max_length, rows=rows)
    lengths = set()
    for prompt, result in zip(prompts, found, strict=True):
        expected = obvious(decoder, prompt, beams, max_length)
        assert_same(result, expected)
        lengths |= {(len(beam.tokens), beam.ended) for beam in result}
    assert len(lengths) > 1 or max_length == 1


def test_a_search_one_can_do_by_hand() -> None:
    """From 1: END 0.4, word 2 0.6. From 2: END 0.5, word 3 0.5. From 3: END surely.

    (2, END) has probability 0.3 over 2 tokens, (2, 3, END) the same over 3, (END) 0.4 over 1."""
    decoder = Formula([[1, 0, 0, 0], [0.4, 0, 0.6, 0], [0.5, 0, 0, 0.5], [1, 0, 0, 0]])
    (found,) = search(decoder, [[1]], end=END, beams=3)
    assert [beam.tokens for beam in found] == [(2, 3), (2,), ()]
    assert [beam.score for beam in found] == pytest.approx([math.log(0.3) / 3, math.log(0.3) / 2, math.log(0.4)])
    assert [beam.log_prob for beam in found] == pytest.approx([math.log(0.3), math.log(0.3), math.log(0.4)])
    assert all(beam.ended for beam in found)
    # END at once scores log 0.4; both beams through word 2 end up better per token.
    (found,) = search(decoder, [[1]], end=END, beams=2)
    assert [beam.tokens for beam in found] == [(2, 3), (2,)]


def test_the_length_limit_cuts() -> None:
    """Word 1 follows itself with 0.9, so a tail of three is cut; one that ended before competes."""
    decoder = Formula([[1, 0], [0.1, 0.9]])
    (found,) = search(decoder, [[1]], end=END, beams=2, max_length=3)
    assert found[0].tokens == (1, 1, 1)
    assert not found[0].ended
    assert found[0].score == pytest.approx(math.log(0.9))
    assert found[1] == Beam((1, 1), pytest.approx(math.log(0.081)), pytest.approx(math.log(0.081) / 3), True)
    (found,) = search(Formula([[1, 0], [1, 0]]), [[1]], end=END, beams=1)
    assert found == [Beam((), 0.0, 0.0, True)]
    assert search(random_decoder(0), [], end=END) == []
