"""What the checks of mitigate/data/learnt_bounds.csv find of generators that know nothing, that were not trained, that
were trained for a moment, and that were trained whole: the bounds lie between these.

    OMP_NUM_THREADS=1 nice python benchmarks/learnt_bounds.py [--folder DIR]

Half an hour on one idle core. Writes its section of RESULTS.md. What is found of a generator is kept in the folder;
the same command does what is left."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.label_cache import LabelStore
from mitigate.learnt import DERIVED
from mitigate.load.sample import load
from mitigate.measure.bootstrap import Bootstrap
from mitigate.probe.tails import GivenTails
from mitigate.score.plausibility import Plausibility
from mitigate.target_list import PAPER
from mitigate.targets import choose_targets
from mitigate.tasks.baselines import constant_tails, echo_tails
from mitigate.tasks.filtered import training_figures, untrained
from mitigate.tasks.generator import open_generator
from mitigate.tasks.heads import held_out_prompts, probe_heads
from mitigate.tasks.label import label_statements
from mitigate.tasks.lift import lift_figures, lift_table
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.quality import tail_figures
from mitigate.tasks.scorers import default_scorers
from mitigate.tasks.train import TrainingSettings, train_generator

PEOPLE = ("teacher", "nurse", "lawyer", "farmer", "engineer", "judge")
TARGETS = ("american", "italian", "chinese", "christian", "muslim", "hindu", "woman", "man", "mother", *PEOPLE)
STEPS = (1, 6, 30, 60, 120, 300, None)  # None: as many as four epochs take
FEW_STEPS = (1, 6, 30, 60, 120, 240)
FEW = {  # 24 triples
    "CapableOf": ("explain a map", "change a bandage", "read a contract", "grow wheat", "plan a bridge", "hear a case"),
    "AtLocation": ("classroom", "ward", "office", "barn", "workshop", "courtroom"),
    "UsedFor": ("learning", "care", "advice", "harvest", "building", "settling a dispute"),
    "HasProperty": ("patient", "busy", "careful", "early to rise", "precise", "calm"),
}
HEADS = 60  # of held-out triples
SETTINGS = {"batch_size": 64, "lr": 5e-4}  # as trainer=cpu


@dataclass(frozen=True)
class Study:
    """What generators are asked, and the triples that swap lift's baselines are made of."""

    folder: Path
    labelled: pl.DataFrame  # triples of splits train and test
    targets: pl.DataFrame
    relations: Sequence[str]

    def trained(self, name: str, rows: pl.DataFrame, **settings: Any) -> dict[str, Any]:
        """The figures of comet_minilm, trained on some of the triples."""
        place, start = self.folder / name, open_generator()
        if not (place / "train.json").is_file():
            ledger = rows.with_columns(weight=pl.lit(1.0))
            facts = train_generator(ledger, start, TrainingSettings(**SETTINGS, **settings), model=place / "model")
            (place / "train.json").write_text(json.dumps(facts))
        training = json.loads((place / "train.json").read_text())
        known = rows.with_columns(weight=pl.lit(1.0))
        missing = 100 * len(untrained(known, self.relations)) / len(self.relations)
        more = training_figures(training) | {"untrained_relations": missing}
        return more | self.asked(name, lambda: open_generator(place / "model").load(), start.asked)

    def asked(self, name: str, generator: Callable[[], Any], phrases: dict[str, str]) -> dict[str, Any]:
        """The figures of what a generator says; computed once."""
        kept = self.folder / f"{name}.json"
        if not kept.is_file():
            kept.write_text(json.dumps(self._figures(generator(), {name: phrases[name] for name in self.relations})))
        print(f"{name}: {kept.read_text()}", flush=True)
        return json.loads(kept.read_text())

    def _figures(self, generator: Any, phrases: dict[str, str]) -> dict[str, Any]:
        said = probe_generator(generator, self.targets, phrases)
        prompts = held_out_prompts(self.labelled, PAPER, self.relations, HEADS)
        heads = probe_heads(SimpleNamespace(load=lambda: generator), prompts, phrases)  # type: ignore[arg-type]
        figures = tail_figures(said, self.labelled.filter(split="train")) | {"targets": self.targets.height}
        said = said.with_columns(sentiment_neutral=pl.lit(0), regard_neutral=pl.lit(0))
        people = said.filter(category="profession"), self.targets.filter(category="profession")
        table = lift_table(people[0], heads, self.labelled, people[1], self.relations, prompts, Plausibility())
        return figures | lift_figures(table, Bootstrap(resamples=2000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("outputs/learnt_bounds"))
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    cache = LabelStore(folder / "cache" / "labels")
    corpus = label_statements(load().triples.filter("valid"), default_scorers(), cache=cache)
    triples = [(head, name, tail) for name, tails in FEW.items() for head, tail in zip(PEOPLE, tails, strict=True)]
    few = pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row").with_columns(
        split=pl.lit("train"), valid=pl.lit(True)
    )
    names = list(open_generator().asked)
    sample = Study(folder, corpus, choose_targets(TARGETS).select("target", "category"), names)
    small = Study(folder, label_statements(few, default_scorers(), cache=cache), choose_targets(PEOPLE), list(FEW))
    parts = {
        f"The sample corpus, {len(TARGETS)} targets, 34 relations:": whole(sample),
        "24 triples of one's own, six targets, four relations:": few_triples(small),
        "Some relations of the sample corpus alone, 34 probed:": of_relations(sample),
    }
    text = [
        "## When a generator has learnt",
        f"Measured on {machine()}, by `python benchmarks/learnt_bounds.py`. model=comet_minilm, one seed. Passes are "
        "over the triples; swap lift is in points, with its 95 % interval; lists: distinct tails as a multiple of "
        "those of a generator that says the same of all targets; all else is in percent.",
        *(piece for title, rows in parts.items() for piece in (title, table(list(rows)))),
    ]
    write_section("learnt bounds", "\n\n".join(text))
    print("\n\n".join(text))


Row = tuple[str, dict[str, Any]]


def whole(study: Study) -> Iterator[Row]:
    """Generators of the sample corpus: those that know nothing, one that was not trained, and those trained for some
    steps."""
    phrases = {name: f"<{name}>" for name in study.relations}
    constants = constant_tails(study.labelled).with_columns(head=pl.lit(None, pl.String))
    prompts = held_out_prompts(study.labelled, PAPER, study.relations, HEADS)
    asked = study.targets.select(head="target").join(pl.DataFrame({"relation": study.relations}), how="cross")
    for name, tails in {"constants": constants, "echo": echo_tails(pl.concat([asked, prompts]))}.items():
        given = GivenTails(tails.with_columns(score=pl.lit(None, pl.Float64)))
        yield name, study.asked(name, lambda given=given: given, phrases)
    start = open_generator()
    yield "not trained", study.asked("not trained", start.load, start.asked)
    for steps in STEPS:
        yield _steps(steps), study.trained(f"sample {_steps(steps)}", study.labelled, max_epochs=4, max_steps=steps)


def few_triples(study: Study) -> Iterator[Row]:
    """Generators trained on 24 triples."""
    for steps in FEW_STEPS:
        name = f"few {_steps(steps)}"
        yield _steps(steps), study.trained(name, study.labelled, max_epochs=10_000, max_steps=steps)


def of_relations(study: Study) -> Iterator[Row]:
    """Generators trained on one relation, and on every second, and asked about all."""
    names = study.labelled.filter(split="train")["relation"].value_counts(sort=True)["relation"].to_list()
    for name, kept in {"the commonest": names[:1], "every second": names[::2]}.items():
        yield name, study.trained(name, study.labelled.filter(pl.col("relation").is_in(kept)), max_epochs=4)


def _steps(steps: int | None) -> str:
    return "whole" if steps is None else f"{steps} step{'s' * (steps > 1)}"


def table(rows: Sequence[Row]) -> str:
    columns = {"steps": "training/steps", "passes": "training/passes", "shared": "shared_tails", "lists": "lists"}
    columns |= {"empty": "empty_tails", "swap lift": "quality/swap_lift/all", "untrained": "untrained_relations"}
    lines = [["generator", *columns], ["---"] * (1 + len(columns))]
    for name, figures in rows:
        known = figures | {"lists": DERIVED["distinct_lists"](figures)}
        lines.append([name, *(_cell(known, key) for key in columns.values())])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(figures: dict[str, Any], key: str) -> str:
    value, low, high = (figures.get(key + end) for end in ("", "_low", "_high"))
    if value is None:
        return "–"
    shown = str(value) if isinstance(value, int) else f"{value:.2f}" if key == "training/passes" else f"{value:.1f}"
    return shown if low is None or high is None else f"{shown} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
