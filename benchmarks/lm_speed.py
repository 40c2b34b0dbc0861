"""Training and probing a Llama (`model=hf`) beside the version before and plain transformers.

    python benchmarks/lm_speed.py train --model DIR [--before TREE] [--steps 12] [--rounds 3] [--write]
    python benchmarks/lm_speed.py probe --model DIR [--before TREE] [--prompts 136] [--ending] [--rounds 3] [--write]

TREE is a git worktree of the version before. Each turn is a process of its own, and contestants take turns within a
round, so that what else the machine does falls on all of them; of the rounds the median counts. Seconds are those of
the processor: say OMP_NUM_THREADS=1, as threads that wait for each other count too. Training: batches of 128 of
train100k, as experiment=cn100k_cpu draws them, the first step of a turn not counted; the plain loop pads batches drawn
at random to their longest text. Probing: ten tails of exactly eight tokens, for each relation of a target; with
--ending tails end by themselves, so give a trained model. `generate` has batches of one length, 16 at most. --write
replaces the section of RESULTS.md."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

TREE = Path(__file__).parents[1]
BATCH, WARM, LENGTH, NATURAL, BEAMS, SLOTS = 128, 1, 8, 15, 10, 68
SHOWN = ("a second", "GiB", "lists")  # in columns of their own, or not at all
IGNORED = -100  # the label of what is not to be learnt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["train", "probe"])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--prompts", type=int, default=136)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default=None, help="else what the processor has")
    parser.add_argument("--ways", nargs="+", help="some of the contestants")
    parser.add_argument("--ending", action="store_true", help="tails end by themselves, after 15 tokens at the latest")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.turn:
        take_turn(given)
        return
    trees = {"mitigate": TREE} | ({"before": given.before} if given.before else {})
    ways = given.ways or [*trees, "transformers"]
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for number in range(given.rounds):
        for way in ways:
            found[way].append(turn(way, trees.get(way, TREE)))
            shown = {name: value for name, value in found[way][-1].items() if name != "lists"}
            print(f"round {number + 1}: {way} {shown}", flush=True)
    section = report(given, found)
    print(section)
    if given.write:
        sys.path.insert(0, str(TREE))
        from benchmarks.results import processor, write_section

        write_section(f"lm_speed {given.task}{' ending' * given.ending}", section, processor())


def turn(way: str, tree: Path) -> dict[str, Any]:
    """The figures that a contestant prints, in a process that imports `mitigate` from a tree."""
    code = f"import sys; sys.path[:0] = [{str(tree)!r}]; sys.argv = {['', *sys.argv[1:], '--turn', way]!r}\n"
    code += f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=tree)
    return json.loads(done.stdout.splitlines()[-1])


def take_turn(given: argparse.Namespace) -> None:
    import torch
    from transformers.utils import logging

    from mitigate.train.harness import native_precision

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    precision = given.precision or {"bf16-mixed": "bf16", "32-true": "fp32"}[native_precision("cpu")]
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[precision]
    ways = {"train": (train_ours, train_plain), "probe": (probe_ours, generate)}
    own, plain = ways[given.task]
    found = (plain if given.turn == "transformers" else own)(given, dtype)
    if given.ending:
        found.pop("lists")
    found["GiB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    print(json.dumps(found))


def examples() -> Any:
    from mitigate.load.conceptnet import load
    from mitigate.train.comet import Examples
    from mitigate.words.relations import comet_relations

    triples = load(None).rows.filter(split="train")
    phrases = {relation.name: relation.phrase for relation in comet_relations()}
    spoken = [phrases[relation] for relation in triples["relation"]]
    return Examples(triples["head"].to_list(), spoken, triples["tail"].to_list())


def settings(given: argparse.Namespace, dtype: Any) -> Any:
    import torch

    from mitigate.train.comet import Settings

    precision = "bf16-mixed" if dtype == torch.bfloat16 else "32-true"
    how = {"precision": precision, "seed": 1, "checkpoint_every": 1e9, "lr": 2e-4, "hold": 0.8}
    return Settings(max_epochs=1.9, max_steps=given.steps, batch_size=BATCH, **how)


def train_ours(given: argparse.Namespace, dtype: Any) -> dict[str, Any]:
    from mitigate.train.comet import TailModule, fit
    from models.language_model import LanguageModel

    model, began, losses = LanguageModel.load(given.model), [], []
    step = TailModule.training_step

    def timed(module: Any, batch: Any, number: int) -> Any:
        began.append(time.process_time())
        losses.append(step(module, batch, number))
        return losses[-1]

    TailModule.training_step = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as place:
        fit(model, examples(), settings(given, dtype), Path(place), fingerprint="", accelerator="cpu")
    began.append(time.process_time())
    return rate(began) | {"last losses": [round(float(loss.detach()), 4) for loss in losses[-2:]]}


def rate(began: Sequence[float]) -> dict[str, Any]:
    """began: when each step began, and the last one's end."""
    counted = len(began) - 1 - WARM
    return {"a second": round(counted * BATCH / (began[-1] - began[WARM]), 2)}


def train_plain(given: argparse.Namespace, dtype: Any) -> dict[str, Any]:
    """The steps of transformers' Trainer: dynamic padding, autocast, fused AdamW, gradients clipped at 1."""
    import numpy as np
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from models.language_model import LanguageModel

    asked, learner = examples(), LanguageModel.load(given.model)
    prompts, tails = learner.prompts(asked.heads, asked.phrases), learner.tails(asked.tails)
    model, began = learner.model.train(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for batch in np.random.default_rng(1).integers(len(tails), size=(given.steps, BATCH)):
        began.append(time.process_time())
        tokens = [torch.tensor([*prompts[i], *tails[i]]) for i in batch]
        labels = [torch.tensor([IGNORED] * len(prompts[i]) + tails[i]) for i in batch]
        mask = pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True)
        inputs = pad_sequence(tokens, batch_first=True, padding_value=learner.pad)
        answers = pad_sequence(labels, batch_first=True, padding_value=IGNORED)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = model(input_ids=inputs, attention_mask=mask, labels=answers).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return rate([*began, time.process_time()])


def asked(given: argparse.Namespace, learner: Any) -> list[list[int]]:
    from mitigate.words.relations import comet_relations
    from mitigate.words.targets import choose_targets

    relations = comet_relations()
    pairs = [(head, r.phrase) for head in choose_targets("all")["target"].to_list() for r in relations]
    return learner.prompts(*zip(*pairs[: given.prompts], strict=True))


def probe_ours(given: argparse.Namespace, dtype: Any) -> dict[str, Any]:
    from models.language_model import LanguageModel

    learner = LanguageModel.load(given.model).to(dtype)
    prompts, longest = asked(given, learner), NATURAL if given.ending else LENGTH
    if not given.ending:
        learner.end = -1  # which no token is
    return timed_lists(lambda: [[beam.tokens for beam in one] for one in learner.search(prompts, max_length=longest)])


def generate(given: argparse.Namespace, dtype: Any, size: int = 16) -> dict[str, Any]:
    import torch

    from models.language_model import LanguageModel

    learner = LanguageModel.load(given.model).to(dtype)
    prompts = asked(given, learner)
    how = {"num_beams": BEAMS, "num_return_sequences": BEAMS, "max_new_tokens": LENGTH, "eos_token_id": None}
    if given.ending:
        how |= {"max_new_tokens": NATURAL, "eos_token_id": learner.end, "early_stopping": True}

    @torch.inference_mode()
    def search() -> list[Any]:
        found: list[Any] = [None] * len(prompts)
        for places in alike(prompts, size):
            batch = torch.tensor([prompts[place] for place in places])
            said = learner.model.generate(
                batch, attention_mask=torch.ones_like(batch), pad_token_id=learner.pad, **how
            )[:, batch.shape[1] :]
            for place, lists in zip(places, said.unflatten(0, (len(places), BEAMS)).tolist(), strict=True):
                found[place] = lists
        return found

    return timed_lists(search)


def alike(prompts: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Places of prompts of one length, so many at a time."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    for _, same in groupby(order, key=lambda place: len(prompts[place])):
        places = list(same)
        yield from (places[start : start + size] for start in range(0, len(places), size))


def timed_lists(search: Callable[[], list[Any]]) -> dict[str, Any]:
    started = time.process_time()
    lists = search()
    return {"a second": round(BEAMS * len(lists) / (time.process_time() - started), 1), "lists": lists}


def report(given: argparse.Namespace, found: dict[str, list[dict[str, Any]]]) -> str:
    sys.path.insert(0, str(TREE))
    import transformers

    from benchmarks.results import machine

    training = given.task == "train"
    speeds = {way: [one["a second"] for one in turns] for way, turns in found.items()}
    unit = f"{'examples' if training else 'statements'} per processor second"
    lines = [f"| | {unit}, median | of the rounds | mitigate is | peak memory, GiB | |", "|---|---|---|---|---|---|"]
    for way, turns in found.items():
        ratio = median(a / b for a, b in zip(speeds["mitigate"], speeds[way], strict=True))
        more = ", ".join(f"{name} {value}" for name, value in turns[-1].items() if name not in SHOWN)
        figures = [median(speeds[way]), " ".join(map(str, speeds[way])), f"{ratio:.2f} times as fast"]
        lines.append("| " + " | ".join(map(str, [way, *figures, max(turn["GiB"] for turn in turns), more])) + " |")
    work = f"batches of {BATCH}, {given.steps} steps" if training else f"{given.prompts} prompts"
    command = " ".join(["python benchmarks/lm_speed.py", given.task, *["--ending"] * given.ending])
    measured = f"`{command}`: {work}, {given.precision or 'the precision of the processor'}, rounds: {given.rounds}. "
    measured += f"{machine()}, transformers {transformers.__version__}; load average {os.getloadavg()[1]:.0f}."
    title = f"## {'Training' if training else 'Probing'} a Llama of 135 M parameters"
    return "\n\n".join(
        [title + (", natural ending" if given.ending else ""), measured, "\n".join(lines), *equal(found)]
    )


def equal(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """How many lists of ten are the same, where stopping rules cannot differ."""
    lists = {way: turns[0]["lists"] for way, turns in found.items() if turns[0].get("lists")}
    for way in lists.keys() - {"mitigate"}:
        same = sum(map(list.__eq__, lists["mitigate"], lists[way]))
        yield f"{same} of {len(lists[way])} lists of ten are those of {way}."


if __name__ == "__main__":
    main()
