"""Ways to train `comet_minilm` faster, beside `experiment=cn100k_cpu`: time and dev perplexity, interleaved in one run.

    python benchmarks/train_ways.py [--root DIR] [--epochs 0.5] [--ways "as it is" "all rows"] [--seed 1]

Each way trains a model of its own on the same examples in the same order, TURN steps at a time in turns, so that what
else the machine does falls on all of them. Writes its section of RESULTS.md; half an epoch takes some three minutes of
processor time for each way."""

import argparse
import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from benchmarks.train import read_examples
from mitigate.train.comet import CometModule, Examples, Settings, perplexity
from mitigate.train.harness import native_precision
from models.comet import Comet
from models.minilm import locate

TURN = 17  # steps
BATCH, LR, HOLD = 128, 5e-4, 0.8  # of experiment=cn100k_cpu
MUON_LR, BESIDE_MUON, MOMENTUM = 2e-3, 1e-3, 0.95  # BESIDE_MUON: AdamW's, of all that are not matrices of blocks
QUINTIC = (3.4445, -4.7750, 2.0315)  # of Newton-Schulz (Jordan et al. 2024, Muon)
AUTOCAST = torch.bfloat16 if native_precision("cpu") == "bf16-mixed" else torch.float32


class Way:
    """A training as `python -m mitigate` does it."""

    factor: Callable[[float], int] = staticmethod(lambda _: 1)
    """The batches of one update, by the share of the training that is over."""

    def __init__(self, comet: Comet, examples: Examples, epochs: float, seed: int) -> None:
        settings = Settings(max_epochs=epochs, batch_size=BATCH, lr=LR, hold=HOLD, seed=seed, vocabulary="tails")
        self.comet = comet
        self.module = CometModule(comet, examples, settings)
        self.module.begin_vocabulary()
        self.module.train()
        self.total, self.done, self.updates, self.seconds = self.module.steps, 0, 0, 0.0
        self.batches = self.module.batches.start_at(0, self.total)
        self.prepare()

    def prepare(self) -> None:
        self.optimizers = [self.module.configure_optimizers()]

    def turn(self) -> None:
        """Train for TURN batches; counts the processor's seconds."""
        started, end = time.process_time(), min(self.done + TURN, self.total)
        while self.done < end:
            parts = [
                next(self.batches) for _ in range(min(self.factor(self.done / self.total), self.total - self.done))
            ]
            rate = self.module.learning_rate(self.done) / LR
            for part in parts:
                self.backward(part, 1 / len(parts))
            self.update(rate)
            self.done, self.updates = self.done + len(parts), self.updates + 1
        self.seconds += time.process_time() - started

    def backward(self, batch: np.ndarray, share: float) -> None:
        module = self.module
        tails = [module.tails[i] for i in batch]
        lengths = np.array([len(tail) for tail in tails])
        weights = torch.from_numpy((share * np.repeat(1 / lengths, lengths) / len(batch)).astype(np.float32))
        with torch.autocast("cpu", AUTOCAST, enabled=torch.float32 != AUTOCAST):
            loss = (module.nll([module.prompts[i] for i in batch], tails) * weights).sum()
        loss.backward()

    def update(self, rate: float) -> None:
        """Change the weights. rate: the share of the highest learning rate."""
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group.setdefault("peak", group["lr"])
            optimizer.step()
            optimizer.zero_grad()

    def trained(self) -> Comet:
        """The model, with the whole vocabulary, in float32."""
        self.module.end_vocabulary()
        return self.comet


class Growing(Way):
    """Batches of 128 for 60 % of the examples, then of 256."""

    factor = staticmethod(lambda over: 1 if over < 0.6 else 2)


class AllRows(Way):
    """The gradients and the optimizer's state of all tokens, also of those that no training triple has."""

    def prepare(self) -> None:
        self.module.end_vocabulary()
        super().prepare()


class Half(Way):
    """All rows, weights and gradients in bfloat16; AdamW keeps the weights in float32 beside them."""

    def prepare(self) -> None:
        self.module.end_vocabulary()
        self.master = [nn.Parameter(parameter.detach().clone()) for parameter in self.module.parameters()]
        self.comet.bfloat16()
        groups = [[p for p in self.master if p.ndim > 1], [p for p in self.master if p.ndim <= 1]]
        decay = self.module.settings.weight_decay
        self.optimizers = [
            torch.optim.AdamW(
                [{"params": groups[0], "weight_decay": decay}, {"params": groups[1], "weight_decay": 0.0}],
                lr=LR,
                fused=True,
            )
        ]

    def update(self, rate: float) -> None:
        pairs = list(zip(self.module.parameters(), self.master, strict=True))
        for half, whole in pairs:
            whole.grad = None if half.grad is None else half.grad.float()
            half.grad = None
        torch.nn.utils.clip_grad_norm_(self.master, 1.0)
        for group in self.optimizers[0].param_groups:
            group["lr"] = rate * LR
        self.optimizers[0].step()
        with torch.no_grad():
            for half, whole in pairs:
                half.copy_(whole)

    def trained(self) -> Comet:
        whole = copy.deepcopy(self.comet).float()
        with torch.no_grad():
            for parameter, master in zip(whole.parameters(), self.master, strict=True):
                parameter.copy_(master)
        return whole


class Muon(Way):
    """Muon for the matrices of the blocks, those of one shape in one product, in bfloat16, with three iterations of
    Newton-Schulz; AdamW for the rest."""

    every = 1  # steps, whose gradients are added up for one update of these matrices

    def prepare(self) -> None:
        self.matrices = [p for name, p in self.module.named_parameters() if ".blocks." in name and p.ndim == 2]
        own = {id(p) for p in self.matrices}
        rest = [p for p in self.module.parameters() if id(p) not in own]
        self.optimizers = [torch.optim.AdamW(rest, lr=BESIDE_MUON, weight_decay=0.0, fused=True)]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]

    def update(self, rate: float) -> None:
        gradients = [p.grad for p in self.matrices]
        super().update(rate)  # clips them too, which Muon's directions do not notice
        if self.updates % self.every:
            return
        with torch.no_grad():
            by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
            for weight, gradient, momentum in zip(self.matrices, gradients, self.momenta, strict=True):
                assert gradient is not None
                momentum.lerp_(gradient, 1 - MOMENTUM)
                for part, direction in zip(
                    self.parts(weight), self.parts(gradient.lerp(momentum, MOMENTUM)), strict=True
                ):
                    by_shape.setdefault(part.shape, []).append((part, direction))
                weight.grad = None
            for shape, pairs in by_shape.items():
                steps = orthogonal(torch.stack([direction for _, direction in pairs]))
                size = rate * MUON_LR * max(1.0, shape[0] / shape[1]) ** 0.5
                for (part, _), step in zip(pairs, steps, strict=True):
                    part.mul_(1 - size * 0.01).sub_(step, alpha=size)

    @staticmethod
    def parts(matrix: Tensor) -> Sequence[Tensor]:
        """Query, key and value apart."""
        return matrix.chunk(3) if matrix.shape[0] == 3 * matrix.shape[1] else (matrix,)


class SparseMuon(Muon):
    """Muon at every other step, which saves half of its products."""

    every = 2


def orthogonal(matrices: Tensor, iterations: int = 3) -> Tensor:
    """(n, rows, columns), of one shape, to nearly orthogonal matrices."""
    first, second, third = QUINTIC
    turned = matrices.shape[1] > matrices.shape[2]
    found = (matrices.mT if turned else matrices).to(AUTOCAST)
    found = found / (found.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(iterations):
        products = found @ found.mT
        found = torch.baddbmm(
            found, torch.baddbmm(products, products, products, beta=second, alpha=third), found, beta=first
        )
    return (found.mT if turned else found).float()


WAYS: Mapping[str, type[Way]] = {
    "as it is": Way,
    "all rows": AllRows,
    "growing": Growing,
    "half": Half,
    "Muon": Muon,
    "sparse Muon": SparseMuon,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--epochs", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--dry", action="store_true", help="writes nothing")
    arguments = parser.parse_args()
    examples, dev = read_examples(arguments.root), read_examples(arguments.root, "dev")
    ways = {name: begin(WAYS[name], examples, arguments.epochs, arguments.seed) for name in arguments.ways}
    for _ in turns(ways):
        pass
    section = report(ways, dev, arguments)
    if not arguments.dry:
        write_section(f"train ways, seed {arguments.seed}, {arguments.epochs:g}", section, processor())
    print(section)


def begin(way: type[Way], examples: Examples, epochs: float, seed: int) -> Way:
    torch.manual_seed(seed)
    return way(Comet.from_encoder(locate(), dropout=0.0), examples, epochs, seed)


def turns(ways: Mapping[str, Way]) -> Iterator[None]:
    while any(way.done < way.total for way in ways.values()):
        for name, way in ways.items():
            way.turn()
            print(f"{name}: {way.done} of {way.total}, {way.seconds:.0f} s", file=sys.stderr, flush=True)
        yield


def report(ways: Mapping[str, Way], dev: Examples, arguments: argparse.Namespace) -> str:
    lines = ["| way | what | updates | processor seconds | ratio | dev perplexity |", "|---|---|---|---|---|---|"]
    first = next(iter(ways.values()))
    for name, way in ways.items():
        what = " ".join((type(way).__doc__ or "").split())
        ratio = f"{way.seconds / first.seconds:.2f}"
        found = perplexity(way.trained().eval(), dev)
        lines.append(f"| {name} | {what} | {way.updates:,} | {way.seconds:.0f} | {ratio} | {found:.2f} |")
    return "\n\n".join(
        [
            f"## Ways to train `comet_minilm`, {arguments.epochs:g} epochs, seed {arguments.seed}",
            f"Measured on {machine()}, by `python benchmarks/train_ways.py --epochs {arguments.epochs:g} "
            f"--seed {arguments.seed}`, in turns of {TURN} batches of {BATCH}. Perplexity is that of dev over the "
            "whole vocabulary.",
            "\n".join(lines),
        ]
    )


if __name__ == "__main__":
    main()
