"""The regard classifier beside an earlier one: identity terms, people, BERT's labels, texts a second, and what the gate
loses.

    python benchmarks/regard.py --before FOLDER [--run outputs/RUN] [--data ../shared/data] [--rounds 6]

--before is the folder of the earlier classifier, such as mitigate/data/regard/minilm of another version. Agreement is
measured on what neither the texts nor, where it says so, the targets of training include; differences are paired and
their intervals are over targets. For speed, contestants take turns within a round. The gate is checked on texts of four
sources that neither the layers nor the gate have learnt from: statements of train100k whole and about "this person",
sentences of GenericsKB, what COMeT says in the crowd's statements, and BERT's texts about unseen targets; with --run
also on what a finished run's generator says. Writes its section of RESULTS.md."""

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
from mitigate.measure import confusion
from mitigate.measure.agreement import fold_other
from mitigate.measure.bootstrap import Bootstrap
from mitigate.score.regard import SHIPPED, MiniLMRegard
from mitigate.targets import targets
from mitigate.tasks.identity import identity_summary, label_identity_terms, measure_identity_terms
from mitigate.tasks.rated import most_say, target_of
from mitigate.tasks.regard.figures import gate_figures
from mitigate.tasks.regard.texts import Texts, read_texts
from mitigate.tasks.scorers import make_scorer
from mitigate.train.regard_data import part_of, read_distilled

GENERATED = 12_000  # statements of a run that are drawn
TIMED = 4_000  # texts that each contestant labels in a round
WITH_GATE, LAYERS, BEFORE = "minilm", "minilm without its gate", "the classifier before"
PARTS = {
    "unseen": "unseen terms, unseen frames",
    "unseen_terms": "unseen terms, frames to train with",
    "unseen_frames": "terms to train with, unseen frames",
    "all": "all",
}
ERRORS = {
    "false_positives": "neutral or kind, labelled prejudice",
    "false_negatives": "unkind, not labelled prejudice",
}
FIGURES = {"kappa": confusion.kappa, "macro-F1": confusion.macro_f1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
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
    scorers = {WITH_GATE: MiniLMRegard(), BEFORE: MiniLMRegard(arguments.before), LAYERS: MiniLMRegard(gate=False)}
    section = "\n\n".join(
        [
            "## Regard: the classifier and the one before",
            f"Measured on {machine()}, by `python benchmarks/regard.py`.",
            "Errors on identity terms, in percent; the gap is that of the term farthest from the mean, in percentage "
            "points, with its 95 % interval over sentences; beyond: terms more than 5 points from the mean. Intervals "
            "on other pages are of other bootstrap draws, so that their last digits differ.",
            identity(scorers),
            "Agreement with the majority of raters and with BERT's labels; intervals of 95 % over targets. Unseen "
            "targets are named in no text that the present classifier has learnt from.",
            agreement(scorers, read, arguments.data),
            f"Texts a second, {arguments.rounds} rounds of {TIMED:,} texts of the sources below in turn.",
            speeds(scorers, texts, arguments.rounds),
            "Texts that neither layers nor gate have learnt from. Kept: of the layers' polarised labels, with the 95 % "
            "interval of Clopper and Pearson; passed: texts that the layers do not read; alike: labels of both "
            "classifiers.",
            losses(scorers, texts),
        ]
    )
    write_section("regard", section)
    print(section)


def identity(scorers: dict[str, MiniLMRegard]) -> str:
    """A row for each part of the test, error and classifier."""
    named = [make_scorer(scorers[name], name) for name in (BEFORE, WITH_GATE)]
    names = [scorer.name for scorer in named]
    summed = identity_summary(measure_identity_terms(label_identity_terms(named), names, Bootstrap()))
    lines = ["| sentences | errors | classifier | mean | masked | farthest term | gap | beyond |"]
    lines += ["|---|---|---|---:|---:|---|---|---|"]
    for part, sentences in PARTS.items():
        for error, said in ERRORS.items():
            rows = summed.filter(pl.col("part") == part, pl.col("error") == error, pl.col("number") == "both")
            for row in rows.rows(named=True):
                gap = f"{row['largest']:+.1f} [{row['largest_low']:+.1f}, {row['largest_high']:+.1f}]"
                cells = [sentences, said, row["scorer"], f"{row['mean']:.1f}", f"{row['masked']:.1f}", row["term"], gap]
                lines.append("| " + " | ".join([*cells, f"{row['beyond']} of {row['terms']}"]) + " |")
    return "\n".join(lines)


def agreement(scorers: dict[str, MiniLMRegard], read: Texts, data: Path) -> str:
    """A row for each source and figure: before, now, and the difference."""
    lines = ["| labels | texts | figure | before | now | difference |", "|---|---:|---|---|---|---|"]
    for source, rows in sources(read, data).items():
        clusters = np.unique(rows["target"].to_list(), return_inverse=True)[1]
        wanted = fold_other(rows["label"].to_numpy())
        said = [fold_other(scorers[name](rows["text"].to_list()).label) for name in (BEFORE, WITH_GATE)]
        sums = np.hstack([confusion.confusion(wanted, labels, clusters) for labels in said])
        for name, figure in FIGURES.items():
            both = {
                "before": lambda table, of=figure: of(table[..., :9]),
                "now": lambda table, of=figure: of(table[..., 9:]),
                "difference": lambda table, of=figure: of(table[..., 9:]) - of(table[..., :9]),
            }
            found = confusion.with_intervals(sums, both, Bootstrap())
            cells = [
                f"{found[key]:{sign}.2f} [{found[f'{key}_low']:{sign}.2f}, {found[f'{key}_high']:{sign}.2f}]"
                for key, sign in (("before", ""), ("now", ""), ("difference", "+"))
            ]
            lines.append("| " + " | ".join([source, f"{rows.height:,}", name, *cells]) + " |")
    return "\n".join(lines)


def sources(read: Texts, data: Path) -> dict[str, pl.DataFrame]:
    """What is agreed with: text, label, target."""
    crowd = read.crowd.with_columns(
        label=pl.Series(most_say(read.crowd["votes"])),
        text="masked",
        target=pl.Series([target_of(text) or text for text in read.crowd["statement"]]),
    )
    unseen = pl.col("target").is_in([target for target in targets() if part_of(target) == "test"])
    found = {}
    for (resource,), rows in crowd.group_by("resource", maintain_order=True):
        found[f"crowd, {resource}"] = rows
        found[f"crowd, {resource}, unseen targets"] = rows.filter(unseen)
    of_text = read_distilled(data / "regard").unique("text", keep="first").select("text", "target")
    found["BERT, unseen targets"] = read.labelled.filter(part="test").join(of_text, on="text")
    return found


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


def losses(scorers: dict[str, MiniLMRegard], texts: pl.DataFrame) -> str:
    """A table by source: what the gate keeps, and how far the labels agree with those of the classifier before."""
    lines = ["| texts | number | polarised | kept, % | passed, % | alike, % | kappa | polarised now, before, % |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---|"]
    for row in gate_figures(texts, folder=SHIPPED).rows(named=True):
        cells = [row["source"], f"{row['texts']:,}", f"{row['polarised']:,}"]
        cells += [f"{row['kept']:.2f} [{row['kept_low']:.2f}, {row['kept_high']:.2f}]", f"{row['passed']:.1f}"]
        cells += alike(*(said(scorers[name], texts, row["source"]) for name in (WITH_GATE, BEFORE)))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def said(scorer: MiniLMRegard, texts: pl.DataFrame, source: str) -> np.ndarray:
    """The labels of a source's texts; "other" counts as neutral."""
    return fold_other(scorer(texts.filter(source=source)["text"].to_list()).label)


def alike(now: np.ndarray, before: np.ndarray) -> Sequence[str]:
    polarised = ", ".join(f"{100 * (labels != 0).mean():.1f}" for labels in (now, before))
    return [f"{100 * (now == before).mean():.1f}", f"{cohen_kappa_score(now, before):.2f}", polarised]


if __name__ == "__main__":
    main()
