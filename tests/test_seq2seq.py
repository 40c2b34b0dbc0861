"""Sequence-to-sequence models: against their own plain forward pass, and against `generate` where stopping rules cannot
differ."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from small_models import save_bart, save_llama, save_t5

from models.cached_search import cached_search
from models.hub import locate
from models.kinds import kind_of
from models.seq2seq import Seq2Seq, Seq2SeqReading, prompt_of, wording

TEXTS = ["a lawyer is capable of winning a case", "a church is used for worship", "a nurse desires to help people"] * 3
ASKED = (["lawyer", "a big church", "nurse", "judge", "a church"], ["is a", "is used for", "desires", "has a", "has a"])
NEVER = -1  # no token ends a tail


@pytest.fixture(scope="module", params=[save_bart, save_t5])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seq2Seq:
    torch.manual_seed(0)
    save: Callable[[Path, list[str]], Path] = request.param
    model = Seq2Seq.load(save(tmp_path_factory.mktemp(save.__name__), TEXTS))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    return model


def test_prompts_and_tails_are_what_the_tokenizer_makes_of_texts_and_targets(model: Seq2Seq) -> None:
    assert model.prompts(["lawyer"], ["is a"]) == [model.tokenizer("lawyer is a")["input_ids"]]
    whole = model.tokenizer(text_target="winning a case")["input_ids"]
    (tail,) = model.tails(["winning a case"])
    assert [*model.before[1:], *tail] == whole
    assert model.before == ([2, 0] if model.model.config.model_type == "bart" else [0])
    assert model.decode(tail) == "winning a case"
    assert model.tails(["", "worship " * 30])[0] == [model.end]
    assert len(model.tails(["worship " * 30])[0]) == 16
    assert (model.prompts([], []), model.tails([])) == ([], [])


def test_the_prompt_of_comet_atomic_2020(model: Seq2Seq) -> None:
    asked = Seq2Seq(model.model, model.tokenizer, "name", "gen")
    expected = [model.tokenizer("lawyer CapableOf [GEN]")["input_ids"]]
    assert asked.prompts(["lawyer"], ["CapableOf"]) == expected


def test_nll_is_that_of_each_text_alone(model: Seq2Seq) -> None:
    prompts, tails = model.prompts(*ASKED), model.tails(["nurse", "a case", "", "winning", "help people to win"])
    alone = []
    for prompt, tail in zip(prompts, tails, strict=True):
        said = torch.tensor([[*model.before, *tail[:-1]]])
        logits = model.model(input_ids=torch.tensor([prompt]), decoder_input_ids=said).logits
        logits = logits[0, len(model.before) - 1 :]
        alone.append(-logits.log_softmax(-1).gather(1, torch.tensor(tail)[:, None])[:, 0])
    torch.testing.assert_close(model.nll(prompts, tails), torch.cat(alone))


def test_at_fixed_length_lists_are_those_of_generate(model: Seq2Seq) -> None:
    prompts = model.prompts(*ASKED)
    reading = partial(Seq2SeqReading, model.model, model.before)
    found = cached_search(reading, prompts, end=NEVER, device=model.model.device, beams=6, max_length=5)
    for prompt, beams in zip(prompts, found, strict=True):
        said = model.model.generate(
            torch.tensor([prompt]),
            num_beams=6,
            num_return_sequences=6,
            max_new_tokens=4 + len(model.before),
            eos_token_id=None,
        )
        assert said[:, : len(model.before)].tolist() == [model.before] * 6
        assert [list(beam.tokens) for beam in beams] == said[:, len(model.before) :].tolist()


def test_what_is_found_has_the_likelihood_it_is_given(model: Seq2Seq) -> None:
    prompts = model.prompts(*ASKED)
    for prompt, beams in zip(prompts, model.search(prompts, beams=6, max_length=5), strict=True):
        assert len(beams) == 6
        for beam in beams:
            tail = [*beam.tokens, *[model.end] * beam.ended]
            assert beam.log_prob == pytest.approx(-model.nll([prompt], [tail]).sum().item(), abs=1e-4)


def test_the_encoder_reads_a_prompt_once(model: Seq2Seq, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    encoder = model.model.get_encoder()
    plain = encoder.forward

    def counted(*args: object, **named: object) -> object:
        read.append(len(named["input_ids"]))  # type: ignore[arg-type]
        return plain(*args, **named)

    monkeypatch.setattr(encoder, "forward", counted)
    prompts = model.prompts(["lawyer", "nurse"], ["is a", "is a"])
    model.search(prompts, beams=4, max_length=5)
    assert sum(read) == 2


def test_prompts_are_copied_for_their_beams_once(model: Seq2Seq) -> None:
    """Three rows of each of two prompts, which change places among themselves, and then one prompt has fewer."""
    prompts = torch.tensor(model.prompts(["lawyer", "nurse"], ["is a", "is a"]))
    words = torch.tensor([5, 6, 7, 8, 9, 5])

    def asked(changes: list[list[int]]) -> tuple[torch.Tensor, Seq2SeqReading]:
        reading = model.reading()
        reading.begin(prompts)
        for rows in changes:
            logits = reading.go_on(torch.tensor(rows), words[: len(rows)])
        return logits, reading

    with torch.inference_mode():
        first = [0, 0, 0, 1, 1, 1]
        _, before = asked([first])
        logits, after = asked([first, [2, 0, 1, 5, 3, 4]])
        assert after.encoded.shape == before.encoded.shape
        assert after.prompts.tolist() == [0, 0, 0, 1, 1, 1]
        said = torch.tensor([[*model.before, *pair] for pair in ((7, 5), (5, 6), (6, 7), (5, 8), (8, 9), (9, 5))])
        plain = model.model(input_ids=prompts[first], decoder_input_ids=said).logits[:, -1]
        torch.testing.assert_close(logits, plain)
        fewer, reading = asked([first, [2, 0, 1, 5, 3, 4], [0, 4]])
        assert reading.prompts.tolist() == [0, 1]
        said = torch.tensor([[*model.before, 7, 5, 5], [*model.before, 8, 9, 6]])
        torch.testing.assert_close(fewer, model.model(input_ids=prompts, decoder_input_ids=said).logits[:, -1])


def test_texts_beyond_the_positions_are_refused(model: Seq2Seq) -> None:
    """BART has 64 for the encoder and 64 for the decoder, T5 no limit."""
    if model.model.config.model_type == "t5":
        assert model.positions is None
        assert len(model.nll([[3] * 100], [[3] * 80])) == 80
        return
    decoder = 64 - len(model.before) + 1
    assert len(model.nll([[3] * 64], [[3] * decoder])) == decoder
    with pytest.raises(ValueError, match="a prompt of 65 tokens with a tail of 2 needs 65 positions; the model has 64"):
        model.search([[3] * 65], max_length=2)
    with pytest.raises(ValueError, match=f"with a tail of {decoder + 1} needs 65 positions; the model has 64"):
        model.nll([[3]], [[3] * (decoder + 1)])


def test_it_is_saved_and_asked_again_as_it_was_trained(model: Seq2Seq, tmp_path: Path) -> None:
    asked = Seq2Seq(model.model, model.tokenizer, "name", "gen")
    asked.save(tmp_path)
    again = Seq2Seq.load(tmp_path)
    assert (again.relation, again.prompt, kind_of(tmp_path)) == ("name", "gen", Seq2Seq)
    assert again.search(again.prompts(*ASKED), beams=2) == asked.search(asked.prompts(*ASKED), beams=2)
    with pytest.raises(ValueError, match=r"model.prompt=phrase, but the model in .* was trained with model.prompt=gen"):
        prompt_of(tmp_path, "phrase")


def test_faults_are_named(tmp_path: Path) -> None:
    bart, llama = save_bart(tmp_path / "bart", TEXTS), save_llama(tmp_path / "llama", TEXTS)
    with pytest.raises(
        ValueError, match="is a sequence-to-sequence model, not a causal language model; say model=seq2s"
    ):
        locate(str(bart), seq2seq=False)
    with pytest.raises(ValueError, match="is a causal language model, not a sequence-to-sequence model; say model=hf"):
        locate(str(llama), seq2seq=True)
    with pytest.raises(ValueError, match="unknown model.prompt 'tail'; allowed: phrase, gen"):
        prompt_of(bart, "tail")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="model.prompt=gen asks with the names of relations, not with model.relation=w"
    ):
        wording("words", "gen")
    config = json.loads((bart / "config.json").read_text())
    for name in ("config.json", "generation_config.json"):
        (bart / name).write_text(json.dumps({**config, "decoder_start_token_id": None}))
    with pytest.raises(
        ValueError, match="has no decoder_start_token_id in its config.json, so its decoder cannot begin"
    ):
        Seq2Seq.load(bart)
