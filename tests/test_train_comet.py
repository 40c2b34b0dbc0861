"""Training COMeTs: batches, losses by hand, what is learnt, kept and resumed, and every fault by name."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding
from mitigate.settings import WrongError
from mitigate.train.comet import (
    Examples,
    Fitted,
    Settings,
    TailModule,
    fit,
    initialise_bias,
    learning_rate,
    log_frequencies,
    perplexity,
)
from mitigate.train.harness import WINDOW, Batches

HEADS = ["lawyer", "nurse", "church", "knife", "a big dog", "rain", "the sun", "book", "music", "bread"]
PHRASES = ["is capable of", "is used for"]
TAILS = ["win a case", "help", "worship god", "cut", "run after a very fast cat"]
EXAMPLES = Examples(HEADS * 2, PHRASES * 10, TAILS * 4)
QUICK = Settings(max_epochs=3, batch_size=8, lr=1e-2, precision="32-true")


def small_comet() -> Comet:
    torch.manual_seed(0)
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=8, layers=2, heads=2, inner=16)
    return Comet(Decoder(config), Encoding.of_encoder(minilm_folder())).eval()


def train(folder: Path, settings: Settings = QUICK, examples: Examples = EXAMPLES, **more: Any) -> tuple[Comet, Fitted]:
    comet = more.pop("comet", None) or small_comet()
    return comet, fit(comet, examples, settings, folder, **{"fingerprint": "one", "accelerator": "cpu"} | more)


def same(one: Comet, other: Comet) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.allclose(a, b, rtol=0, atol=1e-6) for a, b in pairs)


def test_every_batch_is_full_every_epoch_holds_every_example_and_a_step_depends_on_the_seed_alone() -> None:
    batches = Batches(np.arange(100) % 7, size=10, seed=3)
    drawn = list(batches.start_at(0, 10 * WINDOW))
    assert {len(batch) for batch in drawn} == {10}
    counts = np.bincount(np.concatenate(drawn), minlength=100)
    assert (counts == WINDOW).all()  # 10 x WINDOW batches of 10 are WINDOW epochs of 100
    assert [step for step in range(30) if batches.ends_epoch(step)] == [9, 19, 29]
    from_start = list(batches.start_at(0, 50))
    assert np.array_equal(list(batches.start_at(37, 50)), from_start[37:])
    assert not np.array_equal(list(Batches(np.arange(100) % 7, size=10, seed=4).start_at(0, 50)), from_start)


def test_a_learning_rate_that_is_held_then_falls_as_a_square_root() -> None:
    rate = learning_rate(Settings(lr=1.0, warmup=0.1, hold=0.5), 10)
    assert [rate(step) for step in (0, 4, 5)] == [1.0, 1.0, 1.0]
    assert [rate(6), rate(9)] == pytest.approx([1 - (1 / 5) ** 0.5, 1 - (4 / 5) ** 0.5])
    falling = learning_rate(Settings(lr=1.0, warmup=0.1), 10)
    assert [falling(0), falling(1), falling(9)] == pytest.approx([1.0, 1.0, 1 / 9])
    held_to_the_end = learning_rate(Settings(lr=1.0, warmup=0.1, hold=0.98), 10)
    assert [held_to_the_end(step) for step in range(10)] == [1.0] * 10
    with pytest.raises(MitigateError, match=re.escape("hold=0.05 must be null or at least trainer.warmup=0.1")):
        Settings(warmup=0.1, hold=0.05)


def test_it_learns_and_says_so(tmp_path: Path) -> None:
    told: list[tuple[dict[str, float], int]] = []
    settings = Settings(max_epochs=20, batch_size=8, lr=1e-2, precision="32-true")
    before = perplexity(small_comet(), EXAMPLES)
    comet, fitted = train(tmp_path, settings, dev=EXAMPLES, log=lambda numbers, step: told.append((numbers, step)))
    assert before > 20_000  # of 30,522 words
    assert perplexity(comet, EXAMPLES) < 40
    assert perplexity(comet, Examples(["rain"], ["is used for"], ["quantum physics"])) > 1_000  # tokens of no tail
    assert fitted.steps == 50  # 20 epochs x 20 examples / 8
    assert fitted.dev_perplexity == pytest.approx(perplexity(comet, EXAMPLES))
    assert [step for numbers, step in told if "loss" in numbers] == [20, 40, 50]
    assert [step for numbers, step in told if "dev_perplexity" in numbers][-1] == 50
    assert set(told[0][0]) == {"dev_perplexity"}
    assert not comet.training


def test_the_loss_is_the_weighted_mean_of_means_over_tails() -> None:
    """Two tails of 2 and 4 tokens, weights 1 and 3: (1/2 x mean + 3/2 x mean) / 2, weights being relative."""
    comet = small_comet()
    examples = Examples(["lawyer", "nurse"], ["wants", "wants"], ["rest", "win a case"], np.array([1.0, 3.0]))
    module = TailModule(comet, examples, QUICK)
    module.trainer, module.nll = SimpleNamespace(world_size=1, global_rank=0), comet.nll  # type: ignore[assignment]
    nll = comet.nll(module.prompts, module.tails)
    expected = (0.5 * nll[:2].mean() + 1.5 * nll[2:].mean()) / 2
    torch.testing.assert_close(module.training_step(np.array([0, 1]), 0), expected)


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    """Stopped in the last epoch but one, which logs at step 5; the checkpoint is of step 4. What a kill would leave at
    each file operation is in test_train_checkpoints.py."""

    def stop(values: dict[str, float], step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        train(parts, replace(QUICK, checkpoint_every=1e-9), dev=EXAMPLES, log=stop)
    assert torch.load(parts / "last.ckpt", weights_only=True)["global_step"] == 4
    resumed, fitted = train(parts, dev=EXAMPLES)
    whole, uninterrupted = train(tmp_path / "whole", dev=EXAMPLES)
    assert same(resumed, whole)
    assert fitted.train_loss == uninterrupted.train_loss
    assert fitted.dev_perplexity == uninterrupted.dev_perplexity
    message = re.escape("belongs to another training (fingerprint one, expected two)")
    refuses(MitigateError, message, train, parts, fingerprint="two")


def test_faulty_settings_are_named_together_and_nothing_to_learn_from_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WrongError) as error:
        Settings(max_epochs=0, lr=-1, precision="fp4")
    assert list(error.value.faults) == ["trainer.max_epochs", "trainer.lr", "trainer.precision"]
    refuses(MitigateError, "there are no training triples", train, tmp_path, examples=Examples([], [], []))


@pytest.mark.parametrize("factor", [1e6, float("nan")])
def test_a_training_that_diverges_says_so(tmp_path: Path, factor: float) -> None:
    """Before a checkpoint, or the lack of one, is blamed; and without dev triples."""
    comet = small_comet()
    with torch.no_grad():
        comet.decoder.token_embedding.weight *= factor
    with pytest.raises(MitigateError, match=r"^training diverged: .* is (inf|nan); lower trainer.lr"):
        train(tmp_path, comet=comet, dev=EXAMPLES)
    with torch.no_grad():
        comet.decoder.token_embedding.weight *= float("nan")
    with pytest.raises(MitigateError, match="training diverged: the mean loss of the last steps is nan"):
        train(tmp_path / "without", comet=comet)


def test_the_bias_begins_at_the_logarithm_of_each_share_and_a_trained_one_stays() -> None:
    """Of 10 tokens two are there once: a fifth is left for the three tokens that are not there."""
    shares = log_frequencies(torch.tensor([0, 0, 0, 0, 0, 2, 2, 2, 4, 5]), 7).exp()
    torch.testing.assert_close(shares, torch.tensor([0.4, 0.2 / 3, 0.24, 0.2 / 3, 0.08, 0.08, 0.2 / 3]))
    comet = small_comet()
    assert initialise_bias(comet.decoder, comet.tails(TAILS)) is not None
    assert initialise_bias(comet.decoder, comet.tails(TAILS)) is None
    decoder = Decoder(DecoderConfig("gpt2", vocab_size=50, positions=8, width=8, layers=1, heads=2, inner=16))
    assert initialise_bias(decoder, [[1, 2]]) is None  # without an output bias


def test_the_loss_among_candidates_is_that_of_the_whole_without_the_others() -> None:
    """Where the others' bias leaves them no mass, both are the same."""
    comet = small_comet()
    prompts = comet.prompts(EXAMPLES.heads[:5], PHRASES[:1] * 5)
    tails = comet.tails(EXAMPLES.tails[:5])
    candidates = torch.tensor([token for tail in tails for token in [*tail, 7]]).unique()
    among = comet.nll(prompts, tails, candidates)
    assert comet.decoder.bias is not None
    comet.decoder.bias.data.fill_(-1e4)[candidates] = 0
    torch.testing.assert_close(among, comet.nll(prompts, tails))
    assert (among < np.log(30522) / 2).all()
