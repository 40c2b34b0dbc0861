"""Generated tails that a policy chooses among, with all that its order reads."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.policies import Policy
from mitigate.score.labeller import Labeller
from mitigate.train.base_model import Start
from mitigate.triples import Scorer
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG, tagged


def with_contrast(
    tails: pl.DataFrame, generator: Any, phrases: Mapping[str, str] | None = None, *, device: str = "cpu"
) -> pl.DataFrame:
    """Add `contrast` to tails (head, relation, tail): the log-probability after the neutral control token less that
    after the polarised one; 0 for heads without a token. generator: a Start, or a loaded one with the wording of
    relations in its prompts."""
    from mitigate.probe.likelihood import nll_of_tails  # loads PyTorch

    if isinstance(generator, Start):
        generator, phrases = generator.load().to(device), generator.phrases
    assert phrases is not None
    heads = [head.replace(NEUTRAL_TAG, POLARISED_TAG, 1) for head in tagged(tails["head"].to_list(), generator.tags)]
    after = [
        pl.Series(nll_of_tails(generator, rows, phrases, lambda _: None), dtype=pl.Float64)
        for rows in (tails, tails.with_columns(head=pl.Series(heads, dtype=pl.String)))
    ]
    return tails.with_columns(contrast=after[1] - after[0])


def label_candidates(probed: pl.DataFrame, labeller: Labeller, critic: Scorer | None = None) -> pl.DataFrame:
    """Label what probe_generator returns; with a critic also by what people would call valid (with_people_valid)."""
    labelled = labeller.label(probed)
    if critic is None:
        return labelled
    from mitigate.score.validity import with_people_valid  # loads PyTorch

    return with_people_valid(labelled, critic, labeller.target_list, cache=labeller.cache)


def choose_of_heads(
    policy: Policy, probed: pl.DataFrame, labeller: Labeller, top: int, critic: Scorer | None = None
) -> pl.DataFrame:
    """The tails that a policy chooses of what probe_heads returns."""
    return policy.choose(label_candidates(probed, labeller, critic), top)
