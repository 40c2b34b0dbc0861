"""Small random models, saved as those of the Hugging Face hub are."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from mitigate.models.comet import Comet
from mitigate.models.decoder import MASKED, Decoder, DecoderConfig
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding, Layout

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def small_comet(layers: int = 2, heads: int = 4, layout: Layout = "packed", relation: str = "phrase") -> Comet:
    """A small random COMeT with MiniLM's vocabulary."""
    torch.manual_seed(0)
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=layers, heads=heads, inner=32)
    return Comet(Decoder(config), Encoding.of_encoder(minilm_folder()), layout, relation).eval()


def save_classifier(
    folder: Path,
    names: list[str],
    width: int = 16,
    words: Sequence[str] = (*SPECIAL, "this", "person", "thief"),
    **more: float,
) -> Path:
    """A small random classifier whose columns have those names; more: further settings of a BertConfig."""
    shape = {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(words), **shape, **more, id2label=dict(enumerate(names)))
    BertForSequenceClassification(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def metaspace(special: list[str], texts: list[str], scheme: str) -> Tokenizer:
    """A tokenizer that marks a word's beginning by "▁"."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, special_tokens=special))
    return tokenizer


def byte_level(special: list[str], texts: list[str]) -> Tokenizer:
    """A tokenizer that works on bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_llama(folder: Path, texts: list[str]) -> Path:
    """A small random Llama, whose tokenizer puts <s> before a text and marks a word's beginning by "▁"."""
    tokenizer = metaspace(["<unk>", "<s>", "</s>"], texts, "first")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    config = LlamaConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64, **SHAPE)
    return _save_language_model(folder, LlamaForCausalLM(config), tokenizer, bos_token="<s>", eos_token="</s>")


CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def save_chat_llama(folder: Path, texts: list[str]) -> Path:
    """A small random Llama with a chat template, whose tokenizer works on bytes and adds nothing to a text, as that of
    SmolLM2 does."""
    tokenizer = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], texts)
    more = {"num_key_value_heads": 2, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
    config = LlamaConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=256, **SHAPE, **more)
    ends = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "chat_template": CHAT}
    return _save_language_model(folder, LlamaForCausalLM(config), tokenizer, **ends)


def save_neox(folder: Path, texts: list[str]) -> Path:
    """A small random GPT-NeoX, whose tokenizer works on bytes and adds nothing to a text."""
    tokenizer = byte_level(["<|endoftext|>"], texts)
    config = GPTNeoXConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64, **SHAPE)
    return _save_language_model(folder, GPTNeoXForCausalLM(config), tokenizer, eos_token="<|endoftext|>")


def _save_language_model(folder: Path, model: PreTrainedModel, tokenizer: Tokenizer, **tokens: str) -> Path:
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens).save_pretrained(folder)
    return folder


def save_gpt1(folder: Path, texts: list[str], width: int = 32) -> Path:
    """A small random GPT-1 with a tokenizer of its own, in the files that openai-gpt has on the hub."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>")
    tokenizer.train_from_iterator(texts, trainer)
    shape = {"n_embd": width, "n_layer": 2, "n_head": 4, "n_positions": 64}
    OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=tokenizer.get_vocab_size(), **shape)).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def save_original(file: Path, gpt1: Path, relations: Sequence[str]) -> Path:
    """A checkpoint of the original COMeT: a small GPT-1 under the original's names, with <START>, <END>, relations as
    words, and 31 positions."""
    theirs = OpenAIGPTLMHeadModel.from_pretrained(gpt1).transformer.state_dict()
    vocab = Tokenizer.from_file(str(gpt1 / "tokenizer.json")).get_vocab()
    special = ["<START>", "<END>", *(f"<{relation}>" for relation in relations)]
    words, places = theirs.pop("tokens_embed.weight"), theirs.pop("positions_embed.weight")
    table = torch.cat([words, torch.randn(len(special), words.shape[1]) * 0.02, places[:31]])
    state = {"module.transformer.embed.weight": table}
    for name, tensor in theirs.items():
        module, parameter = name.rsplit(".", 1)
        if "ln_" in module:
            state[f"module.transformer.{module}.{'g' if parameter == 'weight' else 'b'}"] = tensor
        elif parameter == "weight":
            state[f"module.transformer.{module}.w"] = tensor[None]  # a convolution, (1, in, out)
        else:
            state[f"module.transformer.{module}.b"] = tensor
    vocab |= {token: len(vocab) + number for number, token in enumerate(special)}
    torch.save({"epoch": 1, "state_dict": state, "opt": {}, "vocab": vocab}, file, _use_new_zipfile_serialization=False)
    return file


def save_bart(folder: Path, texts: list[str]) -> Path:
    """A small random BART, whose tokenizer works on bytes and puts <s> and </s> around a text."""
    tokenizer = byte_level(["<s>", "<pad>", "</s>", "<unk>"], texts)
    around = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    shape: dict[str, int] = {"d_model": 32, "max_position_embeddings": 64}
    for part in ("encoder", "decoder"):
        shape |= {f"{part}_layers": 2, f"{part}_attention_heads": 4, f"{part}_ffn_dim": 64}
    config = BartConfig(vocab_size=tokenizer.get_vocab_size(), **shape)  # the numbers of its special tokens are these
    model = BartForConditionalGeneration(config)
    return _save_language_model(folder, model, tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def save_t5(folder: Path, texts: list[str]) -> Path:
    """A small random T5, whose tokenizer marks a word's beginning by "▁" and puts </s> after a text."""
    tokenizer = metaspace(["<pad>", "</s>", "<unk>"], texts, "always")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    shape = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = T5Config(vocab_size=tokenizer.get_vocab_size(), decoder_start_token_id=0, **shape)
    model = T5ForConditionalGeneration(config)
    return _save_language_model(folder, model, tokenizer, eos_token="</s>", pad_token="<pad>")


class TextsApart:
    """A row looks at itself and the earlier rows of its text, but not at those that unseen (rows,) marks. (An
    `Attention`.)"""

    def __init__(self, lengths: Sequence[int], unseen: Tensor | None = None) -> None:
        self.lengths = list(lengths)
        self.unseen = torch.zeros(sum(lengths), dtype=torch.bool) if unseen is None else unseen

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        texts = zip(*(rows.split(self.lengths) for rows in (query, key, value, self.unseen)), strict=True)
        return torch.cat([self._alone(*text) for text in texts])

    def _alone(self, query: Tensor, key: Tensor, value: Tensor, unseen: Tensor) -> Tensor:
        length = len(query)
        bias = torch.full((length, length), MASKED).triu(1) + MASKED * unseen
        query, key, value = (rows.transpose(0, 1) for rows in (query, key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias.to(query.dtype)).transpose(0, 1)


def rows_of(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Tokens (rows,) of all texts in order, and the position (rows,) of each in its text."""
    return torch.tensor(list(chain.from_iterable(texts))), torch.cat([torch.arange(len(text)) for text in texts])
