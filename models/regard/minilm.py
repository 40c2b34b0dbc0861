"""all-MiniLM-L6-v2 with a trained low-rank change and a linear head on the mean of its token states.

Only what was trained is stored: two thin matrices per layer weight, the biases, the norms and the head. The
encoder itself is known by the SHA-256 of its file and added at loading, where the change is merged into it,
so that a classifier runs as fast as the bare encoder."""

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.utils import parametrize

from models.bert import Bert, mean_states
from models.digests import sha256_of
from models.regard import LABELS
from models.stored_tensors import load_trained, read_facts

CLOSE = 0.1  # of two log-probabilities: nearer ones are computed in float32
LONGEST = 128  # tokens of a text that are read; the encoder was trained on no more
CONFIG, WEIGHTS = "config.json", "model.safetensors"


class LowRank(nn.Module):
    """W (out, in) -> W + up (out, rank) @ down (rank, in); nothing changes before training, as up is 0."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / rank**0.5)

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down

    @torch.no_grad()
    def become(self, change: Tensor) -> None:
        """The nearest to a change (out, in) that has this rank."""
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        rank = self.up.shape[1]
        roots = sizes[:rank].sqrt()
        self.up[:, : len(roots)] = left[:, :rank] * roots
        self.down[: len(roots)] = roots[:, None] * right[:rank]


class MiniLMClassifier(nn.Module):
    """Texts to probabilities of LABELS. `rank` is the width of the change to each of the encoder's weights; None
    for weights that change freely, which are for teaching and not for saving. `layers` are the numbers of those of the
    encoder's layers that are kept, in their order; None: all. read: what opens the encoder, to be trained or to label
    with."""

    def __init__(
        self,
        encoder_folder: Path,
        rank: int | None,
        layers: Sequence[int] | None = None,
        read: Callable[[Path], Any] | None = None,
    ) -> None:
        super().__init__()
        self.rank = rank
        self.encoder_sha256 = sha256_of(encoder_folder / WEIGHTS)
        self.tokenizer = Tokenizer.from_file(str(encoder_folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)
        self.encoder = (read or _trainable)(encoder_folder)
        self.layers = list(range(len(self.encoder.encoder.layer))) if layers is None else list(layers)
        self.encoder.encoder.layer = nn.ModuleList([self.encoder.encoder.layer[number] for number in self.layers])
        for name, parameter in self.encoder.named_parameters():
            parameter.requires_grad = "encoder.layer" in name and (parameter.ndim == 1 or rank is None)
        if rank is not None:
            for layer in _linear(self.encoder.encoder.layer):
                parametrize.register_parametrization(layer, "weight", LowRank(layer.weight, rank), unsafe=True)
        self.head = nn.Linear(self.encoder.config.hidden_size, len(LABELS))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """tokens, mask (batch, length) -> logits (batch, 4)."""
        states = self.encoder(input_ids=tokens, attention_mask=mask).last_hidden_state
        if mask is None:
            return self.head(states.mean(1))
        shares = (mask / mask.sum(1, keepdim=True)).to(states.dtype)
        return self.head((states * shares[:, :, None]).sum(1))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, [CLS] and [SEP] included."""
        return [encoded.ids for encoded in self.tokenizer.encode_batch_fast(list(texts))]

    @torch.inference_mode()
    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS."""
        return self.read(self.encode(texts))

    @torch.inference_mode()
    def read(self, rows: Sequence[list[int]]) -> np.ndarray:
        """The same of texts as encode gives them."""
        means = mean_states(self.encoder, rows)[:, 0].to(self.head.weight.dtype)
        return self.head(means).float().softmax(-1).numpy()

    @torch.no_grad()
    def take(self, free: "MiniLMClassifier") -> None:
        """Start from a classifier with all layers, whose weights changed freely: from those layers that this one has,
        and from as much of their change as has this rank."""
        theirs = [free.encoder.encoder.layer[number] for number in self.layers]
        for layer, other in zip(_linear(self.encoder.encoder.layer), _linear(theirs), strict=True):
            parametrized: Any = layer.parametrizations
            change = parametrized.weight[0]
            change.become(other.weight - parametrized.weight.original)
        self.head.load_state_dict(free.head.state_dict())
        for kept, free_layer in zip(self.encoder.encoder.layer, theirs, strict=True):
            found = dict(free_layer.named_parameters())
            for name, value in kept.named_parameters():
                if name in found and value.requires_grad:
                    value.copy_(found[name])

    def trained(self) -> dict[str, Tensor]:
        """The trained tensors, which a folder holds: those that differ from the encoder."""
        return {name: value.detach() for name, value in self.named_parameters() if value.requires_grad}

    def save(self, folder: Path) -> None:
        """Write the trained tensors in half precision and the facts that loading needs."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.half() for name, value in self.trained().items()}, folder / WEIGHTS)
        facts = {"labels": LABELS, "rank": self.rank, "layers": self.layers, "encoder_sha256": self.encoder_sha256}
        (folder / CONFIG).write_text(json.dumps(facts, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> "MiniLMClassifier":
        """The classifier of a folder, its change merged into the encoder, ready to label.

        Raises ValueError when the folder was trained on another encoder or for other labels, and when its weights are
        damaged."""
        facts = read_facts(folder / CONFIG, ["rank", "encoder_sha256", "labels"])
        layers = facts.get("layers")  # all, before layers could be left out
        classifier = cls(encoder_folder, facts["rank"], layers, Bert.load)
        for fact, here in (("encoder_sha256", classifier.encoder_sha256), ("labels", list(LABELS))):
            if facts[fact] != here:
                raise ValueError(f"{folder} was trained with {fact} {facts[fact]}, here it is {here}")
        load_trained(classifier, folder / WEIGHTS)
        for layer in list(classifier.encoder.modules()):
            if parametrize.is_parametrized(layer):
                parametrize.remove_parametrizations(layer, "weight")
        return classifier.to(dtype).eval()


class CloseExact:
    """A classifier in half precision that computes again in float32 where its two most probable labels are close, so
    that its labels are those of float32. Of 20,000 texts none whose label changes had log-probabilities further apart
    than 0.05 (benchmarks/RESULTS.md)."""

    def __init__(self, exact: MiniLMClassifier, dtype: torch.dtype) -> None:
        self.exact = exact
        self.fast = copy.deepcopy(exact).to(dtype)
        self.encode = exact.encode

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS."""
        return self.read(self.encode(texts))

    def read(self, rows: Sequence[list[int]]) -> np.ndarray:
        """The same of texts as encode gives them."""
        found = self.fast.read(rows)
        second, first = np.sort(found, 1)[:, -2:].T
        close = np.flatnonzero(first < second * np.exp(CLOSE)).tolist()
        found[close] = self.exact.read([rows[number] for number in close])
        return found


def load_for(dtype: torch.dtype, folder: Path, encoder_folder: Path) -> MiniLMClassifier | CloseExact:
    """The classifier of a folder that computes in this format, with the labels of float32."""
    exact = MiniLMClassifier.load(folder, encoder_folder)
    return exact if dtype == torch.float32 else CloseExact(exact, dtype)


def _linear(layers: Iterable[nn.Module]) -> list[nn.Linear]:
    return [module for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)]


def _trainable(folder: Path) -> Any:
    from transformers import BertConfig, BertModel  # five seconds, which labelling does without

    encoder = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
    stored = load_file(folder / WEIGHTS)  # has a pooler and position numbers besides, which are not used
    encoder.load_state_dict({name: stored[name] for name in encoder.state_dict()})
    return encoder
