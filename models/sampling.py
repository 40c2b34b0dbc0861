"""Sampling of text from a language model so that a text depends on the prompt's own chances alone, not on the other
prompts in the batch: one number in [0, 1) for each token to come is given beforehand, and `generate`, which then has
nothing left to draw, looks up whose share of the probability it falls into."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import LogitsProcessor, PreTrainedTokenizerBase, StoppingCriteria


class Drawn(LogitsProcessor):
    """A logits processor that leaves the token that a row's next number stands for, at a temperature, among the
    likeliest top_k (0: all)."""

    def __init__(self, chances: Tensor, length: int, temperature: float, top_k: int) -> None:
        self.chances = chances  # (rows, tokens to come)
        self.length = length  # of the prompts, padding counted
        self.temperature = temperature
        self.top_k = top_k

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # (rows, length so far), (rows, vocab_size)
        likeliest, tokens = scores.topk(min(self.top_k or scores.shape[1], scores.shape[1]))  # in falling order
        shares = (likeliest.double() / self.temperature).softmax(1).cumsum(1)
        chance = self.chances[:, input_ids.shape[1] - self.length, None]
        place = (shares <= chance * shares[:, -1:]).sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens.gather(1, place), 0.0)


class SentenceEnds:
    """A counter of the sentences that have ended in the generated tokens: tokens with a mark, several in a row as
    one."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int, marks: str, length: int) -> None:
        known = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
        ends = [token is not None and any(mark in token for mark in marks) for token in known]
        self.ends = torch.tensor(ends + [False] * (size - len(ends)))
        self.length = length

    def count(self, input_ids: Tensor) -> Tensor:  # (rows,)
        said = self.ends.to(input_ids.device)[input_ids[:, self.length :]]
        before = torch.nn.functional.pad(said, (1, 0))[:, :-1]
        return (said & ~before).sum(1)


class NoEndBefore(LogitsProcessor):
    """A logits processor that rules out the end token until `fewest` sentences have ended."""

    def __init__(self, sentences: SentenceEnds, fewest: int, end: int) -> None:
        self.sentences = sentences
        self.fewest = fewest
        self.end = end

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.clone()
        scores[self.sentences.count(input_ids) < self.fewest, self.end] = -torch.inf
        return scores


class Enough(StoppingCriteria):
    """A stopping criterion for rows with `most` ended sentences."""

    def __init__(self, sentences: SentenceEnds, most: int) -> None:
        self.sentences = sentences
        self.most = most

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:  # (rows,)
        return self.sentences.count(input_ids) >= self.most


def until(tokens: Sequence[int], ends: set[int]) -> list[int]:
    """The tokens before the first of those that end a text."""
    return list(tokens[: next((place for place, token in enumerate(tokens) if token in ends), len(tokens))])
