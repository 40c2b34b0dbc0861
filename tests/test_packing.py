"""Trees of prompts and tails: rows, positions, what sees what, and the same loss as of texts by themselves."""

import math
from itertools import product

import pytest
import torch
from test_train_comet import small_comet
from texts_apart import TextsApart, rows_of

from models.comet import Comet
from models.packing import BIN, TREE, pack

PROMPT, OTHER = [5, 6], [7, 8, 9]


def test_a_prompt_stands_once_before_all_its_tails() -> None:
    packed = pack([PROMPT, PROMPT, OTHER], [[10, 11, 1], [12, 1], [13, 1]])
    assert packed.tokens.tolist()[:9] == [5, 6, 10, 11, 12, 7, 8, 9, 13]
    assert packed.positions.tolist()[:9] == [0, 1, 2, 3, 2, 0, 1, 2, 3]
    assert packed.before.tolist() == [1, 2, 3, 1, 4, 7, 8]  # the end token comes after the last row of its tail
    assert not packed.tokens[9:].any()
    sees = {row: packed.seen[0, row].nonzero()[:, 0].tolist() for row in range(9)}
    assert sees[3] == [0, 1, 2, 3]
    assert sees[4] == [0, 1, 4]  # not the other tail
    assert sees[8] == [5, 6, 7, 8]


def test_prompts_apart_are_two_trees_even_if_equal() -> None:
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
        expected.append(
            torch.nn.functional.cross_entropy(comet.decoder.logits(hidden), torch.tensor(tail), reduction="none")
        )
    torch.testing.assert_close(comet.nll(prompts, tails), torch.cat(expected), atol=1e-5, rtol=1e-5)
    gradients = torch.autograd.grad(comet.nll(prompts, tails).sum(), comet.decoder.blocks[0].mlp_in.weight)
    alone = torch.autograd.grad(torch.cat(expected).sum(), comet.decoder.blocks[0].mlp_in.weight)
    torch.testing.assert_close(gradients, alone, atol=1e-4, rtol=1e-4)
