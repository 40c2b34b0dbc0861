"""The probe against `generate` of transformers on the same random weights, and the full grid with comet_minilm.

    python benchmarks/probe.py generate [--rounds 3]
    python benchmarks/probe.py grid [--generator DIR]
    python benchmarks/probe.py parts [--rounds 5]

`parts` profiles a search at GPT-2's size in bf16, and times its vocabulary in int8. Contestants take turns within a
round, so that what else the machine does falls on all of them; of the rounds the median counts. Each command writes its
section of RESULTS.md and takes some ten minutes on two cores, `parts` one minute on one. RESULTS.md also has the
figures of two other commands, `products` and `kernels` (script at commit e3f1631)."""

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import polars as pl
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from mitigate.probe.comet import probe
from mitigate.runs.store import PartFolder
from mitigate.words.relations import comet_relations
from mitigate.words.targets import choose_targets
from models.beam import beam_search
from models.comet import Comet
from models.decoder import Decoder, DecoderConfig
from models.minilm import locate
from models.products import Product
from models.top_tokens import TILE, TopTokens, ready
from models.tree_attention import TreeAttention

END, VOCABULARY, NEVER = 40513, 40514, -1
ALONE = "products alone"
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
    commands.add_parser("generate").add_argument("--rounds", type=int, default=3)
    commands.add_parser("grid").add_argument(
        "--generator", type=Path, help="a trained COMeT; without it, the untrained one, which never ends a tail"
    )
    commands.add_parser("parts").add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if arguments.command == "grid":
        title, text = "Probing: the full grid", grid(arguments.generator)
    elif arguments.command == "parts":
        title, text = "Probing at GPT-2's size in bf16: where the time goes", parts(arguments.rounds)
    else:
        title, text = "Probing: against `generate`", against_generate(arguments.rounds)
    measured = f"Measured on {machine()}, by `python benchmarks/probe.py {arguments.command}`."
    write_section(f"probe {arguments.command}", "\n\n".join([f"## {title}", measured, *text]), processor())


def against_generate(rounds: int) -> list[str]:
    prompts, text = random_prompts(), []
    for title, max_length, ending in (
        (f"Fixed length: {FIXED} tokens, none of which ends a tail", FIXED, False),
        (f"Natural ending, at most {NATURAL} tokens", NATURAL, True),
    ):
        with tempfile.TemporaryDirectory() as place:
            contestants = [c for kind in ("gpt1", "gpt2") for c in entrants(kind, ending, Path(place) / kind)]
        if not ending:
            contestants += map(products_alone, (torch.float32, torch.bfloat16))
        for number in range(rounds):
            for contestant in contestants:
                contestant.turn(prompts, max_length, ending)
                print(f"{title}, round {number + 1}: {contestant.name} {contestant.speeds[-1]:.1f}", flush=True)
        text += [f"### {title}", table(contestants)]
        text += [histograms(contestants)] if ending else [agreement(contestants), limit(contestants)]
    return text


def random_prompts() -> list[list[int]]:
    return torch.randint(0, END, (136, PROMPT), generator=torch.Generator().manual_seed(0)).tolist()


def entrants(kind: str, ending: bool, folder: Path) -> Iterator[Contestant]:
    """Ours and theirs with the same random weights of GPT-1's size, theirs at its best batch size."""
    random_decoder(kind, ending).save(folder)
    for dtype in (torch.float32, torch.bfloat16):
        name = "fp32" if dtype == torch.float32 else "bf16"
        if kind == "gpt2" or dtype == torch.float32:  # OpenAIGPT without a cache in bf16 is nobody's choice
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
            size = best_batch(model, (1, 8, 34))
            count = 34 if kind == "gpt1" else 68
            yield Contestant(f"generate, {kind} {name}, batch {size}", theirs(model, size), count)
        yield Contestant(f"mitigate, {kind} {name}", ours(Decoder.load(folder).to(dtype)), 136)


def products_alone(dtype: torch.dtype) -> Contestant:
    """The matrix products of a search of fixed length, as if everything else were free: as many rows by as many
    weights as the search multiplies, 680 rows at a time as it does, each prompt's prefix once."""
    width, slots = 768, 68
    shapes = 12 * [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    body = [Product(torch.randn(columns, rows, dtype=dtype), None) for rows, columns in shapes]
    head = [Product(torch.randn(TILE, width, dtype=dtype), None) for _ in range(VOCABULARY // TILE)]

    @torch.inference_mode()
    def search(prompts: list[list[int]], max_length: int, ending: bool) -> Tails:
        for start in range(0, len(prompts), slots):
            count = len(prompts[start : start + slots])
            for step in range(max_length):
                rows = count * (BEAMS if step else PROMPT)
                for product, (columns, _) in zip(body, shapes, strict=True):
                    product(torch.ones(rows, columns, dtype=dtype))
                hidden = torch.ones(count * (BEAMS if step else 1), width, dtype=dtype)
                for product in head:
                    product(hidden)
        return []

    return Contestant(f"{ALONE}, {'fp32' if dtype == torch.float32 else 'bf16'}", search, 136)


def random_decoder(kind: str, ending: bool) -> Decoder:
    """Random weights. For natural ending END grows likelier from position to position and differs by context, so
    that tails end after 3 to 4 tokens on average, as those of a trained COMeT do, and some late."""
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(kind, vocab_size=VOCABULARY))
    if ending:
        slope, spread = {"gpt1": (0.08, 2.0), "gpt2": (0.5, 1.5)}[kind]
        with torch.no_grad():
            direction = nn.functional.normalize(torch.randn(decoder.config.width), dim=0)
            decoder.places.weight += slope * (torch.arange(decoder.config.positions)[:, None] - PROMPT + 1) * direction
            decoder.words.weight[END] = spread * direction
    return decoder.eval()


def ours(decoder: Decoder) -> Callable[[list[list[int]], int, bool], Tails]:
    def search(prompts: list[list[int]], max_length: int, ending: bool) -> Tails:
        found = beam_search(decoder, prompts, end=END if ending else NEVER, beams=BEAMS, max_length=max_length)
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
        peers = [c for c in contestants if c.name.startswith("generate")] if contestant.name.startswith("m") else []
        ratios = ", ".join(f"{contestant.speed / c.speed:.1f} ({c.name.split(', ')[1]})" for c in peers)
        rounds = " ".join(f"{speed:.1f}" for speed in contestant.speeds)
        lines.append(f"| {contestant.name} | {contestant.speed:.1f} | {rounds} | {ratios} |")
    return "\n".join(lines)


def agreement(contestants: list[Contestant]) -> str:
    """Whether the lists of ten are those of `generate`, in fp32."""
    said = []
    for kind in ("gpt1", "gpt2"):
        mine, their = (next(c for c in contestants if who in c.name and f"{kind} fp32" in c.name) for who in ("m", "g"))
        same = sum(a == b for a, b in zip(mine.tails, their.tails, strict=False))
        said.append(f"{kind} fp32: {same} of {len(their.tails)} lists of ten identical to those of `generate`.")
    return " ".join(said)


def limit(contestants: list[Contestant]) -> str:
    """How near the search comes to what this processor can multiply, and how far from `generate` that is."""
    speeds = {contestant.name: contestant.speed for contestant in contestants}
    said = []
    for precision, kinds in (("fp32", ("gpt1", "gpt2")), ("bf16", ("gpt2",))):
        alone = speeds[f"{ALONE}, {precision}"]
        for kind in kinds:
            mine = speeds[f"mitigate, {kind} {precision}"]
            (theirs,) = (speed for name, speed in speeds.items() if name.startswith(f"generate, {kind} {precision}"))
            said.append(
                f"{kind} {precision}: {100 * mine / alone:.0f} % of what the products alone would reach, which is "
                f"{alone / theirs:.1f} times `generate`."
            )
    return " ".join(said)


def histograms(contestants: list[Contestant]) -> str:
    """How many tails have how many tokens, END not counted, in percent."""
    lines = ["| tokens of a tail, % | " + " | ".join(map(str, range(NATURAL + 1))) + " |", "|---" * (NATURAL + 2) + "|"]
    for contestant in contestants:
        lengths = Counter(len(tail) for beams in contestant.tails for tail in beams)
        shares = " | ".join(f"{100 * lengths[n] / lengths.total():.0f}" for n in range(NATURAL + 1))
        lines.append(f"| {contestant.name} | {shares} |")
    return "\n".join(lines)


def grid(generator: Path | None) -> list[str]:
    """329 targets x 34 relations x 10, exact and in bf16, and where the time went."""
    comet = Comet.load(generator) if generator else Comet.from_encoder(locate())
    targets = choose_targets("all")
    relations = [(relation.name, relation.phrase) for relation in comet_relations()]
    lines = ["| | seconds | statements/s | peak memory, GiB | where the time goes |", "|---|---|---|---|---|"]
    tails = {}
    for precision in ("fp32", "bf16"):
        with tempfile.TemporaryDirectory() as place, stopwatches() as spent:
            started = time.perf_counter()
            parts = PartFolder(Path(place))
            probe(comet, targets, relations, parts=parts, precision=precision)
            seconds = time.perf_counter() - started
            tails[precision] = pl.concat(list(parts))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        speed = tails[precision].height / seconds
        shares = ", ".join(f"{name} {100 * part / seconds:.0f} %" for name, part in spent.items())
        lines.append(f"| {precision} | {seconds:.1f} | {speed:.0f} | {peak:.2f} | {shares} |")
    shared = tails["fp32"].join(tails["bf16"], on=["target", "relation", "tail"], how="semi").height
    lengths = comet.tails(tails["fp32"]["tail"].to_list())
    what = "a COMeT trained on train100k" if generator else "the untrained warm start, whose tails have full length"
    return [
        f"{targets.height} targets x {len(relations)} relations x 10 with {what}.",
        "\n".join(lines),
        f"{100 * shared / tails['fp32'].height:.1f} % of the tails in fp32 are also among the ten in bf16; "
        f"{sum(map(len, lengths)) / len(lengths):.1f} tokens a tail, END counted. `body` is the decoder's layers "
        "without attention, `head` the vocabulary: logits, normaliser and search.",
    ]


def parts(rounds: int) -> list[str]:
    """The processor's seconds of a search's operations, and of its vocabulary in bf16 and in int8."""
    decoder = ready(random_decoder("gpt2", ending=False).bfloat16())
    search = ours(decoder)
    search(random_prompts(), 1, False)
    with profile(activities=[ProfilerActivity.CPU]) as watch:
        search(random_prompts(), FIXED, False)
    spent = {event.key: event.self_cpu_time_total / 1e6 for event in watch.key_averages()}
    whole, products = sum(spent.values()), spent["mkldnn::_linear_pointwise"]
    others = sorted((item for item in spent.items() if item[1] < products), key=lambda item: -item[1])[:8]
    lines = ["| operation | share of the processor's seconds, % |", "|---|---|"]
    lines += [f"| `{name}` | {100 * part / whole:.1f} |" for name, part in spent.items() if part == products]
    lines += [f"| `{name}` | {100 * part / whole:.1f} |" for name, part in others]
    seconds = vocabulary_seconds(decoder, rounds)
    return [
        f"136 prompts of {PROMPT} random tokens, {BEAMS} beams, {FIXED} tokens each: {whole:.1f} processor seconds. "
        "The first operation is all products with weights: what is left to gain elsewhere is the rest.",
        "\n".join(lines),
        f"The vocabulary's product for 680 rows, medians of {rounds} rounds in turns: {1000 * seconds['bf16']:.0f} ms "
        f"in bf16, int8 by PyTorch's dynamic quantisation {1000 * seconds['int8']:.0f} ms "
        f"({seconds['int8'] / seconds['bf16']:.2f} of it), before the exact scores of its best 64 words, which take "
        f"{1000 * seconds['exact']:.0f} ms. A search has {FIXED} such products in every 680 rows, "
        f"{100 * FIXED * 2 * seconds['bf16'] / whole:.0f} % of its time.",
    ]


def vocabulary_seconds(decoder: Decoder, rounds: int) -> dict[str, float]:
    """Processor seconds, medians: of all tiles in bf16 and in int8, and of the exact scores of 64 words a row."""
    hidden, weight = torch.randn(680, decoder.config.width), decoder.words.rows()
    torch.backends.quantized.engine = "onednn"
    linear = [nn.Linear(*tile.shape[::-1], bias=False) for tile in weight.split(TILE)]
    for layer, tile in zip(linear, weight.split(TILE), strict=True):
        layer.weight.data = tile.float()
    small = [torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {nn.Linear}) for layer in linear]
    large = [Product(tile, None) for tile in weight.split(TILE)]
    best, half = torch.randint(0, len(weight), (680, 64)), hidden.bfloat16()
    ways: dict[str, Callable[[], object]] = {
        "bf16": lambda: [tile(half) for tile in large],
        "int8": lambda: [tile(hidden) for tile in small],
        "exact": lambda: weight.index_select(0, best.flatten()).unflatten(0, best.shape) @ half[:, :, None],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for _ in range(rounds + 1):
            for name, way in ways.items():
                started = time.process_time()
                way()
                seconds[name].append(time.process_time() - started)
    return {name: median(found[1:]) for name, found in seconds.items()}


@contextmanager
def stopwatches() -> Iterator[dict[str, float]]:
    """Seconds spent inside the decoder's layers, attention and head while the context is open."""
    spent = {"body": 0.0, "attention": 0.0, "head": 0.0}

    def timed(name: str, call: Callable) -> Callable:
        def run(*arguments: object) -> object:
            started = time.perf_counter()
            result = call(*arguments)
            spent[name] += time.perf_counter() - started
            return result

        return run

    places = {"body": (Decoder, "forward"), "attention": (TreeAttention, "__call__"), "head": (TopTokens, "__call__")}
    originals = {name: getattr(owner, method) for name, (owner, method) in places.items()}
    for name, (owner, method) in places.items():
        setattr(owner, method, timed(name, originals[name]))
    try:
        yield spent
    finally:
        for name, (owner, method) in places.items():
            setattr(owner, method, originals[name])
        spent["body"] -= spent["attention"]  # which runs inside


if __name__ == "__main__":
    main()
