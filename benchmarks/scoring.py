"""Scoring against the ways people do it: texts per second of the regard classifiers and of VADER.

    python benchmarks/scoring.py [bert] [shipped] [vader] [workers] [--data ../shared/data] [--rounds 4]

Contestants take turns within a round, so that what else the machine does falls on all of them. Texts are masked
statements of the harms paper's release. A COMeT's statements repeat once masked, 57 of 100 having been there before;
the sets with repeats here have that share. All parts take some six minutes on two cores, nearly all of it the
pipeline's."""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    pipeline,
)
from transformers.utils.logging import disable_progress_bar, set_verbosity_error
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.labels import LabelStore, OnWorkers, connected, label_column
from mitigate.score.lexicon import Vader
from mitigate.score.regard import BertRegard, MiniLMRegard, NgramRegard
from mitigate.triples import Scorer

REPEATED = 0.57  # of a probe's masked statements stood there before
BATCH = 64  # texts, of the batched loop
ID2LABEL = {0: "neutral", 1: "positive", 2: "negative", 3: "other"}

Score = Callable[[Sequence[str]], object]


@dataclass
class Contestant:
    """A way to label texts. share: which part of a set it labels in a round, so that slow ones hold up nobody."""

    name: str
    score: Score
    share: float = 1.0
    seconds: list[float] = field(default_factory=list)
    texts: int = 0

    def turn(self, texts: Sequence[str], number: int) -> None:
        size = int(len(texts) * self.share)
        start = number * size % len(texts)
        part = texts[start : start + size]
        started = time.perf_counter()
        self.score(part)
        self.seconds.append(time.perf_counter() - started)
        self.texts += len(part)

    @property
    def speed(self) -> float:
        return self.texts / sum(self.seconds)


def main() -> None:
    parts = {"bert": bert, "shipped": shipped, "vader": vader, "workers": workers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="|".join(parts), help="default: all")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has regard/")
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"no such part: {', '.join(unknown)}")
    set_verbosity_error()
    disable_progress_bar()
    logging.disable()
    statements = read_statements(arguments.data)
    for name in arguments.parts or parts:
        title, *text = parts[name](statements, arguments.rounds)
        where = f"Measured on {machine()}, by `python benchmarks/scoring.py {name}`, {arguments.rounds} rounds."
        print("\n\n".join([title, where, *text]), flush=True)


def read_statements(data: Path) -> list[str]:
    """The distinct masked statements, in an order of chance."""
    path = data / "regard" / "bert_labels_conceptnet.tsv"
    columns = ["target", "label", "text"]
    table = pl.read_csv(path, separator="\t", has_header=False, quote_char=None, new_columns=columns)
    texts = table["text"].unique().sort().to_list()
    random.Random(0).shuffle(texts)
    return texts


def with_repeats(texts: Sequence[str], size: int) -> list[str]:
    """So many texts, of which the share REPEATED repeats another."""
    chance = random.Random(1)
    distinct = list(texts[: round(size * (1 - REPEATED))])
    found = distinct + chance.choices(distinct, k=size - len(distinct))
    chance.shuffle(found)
    return found


def bert(statements: Sequence[str], rounds: int) -> list[str]:
    """A classifier of BERT-base's size with random weights, which cost what trained ones do."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        save_random_bert(folder)
        contestants = [
            Contestant("pipeline called with a list, batch 1, fp32", alone(folder), share=1 / rounds),
            Contestant(f"sorted, batches of {BATCH}, bf16", batched(folder)),
            Contestant("mitigate, `score.regard=bert`", ours(BertRegard(folder))),
        ]
    sets = {"2,000 distinct": list(statements[:2000]), "2,000, 57 % repeated": with_repeats(statements, 2000)}
    return ["## Scoring: a BERT-base classifier of regard", compare(contestants, sets, rounds)]


def shipped(statements: Sequence[str], rounds: int) -> list[str]:
    """The classifiers that come with the project."""
    minilm = [Contestant("mitigate, `score.regard=minilm`", ours(MiniLMRegard()))]
    ngram = [Contestant("mitigate, `score.regard=ngram`", ours(NgramRegard()))]
    return [
        "## Scoring: the classifiers of regard that come with the project",
        compare(minilm, {"4,000 distinct": list(statements[:4000])}, rounds),
        compare(ngram, {"40,000 distinct": list(statements[:40000])}, rounds),
    ]


def vader(statements: Sequence[str], rounds: int) -> list[str]:
    """VADER against its own loop; and what the scorer alone takes, to see whether more processes would pay."""
    analyser = SentimentIntensityAnalyzer()

    def loop(texts: Sequence[str]) -> list[float]:
        return [analyser.polarity_scores(text)["compound"] for text in texts]

    contestants = [
        Contestant("a loop over `polarity_scores`", loop),
        Contestant("mitigate's scorer, without cache", Vader()),
        Contestant("mitigate, `score.sentiment=vader`", ours(Vader())),
    ]
    sets = {"20,000 distinct": list(statements[:20000]), "20,000, 57 % repeated": with_repeats(statements, 20000)}
    return [
        "## Scoring: VADER",
        compare(contestants, sets, rounds),
        "The label cache on disk takes longer than the scorer itself, and a second process would need some 400,000 "
        "texts to gain back the second it takes to start: so there is one.",
    ]


def workers(statements: Sequence[str], rounds: int) -> list[str]:
    """The default classifier in this process, with a thread a core, and on two of Ray's workers, with a core each."""
    started = time.perf_counter()
    connected(2)
    seconds = time.perf_counter() - started
    contestants = [
        Contestant("`score.engine=local`", ours(MiniLMRegard())),
        Contestant("mitigate, `score.engine=ray score.workers=2`", ours(OnWorkers(MiniLMRegard(), MiniLMRegard, 2))),
    ]
    sets = {f"{size:,} distinct": list(statements[:size]) for size in (4096, 16384)}
    return [
        "## Scoring: on two workers of this machine",
        compare(contestants, sets, rounds),
        f"Ray itself took {seconds:.0f} s to start before all that. Each of its turns begins with two workers that "
        "start and load the classifier.",
    ]


def ours(scorer: Scorer) -> Score:
    """As recipes score: distinct texts only, through an empty label cache on disk."""

    def score(texts: Sequence[str]) -> object:
        with tempfile.TemporaryDirectory() as place:
            return label_column(pl.Series(texts), scorer, LabelStore(Path(place)))

    return score


def alone(folder: Path) -> Score:
    return pipeline("text-classification", model=str(folder), dtype=torch.float32, device="cpu")


def batched(folder: Path) -> Score:
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def score(texts: Sequence[str]) -> list[int]:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        labels = [0] * len(texts)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            batch = tokenizer([texts[i] for i in rows], padding=True, truncation=True, return_tensors="pt")
            for i, label in zip(rows, model(**batch).logits.argmax(-1).tolist(), strict=True):
                labels[i] = label
        return labels

    return score


def save_random_bert(folder: Path) -> None:
    """BERT-base with four labels; its vocabulary is the one MiniLM has too."""
    torch.manual_seed(0)
    config = BertConfig(num_labels=4, id2label=ID2LABEL, label2id={label: i for i, label in ID2LABEL.items()})
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(minilm_folder()).save_pretrained(folder)


def compare(contestants: Sequence[Contestant], sets: dict[str, list[str]], rounds: int) -> str:
    """A table of texts/s, and how many times the others' speed that of each of ours is."""
    mine = [contestant for contestant in contestants if contestant.name.startswith("mitigate, ")]
    header = ["mitigate is"][: len(mine)]
    lines = [row("statements", "", "texts/s", "of the rounds", *header), "|---" * (4 + len(mine)) + "|"]
    for title, texts in sets.items():
        for contestant in contestants:
            contestant.seconds, contestant.texts = [], 0
            contestant.score(texts[:32])  # what the first call of all costs
        for number in range(rounds):
            for contestant in contestants:
                contestant.turn(texts, number)
                print(f"{title}, round {number + 1}: {contestant.name} {contestant.speed:.0f}", flush=True)
        for contestant in contestants:
            each = " ".join(f"{contestant.texts / rounds / seconds:,.0f}" for seconds in contestant.seconds)
            ratios = ["" if contestant in mine else f"{one.speed / contestant.speed:.1f} times as fast" for one in mine]
            lines.append(row(title, contestant.name, f"{contestant.speed:,.0f}", each, *ratios))
    return "\n".join(lines)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
