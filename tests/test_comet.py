import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from models.comet import Comet, Layout, regimen
from models.decoder import Decoder, DecoderConfig
from models.encoding import Encoding
from models.minilm import locate


@pytest.fixture(scope="module")
def comet() -> Comet:
    """A small random COMeT with MiniLM's vocabulary."""
    torch.manual_seed(0)
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=2, heads=4, inner=32)
    return Comet(Decoder(config), Encoding.of_encoder(locate())).eval()


def words(comet: Comet, ids: list[int]) -> str:
    return " ".join(comet.encoding.tokenizer.id_to_token(i) for i in ids)


def test_prompts_and_tails_are_cut_as_in_comet(comet: Comet) -> None:
    long = " ".join("abcdefghijklmnopqrstuvwxyz")
    (prompt,) = comet.prompts([long], ["is a very long relation phrase"])
    assert words(comet, prompt) == "[CLS] a b c d e f g h i j is a very long relation"
    (tail,) = comet.tails([long])
    assert words(comet, tail) == "a b c d e f g h i j k l m n o [SEP]"
    assert comet.tails([""]) == [[102]]


def test_nll_equals_that_of_padded_batches(comet: Comet) -> None:
    """Against Hugging Face's way: every text padded, logits everywhere, labels of -100 off the tails."""
    prompts = comet.prompts(["lawyer", "a very big church"], ["is capable of", "is used for"])
    tails = comet.tails(["win a case", "worship"])
    texts = [torch.tensor([*prompt, *tail]) for prompt, tail in zip(prompts, tails, strict=True)]
    expected = []
    for text, tail in zip(texts, tails, strict=True):
        padded = F.pad(text, (0, 20 - len(text)))
        seen = torch.ones(20, 20).tril().bool()
        hidden = comet.decoder(padded, torch.arange(20), lambda _, q, k, v: attend(q, k, v, seen))  # noqa: B023
        losses = F.cross_entropy(comet.decoder.logits(hidden)[: len(text) - 1], text[1:], reduction="none")
        expected.append(losses[-len(tail) :])
    torch.testing.assert_close(comet.nll(prompts, tails), torch.cat(expected))


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    scores = torch.einsum("qhw,khw->hqk", query, key) / query.shape[-1] ** 0.5
    return torch.einsum("hqk,khw->qhw", scores.masked_fill(~seen, -torch.inf).softmax(-1), value)


def test_a_saved_comet_is_the_same_comet(comet: Comet, tmp_path: Path) -> None:
    comet.save(tmp_path)
    again = Comet.load(tmp_path)
    assert (again.layout, again.relation) == ("packed", "phrase")
    prompts, tails = comet.prompts(["lawyer"], ["is capable of"]), comet.tails(["win a case"])
    assert torch.equal(again.nll(prompts, tails), comet.nll(prompts, tails))
    assert again.prompts(["nurse"], ["wants"]) == comet.prompts(["nurse"], ["wants"])


def test_transformers_generates_from_it_without_our_code(comet: Comet, tmp_path: Path) -> None:
    comet.save(tmp_path / "model")
    code = """
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("model")
inputs = AutoTokenizer.from_pretrained("model")("lawyer is capable of", return_tensors="pt")
found = model.generate(**inputs, num_beams=2, output_scores=True, return_dict_in_generate=True)
assert len(found.sequences[0]) <= 5 + 16
print(torch.log_softmax(model(**inputs).logits[0, -1], -1)[7099].item())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    (prompt,) = comet.prompts(["lawyer"], ["is capable of"])
    ours = -comet.nll([prompt], [[7099]]).item()
    assert float(done.stdout) == pytest.approx(ours, abs=1e-5)


def test_a_warm_start_gives_every_tail_a_likelihood() -> None:
    comet = Comet.from_encoder(locate(), dropout=0.2)
    assert comet.decoder.config.dropout == 0.2
    nll = comet.nll(comet.prompts(["church"], ["is used for"]), comet.tails(["worship"]))
    assert nll.shape == (2,)
    assert nll.isfinite().all()


def test_a_relation_can_be_a_token_of_its_own(tmp_path: Path) -> None:
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=1, heads=4, inner=32)
    comet = Comet(Decoder(config), Encoding.of_encoder(locate())).eval()
    before = comet.nll(comet.prompts(["lawyer"], ["wants"]), comet.tails(["rest"]))
    comet.add(["<CapableOf>", "<IsA>"])
    comet.add(["<CapableOf>"])  # known by now
    (prompt,) = comet.prompts(["lawyer"], ["<CapableOf>"])
    assert prompt[-1] == 30522
    after = comet.nll(comet.prompts(["lawyer"], ["wants"]), comet.tails(["rest"]))
    torch.testing.assert_close(after, before, atol=1e-3, rtol=0)  # two more of 30,522 words share the softmax
    comet.save(tmp_path)
    assert Comet.load(tmp_path).prompts(["lawyer"], ["<IsA>"])[0][-1] == 30523


def test_a_comet_knows_how_it_was_trained(comet: Comet, tmp_path: Path) -> None:
    Comet(comet.decoder, comet.encoding, "comet", "words").save(tmp_path)
    for asked in ({}, {"layout": "comet"}, {"relation": "words", "layout": None}):
        assert regimen(tmp_path, **asked) == ("comet", "words")
    assert Comet.load(tmp_path).relation == "words"
    with pytest.raises(
        ValueError, match=r"model.relation=phrase, but the COMeT in .* was trained with model.relation=words"
    ):
        Comet.load(tmp_path, relation="phrase")
    with pytest.raises(ValueError, match="unknown model.layout 'slots'; allowed: packed, comet"):
        Comet.load(tmp_path, layout="slots")


def test_a_language_model_becomes_a_comet_as_one_likes() -> None:
    assert regimen(locate()) == ("packed", "phrase")
    comet = Comet.from_encoder(locate(), layout="comet", relation="token")
    assert (comet.layout, comet.relation) == ("comet", "token")


def test_slots_of_the_original_pad_the_prompt(comet: Comet) -> None:
    slotted = Comet(comet.decoder, comet.encoding, "comet").eval()
    (prompt,) = slotted.prompts(["lawyer"], ["is capable of"])
    assert words(slotted, prompt) == " ".join(["lawyer", *["[PAD]"] * 9, "is", "capable", "of", *["[PAD]"] * 2])
    assert slotted.unseen == 0
    one, two = slotted.nll([prompt], [[2663, 102]]), slotted.nll([prompt, prompt], [[2663, 102], [7425, 1, 102]])
    torch.testing.assert_close(two[:2], one)


@pytest.mark.parametrize("layout", ["packed", "comet"])
def test_a_beams_log_probability_is_minus_the_nll_of_its_tail(comet: Comet, layout: Layout) -> None:
    """Also where a tail holds the padding token, which is looked at there like any other."""
    asked = Comet(copy.deepcopy(comet.decoder), comet.encoding, layout).eval()
    pad, end = comet.encoding.pad, comet.encoding.end
    with torch.no_grad():
        asked.decoder.bias[[pad, end]] = 4.0
    prompts = asked.prompts(["lawyer", "a very big church", "nurse"], ["is capable of", "is a", "a b c d e"])
    found = [(prompt, beam) for prompt in prompts for beam in asked.search([prompt], beams=8, max_length=5)[0]]
    tails = [[*beam.tokens, *[end] * beam.ended] for _, beam in found]
    nll = asked.nll([prompt for prompt, _ in found], tails).split([len(tail) for tail in tails])
    assert [-tokens.sum().item() for tokens in nll] == pytest.approx([beam.log_prob for _, beam in found], abs=1e-3)
    assert any(pad in beam.tokens[:-1] for _, beam in found)
    assert any(beam.ended for _, beam in found)
