"""How good a plausibility classifier is: on labelled triples, on triples made wrong on purpose, and whether it accepts
neutral ones more often."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.quality import accuracy, valid_share
from mitigate.probe.generator import Generator
from mitigate.probe.likelihood import Information
from mitigate.runs.progress import progress
from mitigate.score.labels import with_labels
from mitigate.tasks.generators.base_model import Start
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import verbalise
from mitigate.words.relations import asked_with
from mitigate.words.targets import targets
from models.minilm import locate
from models.plausibility.average import load_network

LABELLED = {"dev1": "dev", "dev2": "dev2", "test": "test"}  # how the figures call the splits
POLARITIES = {"prejudice": [PREJUDICE], "neutral": [NEUTRAL, OTHER], "favouritism": [FAVOURITISM]}
HEADS = 48  # with 24 the area under the ROC curve of HasProperty varied by .02 from draw to draw, with 48 by .01
TOGETHER = 512  # triples


def measure_plausibility(
    triples: pl.DataFrame,
    probes: Mapping[str, pl.DataFrame],
    scorers: Sequence[Scorer],
    trained: Mapping[str, Mapping[str, Any]],
    *,
    folder: Path,
    cache: LabelCache,
) -> dict[str, Any]:
    """{name}/... for each classifier that the folder has: what its training returned, and its figures."""
    found: dict[str, Any] = {}
    for name, facts in trained.items():
        network = load_network(folder / name, locate())
        own = {**facts, **figures(network, triples, probes, scorers, cache)}
        found |= {f"{name}/{key}": value for key, value in own.items()}
    return found


class Classifier(Protocol):
    """Logits of triples, (n,): above 0 is accepted as plausible."""

    @property
    def relations(self) -> Sequence[str]: ...

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray: ...


def figures(
    network: Classifier,
    triples: pl.DataFrame,
    probes: Mapping[str, pl.DataFrame],
    scorers: Sequence[Scorer],
    cache: LabelCache,
) -> dict[str, float | int | None]:
    """{dev1|dev2|test}/... from labelled triples; valid/{true|shuffled|...} on the true test triples, as they are and
    made wrong; valid/echo on targets said of themselves; valid/{scorer}/{polarity} on the true ones by their label;
    valid/probe/{name} on probed ones."""
    found: dict[str, float | int | None] = {}
    for name, split in LABELLED.items():
        labelled = triples.filter(split=split)
        said, valid = accepted(network, labelled), labelled["valid"]
        found |= {
            f"{name}/triples": labelled.height,
            f"{name}/accuracy": accuracy(said.to_numpy(), valid.to_numpy()),
            f"{name}/true_judged_valid": valid_share(said.filter(valid)),
            f"{name}/false_judged_valid": valid_share(said.filter(~valid)),
        }
    true = triples.filter("valid", split="test")
    for name, made in {"true": true, **made_wrong(true)}.items():
        found[f"valid/{name}"] = valid_share(accepted(network, made))
    found["valid/echo"] = valid_share(accepted_echoes(network)["accepted"])
    found |= by_polarity(network, true, scorers, cache)
    known = set(network.relations)
    for name, probed in probes.items():
        asked = probed.filter(pl.col("relation").is_in(known))
        found[f"valid/probe/{name}"] = valid_share(accepted(network, asked))
    return found


def made_wrong(true: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The true triples with their tails shuffled, among all and within each relation, and turned round."""
    chance = np.random.default_rng(0)
    within = pl.int_range(pl.len()).shuffle(seed=0)
    return {
        "shuffled": true.with_columns(tail=true["tail"].gather(chance.permutation(true.height))),
        "shuffled_within_relation": true.with_columns(pl.col("tail").gather(within).over("relation")),
        "turned_round": true.with_columns(head="tail", tail="head"),
    }


def by_polarity(
    network: Classifier, true: pl.DataFrame, scorers: Sequence[Scorer], cache: LabelCache
) -> dict[str, float | int | None]:
    """The percentage of true triples that are accepted, by how each scorer labels them with the relation's phrase
    neutralised: equal, if the classifier does not simply prefer neutral statements; and of those about a target."""
    statements = verbalise(true)
    for scorer in scorers:
        statements = with_labels(statements, scorer, cache)
    labelled = statements.with_columns(accepted=accepted(network, true))
    parts = {
        f"{scorer.name}/{polarity}": labelled.filter(pl.col(label_columns(scorer.name, "neutral")[0]).is_in(labels))
        for scorer in scorers
        for polarity, labels in POLARITIES.items()
    }
    parts["target"] = labelled.filter(pl.col("target").is_not_null())
    shares: dict[str, float | int | None] = {f"valid/{name}": valid_share(p["accepted"]) for name, p in parts.items()}
    return shares | {f"triples/{name}": part.height for name, part in parts.items()}


def table(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    """The figures for the terminal, a column for each network."""
    keys = list(dict.fromkeys(key.partition("/")[2] for key in metrics))
    lines = [f"{'':<40}" + "".join(f"{name:>12}" for name in names)]
    for key in keys:
        values = [metrics.get(f"{name}/{key}") for name in names]
        shown = (f"{value:>12,.2f}" if isinstance(value, float) else f"{value or '–':>12}" for value in values)
        lines.append(f"  {key:<38}" + "".join(shown))
    return "\n".join(lines)


def accepted_echoes(network: Classifier) -> pl.DataFrame:
    """(head, relation, tail, accepted): each target as its own tail, in each of the classifier's relations."""
    heads, relations = pl.DataFrame({"head": list(targets())}), pl.DataFrame({"relation": list(network.relations)})
    echoes = heads.join(relations, how="cross").with_columns(tail="head")
    return echoes.with_columns(accepted(network, echoes))


def logits_of(network: Classifier, triples: pl.DataFrame) -> np.ndarray:
    """The logits of a table (head, relation, tail), (n,)."""
    return network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))


def accepted(network: Classifier, triples: pl.DataFrame) -> pl.Series:
    """Whether each triple is accepted as plausible."""
    return pl.Series("accepted", logits_of(network, triples) > 0)


def pointwise_information(
    generator: Generator | Start, triples: pl.DataFrame, *, heads: int = HEADS, seed: int = 1, device: str = "cpu"
) -> pl.DataFrame:
    """The triples (head, relation, tail, and whatever else) with `information`, in nats: log p(tail | head, relation) -
    log of the mean of p(tail | head', relation) over other heads, which are so many targets drawn by the seed.

    0 where the tail is as likely of the head as of these, at most the log of their number. Each distinct relation and
    tail is asked about with each of the heads: for 48 heads, 49 times the work of a likelihood or less. Raises
    MitigateError for fewer than 2 heads, or more than there are targets."""
    asked = generator.asked if isinstance(generator, Start) else asked_with("phrase")
    model = (generator.load() if isinstance(generator, Start) else generator).to(device)
    measure = Information(model, asked, other_heads(heads, seed))
    ordered = triples.with_row_index("_row").sort("relation", "tail", maintain_order=True)  # alike ones together
    found = np.empty(triples.height)
    with progress("information", triples.height, "triples") as advance:
        for part in ordered.iter_slices(TOGETHER):
            found[part["_row"].to_numpy()] = measure(part)
            advance(part.height)
    return triples.with_columns(information=pl.Series(found))


def other_heads(count: int, seed: int) -> list[str]:
    """So many of the 329 targets, drawn by the seed."""
    every = list(targets())
    if not 2 <= count <= len(every):
        raise MitigateError(f"heads={count} must be at least 2 and at most {len(every)}, the number of targets")
    return [every[place] for place in np.random.default_rng(seed).choice(len(every), count, replace=False)]
