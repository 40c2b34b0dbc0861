"""Checkpoints of the original COMeT code (conceptnet_pretrained_model.pickle): GPT-1 with its words, then the
special tokens, then its positions in one table."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from mitigate.models import hub
from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig, tensor_of
from mitigate.models.tail_prompts import Encoding, Layout, open_tokenizer

HEAD_WIDTH = 64  # of GPT-1's attention heads, whose number no tensor shows
POSITIONS = 31  # slots for head (10), relation (5) and tail (15 and the end token)
ZIP = b"PK\x03\x04"  # how a file of torch begins since 1.6, which may be a TorchScript program
WANTED = "give the path of the original COMeT's conceptnet_pretrained_model.pickle (model.init=FILE)"
PAD = 0  # the original pads with GPT-1's token 0 ("."), so nothing attends to it
THEIRS = {"w": "weight", "g": "weight", "b": "bias"}  # names of parameters, and those of Hugging Face


def locate(checkpoint: Path | str, name: str) -> Path:
    """The folder of a checkpoint's tokenizer: `name` itself when it is a folder, else the hub's model of that name.

    Raises FileNotFoundError when it, or the checkpoint that needs it, is not there."""
    if not Path(checkpoint).is_file():
        raise FileNotFoundError(f"{checkpoint} is not a file; {WANTED}")
    return hub.locate(name)


def load(
    checkpoint: Path | str, folder: Path, dropout: float = 0.1, layout: Layout = "comet", relation: str = "words"
) -> Comet:
    """The COMeT of a checkpoint, with the tokenizer of a folder of openai-gpt.

    Such a checkpoint was trained in the fixed slots; with relations in words, as a relation's slot of five tokens
    tells: for relations as tokens the original makes it one token wide, so that there are 27 positions.
    Raises ValueError when the two do not have the same words, or the file is no such checkpoint."""
    content = _unpickle(Path(checkpoint))
    if not isinstance(content, dict) or not {"state_dict", "vocab"} <= content.keys():
        raise ValueError(f"{checkpoint} is not of the original COMeT: it has no state_dict and vocab; {WANTED}")
    try:
        decoder = _decoder(Path(checkpoint), content, dropout)
        end = content["vocab"]["<END>"]
    except (AttributeError, KeyError, IndexError, TypeError, RuntimeError, ZeroDivisionError) as error:
        raise ValueError(
            f"{checkpoint} is not of the original COMeT: it has other tensors or words; {WANTED}"
        ) from error
    vocab, tokenizer = content["vocab"], open_tokenizer(folder)
    special = sorted((token for token in vocab if tokenizer.token_to_id(token) is None), key=vocab.__getitem__)
    encoding = Encoding(tokenizer, start=None, end=end, pad=PAD)
    encoding.add(special)
    differing = [token for token, number in vocab.items() if tokenizer.token_to_id(token) != number]
    if differing or encoding.vocab_size != len(vocab):
        raise ValueError(f"{folder} needs the tokenizer.json of openai-gpt; {len(differing)} words are others")
    return Comet(decoder, encoding, layout, relation).eval()


def _decoder(checkpoint: Path, content: dict[str, Any], dropout: float) -> Decoder:
    """The network of a checkpoint's state_dict, whose matrices are convolutions of width 1, (1, in, out)."""
    stored = {}
    for name, tensor in content["state_dict"].items():
        module, parameter = name.removeprefix("module.").rsplit(".", 1)
        stored[f"{module}.{THEIRS.get(parameter, parameter)}"] = tensor[0] if tensor.ndim == 3 else tensor
    table, vocab_size = stored["transformer.embed.weight"], len(content["vocab"])
    if len(table) - vocab_size != POSITIONS:
        raise ValueError(
            f"{checkpoint} has {len(table) - vocab_size} positions; those that can be read have {POSITIONS}, for heads "
            "of 10 tokens, relations of 5 (in words) and tails of 15"
        )
    stored["transformer.tokens_embed.weight"] = table[:vocab_size]
    stored["transformer.positions_embed.weight"] = table[vocab_size:]
    width = table.shape[1]
    sizes = {"width": width, "heads": width // HEAD_WIDTH, "inner": 4 * width}
    layers = sum(name.endswith("attn.c_attn.weight") for name in stored)
    decoder = Decoder(DecoderConfig("gpt1", vocab_size, POSITIONS, layers=layers, dropout=dropout, **sizes))
    decoder.load_state_dict({name: tensor_of(stored, "gpt1", name) for name in decoder.state_dict()})
    return decoder


class _Unpickler(pickle.Unpickler):
    """An unpickler that rebuilds tensors and plain data only. Any other class, such as those of the original's options,
    becomes an empty stand-in: nothing that the file names is run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED or (module == "torch" and name.isidentifier() and name.endswith("Storage")):
            return super().find_class(module, name)
        return _StandIn


class _StandIn:
    def __init__(self, *_: object, **__: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...

    def __setitem__(self, key: object, value: object) -> None: ...

    def append(self, item: object) -> None: ...


_ALLOWED = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
}


def _unpickle(path: Path) -> Any:
    """The content of the file. Raises ValueError when torch cannot read it."""
    # weights_only=True refuses the whole file for the classes of its options.
    reader = SimpleNamespace(Unpickler=_Unpickler, load=lambda file, **_: _Unpickler(file).load(), __name__="reader")
    try:
        with path.open("rb") as file:
            if file.read(len(ZIP)) != ZIP:
                return torch.load(path, map_location="cpu", weights_only=False, pickle_module=reader)
    except Exception as error:  # of any kind: what is read may be anything
        raise ValueError(
            f"{path} is not a file that torch has written, or it is damaged ({type(error).__name__}); {WANTED}"
        ) from error
    raise ValueError(f"{path} is an archive of a later torch, which may be a program and is not read here; {WANTED}")
