"""Any Hugging Face sequence classifier whose labels can be read as regard, such as sasha/regardv3.

Which column means what is read from the model's own id2label, by name, and never assumed."""

import hashlib
from collections.abc import Mapping, Sequence
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from models.bert import TOKENS, pad, token_batches
from models.hub import no_bars, whole, without_code
from models.regard import LABELS

NAMES = {
    "negative": ("negative", "neg", "unfavourable", "unfavorable", "bad"),
    "neutral": ("neutral", "neu"),
    "positive": ("positive", "pos", "favourable", "favorable", "good"),
    "other": ("other", "mixed"),
}
LONGEST = 128  # tokens of a text that are read


class SequenceClassifier:
    """A model and its tokenizer; columns says for each label which of the model's outputs is its, None for none."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.columns = columns(model.config.id2label)
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str, dtype: torch.dtype = torch.float32) -> "SequenceClassifier":
        """A model of the hub, or of a folder.

        Raises ValueError when it cannot be had, or its labels not be read."""
        try:
            # A tenth faster than the fused kernel at ten tokens, as for minilm.
            with no_bars():
                model = whole(AutoModelForSequenceClassification, name, dtype=dtype, attn_implementation="eager")
            tokenizer = without_code(AutoTokenizer, name)
        except OSError as error:
            raise ValueError(
                f"the classifier {name!r} is neither a folder here nor to be had from the Hugging Face hub; give "
                "score.bert.model the folder of a copy, or choose score.regard=minilm, which comes with the project"
            ) from error
        except UnpicklingError as error:
            raise ValueError(
                f"the weights of the classifier {name!r} are a pickle that would run code; give one with safetensors"
            ) from error
        return cls(model, tokenizer)

    @torch.inference_mode()
    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS; a label the model does not have is never likely."""
        if not texts:
            return np.zeros((0, len(LABELS)), dtype=np.float32)
        rows = self.tokenizer(list(texts), truncation=True, max_length=LONGEST)["input_ids"]
        found = np.zeros((len(rows), self.model.config.num_labels), dtype=np.float32)
        padding = self.tokenizer.pad_token_id
        alone = None in (padding, self.model.config.pad_token_id)  # as with GPT: texts are never padded
        for indices in token_batches([len(row) for row in rows], 1 if alone else TOKENS):
            tokens, mask = pad([rows[index] for index in indices], padding or 0)
            logits = self.model(input_ids=tokens, attention_mask=mask).logits
            found[indices] = logits.float().softmax(-1).numpy()
        result = np.zeros((len(rows), len(LABELS)), dtype=np.float32)
        for label, column in enumerate(self.columns):
            if column is not None:
                result[:, label] = found[:, column]
        return result

    def sha256(self) -> str:
        """The SHA-256 of everything that a text's label depends on: the weights, the tokenizer and the labels'
        columns."""
        digest = hashlib.sha256(f"{self.columns} {self.tokenizer.backend_tokenizer.to_str()}".encode())
        for name, value in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + value.contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()


def columns(id2label: Mapping[int, str]) -> list[int | None]:
    """The model's column for each of LABELS, by name.

    Raises ValueError when a name means none of them, when two mean the same, or when negative, neutral or
    positive is missing."""
    meaning = {name: label for label, names in NAMES.items() for name in names}
    found = {column: meaning.get(name.strip().lower()) for column, name in id2label.items()}
    wanted = [label for label in LABELS if label != "other"]
    if None in found.values() or len(set(found.values())) < len(found) or not set(wanted) <= set(found.values()):
        raise ValueError(
            f"the classifier's labels are {', '.join(id2label.values())}; wanted are {', '.join(wanted)}, each "
            "once, and other or not. Set id2label in its config.json to what its columns mean"
        )
    places = {label: int(column) for column, label in found.items()}
    return [places.get(label) for label in LABELS]
