"""How much processor time `comet_minilm` needs to the dev perplexity of the recipe before, by way of training.

    python benchmarks/time_to_quality.py run NAME... [--root DIR] [--epochs 0.5] [--seed 1] [--test] [--save DIR]
    python benchmarks/time_to_quality.py table

`run` trains contestants on train100k, one thread each, and adds a row to time_to_quality.csv as each ends; it skips
those that are there. Every contestant sees the triples of as many epochs, and its learning rate ends with them.
Perplexity is that of the valid dev triples over the whole vocabulary; of test it is measured with --test, at the end of
all choices. With --save the generators are kept, and `python -m mitigate data=cn100k model=comet
model.base=DIR/NAME train=false` measures their quality. `table` writes the section of RESULTS.md from the file. Half an
epoch takes 10 to 20 minutes of a core."""

import argparse
import os
import re
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # before torch is loaded: other trainings may share the cores

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from benchmarks.results import machine, write_section  # noqa: E402
from mitigate.files import replacing  # noqa: E402
from mitigate.load.conceptnet import load  # noqa: E402
from mitigate.relations import comet_relations  # noqa: E402
from mitigate.train import harness  # noqa: E402
from mitigate.train.comet import CometModule, Examples, Settings, perplexity  # noqa: E402
from mitigate.train.module import adamw  # noqa: E402
from models.comet import Comet  # noqa: E402
from models.minilm import locate  # noqa: E402

FILE = Path(__file__).with_suffix(".csv")
BEFORE = "before"
CHOSEN = "hold, batch 128, lr 5e-4"  # what conf/experiment/cn100k_cpu.yaml has
OPTIONS = {"vocabulary": "all", "lr": 5e-4}
TAILS = {"vocabulary": "tails", "lr": 5e-4}
SHARED = TAILS | {"together": 8}
HELD = SHARED | {"hold": 0.8}
FAST = SHARED | {"lr": 1e-3}


class Variant(CometModule):
    """What a contestant changes besides settings."""

    options: Mapping[str, Any] = {}

    def __init__(self, comet: Comet, examples: Examples, settings: Settings) -> None:
        super().__init__(comet, examples, settings)
        self.begin_vocabulary()
        if self.options.get("bias_only"):  # the bias begins at log frequencies, the loss is over all tokens
            self.candidates, self.nll = None, comet.nll
        self.averages: list[Tensor] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        betas = self.options.get("betas", (0.9, 0.999))
        if "dion" in self.options:
            return Dion(self.model, self.settings, self.options)
        if "muon" in self.options:
            return MuonEveryNth(self.model, self.settings, self.options)
        return adamw(self.parameters(), self.settings.lr, self.settings.weight_decay, betas)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        super().on_before_optimizer_step(optimizer)
        decay = self.options.get("average")
        if decay and self.global_step >= 0.5 * self.steps:
            self._average(decay)

    @torch.no_grad()
    def _average(self, decay: float) -> None:
        weights = list(self.parameters())
        if not self.averages:
            self.averages = [weight.clone() for weight in weights]
        torch._foreach_lerp_(self.averages, weights, 1 - decay)

    @torch.no_grad()
    def finish(self) -> None:
        for weight, average in zip(self.parameters(), self.averages, strict=False):
            weight.copy_(average)


class Mixed(torch.optim.Optimizer, ABC):
    """One optimizer for the matrices of the blocks, `change`, and AdamW for all else; their learning rates rise and
    fall together."""

    def __init__(self, comet: Comet, settings: Settings, peak: float) -> None:
        self.matrices = [weight for weight in comet.decoder.blocks.parameters() if weight.ndim == 2]
        named = {id(weight) for weight in self.matrices}
        rest = [weight for weight in comet.parameters() if id(weight) not in named]
        super().__init__([*self.matrices, *rest], {"lr": settings.lr})
        self.adamw = adamw(rest, settings.lr, settings.weight_decay)
        self.share = peak / settings.lr
        self.decay = settings.weight_decay

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        loss = torch.enable_grad()(closure)() if closure else None
        rate = self.param_groups[0]["lr"]
        for group in self.adamw.param_groups:
            group["lr"] = rate
        self.adamw.step()
        self.change(rate * self.share)
        return loss

    @abstractmethod
    def change(self, rate: float) -> None:
        """Changes the matrices by their gradients; rate is theirs at this step."""

    def add(self, weight: Tensor, update: Tensor, rate: float) -> None:
        size = 0.2 * max(weight.shape) ** 0.5  # root mean square of AdamW's updates (Liu et al. 2025)
        weight.mul_(1 - rate * self.decay).add_(update, alpha=-rate * size)


class MuonEveryNth(Mixed):
    """Muon (Jordan et al. 2024): takes a step only every `every`-th time, with the sum of the gradients since then."""

    def __init__(self, comet: Comet, settings: Settings, options: Mapping[str, Any]) -> None:
        super().__init__(comet, settings, options["muon"])
        self.every, self.iterations = options.get("every", 1), options.get("iterations", 5)
        self.momenta = [torch.zeros_like(weight) for weight in self.matrices]
        self.sums = [torch.zeros_like(weight) for weight in self.matrices]
        self.count = 0

    def change(self, rate: float) -> None:
        self.count += 1
        torch._foreach_add_(self.sums, [weight.grad for weight in self.matrices])
        if self.count % self.every == 0:
            for weight, momentum, gradient in zip(self.matrices, self.momenta, self.sums, strict=True):
                momentum.lerp_(gradient, 0.05)
                self.add(weight, orthogonal(gradient.lerp(momentum, 0.95), self.iterations), rate)
            torch._foreach_zero_(self.sums)


class Dion(Mixed):
    """Dion (Ahn et al. 2025, algorithm 1): Muon's update in the `rank` directions that a power iteration finds, what is
    left of the gradient is kept for later steps. Three to eight products of rank columns in place of full ones."""

    def __init__(self, comet: Comet, settings: Settings, options: Mapping[str, Any]) -> None:
        super().__init__(comet, settings, options["dion"])
        self.momenta = [torch.zeros_like(weight) for weight in self.matrices]
        self.right = [torch.randn(weight.shape[1], options["rank"]) for weight in self.matrices]

    def change(self, rate: float) -> None:
        for number, (weight, momentum) in enumerate(zip(self.matrices, self.momenta, strict=True)):
            left = torch.linalg.qr(momentum.add_(weight.grad) @ self.right[number]).Q
            right = momentum.T @ left
            momentum.addmm_(left, right.T, alpha=-0.05)
            right /= right.norm(dim=0).clamp_min(1e-12)
            self.add(weight, left @ right.T, rate)
            self.right[number] = right


def orthogonal(matrix: Tensor, iterations: int) -> Tensor:
    """Nearly the closest matrix whose singular values are all 1, by Newton and Schulz's iteration in float32: PyTorch's
    own Muon computes in bfloat16, which many processors only imitate."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / wide.norm().clamp_min(1e-7)
    for _ in range(iterations):
        square = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(square, square, square, beta=-4.7750, alpha=2.0315), wide, beta=3.4445)
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T


@dataclass(frozen=True)
class Contestant:
    """A way to train."""

    what: str
    settings: Mapping[str, Any]
    dropout: float = 0.1
    options: Mapping[str, Any] = field(default_factory=dict)


CONTESTANTS = {
    BEFORE: Contestant("loss over all tokens, prompts apart, dropout .1, lr 5e-4, linear decay", OPTIONS),
    "bias": Contestant("before, but the output bias begins at log frequencies", TAILS, options={"bias_only": True}),
    "tails": Contestant("before, but loss over the tokens of tails", TAILS),
    "tails, calm": Contestant("tails, no dropout", TAILS, 0.0),
    "tails, lr 1e-3": Contestant("tails, no dropout, lr 1e-3", TAILS | {"lr": 1e-3}, 0.0),
    "shared": Contestant("tails, and up to 8 triples of one prompt drawn together", SHARED),
    "calm": Contestant("shared, no dropout", SHARED, 0.0),
    "calm, lr 1e-3": Contestant("shared, no dropout, lr 1e-3", FAST, 0.0),
    "calm, lr 1e-3, warmup": Contestant(
        "shared, no dropout, lr 1e-3, warmup 5 %", SHARED | {"lr": 1e-3, "warmup": 0.05}, 0.0
    ),
    "calm, betas": Contestant("shared, no dropout, betas .9, .98", SHARED, 0.0, {"betas": (0.9, 0.98)}),
    "calm, hold": Contestant("shared, no dropout, lr held for 80 %, then 1 - sqrt", HELD, 0.0),
    "hold, lr 7e-4": Contestant("calm, hold at lr 7e-4", HELD | {"lr": 7e-4}, 0.0),
    "hold, lr 3.5e-4": Contestant("calm, hold at lr 3.5e-4", HELD | {"lr": 3.5e-4}, 0.0),
    "hold, half": Contestant("calm, hold for 50 %", HELD | {"hold": 0.5}, 0.0),
    "hold, batch 128": Contestant(
        "calm, hold with batches of 128, lr 7e-4", HELD | {"batch_size": 128, "lr": 7e-4}, 0.0
    ),
    "hold, batch 128, lr 1e-3": Contestant(
        "calm, hold with batches of 128, lr 1e-3", HELD | {"batch_size": 128, "lr": 1e-3}, 0.0
    ),
    "hold, batch 128, lr 5e-4": Contestant("calm, hold with batches of 128", HELD | {"batch_size": 128}, 0.0),
    "hold, batch 128, warm": Contestant(
        "calm, hold with batches of 128, lr 1e-3, warmup 5 %",
        HELD | {"batch_size": 128, "lr": 1e-3, "warmup": 0.05},
        0.0,
    ),
    "hold, batch 256": Contestant(
        "calm, hold with batches of 256, lr 1e-3", HELD | {"batch_size": 256, "lr": 1e-3}, 0.0
    ),
    "calm, average": Contestant("shared, no dropout, weights averaged (decay .99)", SHARED, 0.0, {"average": 0.99}),
    "calm, batch 32": Contestant("shared, no dropout, batches of 32", SHARED | {"batch_size": 32}, 0.0),
    "calm, batch 128": Contestant(
        "shared, no dropout, batches of 128, lr 7e-4", SHARED | {"batch_size": 128, "lr": 7e-4}, 0.0
    ),
    "Muon": Contestant("shared, no dropout, Muon at 1.5e-3, AdamW at 1e-3", FAST, 0.0, {"muon": 1.5e-3}),
    "Muon, cheaper": Contestant(
        "shared, no dropout, Muon of 3 iterations every other step at 2e-3, AdamW at 1e-3",
        FAST,
        0.0,
        {"muon": 2e-3, "every": 2, "iterations": 3},
    ),
    "Muon, batch 128": Contestant(
        "shared, no dropout, batches of 128, Muon of 3 iterations at 2e-3, AdamW at 1e-3",
        FAST | {"batch_size": 128},
        0.0,
        {"muon": 2e-3, "iterations": 3},
    ),
    "Dion": Contestant(
        "shared, no dropout, Dion of rank 96 at 2e-3, AdamW at 1e-3",
        FAST,
        0.0,
        {"dion": 2e-3, "rank": 96},
    ),
    "Dion, rank 48": Contestant(
        "shared, no dropout, Dion of rank 48 at 3e-3, AdamW at 1e-3",
        FAST,
        0.0,
        {"dion": 3e-3, "rank": 48},
    ),
    "Dion, lr 4e-3": Contestant(
        "shared, no dropout, Dion of rank 96 at 4e-3, AdamW at 1e-3",
        FAST,
        0.0,
        {"dion": 4e-3, "rank": 96},
    ),
    "Dion, batch 128": Contestant(
        "shared, no dropout, batches of 128, Dion of rank 96 at 3e-3, AdamW at 1e-3",
        FAST | {"batch_size": 128},
        0.0,
        {"dion": 3e-3, "rank": 96},
    ),
}
"""What is tried. A name is part of the file's rows: what is changed gets another."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="train contestants")
    runs.add_argument("names", nargs="+", choices=sorted(CONTESTANTS), metavar="NAME", help=", ".join(CONTESTANTS))
    runs.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root); else MITIGATE_DATA")
    runs.add_argument("--epochs", type=float, default=0.5)
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--test", action="store_true", help="measure the perplexity of test too")
    runs.add_argument("--save", type=Path, metavar="DIR", help="keep each generator in a folder there")
    commands.add_parser("table", help="write the section of RESULTS.md")
    arguments = parser.parse_args()
    if arguments.command == "table":
        write_section("time_to_quality", section(read(FILE)))
        return
    for name in arguments.names:
        key = {"contestant": name, "epochs": arguments.epochs, "seed": arguments.seed}
        if any(row.items() >= key.items() for row in read(FILE)):
            print(f"{name} is there already")
            continue
        add(FILE, key | train(name, arguments))


def train(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Trains one contestant and returns its figures; seconds are those of all threads of this process."""
    contestant = CONTESTANTS[name]
    torch.set_num_threads(1)
    corpus = load(arguments.root).triples
    examples = examples_of(corpus.filter(split="train"))
    valid = corpus.filter(pl.col("valid"))
    batch_size = contestant.settings.get("batch_size", 64)
    steps = round(arguments.epochs * len(examples.tails) / batch_size)
    settings = Settings(max_epochs=1000, max_steps=steps, seed=arguments.seed, **contestant.settings)
    harness.seed(arguments.seed)
    comet = Comet.from_encoder(locate(), contestant.dropout)
    began = time.process_time()
    kind = type("Chosen", (Variant,), {"options": contestant.options})
    module = kind(comet, examples, settings)
    wall = time.perf_counter()
    harness.fit(module, precision="auto", accelerator="cpu")
    module.finish()
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    if arguments.save:
        comet.save(arguments.save / f"{slug(name)}-{arguments.epochs:g}-seed{arguments.seed}")
    found = {
        "batch_size": batch_size,
        "steps": steps,
        "processor_seconds": round(seconds, 1),
        "wall_seconds": round(wall, 1),
        "dev_perplexity": round(perplexity(comet, examples_of(valid.filter(split="dev"))), 4),
        "test_perplexity": round(perplexity(comet, examples_of(valid.filter(split="test"))), 4)
        if arguments.test
        else "",
        "machine": machine(),
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip(),
    }
    print(found, flush=True)
    return found


def examples_of(triples: pl.DataFrame) -> Examples:
    phrases = {relation.name: relation.phrase for relation in comet_relations()}
    spoken = [phrases[relation] for relation in triples["relation"]]
    return Examples(triples["head"].to_list(), spoken, triples["tail"].to_list())


def slug(name: str) -> str:
    """A name as a folder's: "hold, batch 128, lr 5e-4" is "hold-batch-128-lr-5e-4"."""
    return re.sub("[^a-z0-9]+", "-", name.lower())


def read(file: Path) -> list[dict[str, Any]]:
    """Its rows; numbers are numbers."""
    if not file.exists():
        return []
    return pl.read_csv(file).to_dicts()


def add(file: Path, row: Mapping[str, Any]) -> None:
    """Adds a row, whole or not at all."""
    table = pl.DataFrame([*read(file), row], infer_schema_length=None)
    with replacing(file) as out:
        table.write_csv(out)


def section(rows: list[dict[str, Any]]) -> str:
    """Contestants of each length below an epoch, and those of full length, the lowest perplexity first, beside the
    recipe before."""
    parts = [
        "## Time to quality: ways to train `comet_minilm`",
        "By `python benchmarks/time_to_quality.py`. Processor seconds are those of one thread; perplexity is that "
        "of the valid dev triples of train100k over the whole vocabulary; figures of several seeds are means.",
    ]
    for epochs in sorted({row["epochs"] for row in rows if row["epochs"] < 1}):
        parts.append(f"### {epochs:g} epochs\n\n" + table([row for row in rows if row["epochs"] == epochs]))
    if full := [row for row in rows if row["epochs"] >= 1]:
        parts.append("### Full length")
        parts += [chosen(full)] if {CHOSEN, BEFORE} <= {row["contestant"] for row in full} else []
        parts.append(table(full))
    return "\n\n".join(parts)


def chosen(rows: list[dict[str, Any]]) -> str:
    """The default beside the recipe before, in a sentence; each at the length with most seeds."""
    sides = []
    for name in (CHOSEN, BEFORE):
        lengths = [row["epochs"] for row in rows if row["contestant"] == name]
        length = max(lengths, key=lambda epochs: (lengths.count(epochs), epochs))
        sides.append([row for row in rows if (row["contestant"], row["epochs"]) == (name, length)])
    (mine, before), share = sides, mean_of(sides[0], "processor_seconds") / mean_of(sides[1], "processor_seconds")
    figures = [
        f"{mean_of(side, 'dev_perplexity'):.2f} ({len(side)} seeds, "
        f"{min(row['dev_perplexity'] for row in side):.2f} to {max(row['dev_perplexity'] for row in side):.2f})"
        for side in sides
    ]
    return (
        f"`experiment=cn100k_cpu` trains as `{CHOSEN}` does ({CONTESTANTS[CHOSEN].what}), {mine[0]['epochs']:g} "
        f"epochs: perplexity {figures[0]} in {share:.2f} of the processor seconds of the recipe before, "
        f"{before[0]['epochs']:g} epochs of which reach {figures[1]}."
    )


def table(rows: list[dict[str, Any]]) -> str:
    """Contestants by their lengths; seconds beside the longest training of the recipe before."""
    keys = {(row["contestant"], row["epochs"]) for row in rows}
    groups = {key: [row for row in rows if (row["contestant"], row["epochs"]) == key] for key in keys}
    figures = {
        key: (mean_of(group, "processor_seconds"), mean_of(group, "dev_perplexity")) for key, group in groups.items()
    }
    before = max((key for key in keys if key[0] == BEFORE), key=lambda key: key[1], default=None)
    lines = [
        "| contestant | what | epochs | steps | seeds | processor seconds | of the recipe before | dev perplexity "
        "| machine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted(groups, key=lambda key: figures[key][1]):
        (name, epochs), (seconds, found) = key, figures[key]
        share = "" if before is None else f"{seconds / figures[before][0]:.2f}"
        what = CONTESTANTS[name].what if name in CONTESTANTS else ""
        row = groups[key][0]
        lines.append(
            f"| {name} | {what} | {epochs:g} | {row['steps']:,} | {len(groups[key])} | {seconds:,.0f} | {share} "
            f"| {found:.2f} | {row['machine']} |"
        )
    return "\n".join(lines)


def mean_of(rows: list[dict[str, Any]], name: str) -> float:
    return mean(float(np.float64(row[name])) for row in rows)


if __name__ == "__main__":
    main()
