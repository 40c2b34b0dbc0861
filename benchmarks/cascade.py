"""The regard classifier behind its gate, beside its layers alone and beside an earlier classifier: texts a second,
labels alike, and how many polarised labels the gate keeps.

    python benchmarks/cascade.py [--before FOLDER] [--run outputs/RUN] [--data ../shared/data] [--rounds 6]

Contestants take turns within a round. Texts are of four sources that neither the layers nor the gate have learnt from:
statements of train100k whole and about "this person", sentences of GenericsKB, what COMeT says in the crowd's
statements, and BERT's texts about unseen targets; with --run also what a finished run's generator says. --before is the
folder of an earlier classifier, such as mitigate/data/regard/minilm of another version. Writes its section of
RESULTS.md."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.metrics import cohen_kappa_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.score.regard import SHIPPED, MiniLMRegard
from mitigate.tasks.regard.figures import gate_figures
from mitigate.tasks.regard.texts import read_texts

GENERATED = 12_000  # statements of a run that are drawn
TIMED = 4_000  # texts that each contestant labels in a round
WITH_GATE, LAYERS, BEFORE = "minilm", "minilm without its gate", "the classifier before"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has regard/")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    read = read_texts(arguments.data)
    texts = read.checking
    if arguments.run:
        generated = pl.read_parquet(arguments.run / "statements.parquet", columns=["masked_neutral"])
        unseen = set(generated["masked_neutral"]) - {*read.labelled["text"], *read.unlabelled, *read.choosing}
        drawn = pl.Series(sorted(unseen)).sample(GENERATED, shuffle=True, seed=0)
        texts = pl.concat([texts, pl.DataFrame({"source": "generated, policy none", "text": drawn})])
    scorers = {WITH_GATE: MiniLMRegard(), LAYERS: MiniLMRegard(gate=False)}
    if arguments.before:
        scorers[BEFORE] = MiniLMRegard(arguments.before)
    kept = gate_figures(texts, folder=SHIPPED.parent / "regard")
    section = "\n\n".join(
        [
            "## Regard: the gate, and what it loses",
            f"Measured on {machine()}, by `python benchmarks/cascade.py`, {arguments.rounds} rounds of {TIMED:,} texts "
            "of the sources below in turn.",
            speeds(scorers, texts, arguments.rounds),
            "Texts that neither layers nor gate have learnt from. Kept: of the layers' polarised labels, with the 95 % "
            "interval of Clopper and Pearson; passed: texts that the layers do not read.",
            losses(scorers, texts, kept),
        ]
    )
    write_section("cascade", section)
    print(section)


def speeds(scorers: dict[str, MiniLMRegard], texts: pl.DataFrame, rounds: int) -> str:
    """A table of texts a second, and how many times as fast the first is."""
    whole = texts["text"].sample(fraction=1, shuffle=True, seed=1).to_list()
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    for name in scorers:
        scorers[name](whole[:64])  # what the first call of all costs
    for number in range(rounds):
        part = [whole[(number * TIMED + i) % len(whole)] for i in range(TIMED)]
        for name, scorer in scorers.items():
            started = time.perf_counter()
            scorer(part)
            seconds[name].append(time.perf_counter() - started)
    pace = {name: TIMED * rounds / sum(taken) for name, taken in seconds.items()}
    lines = ["| classifier | texts/s | of the rounds | minilm is |", "|---|---:|---|---:|"]
    for name, taken in seconds.items():
        each = " ".join(f"{TIMED / second:,.0f}" for second in taken)
        times = "" if name == WITH_GATE else f"{pace[WITH_GATE] / pace[name]:.2f} times as fast"
        lines.append(f"| {name} | {pace[name]:,.0f} | {each} | {times} |")
    return "\n".join(lines)


def losses(scorers: dict[str, MiniLMRegard], texts: pl.DataFrame, kept: pl.DataFrame) -> str:
    """A table by source: what the gate keeps, and how far the labels agree with those of the classifier before."""
    compared = BEFORE in scorers
    more = (
        [" labels alike with before, % | kappa | polarised now, before, % |", "---:|---:|---|"]
        if compared
        else ["", ""]
    )
    lines = [f"| texts | number | polarised | kept, % | passed, % |{more[0]}", f"|---|---:|---:|---:|---:|{more[1]}"]
    for row in kept.rows(named=True):
        cells = [row["source"], f"{row['texts']:,}", f"{row['polarised']:,}"]
        cells += [f"{row['kept']:.2f} [{row['kept_low']:.2f}, {row['kept_high']:.2f}]", f"{row['passed']:.1f}"]
        if compared:
            cells += alike(*(said(scorers[name], texts, row["source"]) for name in (WITH_GATE, BEFORE)))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def said(scorer: MiniLMRegard, texts: pl.DataFrame, source: str) -> np.ndarray:
    """The labels of a source's texts; "other" counts as neutral."""
    labels = scorer(texts.filter(source=source)["text"].to_list()).label
    return np.where(np.isin(labels, [-1, 1]), labels, 0)


def alike(now: np.ndarray, before: np.ndarray) -> Sequence[str]:
    polarised = ", ".join(f"{100 * (labels != 0).mean():.1f}" for labels in (now, before))
    return [f"{100 * (now == before).mean():.1f}", f"{cohen_kappa_score(now, before):.2f}", polarised]


if __name__ == "__main__":
    main()
