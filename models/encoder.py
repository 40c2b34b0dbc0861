"""all-MiniLM-L6-v2 as an encoder of texts: mean token states, which linear heads read (models/heads.py); the classifier
of regard, a low-rank change of the encoder with a head of its own; and the gate before it.

Networks that are not trained compute on a GPU where PyTorch finds one (CUDA_VISIBLE_DEVICES= hides it)."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from mitigate.models import hub
from mitigate.models.heads import REGARD
from mitigate.models.stored_tensors import (
    CONFIG,
    MINILM_SHA256,
    TOKENIZER,
    WEIGHTS,
    load_trained,
    read_facts,
    save_trained,
    sha256_of,
    write_facts,
)

TOKENS = 2048  # of a batch on a CPU; beyond it the activations of a small encoder do not fit the cache of a core
GPU_TOKENS = 65_536  # of a batch on a GPU
LONGEST = 128  # tokens of a text that are read; the encoder was trained on no more


# Batches


def token_batches(lengths: Sequence[int], tokens: int | None = None, one_length: bool = False) -> Iterator[np.ndarray]:
    """Indices of texts in batches of at most `tokens` tokens, padding counted; a longer text is a batch of its own.
    tokens: None for a size that suits the device. one_length: the texts of a batch have one length, so they need no
    padding. The longest texts come first: the memory that they free fits all others, so that it does not grow."""
    most = tokens or (GPU_TOKENS if torch.cuda.is_available() else TOKENS)
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    for end, index in enumerate(order):
        is_other = one_length and lengths[index] != lengths[order[start]]
        if end > start and (is_other or (end + 1 - start) * lengths[order[start]] > most):
            yield order[start:end]
            start = end
    if len(order):
        yield order[start:]


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor | None]:
    """Token ids (batch, longest) and their mask (batch, longest), None when nothing had to be padded."""
    lengths = torch.tensor([len(row) for row in rows])
    longest = int(lengths.max())
    tokens = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    return tokens, None if lengths.min() == longest else (torch.arange(longest) < lengths[:, None]).long()


def device_of_states() -> torch.device:
    """The device of networks that are not trained."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


# The encoder


def load_encoder(folder: Path) -> Any:
    """The BertModel in a Hugging Face folder, without a pooler, in float32."""
    from transformers import BertModel  # takes seconds, which those that only name a classifier do without

    class Encoder(BertModel):
        _keys_to_ignore_on_load_unexpected = {"pooler"}  # noqa: RUF012  else transformers reports them

    return hub.load_model(Encoder, folder, add_pooling_layer=False).eval()


def mean(states: Tensor, mask: Tensor | None) -> Tensor:
    """The mean (batch, width) of states (batch, length, width) over the tokens whose mask (batch, length) is 1."""
    if mask is None:
        return states.mean(1)
    shares = (mask / mask.sum(1, keepdim=True)).to(states.dtype)
    return (states * shares[:, :, None]).sum(1)


@torch.no_grad()
def mean_states(bert: Any, rows: Sequence[Sequence[int]], layers: Sequence[int] = ()) -> Tensor:
    """The mean token states of n texts after each of `layers` (numbers from 0; none: after the last), (n, layers,
    width) float32. rows: the token ids of each text."""
    means = torch.zeros(len(rows), max(1, len(layers)), bert.config.hidden_size)
    for batch in token_batches([len(row) for row in rows], GPU_TOKENS if bert.device.type == "cuda" else TOKENS):
        tokens, mask = pad([rows[row] for row in batch], 0)  # (batch, length) each
        mask = None if mask is None else mask.to(bert.device)
        output = bert(tokens.to(bert.device), mask, output_hidden_states=bool(layers))
        states = [output.hidden_states[layer + 1] for layer in layers] or [output.last_hidden_state]
        means[batch] = torch.stack([mean(state.float(), mask) for state in states], dim=1).cpu()
    return means


def read_tokenizer(encoder_folder: Path, longest: int) -> Tokenizer:
    """The tokenizer of an encoder, which cuts texts to the longest."""
    tokenizer = Tokenizer.from_file(str(encoder_folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


class States(Protocol):
    """A network that reads texts."""

    sha256: str
    """The SHA-256 of the file of its weights, or of all files that decide its states."""

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        ...


class Encoder:
    """The mean token states of all-MiniLM-L6-v2 in some of its layers, each of length 1, side by side. layers: their
    numbers from 0; none for the last alone."""

    sha256 = MINILM_SHA256

    def __init__(self, encoder_folder: Path, layers: Sequence[int] = ()) -> None:
        self.tokenizer = read_tokenizer(encoder_folder, LONGEST)
        self.bert = load_encoder(encoder_folder).to(device_of_states())
        self.layers = sorted(layers)
        if layers:
            del self.bert.encoder.layer[max(layers) + 1 :]

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        rows = [encoded.ids for encoded in self.tokenizer.encode_batch_fast(list(texts))]
        return F.normalize(mean_states(self.bert, rows, self.layers), dim=-1).flatten(1).numpy()


shared = lru_cache(maxsize=3)(Encoder)
"""One encoder for all callers with the same arguments: heads are small, and the encoder has 90 MB."""


# Regard, the polarity of a sentence towards its subject (Sheng et al. 2019)


class LowRank(nn.Module):
    """W (out, in) -> W + up (out, rank) @ down (rank, in); nothing changes before training, as up is 0."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / rank**0.5)

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down


class MiniLMClassifier(nn.Module):
    """Texts to probabilities of REGARD: a linear head on the mean token states of the encoder with a low-rank change.

    Only what was trained is stored: two thin matrices of each weight, the biases, the norms and the head. rank: the
    width of the change to each weight; None for weights that change freely, which are for teaching and not for saving.
    layers: the numbers of the encoder's layers that are kept, in their order; None: all."""

    def __init__(self, encoder_folder: Path, rank: int | None, layers: Sequence[int] | None = None) -> None:
        super().__init__()
        self.rank = rank
        self.encoder_sha256 = sha256_of(encoder_folder / WEIGHTS)
        self.tokenizer = read_tokenizer(encoder_folder, LONGEST)
        self.encoder = load_encoder(encoder_folder).train()
        all_layers = self.encoder.encoder.layer
        self.layers = list(range(len(all_layers))) if layers is None else list(layers)
        self.encoder.encoder.layer = nn.ModuleList([all_layers[number] for number in self.layers])
        for name, parameter in self.encoder.named_parameters():
            parameter.requires_grad = "encoder.layer" in name and (parameter.ndim == 1 or rank is None)
        if rank is not None:
            for layer in _linear(self.encoder.encoder.layer):
                parametrize.register_parametrization(layer, "weight", LowRank(layer.weight, rank), unsafe=True)
        self.head = nn.Linear(self.encoder.config.hidden_size, len(REGARD))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """tokens, mask (batch, length) -> logits (batch, 4)."""
        return self.head(mean(self.encoder(tokens, mask).last_hidden_state, mask))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, [CLS] and [SEP] included."""
        return [encoded.ids for encoded in self.tokenizer.encode_batch_fast(list(texts))]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in REGARD."""
        return self.read(self.encode(texts))

    @torch.inference_mode()
    def read(self, rows: Sequence[list[int]]) -> np.ndarray:
        means = mean_states(self.encoder, rows)[:, 0].to(self.head.weight.dtype)
        return self.head(means).float().softmax(-1).numpy()

    @torch.no_grad()
    def take(self, free: "MiniLMClassifier") -> None:
        """Start from a classifier with all layers, whose weights changed freely: from those of its layers that this one
        has, their change approximated by the nearest one of this rank."""
        free_layers = [free.encoder.encoder.layer[number] for number in self.layers]
        for layer, free_linear in zip(_linear(self.encoder.encoder.layer), _linear(free_layers), strict=True):
            parametrized: Any = layer.parametrizations
            low_rank, change = parametrized.weight[0], free_linear.weight - parametrized.weight.original  # (out, in)
            u, s, vh = torch.linalg.svd(change, full_matrices=False)
            roots = s[: self.rank].sqrt()  # (rank,), fewer in a smaller matrix
            low_rank.up[:, : len(roots)] = u[:, : self.rank] * roots
            low_rank.down[: len(roots)] = roots[:, None] * vh[: self.rank]
        self.head.load_state_dict(free.head.state_dict())
        for layer, free_layer in zip(self.encoder.encoder.layer, free_layers, strict=True):
            free_parameters = dict(free_layer.named_parameters())
            for name, value in layer.named_parameters():
                if name in free_parameters and value.requires_grad:
                    value.copy_(free_parameters[name])

    def save(self, folder: Path) -> None:
        """Write the trained tensors in half precision and the facts that loading needs."""
        save_trained(self, folder / WEIGHTS)
        facts = {"labels": REGARD, "rank": self.rank, "layers": self.layers, "encoder_sha256": self.encoder_sha256}
        write_facts(folder / CONFIG, facts)

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path) -> "MiniLMClassifier":
        """The classifier of a folder, its change merged into the encoder, so that it is as fast as the bare encoder.

        Raises ValueError for one of another encoder or with other labels, and for damaged weights."""
        facts = read_facts(folder / CONFIG, ["rank", "encoder_sha256", "labels", "layers"])
        classifier = cls(encoder_folder, facts["rank"], facts["layers"])
        for name, expected in (("encoder_sha256", classifier.encoder_sha256), ("labels", list(REGARD))):
            if facts[name] != expected:
                raise ValueError(f"{folder} was trained with {name} {facts[name]}, here it is {expected}")
        load_trained(classifier, folder / WEIGHTS)
        for layer in _linear(classifier.encoder.encoder.layer):
            parametrize.remove_parametrizations(layer, "weight")
        return classifier.eval()


def _linear(layers: Iterable[nn.Module]) -> list[nn.Linear]:
    return [module for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)]


# The gate: windows of three tokens, hundreds of times as cheap as an encoder


WINDOW = 3  # tokens
GATE_WEIGHTS, GATE_CONFIG = "gate.safetensors", "gate.json"


class Gate(nn.Module):
    """Tokens to logits of REGARD: a convolution over windows of three tokens, max-pooling over the text, a linear head
    (Kim 2014). The word embeddings are the encoder's, not trained, so that a new word is close to known ones."""

    def __init__(self, encoder_folder: Path, channels: int) -> None:
        super().__init__()
        vectors = load_file(encoder_folder / WEIGHTS)["embeddings.word_embeddings.weight"].float()
        self.words = nn.Embedding.from_pretrained(vectors / vectors.std())
        self.windows = nn.Conv1d(vectors.shape[1], channels, WINDOW, padding=WINDOW // 2)
        self.head = nn.Linear(channels, len(REGARD))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """tokens, mask (batch, length) -> logits (batch, 4)."""
        words = self.words(tokens)  # (batch, length, width)
        windows = self.windows((words if mask is None else words * mask[:, :, None]).transpose(1, 2))
        if mask is not None:
            windows = windows.masked_fill(mask[:, None] == 0, -torch.inf)  # (batch, channels, length)
        return self.head(windows.amax(2).relu())


class Cascade:
    """A classifier behind a gate: a text that the gate finds neutral with a probability above `threshold` gets the
    gate's probabilities, any other text the classifier's. So the gate only adds errors towards neutral."""

    def __init__(self, gate: Gate, classifier: MiniLMClassifier, threshold: float) -> None:
        self.gate = gate
        self.classifier = classifier
        self.threshold = threshold

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in REGARD."""
        rows = self.classifier.encode(texts)
        probabilities = self.opinions(rows)
        unsure = np.flatnonzero(~(probabilities[:, REGARD.index("neutral")] > self.threshold))
        probabilities[unsure] = self.classifier.read([rows[number] for number in unsure])
        return probabilities

    @torch.inference_mode()
    def opinions(self, rows: Sequence[list[int]]) -> np.ndarray:
        """The gate's own probabilities (n, 4) of texts as the classifier encodes them."""
        probabilities = np.zeros((len(rows), len(REGARD)), dtype=np.float32)
        for batch in token_batches([len(row) for row in rows], TOKENS):
            probabilities[batch] = self.gate(*pad([rows[row] for row in batch], 0)).softmax(-1).numpy()
        return probabilities

    def save(self, folder: Path) -> None:
        """Write the gate beside a saved classifier, in half precision."""
        save_trained(self.gate, folder / GATE_WEIGHTS)
        facts = {"channels": self.gate.windows.out_channels, "threshold": self.threshold}
        write_facts(folder / GATE_CONFIG, facts)

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, classifier: MiniLMClassifier) -> "Cascade":
        """The classifier of a folder behind the gate of the same folder. Raises ValueError for damaged weights."""
        facts = read_facts(folder / GATE_CONFIG, ["channels", "threshold"])
        gate = Gate(encoder_folder, facts["channels"])
        load_trained(gate, folder / GATE_WEIGHTS)
        return cls(gate.float().eval(), classifier, facts["threshold"])
