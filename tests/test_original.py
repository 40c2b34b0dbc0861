import os
from pathlib import Path

import pytest
import torch
from refusals import refuses
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor
from torch.nn import functional as F

from mitigate.models.original import load, locate

WORDS = [".", "win", "a", "case", "capable", "of", "lawyer", "court"]
SPECIAL = ["<START>", "<END>", "<CapableOf>"]
WIDTH, LAYERS = 128, 2


class Options:
    """Stands for the classes of the original's options, which this code does not have."""


class Harmful:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("harm",)


def state_dict(prefix: str = "") -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator) * 0.1

    tensors = {"transformer.embed.weight": random(len(WORDS) + len(SPECIAL) + 31, WIDTH)}
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}"
        for name, wide, out in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            tensors |= {f"{at}.{name}.w": random(1, wide, out), f"{at}.{name}.b": random(out)}
        for name in ("ln_1", "ln_2"):
            tensors |= {f"{at}.{name}.g": 1 + random(WIDTH), f"{at}.{name}.b": random(WIDTH)}
    return {prefix + name: tensor for name, tensor in tensors.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="."))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder: Path, prefix: str = "", **more: object) -> Path:
    vocab = {word: number for number, word in enumerate(WORDS + SPECIAL)}
    checkpoint = {"epoch": 1, "state_dict": state_dict(prefix), "opt": Options(), "vocab": vocab, **more}
    torch.save(checkpoint, folder / "model.pickle", _use_new_zipfile_serialization=False)  # as torch did in 2019
    return folder / "model.pickle"


def plain_logits(tokens: list[int], num_words: int, num_prompt: int = 31) -> Tensor:
    """The described model, written down once more: all slots, padding (of the first num_prompt) masked as keys."""
    state = state_dict()
    table, length = state["transformer.embed.weight"], len(tokens)
    hidden = table[torch.tensor(tokens)] + table[num_words : num_words + length]
    is_word = (torch.tensor(tokens) != 0).logical_or(torch.arange(length) >= num_prompt)
    seen = torch.ones(length, length).tril() * is_word
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}"

        def conv(x: Tensor, name: str, at: str = at) -> Tensor:
            return x @ state[f"{at}.{name}.w"][0] + state[f"{at}.{name}.b"]

        def norm(x: Tensor, name: str, at: str = at) -> Tensor:
            x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
            return x * state[f"{at}.{name}.g"] + state[f"{at}.{name}.b"]

        query, key, value = (part.unflatten(1, (2, 64)) for part in conv(hidden, "attn.c_attn").split(WIDTH, dim=1))
        scores = torch.einsum("qhw,khw->hqk", query, key) / 8
        weights = (scores * seen - 1e9 * (1 - seen)).softmax(-1)
        hidden = norm(hidden + conv(torch.einsum("hqk,khw->qhw", weights, value).flatten(1), "attn.c_proj"), "ln_1")
        hidden = norm(hidden + conv(F.gelu(conv(hidden, "mlp.c_fc"), approximate="tanh"), "mlp.c_proj"), "ln_2")
    return hidden @ table[:num_words].T


@pytest.mark.parametrize("prefix", ["", "module."])
def test_gives_what_the_described_model_gives(folder: Path, prefix: str) -> None:
    comet = load(write(folder, prefix), folder)
    (prompt,), (tail,) = comet.prompts(["lawyer"], ["capable of"]), comet.tails(["win a case"])
    assert prompt == [6] + [0] * 9 + [4, 5] + [0] * 3
    assert tail == [1, 2, 3, 9]
    logits = plain_logits([*prompt, *tail], num_words=len(WORDS + SPECIAL))
    expected = F.cross_entropy(logits[14:18], torch.tensor(tail), reduction="none")  # from position 14, a pad
    torch.testing.assert_close(comet.nll([prompt], [tail])[:, None], expected[:, None], atol=1e-4, rtol=0)


def test_beams_are_what_the_described_model_finds(folder: Path) -> None:
    """Each beam's log-probability, from its own 15 to 30 positions computed plainly."""
    comet = load(write(folder), folder)
    (prompt,) = comet.prompts(["lawyer of a court"], ["capable of"])
    (found,) = comet.search([prompt], beams=4, max_length=4)
    for beam in found:
        tail = [*beam.tokens, *[9] * beam.ended]
        logits = plain_logits([*prompt, *tail], num_words=len(WORDS + SPECIAL), num_prompt=15)[14:-1]
        log_probs = logits.log_softmax(-1).gather(1, torch.tensor(tail)[:, None])
        assert log_probs.sum().item() == pytest.approx(beam.log_prob, abs=1e-4)


def test_other_tensors_and_files_are_refused(folder: Path) -> None:
    """As of relations that are tokens: their slot is one wide."""
    state = state_dict()
    state["transformer.embed.weight"] = state["transformer.embed.weight"][:-4]
    with pytest.raises(ValueError, match=r"has 27 positions; those that can be read have 31"):
        load(write(folder, state_dict=state), folder)
    state = state_dict()
    del state["transformer.h.1.mlp.c_fc.w"]
    for wrong in ({"state_dict": state}, {"state_dict": 3}, {"vocab": 3}, {"vocab": {f"{n}": n for n in range(11)}}):
        refuses(ValueError, "it has other tensors or words", load, write(folder, **wrong), folder)
    assert locate(write(folder), str(folder)) == folder
    refuses(FileNotFoundError, "nowhere.pickle is not a file; give the path", locate, "nowhere.pickle", str(folder))
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text().replace("court", "churt"))
    refuses(ValueError, "needs the tokenizer.json of openai-gpt", load, write(folder), folder)


def test_nothing_in_a_checkpoint_is_run(folder: Path) -> None:
    load(write(folder, opt=Harmful()), folder)
    assert not (folder / "harm").exists()
    (folder / "text.pickle").write_text("no pickle")
    refuses(ValueError, "is not a file that torch has written, or it is damaged", load, folder / "text.pickle", folder)
    torch.save({}, folder / "new.pickle")
    refuses(ValueError, "is an archive of a later torch, which may be a program", load, folder / "new.pickle", folder)
