"""Generators of any architecture of transformers: small ones from a random start, and their beam search against
`generate`.

    python benchmarks/generators.py make DIR [--root DIR] [--seed 1]
    python benchmarks/generators.py lists FOLDER... [--prompts 200] [--rounds 3] [--write]

`make` writes a folder of random weights for each of SHAPES, a few million parameters each, with a tokenizer made from
the heads and tails of train100k: what `python -m mitigate model=hf|seq2seq model.base=FOLDER` trains. `lists` asks each
of these, or of other folders of causal and sequence-to-sequence models, about 200 pairs of target and relation, with
ten tails of exactly eight tokens, so that stopping rules cannot differ. The two searches take turns; `generate` has
batches of one length, as ours has, of the size at which it is fastest. --write replaces the section of RESULTS.md."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.utils import logging

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from mitigate.load.conceptnet import load
from mitigate.relations import comet_relations
from mitigate.targets import choose_targets
from models.cached_search import cached_search
from models.language_model import LanguageModel
from models.of_transformers import OfTransformers
from models.seq2seq import Seq2Seq

BEAMS, LENGTH, NEVER = 10, 8, -1
SIZES = (4, 16, 64)  # prompts in a batch that are tried with `generate`
WORDS = 8000
BEGIN, END, PAD = "<s>", "</s>", "<pad>"


def bart(words: int) -> PreTrainedModel:
    shape = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in LAYER.items()}
    return BartForConditionalGeneration(
        BartConfig(vocab_size=words, d_model=256, max_position_embeddings=64, **shape, **TOKENS)
    )


def t5(words: int) -> PreTrainedModel:
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=words,
            d_model=256,
            d_kv=64,
            d_ff=1024,
            num_layers=3,
            num_heads=4,
            decoder_start_token_id=1,
            pad_token_id=1,
            eos_token_id=2,
        )
    )


def llama(words: int) -> PreTrainedModel:
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 688}
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=words, max_position_embeddings=64, tie_word_embeddings=True, **shape, **ENDS)
    )


def neox(words: int) -> PreTrainedModel:
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=words, max_position_embeddings=64, **shape, **ENDS))


def gpt2(words: int) -> PreTrainedModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=words, n_positions=64, n_embd=256, n_layer=4, n_head=4, **ENDS))


LAYER = {"layers": 3, "attention_heads": 4, "ffn_dim": 1024}
ENDS = {"bos_token_id": 0, "eos_token_id": 2}  # of the tokenizer below
TOKENS = ENDS | {"pad_token_id": 1, "decoder_start_token_id": 2}
SHAPES: dict[str, tuple[Callable[[int], PreTrainedModel], str]] = {
    "bart": (bart, f"{BEGIN} $A {END}"),
    "t5": (t5, f"$A {END}"),
    "llama": (llama, f"{BEGIN} $A"),
    "neox": (neox, "$A"),
    "gpt2": (gpt2, "$A"),
}
"""Name -> its random model of so many words, and what the tokenizer puts around a text."""


@dataclass
class Asked:
    """A generator and how often the two searches agreed."""

    name: str
    parameters: int
    equal: int = 0
    prompts: int = 0
    gap: float = 0.0  # the largest difference of log-probabilities where a list differs
    ours: list[float] = field(default_factory=list)  # statements a second, by round
    theirs: list[float] = field(default_factory=list)
    size: int = 0


def make(folder: Path, root: str | None, seed: int) -> None:
    """Writes the random models."""
    triples = load(root).triples.filter(split="train")
    texts = [*triples["head"], *triples["tail"], *(relation.phrase for relation in comet_relations())]
    for name, (shape, around) in SHAPES.items():
        tokenizer = tokenizer_of(texts, around)
        torch.manual_seed(seed)
        model = shape(len(tokenizer))
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
        print(f"{folder / name}: {model.num_parameters():,} random weights, {len(tokenizer):,} tokens")


def tokenizer_of(texts: Sequence[str], around: str) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of these texts."""
    special = [BEGIN, PAD, END]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single=around, special_tokens=[(token, made.token_to_id(token)) for token in (BEGIN, END)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BEGIN, eos_token=END, pad_token=PAD)


def compare(folder: Path, prompts: int, rounds: int) -> Asked:
    """The lists of both searches, and how fast they are found."""
    config = (folder / "config.json").read_text(encoding="utf-8")
    generator: OfTransformers = (Seq2Seq if '"is_encoder_decoder": true' in config else LanguageModel).load(folder)
    heads, relations = choose_targets("all")["target"].to_list(), comet_relations()
    pairs = random.Random(1).sample([(head, relation) for head in heads for relation in relations], prompts)
    asked = generator.prompts([head for head, _ in pairs], [relation.phrase for _, relation in pairs])
    found = Asked(folder.name, sum(weight.numel() for weight in generator.parameters()), prompts=prompts)
    found.size = fastest(generator, asked)
    for number in range(rounds):
        seconds, mine = timed(lambda: ours(generator, asked))
        found.ours.append(BEAMS * prompts / seconds)
        seconds, others = timed(lambda: theirs(generator, asked, found.size))
        found.theirs.append(BEAMS * prompts / seconds)
        if number == 0:
            for prompt, one, other in zip(asked, mine, others, strict=True):
                found.equal += one == other
                if one != other:
                    found.gap = max(found.gap, gap(generator, prompt, one, other))
    return found


Lists = list[list[list[int]]]


@torch.inference_mode()
def ours(generator: OfTransformers, prompts: Sequence[Sequence[int]]) -> Lists:
    found = cached_search(
        generator.reading, prompts, end=NEVER, device=generator.model.device, beams=BEAMS, max_length=LENGTH
    )
    return [[list(beam.tokens) for beam in beams] for beams in found]


@torch.inference_mode()
def theirs(generator: OfTransformers, prompts: Sequence[Sequence[int]], size: int) -> Lists:
    before = len(generator.before) - 1 if isinstance(generator, Seq2Seq) else 0
    found: Lists = [[] for _ in prompts]
    for places in batches(prompts, size):
        batch = torch.tensor([prompts[place] for place in places])
        said = generator.model.generate(
            batch,
            attention_mask=torch.ones_like(batch),
            num_beams=BEAMS,
            num_return_sequences=BEAMS,
            max_new_tokens=before + LENGTH,
            eos_token_id=None,
            pad_token_id=generator.pad,
        )
        for place, lists in zip(places, said[:, -LENGTH:].unflatten(0, (len(places), BEAMS)).tolist(), strict=True):
            found[place] = lists
    return found


def batches(prompts: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Places of prompts of one length, so many at a time."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    for _, alike in groupby(order, key=lambda place: len(prompts[place])):
        places = list(alike)
        yield from (places[start : start + size] for start in range(0, len(places), size))


def fastest(generator: OfTransformers, prompts: Sequence[Sequence[int]]) -> int:
    """The batch size at which `generate` is fastest, by a short try of each."""
    few = prompts[:64]
    return min(SIZES, key=lambda size: timed(lambda: theirs(generator, few, size))[0])


@torch.inference_mode()
def gap(generator: OfTransformers, prompt: Sequence[int], one: list[list[int]], other: list[list[int]]) -> float:
    """By how much the log-probabilities of two lists differ, place by place, at most."""
    sums = [generator.nll([prompt] * BEAMS, tails).view(BEAMS, LENGTH).sum(1) for tails in (one, other)]
    return float((sums[0] - sums[1]).abs().max())


def timed(work: Callable[[], Lists]) -> tuple[float, Lists]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def section(found: Sequence[Asked]) -> str:
    """The table."""
    lines = [
        "## Generators of transformers: our beam search against `generate`",
        f"`python benchmarks/generators.py lists`: ten tails of exactly {LENGTH} tokens for each of {found[0].prompts} "
        f"pairs of target and relation, float32, {machine()}. Random starts unless the name says otherwise. Both take "
        "turns, and statements a second are medians of the rounds; `generate` has batches of one length, of the size "
        "at which it is fastest.",
        "| generator | parameters | equal lists | statements/s | `generate`, statements/s | ratio | of the rounds |\n"
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        ratios = [ours / theirs for ours, theirs in zip(one.ours, one.theirs, strict=True)]
        others = "" if one.equal == one.prompts else f", others within {one.gap:.1e}"
        lines[-1] += (
            f"\n| {one.name} | {one.parameters / 1e6:.1f} M | {one.equal} of {one.prompts}{others} "
            f"| {median(one.ours):,.0f} | {median(one.theirs):,.0f} (batches of {one.size}) | {median(ratios):.1f} "
            f"| {min(ratios):.1f} to {max(ratios):.1f} |"
        )
    return "\n\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make", help="write small random models")
    made.add_argument("folder", type=Path, metavar="DIR")
    made.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root); else MITIGATE_DATA")
    made.add_argument("--seed", type=int, default=1)
    lists = commands.add_parser("lists", help="both searches over generators")
    lists.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    lists.add_argument("--prompts", type=int, default=200)
    lists.add_argument("--rounds", type=int, default=3)
    lists.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    given = parser.parse_args()
    logging.disable_progress_bar()
    if given.command == "make":
        make(given.folder, given.root, given.seed)
        return
    found = [compare(folder, given.prompts, given.rounds) for folder in given.folders]
    print(section(found))
    if given.write:
        write_section("generators", section(found), processor())


if __name__ == "__main__":
    main()
