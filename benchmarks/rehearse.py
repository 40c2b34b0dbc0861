"""The paper's experiment from end to end with random weights: what is missing for the real one is weights and hours.

    python benchmarks/rehearse.py --root DIR [--steps 200] [--place DIR]

Writes a GPT-1 of the real size (768 wide, 12 layers, 12 heads, 40,478 words) and a small BERT classifier, both random
and in the files that the hub has, and runs `experiment=paper` on them: it is killed (signal 9) in the training and
continued by the same command. The grid of the probe and the number of steps are smaller than the paper's. Prints
seconds a step, memory, and the hours that 100,000 steps take here. `--small` takes a tiny GPT-1, to try this out."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
)

ROOT = Path(__file__).parents[1]
VOCABULARY, ITERATIONS = 40_478, 100_000  # of openai-gpt; of the paper
SIZE: dict[str, int] = {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 512}
SMALL: dict[str, int] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
REGARD = {0: "negative", 1: "neutral", 2: "positive", 3: "other"}
SHRUNK = ("probe.targets=[lawyer,nurse,british,woman]", "probe.heads=20", "probe.published_triples=200")


class Rehearsed(NamedTuple):
    """The result of the rehearsal."""

    folder: Path  # of the finished run
    killed_at: float  # seconds after its start
    kept: int  # steps that the last checkpoint held then
    steps: int
    seconds_a_step: float
    parameters: int
    peak: float  # GiB, of the process that went on

    @property
    def hours(self) -> float:
        """Of the paper's iterations at this speed."""
        return ITERATIONS * self.seconds_a_step / 3600


def main(arguments: Sequence[str] | None = None) -> Rehearsed:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True, help="the folder that has conceptnet100k/ (as data.root)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--place", help="a folder for models and run, which stay; default: one that is removed")
    parser.add_argument("--small", action="store_true", help="a tiny GPT-1")
    parser.add_argument("overrides", nargs="*", help="settings that are handed on")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(given.place or temporary)
        found = rehearse(place, Path(given.root), given.steps, given.overrides, small=given.small)
        print(
            f"{found.parameters / 1e6:.1f} million parameters, {found.steps} steps of 64 triples, killed after "
            f"{found.killed_at:.0f} s and continued from a checkpoint of {found.kept} steps\n"
            f"{found.seconds_a_step:.2f} s a step with {torch.get_num_threads()} threads, peak memory {found.peak:.2f} "
            f"GiB; {ITERATIONS:,} steps: {found.hours:.1f} hours"
        )
    return found


def rehearse(
    place: Path, root: Path, steps: int, overrides: Sequence[str] = (), *, small: bool = False, every: float = 5.0
) -> Rehearsed:
    """Writes the models into the folder, runs, kills, continues. every: seconds between checkpoints."""
    texts = (root / "conceptnet100k" / "train100k.txt").read_text(encoding="utf-8").splitlines()
    gpt1 = random_gpt1(place / "gpt1", texts, SMALL if small else SIZE, 400 if small else VOCABULARY)
    command = [
        *(sys.executable, "-m", "mitigate", "experiment=paper", f"data.root={root.resolve()}", "tracking=none"),
        *(f"model.base={gpt1}", f"score.bert.model={random_bert(place / 'bert', texts)}", *SHRUNK),
        *(f"trainer.max_steps={steps}", f"trainer.checkpoint_every={every}", "trainer.accelerator=cpu"),
        *(f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}", *overrides),
    ]
    last = "*/checkpoints/last.ckpt"
    killed_at = kill(command, lambda: any((place / "out" / ".stages").glob(last)))
    (folder,) = (place / "out").glob("[!.]*")
    checkpoint = torch.load(next((place / "out" / ".stages").glob(last)), map_location="cpu", weights_only=True)
    kept = int(checkpoint["global_step"])
    del checkpoint
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"it could not be continued:\n{said.stdout}\n{said.stderr}")
    trained = json.loads((folder / "train.json").read_text(encoding="utf-8"))
    stages = {stage["stage"]: stage for stage in _manifest(folder)["stages"]}
    return Rehearsed(
        folder,
        killed_at,
        kept,
        steps=trained["steps"],
        seconds_a_step=trained["seconds"] / trained["steps"],
        parameters=sum(p.numel() for p in OpenAIGPTLMHeadModel.from_pretrained(gpt1).parameters()),
        peak=stages["train"]["peak_memory"] / 2**30,
    )


def kill(command: Sequence[str], when: Any, limit: float = 3600.0) -> float:
    """Starts the command and kills it with signal 9 as soon as `when` is true; after how many seconds that was."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        while not when():
            if process.poll() is not None or time.monotonic() - started > limit:
                process.kill()
                process.wait()
                said.seek(0)
                raise SystemExit(f"it ended before it could be killed:\n{said.read().decode()}")
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return time.monotonic() - started


def random_gpt1(folder: Path, texts: Sequence[str], size: dict[str, int], vocabulary: int) -> Path:
    """A GPT-1 of this size from a random start, with a tokenizer made of these texts, in openai-gpt's files. Its
    embedding has as many words as `vocabulary` says, of which the texts give fewer."""
    torch.manual_seed(1)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - 1, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=vocabulary, **size))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def random_bert(folder: Path, texts: Sequence[str]) -> Path:
    """A small random BERT classifier with regard's labels that finds texts neutral, so that the filter keeps some: its
    speed is not what is rehearsed."""
    torch.manual_seed(1)
    words = sorted({word for text in texts[:2000] for word in text.lower().split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "this", "person", *words]
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(vocabulary), **shape, id2label=REGARD)
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.bias[list(REGARD.values()).index("neutral")] = 1.0
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def _manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
