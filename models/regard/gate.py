"""A classifier of windows of three tokens, hundreds of times as cheap as an encoder, and the cascade in which it passes
what is plainly neutral.

A cascade errs only towards neutral: what the gate does not pass is labelled as without it. The word embeddings are the
encoder's and not trained, so that a word that training has not met is near those that it has. The product of a word's
embedding with the windows' weights is taken once; reading a text then only adds rows of tables."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.bert import token_batches
from models.regard import LABELS
from models.regard.minilm import CloseExact, MiniLMClassifier
from models.stored_tensors import load_trained, read_facts

WIDTH = 3  # tokens in a window
BLOCK = 256  # words whose rows of the tables are computed at once, when a text has one of them
WEIGHTS, CONFIG = "gate.safetensors", "gate.json"
ENCODER_WEIGHTS, WORDS = "model.safetensors", "embeddings.word_embeddings.weight"
TOGETHER = 16_384  # tokens read at once


class Gate(nn.Module):
    """Tokens to logits of LABELS: each of `channels` is as strong as in the window where it is strongest."""

    def __init__(self, encoder_folder: Path, channels: int) -> None:
        super().__init__()
        vectors = load_file(encoder_folder / ENCODER_WEIGHTS)[WORDS].float()
        self.words = nn.Embedding.from_pretrained(vectors / vectors.std())
        self.windows = nn.Conv1d(vectors.shape[1], channels, WIDTH, padding=WIDTH // 2)
        self.head = nn.Linear(channels, len(LABELS))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """tokens, mask (batch, length) -> logits (batch, 4)."""
        words = self.words(tokens)
        found = self.windows((words if mask is None else words * mask[:, :, None]).transpose(1, 2))
        if mask is not None:
            found = found.masked_fill(mask[:, None] == 0, -torch.inf)
        return self.head(found.amax(2).relu())

    def trained(self) -> dict[str, Tensor]:
        """All but the embeddings: the tensors a folder holds."""
        return {name: value.detach() for name, value in self.named_parameters() if value.requires_grad}


class Cascade:
    """A classifier behind a gate: a text that the gate finds neutral with a probability above `threshold` has the
    gate's probabilities, any other the classifier's."""

    def __init__(self, gate: Gate, classifier: MiniLMClassifier | CloseExact, threshold: float) -> None:
        self.gate = gate
        self.classifier = classifier
        self.threshold = threshold
        words, channels = len(gate.words.weight), gate.windows.out_channels
        self._tables = [torch.empty(words, channels) for _ in range(WIDTH)]
        self._is_filled = np.zeros(-(-words // BLOCK), dtype=bool)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS."""
        rows = self.classifier.encode(texts)
        found = self.opinions(rows)
        unsure = np.flatnonzero(~self.passes(found))
        found[unsure] = self.classifier.read([rows[number] for number in unsure])
        return found

    def passes(self, opinions: np.ndarray) -> np.ndarray:
        """(n,) bool: which texts the gate passes, by its own probabilities (n, 4)."""
        return opinions[:, LABELS.index("neutral")] > self.threshold

    @torch.inference_mode()
    def opinions(self, rows: Sequence[list[int]]) -> np.ndarray:
        """The gate's own probabilities (n, 4) of texts as the classifier encodes them."""
        strongest = torch.zeros(len(rows), self.gate.windows.out_channels)
        for indices in token_batches([len(row) for row in rows], TOGETHER, one_length=True):
            strongest[indices] = self._strongest(torch.tensor([rows[index] for index in indices]))
        return self.gate.head(strongest).softmax(-1).numpy()

    def _strongest(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> each channel's strongest window (batch, channels), from the tables."""
        self._fill(tokens)
        before, here, after = (nn.functional.embedding(tokens, table) for table in self._tables)
        found = here
        found[:, 1:] += before[:, :-1]
        found[:, :-1] += after[:, 1:]
        bias = self.gate.windows.bias
        assert bias is not None
        return (found.amax(1) + bias).relu()

    def _fill(self, tokens: Tensor) -> None:
        """Compute the rows of the tables of these tokens' blocks, once each; all rows take longer than a few texts."""
        wanted = np.unique(tokens.numpy() // BLOCK)
        for number in wanted[~self._is_filled[wanted]]:
            rows = slice(number * BLOCK, (number + 1) * BLOCK)
            for place, table in enumerate(self._tables):
                table[rows] = self.gate.words.weight[rows] @ self.gate.windows.weight[:, :, place].T
            self._is_filled[number] = True

    def save(self, folder: Path) -> None:
        """Write the gate beside a saved classifier, in half precision."""
        save_file({name: value.half() for name, value in self.gate.trained().items()}, folder / WEIGHTS)
        channels = self.gate.windows.out_channels
        (folder / CONFIG).write_text(json.dumps({"channels": channels, "threshold": self.threshold}, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, classifier: MiniLMClassifier | CloseExact) -> "Cascade":
        """The classifier of a folder behind the gate of the same folder. Raises ValueError for damaged weights."""
        facts = read_facts(folder / CONFIG, ["channels", "threshold"])
        gate = Gate(encoder_folder, facts["channels"])
        load_trained(gate, folder / WEIGHTS)
        return cls(gate.float().eval(), classifier, facts["threshold"])
