"""The readers of plan2.md and plan3.md that read by a causal language model: heads on its states, fitted to the same
ratings as crowd2 and people_valid (`crowd_lm` of version 0.2)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import ModuleList
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

from mitigate.models import hub
from mitigate.models.encoder import device_of_states, token_batches
from mitigate.models.hf import load_tokenizer
from mitigate.models.stored_tensors import sha256_of_each
from mitigate.score.people import Crowd2, PeopleValid


class CausalStates:
    """The mean token states of texts in the layer in the middle of a causal language model. (`States` of encoder.py.)

    The end token begins each text and is left out of the mean: the first state of such models is many times as long as
    the others, whatever the text is."""

    def __init__(self, base: str | Path) -> None:
        folder = hub.locate(str(base), seq2seq=False)
        self.sha256 = sha256_of_each(sorted([*folder.glob("*.safetensors"), *folder.glob("tokenizer*.json")]))
        self.tokenizer = load_tokenizer(folder)
        model = hub.load_model(AutoModelForCausalLM, folder).to(device_of_states())
        self.model = model.eval().base_model
        num_layers = self.model.config.num_hidden_layers
        self.layer = max(1, round(num_layers / 2))
        for part in self.model.modules():
            if isinstance(part, ModuleList) and len(part) == num_layers:
                del part[self.layer + 1 :]  # one more stays, since a norm follows the last

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32, each of length 1."""
        found = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"] if texts else []
        rows = [[self.tokenizer.eos_token_id, *row] for row in found]
        features = np.zeros((len(rows), self.model.config.hidden_size), dtype=np.float32)
        for batch in token_batches([len(row) for row in rows], one_length=True):
            tokens = torch.tensor([rows[row] for row in batch], device=self.model.device)
            states = self.model(input_ids=tokens, output_hidden_states=True, use_cache=False).hidden_states
            words = states[self.layer][:, 1:].float()  # (batch, length, width)
            features[batch] = F.normalize(words.sum(1) / max(1, words.shape[1])).cpu().numpy()
        return features


class CrowdLM(Crowd2):
    name = "crowd_lm"

    def __init__(self, folder: str | Path, base: str) -> None:
        super().__init__(folder, CausalStates(base))


class PeopleValidLM(PeopleValid):
    def __init__(self, folder: str | Path, base: str) -> None:
        super().__init__(folder, CausalStates(base))
