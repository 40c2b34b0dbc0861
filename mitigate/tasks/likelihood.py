"""How likely a generator finds held-out triples, and what it generates in their tails' place."""

import polars as pl

from mitigate.probe import likelihood as probing
from mitigate.probe.generator import Generator
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import with_plausibility
from mitigate.tasks.base_model import Start
from mitigate.triples import LabelCache, Scorer
from mitigate.words.relations import asked_with


def held_out_likelihood(
    generator: Generator | Start,
    labelled: pl.DataFrame,
    plausibility: Scorer | None = None,
    *,
    cache: LabelCache = NOTHING_CACHED,
    device: str = "cpu",
) -> pl.DataFrame:
    """The valid test triples (head, relation, tail, split, valid, and what else there is) with `nll`, `tokens` and
    `characters`, as in probe.likelihood; with `generated`, the tail that the generator itself finds best; and with a
    plausibility classifier `generated_valid`, whether it accepts that."""
    held_out = labelled.filter("valid", split="test")
    asked = generator.asked if isinstance(generator, Start) else asked_with("phrase")
    model = (generator.load() if isinstance(generator, Start) else generator).to(device)
    scored = probing.likelihood(model, held_out, asked)
    found = probing.completions(model, held_out, asked)
    if plausibility:
        accepted = with_plausibility(found.rename({"generated": "tail"}), plausibility, cache)
        found = found.with_columns(generated_valid=accepted["judged_valid"])
    return scored.join(found, on=["head", "relation"], how="left", maintain_order="left")
