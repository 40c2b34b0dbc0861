"""The encoder that classifiers label with is transformers' BertModel, to the last bit."""

import json
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from models.bert import Bert
from models.minilm import locate

TOKENS = torch.tensor([[101, 5160, 2003, 5214, 1997, 102], [101, 6821, 102, 0, 0, 0]])
MASK = (TOKENS != 0).long()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask", [None, MASK], ids=["alike", "padded"])
def test_the_states_are_bert_models(dtype: torch.dtype, mask: torch.Tensor | None) -> None:
    theirs = BertModel.from_pretrained(locate(), add_pooling_layer=False, attn_implementation="eager").to(dtype).eval()
    ours = Bert.load(locate()).to(dtype)
    assert list(dict(ours.named_parameters())) == list(dict(theirs.named_parameters()))
    with torch.inference_mode():
        found = ours(input_ids=TOKENS, attention_mask=mask).last_hidden_state
        wanted = theirs(input_ids=TOKENS, attention_mask=mask).last_hidden_state
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1, :3], wanted[1, :3])  # of padding nothing is read


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    facts = BertConfig(hidden_act="relu").to_dict()
    (tmp_path / "config.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match="holds a model of type bert with relu; bert with gelu is needed"):
        Bert.load(tmp_path)
