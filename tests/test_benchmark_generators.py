"""Random generators of each architecture, and both searches over them, at a small size."""

from pathlib import Path

import pytest

from benchmarks import generators
from benchmarks.generators import SHAPES, batches, compare, gap, section, tokenizer_of
from models.language_model import LanguageModel

TEXTS = ["the lawyer wins a case", "a nurse helps people", "is capable of", "is a", "has property"]


@pytest.mark.parametrize("name", SHAPES)
def test_both_searches_find_the_same_lists(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "WORDS", 300)
    monkeypatch.setattr(generators, "SIZES", (2,))
    shape, around = SHAPES[name]
    tokenizer = tokenizer_of(TEXTS, around)
    shape(len(tokenizer)).save_pretrained(tmp_path / name)
    tokenizer.save_pretrained(tmp_path / name)
    found = compare(tmp_path / name, prompts=4, rounds=1)
    assert (found.equal, found.prompts, found.gap) == (4, 4, 0.0)
    assert f"| {name} | {found.parameters / 1e6:.1f} M | 4 of 4 |" in section([found])


def test_a_list_that_differs_is_told_with_its_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "WORDS", 300)
    tokenizer = tokenizer_of(TEXTS, "$A")
    SHAPES["gpt2"][0](len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    generator = LanguageModel.load(tmp_path)
    one = generators.ours(generator, generator.prompts(["lawyer"], ["is a"]))[0]
    other = [*one[:-1], [5] * generators.LENGTH]
    assert gap(generator, generator.prompts(["lawyer"], ["is a"])[0], one, one) == 0
    assert gap(generator, generator.prompts(["lawyer"], ["is a"])[0], one, other) > 0


def test_prompts_of_one_length_are_batched() -> None:
    assert list(batches([[1], [1, 2], [3], [4], [5, 6]], 2)) == [[0, 2], [3], [1, 4]]
