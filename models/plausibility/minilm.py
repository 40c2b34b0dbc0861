"""all-MiniLM-L6-v2 that reads head and tail as one text, with a trained low-rank change and a logit for each relation.

As with regard, only what was trained is stored; the encoder is known by its SHA-256 and added at loading, where the
change is merged into it."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers import BertConfig, BertModel

from models.plausibility.pairs import Pieces, encode, read_tokenizer, special
from models.regard.batching import pad
from models.regard.minilm import LowRank

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class MiniLMPairs(nn.Module):
    """Logits of `relations`; `rank` is the width of the change to each of the encoder's weights."""

    def __init__(self, encoder_folder: Path, relations: Sequence[str], rank: int) -> None:
        super().__init__()
        self.relations = tuple(relations)
        self.rank = rank
        self.encoder_sha256 = hashlib.sha256((encoder_folder / WEIGHTS).read_bytes()).hexdigest()
        self.tokenizer = read_tokenizer(encoder_folder)
        self.start, self.between = special(self.tokenizer, "[CLS]", "[SEP]")
        self.encoder = _read_encoder(encoder_folder)
        for name, parameter in self.encoder.named_parameters():
            parameter.requires_grad = "encoder.layer" in name and parameter.ndim == 1
        for layer in list(self.encoder.encoder.layer.modules()):
            if isinstance(layer, nn.Linear):
                parametrize.register_parametrization(layer, "weight", LowRank(layer.weight, rank))
        self.head = nn.Linear(self.encoder.config.hidden_size, len(relations))

    def forward(self, heads: Sequence[Pieces], tails: Sequence[Pieces]) -> Tensor:
        """Logits (n, relations), from the mean of the token states of "[CLS] head [SEP] tail [SEP]"."""
        rows = [[self.start, *head, self.between, *tail, self.between] for head, tail in zip(heads, tails, strict=True)]
        tokens, mask = pad(rows, padding=0)
        firsts = torch.tensor([len(head) + 2 for head in heads])
        types = (torch.arange(tokens.shape[1]) >= firsts[:, None]).long()
        states = self.encoder(input_ids=tokens, attention_mask=mask, token_type_ids=types).last_hidden_state
        if mask is None:
            return self.head(states.mean(1))
        shares = (mask / mask.sum(1, keepdim=True)).to(states.dtype)
        return self.head((states * shares[:, :, None]).sum(1))

    def encode(self, phrases: Sequence[str]) -> list[list[int]]:
        """Each phrase's word pieces."""
        return encode(self.tokenizer, phrases)

    @torch.no_grad()
    def shift(self, by: float) -> None:
        """Adds so much to all logits."""
        self.head.bias.add_(by)

    def trained(self) -> dict[str, Tensor]:
        """What differs from the encoder: the tensors a folder holds."""
        return {name: value.detach() for name, value in self.named_parameters() if value.requires_grad}

    def save(self, folder: Path) -> None:
        """Writes the trained tensors in half precision and what loading needs to know."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.half() for name, value in self.trained().items()}, folder / WEIGHTS)
        facts = {"relations": self.relations, "rank": self.rank, "encoder_sha256": self.encoder_sha256}
        (folder / CONFIG).write_text(json.dumps(facts, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> "MiniLMPairs":
        """The network of a folder, its change merged into the encoder.

        Raises ValueError when the folder was trained on another encoder."""
        facts = json.loads((folder / CONFIG).read_text())
        network = cls(encoder_folder, facts["relations"], facts["rank"])
        if facts["encoder_sha256"] != network.encoder_sha256:
            raise ValueError(
                f"{folder} was trained on the encoder {facts['encoder_sha256']}, here it is {network.encoder_sha256}"
            )
        network.load_state_dict(load_file(folder / WEIGHTS), strict=False)
        for layer in list(network.encoder.modules()):
            if parametrize.is_parametrized(layer):
                parametrize.remove_parametrizations(layer, "weight")
        network.encoder.set_attn_implementation("eager")  # a tenth faster than the fused kernel at ten tokens
        return network.to(dtype).eval()


def _read_encoder(folder: Path) -> BertModel:
    encoder = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
    stored = load_file(folder / WEIGHTS)  # has a pooler and position numbers besides, which are not used
    encoder.load_state_dict({name: stored[name] for name in encoder.state_dict()})
    return encoder
