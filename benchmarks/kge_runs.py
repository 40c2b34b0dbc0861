"""The trainings that figures on bias in knowledge-graph embeddings rest on, one after the other, and what was found.

    python benchmarks/kge_runs.py list                            # what is done, and what is to be done
    python benchmarks/kge_runs.py next --root DIR --work DIR      # one training; says when none is left
    python benchmarks/kge_runs.py all --root DIR --work DIR
    python benchmarks/kge_runs.py tables                          # writes the sections of RESULTS.md, without training

A training adds its figures to benchmarks/kge/runs.csv as soon as they are measured, so that tables are drawn again
without it. One that was stopped goes on from its checkpoint in the folder --work, which is emptied afterwards. A
training is done when there are figures of the same code, settings and seed. Each takes one thread. Two processes
at once share the work by `--share 1/2` and `--share 2/2`."""

import argparse
import csv
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.kge_tables import FEWEST, sections
from benchmarks.results import write_section
from mitigate.fingerprints import digest_of_stage, digest_of_values
from mitigate.load.graph.published import codex_m, fb15k237
from mitigate.load.graph.table import Graph
from mitigate.measure.kge import rank_correlation
from mitigate.recipes.kge.plan import SHAPE
from mitigate.tasks.kge.figures import by_model
from mitigate.tasks.kge.graphs import Triples, triples_of
from mitigate.tasks.kge.mitigation import downsampled, project_out
from mitigate.tasks.kge.pairs import compare_pairs
from mitigate.tasks.kge.predictions import measure_leakage, parity_figures, predict_professions
from mitigate.tasks.kge.question import Question, find_question
from mitigate.tasks.kge.training import change_scores, rank_test_triples, train_embeddings, train_on_permuted
from mitigate.train.kge_settings import Settings

HERE = Path(__file__).parent
CONF = HERE.parent / "conf"
RUNS, PROFESSIONS = HERE / "kge" / "runs.csv", HERE / "kge" / "professions.csv"
READERS = {"fb15k237": fb15k237, "codex_m": codex_m}
QUESTIONS = {  # by data: the attribute and both values
    "fb15k237": [("gender", ("male", "female"))],
    "codex_m": [
        ("ethnicity", ("Jewish people", "African Americans")),
        ("religion", ("Catholic Church", "Islam")),
        ("nationality", ("United States of America", "United Kingdom")),
    ],
}
MIXED = 1  # the seed by which professions are downsampled, and people drawn for probes
STEP = 0.01  # of equation 1, as in conf/recipe/kge.yaml
COLUMNS = (
    *("data", "model", "graph", "seed", "question", "code", "settings", "commit", "seconds", "epochs", "valid_mrr"),
    *("mrr", "hits_1", "hits_3", "hits_10", "rank_correlation", "own_correlation", "pair_correlation"),
    *("pair_agreement", "parity", "parity_by_chance", "predictive_parity", "amplification", "accuracy"),
    *("leakage_linear", "leakage_linear_by_chance", "leakage_nonlinear", "leakage_nonlinear_by_chance", "changes"),
)
"""Of runs.csv, a row for each training and question. graph: as_published, permuted, downsampled, or projected, the
embeddings of as_published without the attribute. commit ends with + where the code was changed since. changes: equation
1 of each profession, in the order of professions.csv."""


class Run(NamedTuple):
    """A training."""

    data: str
    model: str
    graph: str
    seed: int  # of a permuted graph its number too


def planned() -> list[Run]:
    """All trainings, the most important ones first."""
    paper, seeds = ("transe", "complex"), range(1, 6)
    return [
        *(Run("fb15k237", model, "as_published", seed) for model in paper for seed in seeds),
        *(Run("fb15k237", "transe", "downsampled", seed) for seed in seeds),
        *(Run("codex_m", model, "as_published", seed) for model in paper for seed in seeds),
        *(Run("fb15k237", "transe", "permuted", number) for number in range(1, 21)),
        *(Run("fb15k237", "complex", "permuted", number) for number in range(1, 21)),
        *(Run("fb15k237", "complex", "downsampled", seed) for seed in seeds),
        *(Run("fb15k237", model, "as_published", 1) for model in ("transe_l2", "distmult", "complex_n3")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["list", "next", "all", "tables"])
    parser.add_argument("--root", help="the folder that has kg/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--work", type=Path, default=HERE / "kge" / "unfinished", help="for checkpoints and embeddings")
    parser.add_argument("--share", type=share, default=(1, 1), help="2/3: every third training, from the second on")
    arguments = parser.parse_args()
    if arguments.action == "tables":
        for name, text in sections(pl.read_csv(RUNS, infer_schema_length=None), pl.read_csv(PROFESSIONS)):
            write_section(name, text)
            print(text)
        return
    torch.set_num_threads(1)
    number, of = arguments.share
    mine = planned()[number - 1 :: of]
    left = [run for run in mine if not is_done(run)]
    if arguments.action == "list":
        for run in mine:
            print("to be done" if run in left else "done", *run)
        return
    for run in left[:1] if arguments.action == "next" else left:
        started = time.monotonic()
        do(run, arguments.root, arguments.work)
        print(*run, f"{time.monotonic() - started:.0f} s", flush=True)
    if not left:
        print("none is left")


def share(text: str) -> tuple[int, int]:
    """Of 2/3: 2 and 3."""
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError
    return number, of


def do(run: Run, root: str | None, work: Path) -> None:
    """Train and measure; the figures are added to runs.csv together."""
    found = graph_of(run.data, root)
    triples, questions = triples_of(found), questions_of(run.data, found)
    write_professions(run.data, questions)
    folder = work / "-".join(map(str, (*run, code_of(run)[:8], settings_of(run)[:8])))
    folder.mkdir(parents=True, exist_ok=True)
    rows = list((permuted if run.graph == "permuted" else trained)(run, triples, questions, folder))
    add(run, rows)
    shutil.rmtree(folder)


def trained(run: Run, triples: Triples, questions: dict[str, Question], folder: Path) -> Iterator[dict[str, Any]]:
    """The figures of embeddings that are kept while they are measured."""
    shape, settings = model_of(run)
    if run.graph == "downsampled":
        (question,) = questions.values()
        triples = downsampled(triples, question, MIXED)
    facts = train_embeddings(triples, shape, settings, "model", folder=folder, fingerprint=settings_of(run))
    about = {"seconds": facts["seconds"], "epochs": facts["epochs"], "valid_mrr": facts["valid_mrr"]}
    ranks = ranks_of(triples, "model", folder)
    for name, question in questions.items():
        yield {"question": name, **about, **ranks, **figures(triples, question, "model", folder)}
        if run.data == "fb15k237" and run.graph == "as_published":
            project_out(question, ["model"], ["projected"], folder=folder)
            after = figures(triples, question, "projected", folder)
            del after["changes"], after["rank_correlation"]  # of equation 1, which is zero by construction
            yield {"graph": "projected", "question": name, **ranks_of(triples, "projected", folder), **after}


def permuted(run: Run, triples: Triples, questions: dict[str, Question], folder: Path) -> Iterator[dict[str, Any]]:
    """The figures of a graph whose people have each other's attributes."""
    shape, settings = model_of(run)
    for name, question in questions.items():
        started = time.monotonic()
        table = train_on_permuted(
            triples, question, shape, settings, STEP, run.seed, name, folder=folder, fingerprint=settings_of(run)
        )
        changes, ratios = table["change"].to_numpy(), question.professions["log_ratio"].to_numpy()
        yield {
            "question": name,
            "seconds": time.monotonic() - started,
            "valid_mrr": table["valid_mrr"][0],
            "rank_correlation": rank_correlation(changes, ratios),
            "own_correlation": rank_correlation(changes, table["own_ratio"].to_numpy()),
            "changes": listed(changes),
        }


def figures(triples: Triples, question: Question, name: str, folder: Path) -> dict[str, Any]:
    """What is measured of embeddings besides ranks."""
    changes = by_model(change_scores(question, [name], STEP, folder=folder))[0]
    predictions = predict_professions(triples, question, [name], folder=folder)
    pairs = compare_pairs(question, [], [name], MIXED, folder=folder)
    return {
        "rank_correlation": rank_correlation(changes, question.professions["log_ratio"].to_numpy()),
        "pair_correlation": pairs["with_counts"][0],
        "pair_agreement": pairs["with_pairs"][0],
        **parity_figures(predictions, question, MIXED).drop("model").row(0, named=True),
        **measure_leakage(triples, question, [name], MIXED, folder=folder).drop("model").row(0, named=True),
        "changes": listed(changes),
    }


def ranks_of(triples: Triples, name: str, folder: Path) -> dict[str, float]:
    ranks = rank_test_triples(triples, [name], folder=folder).row(0, named=True)
    return {column: ranks[column] for column in ("mrr", "hits_1", "hits_3", "hits_10")}


def listed(changes: Sequence[float]) -> str:
    return " ".join(f"{change:.4g}" for change in changes)


@cache
def graph_of(data: str, root: str | None) -> Graph:
    return READERS[data](root)


def questions_of(data: str, graph: Graph) -> dict[str, Question]:
    """By attribute."""
    settings = yaml.safe_load((CONF / "data" / f"{data}.yaml").read_text())
    return {
        name: find_question(graph, settings["attributes"][name], values, settings["occupation"], FEWEST)
        for name, values in QUESTIONS[data]
    }


def model_of(run: Run) -> tuple[dict[str, Any], Settings]:
    """What the model is, and how it is trained: conf/model/*.yaml."""
    config = yaml.safe_load((CONF / "model" / f"{run.model}.yaml").read_text())
    return {name: config[name] for name in SHAPE}, Settings(**config["training"], seed=run.seed)


def settings_of(run: Run) -> str:
    """A hash of all settings of a training, but for its seed."""
    shape, settings = model_of(run)
    without = {name: value for name, value in asdict(settings).items() if name not in ("seed", "checkpoint_every")}
    return digest_of_values(shape, without, QUESTIONS[run.data], FEWEST, STEP)


@cache
def code_of_function(function: Any) -> str:
    return digest_of_stage(function, ())


def code_of(run: Run) -> str:
    """A hash of the code that trains."""
    return code_of_function(train_on_permuted if run.graph == "permuted" else train_embeddings)


def is_done(run: Run) -> bool:
    if not RUNS.exists():
        return False
    wanted = {**run._asdict(), "code": code_of(run)[:12], "settings": settings_of(run)[:12]}
    with RUNS.open(newline="") as file:
        return any(all(row[key] == str(value) for key, value in wanted.items()) for row in csv.DictReader(file))


def add(run: Run, rows: Sequence[dict[str, Any]]) -> None:
    """Adds the rows of a training to runs.csv, whole or not at all."""
    changed = git("status", "--porcelain", "--", "mitigate", "models", "conf")
    commit = git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    common = {**run._asdict(), "code": code_of(run)[:12], "settings": settings_of(run)[:12], "commit": commit}
    with alone():
        before = RUNS.read_text() if RUNS.exists() else ",".join(COLUMNS) + "\n"
        place = RUNS.with_suffix(".part")
        with place.open("w", newline="") as file:
            file.write(before)
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            for row in rows:
                writer.writerow({key: short(value) for key, value in {**common, **row}.items()})
            file.flush()
            os.fsync(file.fileno())
        place.replace(RUNS)


@contextmanager
def alone() -> Iterator[None]:
    """No other process writes results meanwhile."""
    with RUNS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def git(*arguments: str) -> str:
    asked = ["git", *arguments]
    return subprocess.run(asked, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout.strip()


def short(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else value


def write_professions(data: str, questions: dict[str, Question]) -> None:
    """The professions of these questions, with their counts."""
    tables = [
        question.professions.select(pl.lit(data).alias("data"), pl.lit(name).alias("question"), pl.all())
        for name, question in questions.items()
    ]
    with alone():
        if PROFESSIONS.exists():
            tables.append(pl.read_csv(PROFESSIONS).filter(pl.col("data") != data))
        pl.concat(tables).sort("data", "question", maintain_order=True).write_csv(PROFESSIONS, float_precision=4)


if __name__ == "__main__":
    main()
