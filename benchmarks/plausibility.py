"""Plausibility classifiers beside people, and how far they can be gamed.

    python benchmarks/plausibility.py [--name shipped] [--folder FOLDER] [--data ../shared/data]

On the 999 triples of COMeT that a crowd rated: how well the classifier's logits rank what most raters accept, by
relation, beside one rater against the two others; and the shares that both accept. On 329 targets x 34 relations: what
it accepts where the tail is the target, and where all targets have the same neutral tails. Its accuracy on the labelled
test triples, and its speed. It writes its section of RESULTS.md, of that name; a few minutes on a core."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

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
from mitigate.tasks.scorers import default_scorers
from models.minilm import locate
from models.plausibility.average import load_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="shipped", help="of the section")
    parser.add_argument("--folder", type=Path, default=SHIPPED, help="a classifier that recipe=plausibility left")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="of conceptnet100k/ and humans/")
    arguments = parser.parse_args()
    network = load_network(arguments.folder, locate(), native_dtype())
    train = read(arguments.data, "train100k", labelled=False)
    rated = rated_triples(arguments.data / "humans")
    crowd = crowd_figures(network, rated)
    gamed = gaming_figures(network, train, default_scorers(), NOTHING_CACHED)
    test = read(arguments.data, "test", labelled=True)
    shown = "" if arguments.folder == SHIPPED else f" --folder {arguments.folder.name}"
    command = f"python benchmarks/plausibility.py --name {arguments.name}{shown}"
    text = [
        f"## Plausibility beside people: the {arguments.name} classifier",
        f"Measured on {machine()}, by `{command}`: {rated.height} triples of COMeT that three raters each called valid "
        "or not (harms paper's release).",
        crowd_table(crowd, auc_of_all(network, rated)),
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
