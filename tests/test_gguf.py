"""GGUF files, written here with gguf's own writer: converted, opened by plain transformers, and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import MODEL_ARCH, GGMLQuantizationType, GGUFWriter, dequantize, get_tensor_name_map, quantize
from refusals import refuses
from small_models import save_chat_llama
from transformers import AutoModelForCausalLM, AutoTokenizer

from mitigate.errors import MitigateError
from mitigate.models import hub
from mitigate.train.generator import open_generator

TEXTS = ["a lawyer is capable of winning a case", "a church is used for worship", "a nurse desires to help people"]
REFUSED = r"model.gguf is damaged, or a GGUF file that transformers does not read \(.*\); give another one"
SPECIAL = 3  # the first tokens of the tokenizer


def turned(weights: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys in llama.cpp's order: the halves of each head interleaved."""
    return weights.reshape(heads, 2, -1, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)


def write_gguf(file: Path, folder: Path, numbers: str = "F32", architecture: str = "llama", words: bool = True) -> Path:
    """The Llama of a folder as a GGUF file; matrices in those numbers."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    config, writer = model.config, GGUFWriter(file, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    if words:
        stored = json.loads((folder / "tokenizer.json").read_text())["model"]
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(sorted(stored["vocab"], key=stored["vocab"].__getitem__))
        writer.add_token_types([3] * SPECIAL + [1] * (len(stored["vocab"]) - SPECIAL))
        writer.add_token_merges([" ".join(pair) for pair in stored["merges"]])
        writer.add_bos_token_id(tokenizer.bos_token_id)
        writer.add_eos_token_id(tokenizer.eos_token_id)
        writer.add_chat_template(tokenizer.chat_template)
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":  # tied
            continue
        weights = tensor.numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            weights = turned(weights, heads) if part in name else weights
        kind = GGMLQuantizationType["F32" if weights.ndim == 1 else numbers]
        writer.add_tensor(names.get_name(name, (".weight",)), quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return save_chat_llama(tmp_path_factory.mktemp("llama"), TEXTS)


@pytest.mark.parametrize("numbers", ["F32", "Q4_1"])
def test_plain_transformers_opens_what_the_file_holds(numbers: str, llama: Path, tmp_path: Path, monkeypatch) -> None:
    """Of Q4_1 the weights as they are rounded in the file, which leaves the rounded model far from the first one."""
    file = write_gguf(tmp_path / "model.gguf", llama, numbers)
    folder = hub.from_gguf(file, tmp_path / "cache")
    assert folder.parent == tmp_path / "cache" / "gguf"
    first, found = (AutoModelForCausalLM.from_pretrained(place) for place in (llama, folder))
    for name, weights in first.state_dict().items():
        kind = GGMLQuantizationType["F32" if weights.ndim == 1 else numbers]
        held = torch.from_numpy(dequantize(quantize(weights.numpy(), kind), kind))
        torch.testing.assert_close(found.state_dict()[name], held)
    text = f"{TEXTS[0]}<|im_end|>"
    ours, theirs = (AutoTokenizer.from_pretrained(place) for place in (folder, llama))
    assert ours(text)["input_ids"] == theirs(text)["input_ids"]
    assert (ours.eos_token, ours.chat_template) == ("<|im_end|>", theirs.chat_template)
    monkeypatch.setattr(hub, "load_complete", lambda *_: pytest.fail("read again"))
    assert hub.locate(str(file), seq2seq=False, cache=tmp_path / "cache") == folder


def cut(share: float) -> Callable[[Path, Path], Path]:
    def write(file: Path, llama: Path) -> Path:
        content = write_gguf(file, llama).read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        return file

    return write


def written(**how: Any) -> Callable[[Path, Path], Path]:
    return lambda file, llama: write_gguf(file, llama, **how)


def other(file: Path, _: Path) -> Path:
    file.write_bytes(b"PK\3\4 an archive")
    return file


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file, _: file, "no such file: .*model.gguf; give the path of a GGUF file, or a folder"),
        (other, REFUSED),
        (cut(0.9), REFUSED),
        (written(words=False), REFUSED),
    ],
    ids=["absent", "another format", "weights cut", "no tokenizer"],
)
def test_other_files_are_refused_with_a_sentence(write, message: str, llama: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "model.gguf", llama)
    refuses(MitigateError, message, open_generator, file)
