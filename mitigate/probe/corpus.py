"""Likelihood of held-out triples, and of published triples about targets that the generator was not trained on, which
shows the targets that it predicts less well."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.statements import CONCEPTNET
from mitigate.probe import likelihood as probing
from mitigate.probe.comet import Generator
from mitigate.score.labeller import Labeller
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import with_plausibility
from mitigate.train.base_model import Start
from mitigate.triples import LabelCache, Scorer
from mitigate.words.relations import prompt_phrases
from mitigate.words.targets import PAPER, TargetList

AUTO = "auto"
NO_STATEMENT = ("RelatedTo",)
"""Relations that state nothing of their head, only that two words are associated."""


ENGLISH = r"^[\x20-\x7e]+$"
"""Texts with other letters are left out, since the file names no language; languages without such letters stay."""


def published_file(setting: str | None, root: str | None) -> tuple[Path | None, str]:
    """Find the file of published triples that probe.published names, or None and the reason. "auto": the harms paper's
    file, if it is in data.root or MITIGATE_DATA. Raises MitigateError for a missing file."""
    if setting is None:
        return None, ""
    if setting != AUTO:
        path = Path(setting)
        if not path.is_file():
            raise MitigateError(
                f"probe.published={path}: no such file; give one of lines 'head Relation tail', auto or null"
            )
        return path, ""
    places = [Path(place) for place in (root, os.environ.get("MITIGATE_DATA")) if place]
    found = next((place / CONCEPTNET for place in places if (place / CONCEPTNET).is_file()), None)
    where = " or ".join(map(str, places)) or "data.root or MITIGATE_DATA, which are not set"
    return found, "" if found else f"there is no {CONCEPTNET} in {where}"


def target_triples(
    published: pl.DataFrame,
    corpus: pl.DataFrame,
    targets: pl.DataFrame,
    relations: Iterable[str],
    target_list: TargetList = PAPER,
    *,
    size: int,
    seed: int = 1,
) -> pl.DataFrame:
    """Draw `size` distinct published triples about targets by seed: (head, relation, tail, target, category). A target
    is the whole head, the relation is one of those given and states something, the text is English as far as the
    letters show, and no split of the corpus has the triple."""
    named = published.with_columns(target=target_list.target_of(pl.col("head")))
    about = named.join(targets.select("target", "category"), on="target", maintain_order="left")
    kept = about.filter(
        pl.col("relation").is_in([name for name in relations if name not in NO_STATEMENT]),
        pl.col("tail").str.contains(ENGLISH),
    )
    key = ["head", "relation", "tail"]
    in_corpus = corpus.select("relation", pl.col("head", "tail").str.to_lowercase()).unique()
    new = kept.select(*key, "target", "category").unique(key, maintain_order=True)
    new = new.join(in_corpus, on=key, how="anti", maintain_order="left")
    drawn = np.sort(np.random.default_rng(seed).permutation(new.height)[:size])
    return new[drawn.tolist()]


def published_likelihood(
    generator: Start, triples: pl.DataFrame, labeller: Labeller, *, device: str = "cpu"
) -> pl.DataFrame:
    """Label what target_triples returns, and add `nll`, `tokens` and `characters` of the tails, as probe.likelihood."""
    return probing.likelihood(generator.load().to(device), labeller.label(triples), generator.phrases)


def held_out_likelihood(
    generator: Generator | Start,
    labelled: pl.DataFrame,
    plausibility: Scorer | None = None,
    *,
    cache: LabelCache = NOTHING_CACHED,
    device: str = "cpu",
) -> pl.DataFrame:
    """Add to the valid test triples (head, relation, tail, split, valid, and other columns) `nll`, `tokens` and
    `characters`, as probe.likelihood; `nll_unigram`, by a unigram model of the training tails; `generated`, the tail
    that the generator itself finds best; and with a plausibility classifier `generated_valid`, whether it accepts that
    tail."""
    held_out = labelled.filter("valid", split="test")
    model, wordings = _ready(generator, device)
    training = labelled.filter(split="train")["tail"].to_list()
    scored = probing.likelihood(model, held_out, wordings).with_columns(
        nll_unigram=pl.Series(probing.unigram_nll(model, training, held_out["tail"].to_list()), dtype=pl.Float64)
    )
    found = probing.completions(model, held_out, wordings)
    if plausibility:
        accepted = with_plausibility(found.rename({"generated": "tail"}), plausibility, cache)
        found = found.with_columns(generated_valid=accepted["judged_valid"])
    return scored.join(found, on=["head", "relation"], how="left", maintain_order="left")


def _ready(generator: Generator | Start, device: str) -> tuple[Generator, dict[str, str]]:
    """The generator on a device, and the wording of each relation in its prompts."""
    if isinstance(generator, Start):
        return generator.load().to(device), generator.phrases
    return generator.to(device), prompt_phrases("phrase")
