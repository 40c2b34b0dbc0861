"""Training against the original COMeT's way and the ordinary loop of Hugging Face, on batches of 64 of train100k.

    python benchmarks/train.py [--root DIR] [--steps 16] [--rounds 3] [--sizes "GPT-1 size" comet_minilm] [--lm FOLDER]

Contestants take turns within a round, so that what else the machine does falls on all of them; of the rounds the
median counts. Each lives in a process of its own, whose peak memory and allocator are its alone. Those of one size
start from the same random weights. Takes some five minutes on two cores. --lm: the folder of a causal language model,
such as SmolLM2's, that both sides train on."""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM
from transformers.utils import logging

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine
from mitigate.load.corpus import load
from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig
from mitigate.models.hf import LanguageModel
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding, Layout
from mitigate.train.comet import Examples, Settings, fit
from mitigate.train.harness import Batches, native_precision
from mitigate.words.relations import comet_relations

BATCH = 64
PRECISION = native_precision("cpu")  # what this processor computes in; bf16 elsewhere is many times slower
NUMBERS, AUTOCAST = {"bf16-mixed": ("bf16", torch.bfloat16), "32-true": ("fp32", None)}[PRECISION]
SLOTS = 31  # of the original: 10 for the head, 5 for the relation, 16 for the tail and its end
IGNORED = -100  # the label of what is not to be learnt
SIZES = {
    "GPT-1 size": {"vocab_size": 40514},
    "comet_minilm": {"vocab_size": 30522, "width": 384, "layers": 6, "inner": 1536},
}
SMALL = {"width": 24, "layers": 1, "inner": 96}  # instead, to try out the benchmark itself

Train = Callable[[int, int], float]
"""Trains so many steps, on batches that a number chooses, and gives the seconds they took."""


class Work(NamedTuple):
    """The work of a contestant."""

    config: DecoderConfig | Path  # or the folder of a causal language model
    examples: Examples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--steps", type=int, default=16, help="of mitigate in a turn; the others take fewer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="tiny models")
    parser.add_argument("--sizes", nargs="*", default=[*SIZES], help="which of the models here")
    parser.add_argument("--lm", type=Path, help="the folder of a causal language model")
    arguments = parser.parse_args()
    examples = read_examples(arguments.root)
    contestants = [c for size in arguments.sizes for c in entrants(size, examples, arguments.small)]
    if arguments.lm:
        contestants += both("language model", Work(arguments.lm, examples))
    for number in range(arguments.rounds + 1):
        for contestant in contestants:
            contestant.turn(number, arguments.steps)
            print(f"round {number}: {contestant.size}, {contestant.name}, {contestant.last:.1f} examples/s", flush=True)
    section = "\n\n".join(
        [
            "## Training: batches of 64 of train100k",
            f"Measured on {machine()}, transformers {transformers.__version__}, by `python benchmarks/train.py`, "
            f"{arguments.rounds} rounds of {arguments.steps} steps of mitigate.",
            table(contestants),
            NOTES.replace("\n", " "),
        ]
    )
    print(section)


def read_examples(root: str | None, split: str = "train") -> Examples:
    triples = load(root).rows.filter(split=split, valid=True)
    phrases = {relation.name: relation.phrase for relation in comet_relations()}
    spoken = [phrases[relation] for relation in triples["relation"]]
    return Examples(triples["head"].to_list(), spoken, triples["tail"].to_list())


@dataclass
class Contestant:
    """A way to train, in a process that waits between its turns."""

    size: str
    name: str
    process: ProcessPoolExecutor
    share: int = 1  # takes one step where mitigate takes so many
    speeds: list[float] = field(default_factory=list)  # examples/s, a round each
    last: float = 0.0
    peak: float = 0.0  # GiB

    def turn(self, number: int, steps: int) -> None:
        """The turn of round 0 warms up, and is not counted."""
        steps = -(-steps // self.share)
        seconds, self.peak = self.process.submit(_turn, number, steps).result()
        self.last = steps * BATCH / seconds
        if number:
            self.speeds.append(self.last)

    @property
    def speed(self) -> float:
        return median(self.speeds)


def entrants(size: str, examples: Examples, small: bool) -> list[Contestant]:
    shape = SIZES[size] | (SMALL if small else {})
    kind = "gpt2" if size == "GPT-1 size" else "minilm"
    work = Work(DecoderConfig(kind, **shape), examples)
    found = both(size, work)
    if kind == "gpt2":
        original_work = work._replace(config=DecoderConfig("gpt1", **shape))
        found.insert(0, Contestant(size, "original COMeT's way, fp32", begin(original, original_work), share=8))
    return found


def both(size: str, work: Work) -> list[Contestant]:
    return [
        Contestant(size, f"Hugging Face loop, {NUMBERS}", begin(hugging_face, work)),
        Contestant(size, f"mitigate, {NUMBERS}", begin(ours, work)),
    ]


def begin(make: Callable[[Work], Train], work: Work) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _enter, (make, work))


def _enter(make: Callable[[Work], Train], work: Work) -> None:
    global _train
    if torch.get_num_threads() == 1:  # other jobs on the machine do not count
        time.monotonic = time.perf_counter = time.process_time
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(0)
    _train = make(work)


def _turn(number: int, steps: int) -> tuple[float, float]:
    seconds = _train(number, steps)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def ours(work: Work) -> Train:
    """As `python -m mitigate` trains: Lightning, packed texts of similar lengths, the head on tails only."""
    model: Any = LanguageModel.load(work.config) if isinstance(work.config, Path) else comet(work.config)

    def train(number: int, steps: int) -> float:
        settings = Settings(
            max_epochs=99, max_steps=steps, batch_size=BATCH, precision=PRECISION, seed=number, checkpoint_every=1e9
        )
        with tempfile.TemporaryDirectory() as place:
            return fit(model, work.examples, settings, Path(place), fingerprint="", accelerator="cpu").seconds

    return train


def hugging_face(work: Work) -> Train:
    """The steps of transformers' Trainer with group_by_length: padding, autocast, fused AdamW, gradients clipped."""
    model = theirs(work.config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    return loop(model, optimizer, texts(work, "packed"), None, AUTOCAST)


def original(work: Work) -> Train:
    """Fixed slots, logits at all of them, float32, Adam parameter by parameter."""
    model = theirs(work.config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, foreach=False)
    return loop(model, optimizer, texts(work, "comet"), SLOTS, None)


def comet(config: DecoderConfig, layout: Layout = "packed") -> Comet:
    return Comet(Decoder(config), Encoding.of_encoder(minilm_folder()), layout)


def theirs(config: DecoderConfig | Path) -> nn.Module:
    if isinstance(config, Path):
        return AutoModelForCausalLM.from_pretrained(config, dtype=torch.float32).train()
    with tempfile.TemporaryDirectory() as place:
        Decoder(config).save(Path(place))
        return AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32).train()


def texts(work: Work, layout: Layout) -> list[tuple[list[int], list[int]]]:
    """Prompt and tail of each example."""
    small = DecoderConfig(width=12, layers=0, inner=48)  # only its encoding is used
    words: Any = LanguageModel.load(work.config) if isinstance(work.config, Path) else comet(small, layout)
    prompts = words.prompts(work.examples.heads, work.examples.phrases)
    return list(zip(prompts, words.tails(work.examples.tails), strict=True))


def loop(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: Sequence[tuple[list[int], list[int]]],
    length: int | None,
    dtype: torch.dtype | None,
) -> Train:
    """Padded to a length, or to the longest of a batch of similar lengths."""
    sizes = np.array([len(prompt) + len(tail) for prompt, tail in examples])
    pad = Encoding.of_encoder(minilm_folder()).pad

    def train(number: int, steps: int) -> float:
        chosen = list(Batches(sizes * (length is None), BATCH, number).start_at(0, steps))
        started = time.perf_counter()
        for batch in chosen:
            pairs = [examples[i] for i in batch]
            tokens = [torch.tensor([*prompt, *tail]) for prompt, tail in pairs]
            labels = [torch.tensor([IGNORED] * len(prompt) + tail) for prompt, tail in pairs]
            if length is not None:  # pad_sequence fills the others up to the first
                tokens[0] = nn.functional.pad(tokens[0], (0, length - len(tokens[0])), value=pad)
            mask = pad_sequence([torch.ones_like(text) for text in tokens], batch_first=True)
            inputs = pad_sequence(tokens, batch_first=True, padding_value=pad)
            answers = pad_sequence(labels, batch_first=True, padding_value=IGNORED)
            answers = nn.functional.pad(answers, (0, inputs.shape[1] - answers.shape[1]), value=IGNORED)
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = model(input_ids=inputs, attention_mask=mask, labels=answers).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return time.perf_counter() - started

    return train


def table(contestants: list[Contestant]) -> str:
    lines = ["| | | examples/s, median | of the rounds | mitigate is | peak memory, GiB |", "|---|---|---|---|---|---|"]
    for contestant in contestants:
        mine = next(c for c in contestants if c.size == contestant.size and c.name.startswith("mitigate"))
        ratio = "" if contestant is mine else f"{mine.speed / contestant.speed:.1f} times as fast"
        rounds = " ".join(f"{speed:.1f}" for speed in contestant.speeds)
        lines.append(
            f"| {contestant.size} | {contestant.name} | {contestant.speed:.1f} | {rounds} | {ratio} "
            f"| {contestant.peak:.2f} |"
        )
    return "\n".join(lines)


NOTES = """The original's way fills 31 slots and computes logits at each; Hugging Face's loop pads to the longest of a
batch of similar lengths, the same batches as mitigate's, and computes logits at all of it, as its Trainer does (fused
AdamW, gradients clipped at 1); mitigate computes logits where a tail's token comes next, where the model
has an output bias only over the tokens of tails.
Texts have the tokens of MiniLM's vocabulary in all contestants. Peak memory is that of a process with all its
libraries and the corpus."""


if __name__ == "__main__":
    main()
