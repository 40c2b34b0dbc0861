import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from texts_apart import TextsApart, rows_of
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    BertGenerationConfig,
    BertGenerationDecoder,
    GPT2Config,
    GPT2LMHeadModel,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
)

from models.decoder import Decoder, DecoderConfig, Kind

KINDS: tuple[Kind, ...] = ("gpt1", "gpt2", "minilm")
TEXTS = [[3, 1, 4, 1, 5, 9], [2, 6], [5, 3, 5, 8, 9, 7, 9, 3, 2, 3]]


def small(kind: Kind) -> DecoderConfig:
    return DecoderConfig(kind, vocab_size=11, positions=12, width=16, layers=3, heads=4, inner=64)


def theirs(kind: Kind) -> PreTrainedModel:
    """A small random model of Hugging Face's, its biases and norms random too."""
    gpt = {"vocab_size": 11, "n_positions": 12, "n_embd": 16, "n_layer": 3, "n_head": 4}
    model: PreTrainedModel
    if kind == "gpt1":
        model = OpenAIGPTLMHeadModel(OpenAIGPTConfig(**gpt))
    elif kind == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(**gpt, bos_token_id=None, eos_token_id=None))
    else:
        model = BertGenerationDecoder(
            BertGenerationConfig(
                vocab_size=11,
                max_position_embeddings=12,
                hidden_size=16,
                num_hidden_layers=3,
                num_attention_heads=4,
                intermediate_size=64,
                is_decoder=True,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def our_logits(decoder: Decoder, texts: list[list[int]]) -> Tensor:
    with torch.no_grad():
        return decoder.logits(decoder(*rows_of(texts), TextsApart([len(text) for text in texts])))


def their_logits(model: PreTrainedModel, texts: list[list[int]]) -> Tensor:
    with torch.no_grad():
        return torch.cat([model(torch.tensor([text])).logits[0] for text in texts])


@pytest.mark.parametrize("kind", KINDS)
def test_reads_what_hugging_face_wrote(kind: Kind, tmp_path: Path) -> None:
    model = theirs(kind)
    model.save_pretrained(tmp_path)
    logits = our_logits(Decoder.load(tmp_path), TEXTS)
    assert logits.std() > 0.1
    torch.testing.assert_close(logits, their_logits(model, TEXTS), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_hugging_face_reads_what_we_wrote(kind: Kind, tmp_path: Path) -> None:
    decoder = Decoder(small(kind)).eval()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    decoder.save(tmp_path, eos_token_id=7)
    model, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert model.config.eos_token_id == 7
    torch.testing.assert_close(our_logits(decoder, TEXTS), their_logits(model, TEXTS), atol=1e-4, rtol=0)
    assert Decoder.load(tmp_path).config == decoder.config


@pytest.mark.parametrize("kind", ["gpt1", "gpt2"])
def test_reads_a_bare_model(kind: Kind, tmp_path: Path) -> None:
    model = theirs(kind)
    model.base_model.save_pretrained(tmp_path)  # as the files of gpt2 and openai-gpt are: no prefix, no head
    torch.testing.assert_close(our_logits(Decoder.load(tmp_path), TEXTS), their_logits(model, TEXTS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_does_not_see_its_neighbours_nor_its_future(kind: Kind) -> None:
    decoder = Decoder(small(kind)).eval()
    together = our_logits(decoder, TEXTS)
    alone = torch.cat([our_logits(decoder, [text]) for text in TEXTS])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(our_logits(decoder, [TEXTS[0][:3]]), together[:3])


@pytest.mark.parametrize("kind", KINDS)
def test_new_words_leave_the_old_as_they_are(kind: Kind) -> None:
    decoder = Decoder(small(kind)).eval()
    before = our_logits(decoder, TEXTS)
    decoder.grow(13)
    after = our_logits(decoder, TEXTS)
    assert after.shape == (18, 13)
    torch.testing.assert_close(after[:, :11], before, atol=1e-6, rtol=0)
    assert decoder.config.vocab_size == 13
    assert decoder.words.weight[11:].std() > 0
    with pytest.raises(ValueError, match="a vocabulary of 13 cannot grow to 12"):
        decoder.grow(12)


def test_dropout_acts_in_training_only() -> None:
    decoder = Decoder(small("minilm"))
    assert not torch.equal(our_logits(decoder, TEXTS), our_logits(decoder, TEXTS))
    decoder.eval()
    assert torch.equal(our_logits(decoder, TEXTS), our_logits(decoder, TEXTS))


def test_all_faults_of_a_config_are_named_together() -> None:
    with pytest.raises(ValueError, match=r"width 10 must be a multiple of heads 4; inner 64 must be 4 x width 10"):
        DecoderConfig("gpt1", width=10, heads=4, inner=64)


def test_refuses_what_it_would_compute_otherwise(tmp_path: Path) -> None:
    Decoder(small("gpt2")).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"activation_function": "relu"}))
    with pytest.raises(ValueError, match="activation_function='relu'; the decoder computes"):
        Decoder.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    with pytest.raises(ValueError, match="type 't5'; allowed: openai-gpt, gpt2, bert-generation"):
        Decoder.load(tmp_path)


def test_weights_that_are_cut_incomplete_or_of_another_shape_are_told(tmp_path: Path) -> None:
    Decoder(small("gpt2")).save(tmp_path)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    whole, tensors = weights.read_bytes(), load_file(weights)
    weights.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"model.safetensors are absent or damaged \(.*\); copy its folder again, or"):
        Decoder.load(tmp_path)
    save_file({name: tensor for name, tensor in tensors.items() if "wpe" not in name}, weights)
    with pytest.raises(ValueError, match=r"model.safetensors lack transformer.wpe.weight; copy its folder again"):
        Decoder.load(tmp_path)
    weights.write_bytes(whole)
    config.write_text(json.dumps(json.loads(config.read_text()) | {"vocab_size": 12}))
    with pytest.raises(ValueError, match=r"not those that .*config.json describes \(.* size mismatch for words.weight"):
        Decoder.load(tmp_path)
    weights.unlink()
    with pytest.raises(ValueError, match=r"model.safetensors are absent or damaged"):
        Decoder.load(tmp_path)
