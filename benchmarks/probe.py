"""The probe against `generate` of transformers on the same random weights, and the full grid with comet_minilm.

    python benchmarks/probe.py generate [--rounds 3] [--kinds gpt1 minilm] [--dtypes float32] [--prompts 136]
    python benchmarks/probe.py grid [--generator DIR]

Contestants take turns within a round, so that what else the machine does falls on all of them; of the rounds the median
counts. Each command takes some ten minutes on two cores."""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import polars as pl
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine
from mitigate.models.beam import beam_search
from mitigate.models.comet import Comet
from mitigate.models.decoder import Decoder, DecoderConfig, DecoderReading
from mitigate.models.stored_tensors import minilm_folder
from mitigate.probe.beams import probe_generator
from mitigate.stages import PartFolder
from mitigate.words.relations import comet_relations
from mitigate.words.targets import choose_targets

END, VOCABULARY, NEVER = 40513, 40514, -1
BEAMS, FIXED, NATURAL = 10, 8, 15  # tokens forced, and tokens at most with natural ending
PROMPT = 7  # tokens; all the same length, which spares `generate` its padding

Tails = list[list[tuple[int, ...]]]


@dataclass
class Contestant:
    """A way to get the ten best tails of each prompt."""

    name: str
    search: Callable[[list[list[int]], int, bool], Tails]  # prompts, most tokens, whether END may be said
    prompts: int
    speeds: list[float] = field(default_factory=list)  # statements/s, a round each
    tails: Tails = field(default_factory=list)

    def turn(self, prompts: list[list[int]], max_length: int, ending: bool) -> None:
        started = time.perf_counter()
        self.tails = self.search(prompts[: self.prompts], max_length, ending)
        self.speeds.append(self.prompts * BEAMS / (time.perf_counter() - started))

    @property
    def speed(self) -> float:
        return median(self.speeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    generate = commands.add_parser("generate")
    generate.add_argument("--rounds", type=int, default=3)
    generate.add_argument("--kinds", nargs="*", default=["gpt1", "gpt2"], help="gpt1, gpt2 or minilm")
    generate.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    generate.add_argument("--prompts", type=int, default=136)
    generate.add_argument("--fixed", action="store_true", help="only tails of a fixed length")
    commands.add_parser("grid").add_argument(
        "--generator", type=Path, help="a trained COMeT; without it, the untrained one, which never ends a tail"
    )
    arguments = parser.parse_args()
    if torch.get_num_threads() == 1:  # other jobs on the machine do not count
        time.perf_counter = time.process_time
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if arguments.command == "grid":
        title, text = "Probing: the full grid", grid(arguments.generator)
    else:
        title, text = "Probing: against `generate`", against_generate(arguments)
    measured = f"Measured on {machine()}, by `python benchmarks/probe.py {arguments.command}`."
    print("\n\n".join([f"## {title}", measured, *text]))


def against_generate(arguments: argparse.Namespace) -> list[str]:
    prompts, text = random_prompts(arguments.prompts), []
    for title, max_length, ending in (
        (f"Fixed length: {FIXED} tokens, none of which ends a tail", FIXED, False),
        (f"Natural ending, at most {NATURAL} tokens", NATURAL, True),
    )[: 1 if arguments.fixed else 2]:
        with tempfile.TemporaryDirectory() as place:
            folders = [(kind, Path(place) / kind) for kind in arguments.kinds]
            contestants = [c for kind, folder in folders for c in entrants(kind, ending, folder, arguments)]
        for number in range(arguments.rounds):
            for contestant in contestants:
                contestant.turn(prompts, max_length, ending)
                print(f"{title}, round {number + 1}: {contestant.name} {contestant.speeds[-1]:.1f}", flush=True)
        text += [f"### {title}", table(contestants)]
        text += [] if ending else [agreement(contestants, arguments.kinds)]
    return text


def random_prompts(number: int) -> list[list[int]]:
    return torch.randint(0, END, (number, PROMPT), generator=torch.Generator().manual_seed(0)).tolist()


def entrants(kind: str, ending: bool, folder: Path, arguments: argparse.Namespace) -> Iterator[Contestant]:
    """Ours and theirs with the same random weights, theirs at its best batch size."""
    random_decoder(kind, ending).save(folder)
    for dtype in (getattr(torch, name) for name in arguments.dtypes):
        name = "fp32" if dtype == torch.float32 else "bf16"
        if kind != "gpt1" or dtype == torch.float32:  # OpenAIGPT without a cache in bf16 is nobody's choice
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
            size = best_batch(model, (1, 8, 34))
            count = arguments.prompts // (4 if kind == "gpt1" else 2)
            yield Contestant(f"generate, {kind} {name}, batch {size}", theirs(model, size), count)
        yield Contestant(f"mitigate, {kind} {name}", ours(Decoder.load(folder).to(dtype)), arguments.prompts)


def random_decoder(kind: str, ending: bool) -> Decoder:
    """Random weights. For natural ending END grows likelier from position to position and differs by context, so
    that tails end after 3 to 4 tokens on average, as those of a trained COMeT do, and some late."""
    torch.manual_seed(0)
    shape = {"width": 384, "layers": 6, "inner": 1536} if kind == "minilm" else {}
    decoder = Decoder(DecoderConfig(kind, vocab_size=VOCABULARY, **shape))
    if ending:
        slope, spread = {"gpt1": (0.08, 2.0), "gpt2": (0.5, 1.5), "minilm": (0.08, 2.0)}[kind]
        with torch.no_grad():
            direction = nn.functional.normalize(torch.randn(decoder.config.width), dim=0)
            decoder.position_embedding.weight += (
                slope * (torch.arange(decoder.config.positions)[:, None] - PROMPT + 1) * direction
            )
            decoder.token_embedding.weight[END] = spread * direction
    return decoder.eval()


def ours(decoder: Decoder) -> Callable[[list[list[int]], int, bool], Tails]:
    def search(prompts: list[list[int]], max_length: int, ending: bool) -> Tails:
        how = {"end": END if ending else NEVER, "beams": BEAMS, "max_length": max_length}
        found = beam_search(partial(DecoderReading, decoder), prompts, device=torch.device("cpu"), **how)
        return [[beam.tokens for beam in beams] for beams in found]

    return search


def theirs(model: PreTrainedModel, size: int) -> Callable[[list[list[int]], int, bool], Tails]:
    @torch.inference_mode()
    def search(prompts: list[list[int]], max_length: int, ending: bool) -> Tails:
        tails = []
        for start in range(0, len(prompts), size):
            batch = torch.tensor(prompts[start : start + size])
            found = model.generate(
                batch,
                attention_mask=torch.ones_like(batch),
                num_beams=BEAMS,
                num_return_sequences=BEAMS,
                do_sample=False,
                length_penalty=1.0,
                early_stopping=ending,
                max_new_tokens=max_length,
                eos_token_id=END if ending else None,
                pad_token_id=END,
            )
            tails += found[:, PROMPT:].unflatten(0, (len(batch), BEAMS)).tolist()
        stop = END if ending else NEVER  # where END never ends a tail it is a word like others
        return [[tuple(token for token in tail if token != stop) for tail in beams] for beams in tails]

    return search


def best_batch(model: PreTrainedModel, sizes: tuple[int, ...]) -> int:
    """The batch size at which `generate` is fastest, by one short try of each."""
    seconds = {}
    for size in sizes:
        prompts = torch.randint(0, END, (max(size, 4), PROMPT)).tolist()
        started = time.perf_counter()
        theirs(model, size)(prompts, 4, False)
        seconds[size] = (time.perf_counter() - started) / len(prompts)
    return min(seconds, key=lambda size: seconds[size])


def table(contestants: list[Contestant]) -> str:
    lines = ["| | statements/s, median | of the rounds | times `generate` |", "|---|---|---|---|"]
    for contestant in contestants:
        kind = contestant.name.split(", ")[1].split()[0]
        peers = [c for c in contestants if c.name.startswith(f"generate, {kind}") and contestant.name.startswith("m")]
        ratios = ", ".join(f"{contestant.speed / c.speed:.1f} ({c.name.split(', ')[1]})" for c in peers)
        rounds = " ".join(f"{speed:.1f}" for speed in contestant.speeds)
        lines.append(f"| {contestant.name} | {contestant.speed:.1f} | {rounds} | {ratios} |")
    return "\n".join(lines)


def agreement(contestants: list[Contestant], kinds: list[str]) -> str:
    """Whether the lists of ten are those of `generate`, in fp32."""
    said = []
    for kind in kinds:
        mine, their = (next(c for c in contestants if who in c.name and f"{kind} fp32" in c.name) for who in ("m", "g"))
        same = sum(a == b for a, b in zip(mine.tails, their.tails, strict=False))
        said.append(f"{kind} fp32: {same} of {len(their.tails)} lists of ten identical to those of `generate`.")
    return " ".join(said)


def grid(generator: Path | None) -> list[str]:
    """329 targets x 34 relations x 10, exact and in bf16."""
    comet = Comet.load(generator) if generator else Comet.from_encoder(minilm_folder())
    targets = choose_targets("all")
    relations = [(relation.name, relation.phrase) for relation in comet_relations()]
    lines = ["| | seconds | statements/s | peak memory, GiB |", "|---|---|---|---|"]
    tails = {}
    for precision in ("fp32", "bf16"):
        with tempfile.TemporaryDirectory() as place:
            started = time.perf_counter()
            parts = PartFolder(Path(place))
            probe_generator(comet, targets, dict(relations), parts=parts, precision=precision)
            seconds = time.perf_counter() - started
            tails[precision] = pl.concat(list(parts))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        speed = tails[precision].height / seconds
        lines.append(f"| {precision} | {seconds:.1f} | {speed:.0f} | {peak:.2f} |")
    shared = tails["fp32"].join(tails["bf16"], on=["target", "relation", "tail"], how="semi").height
    lengths = comet.tails(tails["fp32"]["tail"].to_list())
    what = "a COMeT trained on train100k" if generator else "the untrained warm start, whose tails have full length"
    return [
        f"{targets.height} targets x {len(relations)} relations x 10 with {what}.",
        "\n".join(lines),
        f"{100 * shared / tails['fp32'].height:.1f} % of the tails in fp32 are also among the ten in bf16; "
        f"{sum(map(len, lengths)) / len(lengths):.1f} tokens a tail, END counted.",
    ]


if __name__ == "__main__":
    main()
