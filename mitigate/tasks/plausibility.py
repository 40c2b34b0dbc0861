"""The plausibility classifiers, trained from scratch on ConceptNet train100k: load > train > measure. Their quality is
measured on labelled triples, on corrupted triples, and by the polarity of triples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.measure.quality import accuracy, best_threshold, valid_share
from mitigate.score.labels import with_labels
from mitigate.score.precision import native_dtype
from mitigate.train import harness
from mitigate.train import plausibility as training
from mitigate.train.harness import Log
from mitigate.train.plausibility import Settings
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import verbalise
from mitigate.words.targets import targets
from models.minilm import locate
from models.plausibility import MEMBERS, Average, Bilinear, MiniLMPhrases, load_network

SHAPE = ("width", "dropout")  # settings of a network; the others are of its training
FEWEST = 2
"""A threshold lies between two triples."""
LABELLED = {"dev1": "dev", "dev2": "dev2", "test": "test"}  # names of the splits in figures
POLARITIES = {"prejudice": [PREJUDICE], "neutral": [NEUTRAL, OTHER], "favouritism": [FAVOURITISM]}
Classifier = Average | Bilinear
"""Its logits of triples, (n,), are above 0 where these are accepted as plausible."""


def train_plausibility(
    triples: pl.DataFrame, phrases: str, settings: Mapping[str, Any], *, folder: Path, fingerprint: str, log: Log
) -> dict[str, Any]:
    """Train on the split train of triples (head, relation, tail, valid, split), choose the threshold on dev, and write
    the network to {phrases}/ of the folder; returns steps, seconds, triples_per_second and loss.

    phrases: their encoder, "words" or "minilm"; settings: of Settings, and SHAPE of Bilinear. Checkpoints with that
    fingerprint are left in checkpoints/{phrases}/, for a killed training to continue from."""
    learnt, shape = triples.filter(split="train"), {name: settings[name] for name in SHAPE if name in settings}
    how = Settings(**{name: value for name, value in settings.items() if name not in shape})
    harness.seed(how.seed)
    network = Bilinear(locate(), sorted(learnt["relation"].unique()), phrases, **shape)
    if isinstance(network.phrases, MiniLMPhrases):
        network.phrases.encoder.to(native_dtype())  # as a loaded network reads; it is not trained
    known, checkpoints = training.Known(learnt, network.relations), folder / "checkpoints" / phrases
    found = training.fit(network, known, how, checkpoints, fingerprint=fingerprint, log=log)
    set_threshold(network, triples)
    with replacing_folder(folder / phrases) as part:  # safetensors leaves a file of its own where it is killed
        network.save(part)
    return found


def average_networks(
    triples: pl.DataFrame, trained: Mapping[str, Mapping[str, Any]], *, folder: Path
) -> dict[str, float]:
    """Average the two networks of the folder, choose the threshold on the split dev, and replace average/; returns the
    seconds that training both took, and the size in bytes.

    trained: what train_plausibility returned for each."""
    network = Average([Bilinear.load(folder / name, locate()) for name in MEMBERS])
    set_threshold(network, triples)
    whole = folder / "average"
    with replacing_folder(whole) as part:
        network.save(part, made_of=folder)
    size = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    return {"seconds": sum(facts["seconds"] for facts in trained.values()), "bytes": size}


def check_dev(triples: pl.DataFrame) -> None:
    """Raise MitigateError for too few labelled triples of split dev to choose a threshold on."""
    if (number := triples.filter(split="dev").height) < FEWEST:
        raise MitigateError(
            f"the threshold of a plausibility classifier is chosen on labelled triples of split dev: {number} found, "
            f"at least {FEWEST} are needed"
        )


def set_threshold(network: Classifier, triples: pl.DataFrame) -> None:
    """Shift the logits so that 0 is the threshold with the best accuracy on the split dev of labelled triples."""
    dev = triples.filter(split="dev")
    network.shift(-best_threshold(logits_of(network, dev), dev["valid"].to_numpy()))


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
    found = dict[str, Any]()
    true, groups = by_polarity(triples, scorers, cache)
    for name, facts in trained.items():
        own = figures(load_network(folder / name, locate()), triples, true, groups, probes)
        found |= {f"{name}/{key}": value for key, value in {**facts, **own}.items()}
    return found


def by_polarity(
    triples: pl.DataFrame, scorers: Sequence[Scorer], cache: LabelCache
) -> tuple[pl.DataFrame, dict[str, pl.Expr]]:
    """The true test triples, and groups of them: by the label of each scorer with the neutral template, of which a
    classifier accepts equal shares if it does not simply prefer neutral statements; and those about a target."""
    true = verbalise(triples.filter("valid", split="test"))
    for scorer in scorers:
        true = with_labels(true, scorer, cache)
    groups = {
        f"{scorer.name}/{polarity}": pl.col(label_columns(scorer.name, "neutral")[0]).is_in(labels)
        for scorer in scorers
        for polarity, labels in POLARITIES.items()
    }
    return true, {**groups, "target": pl.col("target").is_not_null()}


def figures(
    network: Classifier,
    triples: pl.DataFrame,
    true: pl.DataFrame,
    groups: Mapping[str, pl.Expr],
    probes: Mapping[str, pl.DataFrame],
) -> dict[str, float | int | None]:
    """{dev1|dev2|test}/... from labelled triples; valid/{true|shuffled|...} on the true test triples, as they are and
    corrupted; valid/echo on targets as their own tails; valid/{group} and triples/{group} on the true ones of each
    group of by_polarity; valid/probe/{name} on probed ones."""
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
    for name, changed in {"true": true, **corrupted(true)}.items():
        found[f"valid/{name}"] = valid_share(accepted(network, changed))
    heads, relations = pl.DataFrame({"head": list(targets())}), pl.DataFrame({"relation": list(network.relations)})
    echoes = heads.join(relations, how="cross").with_columns(tail="head")
    found["valid/echo"] = valid_share(accepted(network, echoes))
    known = true.with_columns(accepted(network, true))
    for name, condition in groups.items():
        part = known.filter(condition)
        found |= {f"valid/{name}": valid_share(part["accepted"]), f"triples/{name}": part.height}
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


def accepted(network: Classifier, triples: pl.DataFrame) -> pl.Series:
    """Classify triples (head, relation, tail) as plausible or not, as the column `accepted`."""
    return pl.Series("accepted", logits_of(network, triples) > 0)


def logits_of(network: Classifier, triples: pl.DataFrame) -> np.ndarray:
    return network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))
