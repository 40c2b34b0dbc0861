"""Generators whose next tokens are weighed anew, or whose hidden states pass through an eraser: against an obvious
search, and against numbers one can work out by hand."""

import copy
import math

import pytest
import torch
from test_beam import END, Formula, obvious, random_decoder, random_prompts
from test_comet import comet as comet
from texts_apart import TextsApart, rows_of
from torch import Tensor, nn

from models.beam import beam_search
from models.comet import Comet
from models.decoder import Decoder
from models.erasure import Erased, Eraser, Moments
from models.experts import Experts, Pair, _Weighed


class Obvious(nn.Module):
    """A decoder's hidden states, and logits that a function makes of them."""

    def __init__(self, decoder: Decoder, logits: object) -> None:
        super().__init__()
        self.decoder, self.logits = decoder, logits

    def forward(self, *rows: object) -> Tensor:
        return self.decoder(*rows)


@pytest.mark.parametrize(
    ("kind", "strength", "candidates"), [("gpt2", 2.0, 12), ("minilm", 0.5, 90), ("gpt2", 1.0, 10)]
)
def test_experts_equal_the_obvious_search(kind: str, strength: float, candidates: int) -> None:
    first, second = (random_decoder(seed, 2.0, kind=kind) for seed in (1, 2))
    pair = Pair(first, second).eval()

    def logits(hidden: Tensor) -> Tensor:
        own, other = first.logits(hidden[:, :32]), second.logits(hidden[:, 32:])
        weighed = (1 + strength) * own - strength * other
        least = own.topk(candidates).values[:, -1:]
        return weighed.masked_fill(own < least, -torch.inf)

    prompts = random_prompts(12, 90)
    found = beam_search(
        pair,
        prompts,
        end=END,
        beams=10,
        max_length=5,
        rows=40,
        head=lambda _, rows: _Weighed(pair, rows, strength, candidates),
    )
    for prompt, beams in zip(prompts, found, strict=True):
        expected = obvious(Obvious(pair, logits), prompt, 10, 5)
        assert [beam.tokens for beam in beams] == [beam.tokens for beam in expected]
        assert [beam.log_prob for beam in beams] == pytest.approx([beam.log_prob for beam in expected], abs=1e-4)


def test_likely_words_of_the_anti_expert_become_less_likely() -> None:
    """p (p / anti): .5 x 1, .3 x 3, .2 x .5, of which the sum is 1.5."""
    own, anti = Formula([[0.5, 0.3, 0.2]] * 3), Formula([[0.5, 0.1, 0.4]] * 3)
    hidden = torch.cat([own.table[:1], anti.table[:1]], dim=1)
    log_probs, tokens = _Weighed(Pair(own, anti), 1, 1.0, 3)(hidden, 2)
    assert tokens.tolist() == [[1, 0]]
    assert log_probs.exp().tolist()[0] == pytest.approx([0.9 / 1.5, 0.5 / 1.5])
    own, anti = Formula([[0.5, 0.3, 0.2]] * 3), Formula([[0.5, 0.1, 0.4]] * 3)
    hidden = torch.cat([own.table[:1], anti.table[:1]], dim=1)
    log_probs, tokens = _Weighed(Pair(own, anti), 1, 1.0, 2)(hidden, 2)
    assert tokens.tolist() == [[1, 0]]
    assert log_probs.exp().tolist()[0] == pytest.approx([0.9 / 1.4, 0.5 / 1.4])


def test_experts_against_themselves_change_nothing_and_follow_the_precision_of_a_probe(comet: Comet) -> None:
    prompts, tails = comet.prompts(["lawyer", "church"], ["is a", "is used for"]), comet.tails(["person", "worship"])
    same = Experts(comet, copy.deepcopy(comet), 2.0, 100)
    torch.testing.assert_close(same.nll(prompts, tails), comet.nll(prompts, tails).detach(), rtol=1e-4, atol=1e-4)
    found, expected = (model.search(prompts, beams=3, max_length=4) for model in (same, comet))
    assert [[beam.tokens for beam in beams] for beams in found] == [
        [beam.tokens for beam in beams] for beams in expected
    ]
    prompts = comet.prompts(["lawyer"], ["is a"])
    nothing = Eraser(torch.zeros(16), torch.zeros(16, 1), torch.zeros(1, 16))
    for model in (Erased(comet, nothing), Experts(comet, copy.deepcopy(comet), 1.0, 20)):
        rough = copy.deepcopy(model).bfloat16()
        assert rough.decoder.words.weight.dtype == torch.bfloat16
        assert len(rough.search(prompts, beams=3, max_length=2)[0]) == 3
        assert model.decoder.words.weight.dtype == torch.float32


def test_the_likelihood_of_experts_is_that_of_both_by_hand(comet: Comet) -> None:
    anti = copy.deepcopy(comet)
    with torch.no_grad():
        anti.decoder.words.weight += 0.1 * torch.randn_like(anti.decoder.words.weight)
    prompts, tails = comet.prompts(["lawyer"], ["is a"]), comet.tails(["person"])
    text = [*prompts[0], *tails[0][:-1]]
    both = [
        model.decoder.logits(model.decoder(*rows_of([text]), TextsApart([len(text)])))[-2:] for model in (comet, anti)
    ]
    expected = (3 * both[0] - 2 * both[1]).log_softmax(-1)[[0, 1], tails[0]]
    torch.testing.assert_close(
        Experts(comet, anti, 2.0, 20).nll(prompts, tails), -expected.detach(), rtol=1e-4, atol=1e-4
    )
    other = Comet(random_decoder(0), comet.encoding)
    with pytest.raises(ValueError, match="the anti-expert is DecoderConfig.*kind='gpt2'"):
        Experts(comet, other, 2.0, 20)


def moments(hidden: Tensor, classes: list[int], number: int) -> Moments:
    found = Moments(hidden.shape[1], number)
    found.add(hidden, torch.tensor(classes))
    return found


def test_erasure_makes_classes_alike_by_least_squares() -> None:
    hidden = torch.tensor([[0.0, 5.0], [0.0, 7.0], [2.0, 5.0], [2.0, 7.0]])
    eraser = moments(hidden, [0, 0, 1, 1], 2).eraser()
    torch.testing.assert_close(eraser(hidden.double()), torch.tensor([[1.0, 5], [1, 7], [1, 5], [1, 7]]).double())
    # x1 = z + e, x2 = e with e = -1, 1 and z = -1, 1: x1 loses z and keeps e, which dropping x1 would take away.
    hidden = torch.tensor([[-2.0, -1], [0, 1], [0, -1], [2, 1]])
    erased = moments(hidden, [0, 0, 1, 1], 2).eraser()(hidden.double())
    torch.testing.assert_close(erased, torch.tensor([[-1.0, -1], [1, 1], [-1, -1], [1, 1]]).double())
    with pytest.raises(ValueError, match="hidden states of 1 class: at least two are to be made alike"):
        moments(torch.ones(3, 2), [1, 1, 1], 3).eraser()


def test_no_class_mean_differs_after_erasure_and_a_second_one_changes_nothing() -> None:
    chance = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 3, (400,), generator=chance)
    hidden = torch.randn(400, 6, generator=chance) @ torch.randn(6, 6, generator=chance)
    hidden = hidden + torch.randn(3, 6, generator=chance)[classes]
    found = Moments(6, 3)
    for part in range(0, 400, 100):
        found.add(hidden[part : part + 100], classes[part : part + 100])
    eraser = found.eraser()
    assert eraser.left.shape == (6, 2)  # one direction fewer than classes
    erased = eraser(hidden.double())
    means = torch.stack([erased[classes == label].mean(0) for label in range(3)])
    torch.testing.assert_close(means, erased.mean(0).expand(3, 6), rtol=0, atol=1e-9)
    torch.testing.assert_close(eraser(erased), erased)


def test_an_erased_generator_searches_and_scores_by_what_is_left(comet: Comet) -> None:
    torch.manual_seed(3)
    left, right = torch.randn(16, 2), torch.randn(2, 16)
    erased = Erased(comet, Eraser(torch.zeros(16), left, right))
    weight, decoder = comet.decoder.words.weight, comet.decoder

    def logits(hidden: Tensor) -> Tensor:
        return (hidden - hidden @ right.T @ left.T) @ weight.T + (0 if decoder.bias is None else decoder.bias)

    prompts = comet.prompts(["lawyer", "church"], ["is a", "is used for"])
    for prompt, beams in zip(prompts, erased.search(prompts, beams=3, max_length=3), strict=True):
        with torch.no_grad():
            texts = [[*prompt, *beam.tokens, *([comet.encoding.end] if beam.ended else [])] for beam in beams]
            for text, beam in zip(texts, beams, strict=True):
                hidden = decoder(*rows_of([text[:-1]]), TextsApart([len(text) - 1]))[len(prompt) - 1 :]
                said = logits(hidden).log_softmax(-1).gather(1, torch.tensor(text[len(prompt) :])[:, None])
                assert math.isclose(said.sum().item(), beam.log_prob, abs_tol=1e-3)
    nothing = Eraser(torch.zeros(16), torch.zeros(16, 1), torch.zeros(1, 16))
    slots = Comet(comet.decoder, comet.encoding, layout="comet")  # whose padding nothing looks at
    asked, tails = slots.prompts(["lawyer", "church"], ["is a", "is used for"]), slots.tails(["person", "worship"])
    found, expected = Erased(slots, nothing).nll(asked, tails), slots.nll(asked, tails).detach()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    plain = Erased(comet, nothing)
    assert plain.search(prompts, beams=3, max_length=3) == comet.search(prompts, beams=3, max_length=3)
