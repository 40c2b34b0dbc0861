"""Plausibility classifiers beside people, and how far they can be gamed.

    python benchmarks/plausibility.py [--name shipped] [--folder FOLDER] [--generator RUN/model] [--data ../shared/data]

On the 999 triples of COMeT that a crowd rated: how well the classifier's logits rank what most raters accept, by
relation, beside one rater against the two others; and the shares that both accept. On 329 targets x 34 relations: what
it accepts where the tail is the target, and where all targets have the same neutral tails. Its accuracy on the labelled
test triples, and its speed. With a generator of all data (policy=none) also pointwise information, and all together. It
writes its section of RESULTS.md, of that name; a few minutes on a core, and ten more for the generator."""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.load.triples_file import read_triples
from mitigate.measure.quality import accuracy
from mitigate.measure.ranking import auc
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import SHIPPED
from mitigate.score.weights import native_dtype
from mitigate.tasks.plausibility.classifier import Classifier, accepted, logits_of
from mitigate.tasks.plausibility.crowd import crowd_figures, rated_triples
from mitigate.tasks.plausibility.gaming import gaming_figures, of_all_targets
from mitigate.tasks.plausibility.information import HEADS, other_heads, pointwise_information
from mitigate.tasks.scorers import default_scorers
from mitigate.tasks.start import find_start
from models.comet import Comet
from models.minilm import locate
from models.plausibility.average import load_network

FOLDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="shipped", help="of the section")
    parser.add_argument("--folder", type=Path, default=SHIPPED, help="a classifier that recipe=plausibility left")
    parser.add_argument("--generator", type=Path, help="the folder model/ of a run of policy=none on train100k")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="of conceptnet100k/ and humans/")
    arguments = parser.parse_args()
    network = load_network(arguments.folder, locate(), native_dtype())
    train = read(arguments.data, "train100k", labelled=False)
    rated = rated_triples(arguments.data / "humans")
    crowd = crowd_figures(network, rated)
    gamed = gaming_figures(network, train, default_scorers(), NOTHING_CACHED)
    test = read(arguments.data, "test", labelled=True)
    shown = "" if arguments.folder == SHIPPED else f" --folder {arguments.folder.name}"
    shown += "" if arguments.generator is None else " --generator RUN/model"
    command = f"python benchmarks/plausibility.py --name {arguments.name}{shown}"
    text = [
        f"## Plausibility beside people: the {arguments.name} classifier",
        f"Measured on {machine()}, by `{command}`: {rated.height} triples of COMeT that three raters each called valid "
        "or not (harms paper's release).",
        crowd_table(crowd, auc_of_all(network, rated)),
        scores_table(network, rated, arguments.generator),
        gaming_table(gamed),
        test_line(network, test) + " " + speed_line(network, train),
    ]
    write_section(f"plausibility {arguments.name}", "\n\n".join(text))
    print("\n\n".join(text))


def read(data: Path, name: str, labelled: bool) -> pl.DataFrame:
    """The triples of a file of train100k, in lower case."""
    triples = read_triples(data / "conceptnet100k" / f"{name}.txt", name, labelled=labelled).triples
    return triples.with_columns(pl.col("head", "tail").str.to_lowercase())


def auc_of_all(network: Classifier, rated: pl.DataFrame) -> float | None:
    """Of the triples of all relations together."""
    return auc(logits_of(network, rated), rated["valid"].to_numpy())


def crowd_table(crowd: dict[str, Any], together: float | None) -> str:
    """A row for each relation."""
    lines = [
        "| relation | AUC ↑ | one rater against the two others | accepted by the classifier, % | by most raters, % |",
        "|---|---|---|---|---|",
    ]
    for relation in dict.fromkeys(key.split("/")[1] for key in crowd):
        auc_, rater, said, valid = (crowd[f"crowd/{relation}/{key}"] for key in ("auc", "rater", "accepted", "valid"))
        lines.append(f"| {relation} | {auc_:.3f} | {rater:.3f} | {said:.1f} | {valid:.1f} |")
    return "\n".join([*lines, f"| all together | {together:.3f} | | | |"])


def scores_table(network: Classifier, rated: pl.DataFrame, generator: Path | None) -> str:
    """AUC by relation of further scores: how far a logit is above its mean over other heads, pointwise information
    under a generator, and what a logistic regression makes of all."""
    logits = logits_of(network, rated)
    lifted = logits - with_other_heads(network, rated)
    scores = {"logit": logits, "logit, less its mean over 48 other targets": lifted}
    features = [logits, lifted]
    if generator is not None:
        information = pointwise_information(find_start(Comet.load, generator, train=False), rated)["information"]
        scores["pointwise information under the generator"] = information.to_numpy()
        features.append(information.to_numpy())
    together = np.stack(features, axis=1)
    by_target = GroupKFold(FOLDS).split(together, groups=rated["head"].to_numpy())
    by_relation = LeaveOneGroupOut().split(together, groups=rated["relation"].to_numpy())
    scores["all of these, fitted to other targets"] = fitted(together, rated, by_target)
    left_out = scores["all of these, fitted to the two other relations"] = fitted(together, rated, by_relation)
    relations = rated["relation"].unique(maintain_order=True).to_list()
    rows = [((rated["relation"] == name).to_numpy(), rated["valid"].to_numpy()) for name in relations]
    lines = ["| AUC ↑ | " + " | ".join(relations) + " |", "|---|" + "---|" * len(relations)]
    for name, score in scores.items():
        found = [auc(score[of], valid[of]) for of, valid in rows]
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in found) + " |")
    shares = [f"{100 * (left_out[of] > 0.5).mean():.0f} ({100 * valid[of].mean():.0f})" for of, valid in rows]
    lines.append("| accepted by the last, % (by most raters) | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def with_other_heads(network: Classifier, rated: pl.DataFrame) -> np.ndarray:
    """The mean logit of each triple's tail said of 48 other targets."""
    heads = pl.DataFrame({"head": other_heads(HEADS, seed=1)})
    asked = rated.with_row_index("row").select("row", "relation", "tail", own="head").join(heads, how="cross")
    said = asked.filter(pl.col("head") != pl.col("own"))
    means = said.with_columns(logit=pl.Series(logits_of(network, said))).group_by("row", maintain_order=True)
    return means.agg(pl.col("logit").mean())["logit"].to_numpy()


def fitted(features: np.ndarray, rated: pl.DataFrame, folds: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The probability of being valid, (n,), each by a logistic regression that saw the other folds."""
    found, valid = np.empty(len(features)), rated["valid"].to_numpy()
    for seen, asked in folds:
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[seen], valid[seen])
        found[asked] = model.predict_proba(features[asked])[:, 1]
    return found


def gaming_table(gamed: dict[str, Any]) -> str:
    """What is accepted of triples that say nothing of the target."""
    relations = {key.split("/")[2]: share for key, share in gamed.items() if key.count("/") == 2}
    most = sorted(relations, key=lambda relation: -relations[relation])[:5]
    highest = ", ".join(f"{relation} {relations[relation]:.0f}" for relation in most)
    rows = {
        "tail = target, %": f"{gamed['gaming/echo']:.1f} (highest: {highest})",
        "the ten commonest neutral tails of each relation, the same for all targets, %": (
            f"{gamed['gaming/constants']:.1f}"
        ),
        "of the 150 commonest of each relation the ten neutral ones that it accepts most often, %": (
            f"{gamed['gaming/chosen']:.1f}"
        ),
        "relations in which none of the 150 commonest tails is accepted of 5 % of the targets": str(
            gamed["gaming/unreached"]
        ),
    }
    return "\n".join(
        ["| 329 targets x 34 relations | accepted |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())]
    )


def test_line(network: Classifier, test: pl.DataFrame) -> str:
    valid = test["valid"].to_numpy()
    said = accepted(network, test).to_numpy()
    return (
        f"Of the {test.height:,} labelled test triples {accuracy(said, valid):.1f} % are classified rightly; AUC "
        f"{auc(logits_of(network, test), valid):.3f}."
    )


def speed_line(network: Classifier, train: pl.DataFrame) -> str:
    """Triples a second, of a grid of the size that a probe leaves: ten training tails for each target and relation."""
    chosen = np.random.default_rng(0)
    grid = of_all_targets(pl.DataFrame({"relation": list(network.relations) * 10}))
    drawn = [
        part.with_columns(tail=pl.Series(chosen.choice(train.filter(relation=relation)["tail"], part.height)))
        for (relation,), part in grid.group_by("relation", maintain_order=True)
    ]
    asked = pl.concat(drawn)
    started = time.process_time()
    logits_of(network, asked)
    seconds = time.process_time() - started
    phrases = pl.concat([asked["head"], asked["tail"]]).n_unique()
    return (
        f"{asked.height:,} triples with {phrases:,} phrases took {seconds:.1f} s of a core, "
        f"{asked.height / seconds:,.0f} triples a second."
    )


if __name__ == "__main__":
    main()
