"""Speed and memory of the paper's job on one GPU: training steps, and the full probe, with random weights.

    python benchmarks/gpu.py [--root DIR] [--steps 1000]

Examples are those of train100k where that is at hand, else those of the sample corpus. `--device cpu --small
--steps 3` tries it out without a GPU."""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine
from mitigate.load import corpus
from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding
from mitigate.probe.beams import Precision, probe_generator
from mitigate.stages import PartFolder
from mitigate.train.comet import Examples, Settings, fit
from mitigate.words.relations import comet_relations
from mitigate.words.targets import choose_targets

BATCH, ITERATIONS = 64, 100_000
SIZES = {
    "GPT-1 size": DecoderConfig("gpt1", vocab_size=40514),
    "comet_minilm": DecoderConfig("minilm", vocab_size=30522, width=384, layers=6, inner=1536),
}
SMALL = {"width": 24, "layers": 1, "inner": 96}  # instead, to try out the benchmark itself


class Trained(NamedTuple):
    """The time and memory of a number of training steps."""

    ready: float  # seconds, until the steps that count began
    step: float  # seconds
    peak: float  # GiB


def main(arguments: Sequence[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root)")
    parser.add_argument("--steps", type=int, default=1000, help="as many go before, and are not counted")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny models and a small grid")
    given = parser.parse_args(arguments)
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU here; --device cpu --small --steps 3 tries the benchmark out without one")
    examples = read_examples(given.root)
    sizes = {name: replace(config, **SMALL) if given.small else config for name, config in SIZES.items()}
    gpu = torch.cuda.get_device_name() if given.device == "cuda" else None
    measured_on = machine() if gpu is None else f"{gpu}, CUDA {torch.version.cuda}, {machine()}"
    section = "\n\n".join(
        [
            "## On one GPU",
            f"Measured on {measured_on}, by `python benchmarks/gpu.py --steps {given.steps}`.",
            training_table(sizes, examples, given.device, given.steps),
            f"Batches of {BATCH} of {'train100k' if given.root else 'the sample corpus'}, mean length of a text "
            f"{mean_length(examples):.1f} tokens; bf16 where the device computes in it. The steps that count come "
            "after as many others; `ready` is when they begin.",
            probe_table(sizes, given.device, given.small),
            "Random weights seldom end a tail, so nearly all have 15 tokens, which is the most there can be; a trained "
            "COMeT's have 3 to 4.",
        ]
    )
    print(section)
    return section


def read_examples(root: str | None) -> Examples:
    loaded = corpus.load(root) if root else corpus.sample()
    triples = loaded.rows.filter(split="train")
    phrases = {relation.name: relation.phrase for relation in comet_relations()}
    spoken = [phrases[relation] for relation in triples["relation"]]
    return Examples(triples["head"].to_list(), spoken, triples["tail"].to_list())


def training_table(sizes: dict[str, DecoderConfig], examples: Examples, device: str, steps: int) -> str:
    lines = [
        f"| | ms a step | examples/s | {ITERATIONS:,} steps, s | ready, s | peak memory, GiB |",
        "|---|---|---|---|---|---|",
    ]
    for size, config in sizes.items():
        took = train(random_comet(config), examples, device, steps)
        lines.append(
            f"| {size} | {1000 * took.step:.2f} | {BATCH / took.step:,.0f} | {ITERATIONS * took.step:,.0f} "
            f"| {took.ready:.0f} | {took.peak:.2f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def train(comet: Comet, examples: Examples, device: str, steps: int) -> Trained:
    """As `python -m mitigate` trains; the clock is read where it logs, which waits for the GPU."""
    stamps: list[tuple[float, int]] = []
    settings = Settings(
        max_epochs=10**6, max_steps=2 * steps, batch_size=BATCH, lr=1e-5, checkpoint_every=1e9, precision="auto"
    )
    forget_peak(device)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        fit(
            comet,
            examples,
            settings,
            Path(place),
            fingerprint="",
            log=lambda _, step: stamps.append((time.perf_counter(), step)),
            accelerator="gpu" if device == "cuda" else "cpu",
        )
    first = next((stamp for stamp in stamps if stamp[1] >= steps and stamp is not stamps[-1]), (started, 0))
    last = stamps[-1]
    return Trained(first[0] - started, (last[0] - first[0]) / (last[1] - first[1]), peak_memory(device))


def probe_table(sizes: dict[str, DecoderConfig], device: str, small: bool) -> str:
    targets, relations = choose_targets("all"), [(relation.name, relation.phrase) for relation in comet_relations()]
    if small:
        targets, relations = targets[:3], relations[:2]
    lines = [
        f"| {targets.height} x {len(relations)} x 10 | | seconds | statements/s | peak memory, GiB |",
        "|---|---|---|---|---|",
    ]
    for size, config in sizes.items():
        comet = random_comet(config)
        precisions: tuple[Precision, ...] = ("fp32", "bf16")
        for precision in precisions:
            with tempfile.TemporaryDirectory() as place:
                how = {"precision": precision, "device": device, "max_length": 3 if small else 15}
                probe_generator(
                    comet, targets[:1], dict(relations), parts=PartFolder(Path(place, "first")), **how
                )  # wakes the device
                forget_peak(device)
                started = time.perf_counter()
                probe_generator(comet, targets, dict(relations), parts=PartFolder(Path(place, "all")), **how)
                seconds = time.perf_counter() - started
            statements = targets.height * len(relations) * 10
            speed = statements / seconds
            lines.append(f"| {size} | {precision} | {seconds:.1f} | {speed:,.0f} | {peak_memory(device):.2f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def random_comet(config: DecoderConfig) -> Comet:
    """With the words of MiniLM, whatever the size: how long texts are does not depend on which tokens they hold."""
    torch.manual_seed(0)
    return Comet(Decoder(config), Encoding.of_encoder(minilm_folder())).eval()


def mean_length(examples: Examples) -> float:
    comet = random_comet(DecoderConfig(width=12, layers=0, inner=48))  # only its encoding is used
    prompts, tails = comet.prompts(examples.heads, examples.phrases), comet.tails(examples.tails)
    return float(np.mean([len(prompt) + len(tail) for prompt, tail in zip(prompts, tails, strict=True)]))


def forget_peak(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_memory(device: str) -> float:
    """GiB: of the GPU since forget_peak, or of the whole process so far."""
    if device == "cuda":
        return torch.cuda.max_memory_reserved() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
