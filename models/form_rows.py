"""Texts and what is said after them as the rows of a decoder: a token, its position, and which rows it looks at."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch


class LaidOut:
    """The rows of one example: a token, its position, its branch (-1: all see it), and what is learnt at it."""

    def __init__(self, prefix: int) -> None:
        self.prefix = prefix  # the text's tokens, which may look at each other
        self.tokens: list[int] = []
        self.positions: list[int] = []
        self.branches: list[int] = []
        self.targets: list[tuple[int, int]] = []  # the row that predicts, and the token it is to predict

    def add(self, tokens: Sequence[int], branch: int, learnt: bool = False, place: int | None = None) -> int:
        """Appends tokens, from that position on; returns the position after them."""
        place = len(self.tokens) if place is None else place
        for token in tokens:
            if learnt:
                # The first token of a branch is predicted by the trunk's last row.
                self.targets.append((self._before(branch), token))
            self.tokens.append(token)
            self.positions.append(place)
            self.branches.append(branch)
            place += 1
        return place

    def _before(self, branch: int) -> int:
        row = len(self.tokens) - 1
        while self.branches[row] not in (-1, branch):
            row -= 1
        return row


class Rows:
    """Examples side by side, padded on the right."""

    def __init__(self, laid: Sequence[LaidOut], device: torch.device, reads: str) -> None:
        self.width = max(len(one.tokens) for one in laid)
        shape = (len(laid), self.width)
        tokens, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        branches = np.full(shape, -2)
        prefix = np.zeros(shape, bool)
        for row, one in enumerate(laid):
            size = len(one.tokens)
            tokens[row, :size], positions[row, :size], branches[row, :size] = one.tokens, one.positions, one.branches
            prefix[row, : one.prefix] = reads == "both"
        own = branches[:, :, None] == branches[:, None, :]
        seen = np.tril(own | (branches[:, None, :] == -1)) | (prefix[:, :, None] & prefix[:, None, :])
        self.seen = torch.from_numpy(seen).to(device)  # (examples, width, width): which row looks at which
        self.tokens, self.positions = (torch.from_numpy(a.ravel()).to(device) for a in (tokens, positions))
        self.targets = [(row * self.width + at, token) for row, one in enumerate(laid) for at, token in one.targets]
        self.device = device

    def learnt(self, pairs: Mapping[int, list[int]]) -> tuple[list[tuple[int, int, list[int]]], list[tuple[int, int]]]:
        """The targets of prediction and their rows: choices with the tokens of no and yes, and tokens of texts. pairs:
        by token of no or yes, both."""
        choices = [(at, token, pairs[token]) for at, token in self.targets if token in pairs]
        return choices, [(at, token) for at, token in self.targets if token not in pairs]
