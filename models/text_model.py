"""A language model that learns texts whole, from their first word on."""

from collections.abc import Sequence

from torch import Tensor, nn

from models.language_model import LanguageModel


class Reader(nn.Module):
    """A language model whose tails are whole texts, with the methods that training asks for."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        before = model.tokenizer("")["input_ids"]
        self.start = [int(token) for token in before] or [model.end]  # as GPT-2 begins texts

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before each text: its start, for every head and phrase."""
        return [self.start for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, cut where the model's positions end, and END."""
        positions = self.model.positions
        most = None if positions is None else positions - len(self.start)
        texts = self.model.tokenizer(list(tails), add_special_tokens=False)["input_ids"] if tails else []
        return [[*text[:most], self.model.end] for text in texts]

    def begin_steps(self) -> None:
        """Prepare the process that trains."""
        self.model.begin_steps()

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the texts, in order."""
        return self.model.nll(prompts, tails)
