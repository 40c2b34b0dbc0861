"""A filter of vectors that hides a binary label from an adversary, as FAN does (Arduini et al. 2020, "Adversarial
Learning for Debiasing Knowledge Graph Embeddings"): the filter keeps vectors close to what they were, the adversary
predicts the label from filtered vectors.

The sizes of both networks, their training, and the filter's aim are our own: the filter brings the adversary's
probability to one half, which bounds its loss, where a minimax game does not."""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

HIDDEN = 256
BATCH = 256
STEPS = 1_500
ADVERSARY_STEPS = 3  # for each step of the filter
LEARNING_RATE = 1e-3


class Filter(nn.Module):
    """A residual network that begins as the identity."""

    def __init__(self, dimension: int, scale: float) -> None:
        super().__init__()
        self.scale = scale  # of the vectors, so that the learning rate fits vectors of any length
        last = nn.Linear(HIDDEN, dimension)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.change = nn.Sequential(nn.Linear(dimension, HIDDEN), nn.ReLU(), last)

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors + self.scale * self.change(vectors / self.scale)


def train_filter(vectors: Tensor, labels: Tensor, *, weight: float, seed: int, steps: int = STEPS) -> Filter:
    """The filter of vectors (n, dimension) with labels (n,), 0 or 1, of which there are both; a batch has as many of
    either. weight: that of hiding the label, beside the mean squared change relative to the vectors' own."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        vectors = vectors.detach()
        scale = float(vectors.square().mean().sqrt())
        found = Filter(vectors.shape[1], scale)
        adversary = nn.Sequential(nn.Linear(vectors.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        sides = [torch.nonzero(labels == side).squeeze(1) for side in (0, 1)]
        truth = torch.tensor([0.0, 1.0]).repeat_interleave(BATCH // 2)[:, None]
        by_filter = torch.optim.Adam(found.parameters(), lr=LEARNING_RATE)
        by_adversary = torch.optim.Adam(adversary.parameters(), lr=LEARNING_RATE)
        for step in range(steps * (1 + ADVERSARY_STEPS)):
            drawn = torch.cat([side[torch.randint(len(side), (BATCH // 2,))] for side in sides])
            before = vectors[drawn]
            after = found(before)
            if step % (1 + ADVERSARY_STEPS):
                loss = binary_cross_entropy_with_logits(adversary(after.detach() / scale), truth)
                _descend(by_adversary, loss)
            else:
                hidden = binary_cross_entropy_with_logits(adversary(after / scale), torch.full_like(truth, 0.5))
                _descend(by_filter, (after - before).square().mean() / scale**2 + weight * hidden)
    return found.eval()


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
