"""The loss normalised over the tokens of tails."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from test_train_comet import EXAMPLES, PHRASES, QUICK, small_comet, train

from mitigate.errors import MitigateError
from mitigate.train.comet import Examples, Settings, perplexity
from mitigate.train.vocabulary import begin_vocabulary, log_frequencies
from models.decoder import Decoder, DecoderConfig


def settings(**changed: Any) -> Settings:
    return Settings(**vars(QUICK) | changed)


def test_the_bias_begins_at_the_logarithm_of_each_share() -> None:
    """Of 10 tokens two are there once: a fifth is left for the three tokens that are not there."""
    shares = log_frequencies(torch.tensor([0, 0, 0, 0, 0, 2, 2, 2, 4, 5]), 7).exp()
    torch.testing.assert_close(shares, torch.tensor([0.4, 0.2 / 3, 0.24, 0.2 / 3, 0.08, 0.08, 0.2 / 3]))


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
    assert (among < math.log(30522) / 2).all()


def test_a_trained_bias_stays_and_auto_then_takes_all_tokens() -> None:
    comet = small_comet()
    tails = comet.tails(EXAMPLES.tails)
    assert begin_vocabulary(comet.decoder, tails, "all") is None
    assert comet.decoder.bias is not None
    assert not comet.decoder.bias.any()
    assert begin_vocabulary(comet.decoder, tails, "auto") is not None
    begun = comet.decoder.bias.clone()
    assert begin_vocabulary(comet.decoder, tails[:1], "auto") is None
    assert begin_vocabulary(comet.decoder, tails[:1], "tails") is not None
    assert torch.equal(begun, comet.decoder.bias)
    decoder = Decoder(DecoderConfig("gpt2", vocab_size=50, positions=8, width=8, layers=1, heads=2, inner=16))
    assert begin_vocabulary(decoder, [[1, 2]], "auto") is None  # without an output bias
    with pytest.raises(MitigateError, match=re.escape("trainer.vocabulary=tails needs a model with an output bias, ")):
        begin_vocabulary(decoder, [[1, 2]], "tails")
    with pytest.raises(MitigateError, match="unknown trainer.vocabulary 'some'; allowed: auto, all, tails"):
        settings(vocabulary="some")


def test_trained_among_tails_other_tokens_stay_unlikely(tmp_path: Path) -> None:
    """The perplexity is over the whole vocabulary, as of a model that was trained over it."""
    among, fitted = train(tmp_path / "tails", settings(max_epochs=20), dev=EXAMPLES)
    whole, _ = train(tmp_path / "all", settings(max_epochs=20, vocabulary="all"), dev=EXAMPLES)
    assert fitted.dev_perplexity == pytest.approx(perplexity(among, EXAMPLES))
    assert perplexity(among, EXAMPLES) < 40 < perplexity(whole, EXAMPLES)
    other = Examples(["rain"], ["is used for"], ["quantum physics"])
    assert perplexity(among, other) > 1_000
