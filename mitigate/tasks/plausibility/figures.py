"""Quality of a plausibility classifier on labelled triples, on corrupted triples, and by the polarity of triples; and
pointwise information of triples by a generator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.quality import accuracy, valid_share
from mitigate.probe.comet import Generator
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

LABELLED = {"dev1": "dev", "dev2": "dev2", "test": "test"}  # names of the splits in figures
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
    """{name}/... for each classifier of the folder: the result of its training, and its figures."""
    found: dict[str, Any] = {}
    for name, facts in trained.items():
        own = figures(load_network(folder / name, locate()), triples, probes, scorers, cache)
        found |= {f"{name}/{key}": value for key, value in {**facts, **own}.items()}
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
    corrupted; valid/echo on targets as their own tails; valid/{scorer}/{polarity} on the true ones by their label;
    valid/probe/{name} on probed ones."""
    found: dict[str, float | int | None] = {}
    for name, split in LABELLED.items():
        labelled = triples.filter(split=split)
        plausible, valid = accepted(network, labelled), labelled["valid"]
        found |= {
            f"{name}/triples": labelled.height,
            f"{name}/accuracy": accuracy(plausible.to_numpy(), valid.to_numpy()),
            f"{name}/true_judged_valid": valid_share(plausible.filter(valid)),
            f"{name}/false_judged_valid": valid_share(plausible.filter(~valid)),
        }
    true = triples.filter("valid", split="test")
    for name, changed in {"true": true, **corrupted(true)}.items():
        found[f"valid/{name}"] = valid_share(accepted(network, changed))
    heads, relations = pl.DataFrame({"head": list(targets())}), pl.DataFrame({"relation": list(network.relations)})
    echoes = heads.join(relations, how="cross").with_columns(tail="head")
    found["valid/echo"] = valid_share(accepted(network, echoes))
    found |= by_polarity(network, true, scorers, cache)
    for name, probed in probes.items():
        of_relations = probed.filter(pl.col("relation").is_in(set(network.relations)))
        found[f"valid/probe/{name}"] = valid_share(accepted(network, of_relations))
    return found


def corrupted(true: pl.DataFrame) -> dict[str, pl.DataFrame]:
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
    """Percentages of true triples that are accepted, by the label of each scorer with the neutral template, which are
    equal if the classifier does not simply prefer neutral statements; and of those about a target."""
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
    shares = {f"valid/{name}": valid_share(part["accepted"]) for name, part in parts.items()}
    return {**shares, **{f"triples/{name}": part.height for name, part in parts.items()}}


def table(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    """The figures for the terminal, a column for each network."""
    lines = [f"{'':<40}" + "".join(f"{name:>12}" for name in names)]
    for key in dict.fromkeys(key.partition("/")[2] for key in metrics):
        values = [metrics.get(f"{name}/{key}") for name in names]
        shown = (f"{value:>12,.2f}" if isinstance(value, float) else f"{value or '–':>12}" for value in values)
        lines.append(f"  {key:<38}" + "".join(shown))
    return "\n".join(lines)


def accepted(network: Classifier, triples: pl.DataFrame) -> pl.Series:
    """Classify triples (head, relation, tail) as plausible or not, as the column `accepted`."""
    logits = network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))
    return pl.Series("accepted", logits > 0)


def pointwise_information(
    generator: Generator | Start, triples: pl.DataFrame, *, heads: int = HEADS, seed: int = 1, device: str = "cpu"
) -> pl.DataFrame:
    """Add `information` to triples (head, relation, tail, and other columns), in nats: log p(tail | head, relation) -
    log of the mean of p(tail | head', relation) over other heads, which are so many targets drawn by the seed.

    It is 0 for a tail as likely for the head as for these, and at most the log of their number. The likelihood of each
    distinct relation and tail is computed with each of the heads: for 48 heads, at most 49 times the work of a
    likelihood. Raises MitigateError for fewer than 2 heads, or more than there are targets."""
    asked = generator.asked if isinstance(generator, Start) else asked_with("phrase")
    model = (generator.load() if isinstance(generator, Start) else generator).to(device)
    measure = Information(model, asked, other_heads(heads, seed))
    ordered = triples.with_row_index("_row").sort("relation", "tail", maintain_order=True)  # equal ones together
    found = np.empty(triples.height)
    with progress("information", triples.height, "triples") as advance:
        for part in ordered.iter_slices(TOGETHER):
            found[part["_row"].to_numpy()] = measure(part)
            advance(part.height)
    return triples.with_columns(information=pl.Series(found))


def other_heads(count: int, seed: int) -> list[str]:
    """Draw `count` of the 329 targets by the seed."""
    every = list(targets())
    if not 2 <= count <= len(every):
        raise MitigateError(f"heads={count} must be at least 2 and at most {len(every)}, the number of targets")
    return [every[place] for place in np.random.default_rng(seed).choice(len(every), count, replace=False)]
