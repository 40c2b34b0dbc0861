"""The frames model as a scorer beside `generate` of transformers with the same weights: texts a second, and whether the
frames are the same.

    python benchmarks/frames.py [--data ../shared/data] [--texts 256] [--rounds 3] [--width 768] [--layers 12]

The model is a GPT-2 with random weights, so that nothing has to be trained or downloaded. `generate` follows the same
form by a logits processor, on batches of the same size, texts of like length together. Contestants take turns within a
round. Writes its section of RESULTS.md."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LogitsProcessor,
    PreTrainedTokenizerFast,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from mitigate.frames import CHOICES
from mitigate.tasks.frames.forms import FIELDS
from mitigate.tasks.frames.posts import read_posts
from models.filling import Filled, fill_in
from models.form import NO, UNKNOWN, YES, Form

ROWS = 32  # texts of a batch
Frame = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The choices and the texts of a form."""


class Follows(LogitsProcessor):
    """Allows what may come next in a form: the two values of a choice, the words of a text, or the end."""

    def __init__(self, form: Form, length: int) -> None:
        self.form, self.length = form, length
        self.pairs = [form.ids[name][: YES + 1] for name in CHOICES]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # (rows, length), (rows, vocab_size)
        kept = torch.full_like(scores, -torch.inf)
        for row, said in enumerate(input_ids[:, self.length :].tolist()):
            allowed = self.allowed(said)
            kept[row, allowed] = scores[row, allowed]
        return kept

    def allowed(self, said: list[int]) -> list[int]:
        """The tokens that may follow what was said."""
        form, first = self.form, len(self.form.first)
        if len(said) < first:
            return self._values(said, len(said))
        if len(said) == first or self._closed(said):
            return [form.end]
        texts = said[first + 1 :]
        done = texts.count(form.end)
        if done >= len(form.texts):
            return self.pairs[-1] if texts[-1] == form.end else [form.end]
        since = len(texts) - (max(i for i, t in enumerate(texts) if t == form.end) + 1 if done else 0)
        return [form.end] if since >= form.longest_text else form.words

    def _values(self, said: list[int], number: int) -> list[int]:
        name = self.form.first[number].name
        closed = any(said[CHOICES.index(one)] == self.form.ids[one][NO] for one in self.form.parents(name))
        return [self.pairs[number][NO]] if closed else self.pairs[number]

    def _closed(self, said: list[int]) -> bool:
        return any(said[CHOICES.index(one)] == self.form.ids[one][NO] for one in self.form.parents("group"))


def generated(model: GPT2LMHeadModel, form: Form, texts: Sequence[list[int]]) -> list[Frame]:
    """What `generate` says of texts (as Form.read returns them), in their order."""
    found: list[Frame] = [((), ())] * len(texts)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), ROWS):
        places = order[start : start + ROWS]
        rows = [torch.tensor(texts[i]) for i in places]
        tokens = pad_sequence(rows, batch_first=True, padding_value=form.encoding.pad, padding_side="left")
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side="left")
        # Its own end token ends texts inside a form; a row is over when its form is, and waits for the others.
        said = model.generate(
            input_ids=tokens,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=len(form.first) + 2 + 2 * (form.longest_text + 1),
            logits_processor=[Follows(form, tokens.shape[1])],
            eos_token_id=None,
            pad_token_id=form.encoding.pad,
            stopping_criteria=[Over(form, tokens.shape[1])],
        )
        for place, row in zip(places, said[:, tokens.shape[1] :].tolist(), strict=True):
            found[place] = read(form, row)
    return found


class Over:
    """Ends a row whose form is filled in."""

    def __init__(self, form: Form, length: int) -> None:
        self.follows, self.length = Follows(form, length), length

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:
        form = self.follows.form
        return torch.tensor([self.over(form, row) for row in input_ids[:, self.length :].tolist()])

    def over(self, form: Form, said: list[int]) -> bool:
        """Whether the form ends here."""
        first = len(form.first)
        if len(said) < first:
            return False
        if self.follows._closed(said):
            return True
        return said[first + 1 :].count(form.end) == len(form.texts) and said[-1] != form.end


def read(form: Form, said: list[int]) -> Frame:
    """The choices and texts among generated tokens."""
    first = len(form.first)
    values = {token: value for ids in form.ids.values() for value, token in enumerate(ids)}
    choices = [values[token] for token in said[:first]]
    if Follows(form, 0)._closed(said):
        return (*choices, UNKNOWN), ((), ())
    texts: list[list[int]] = [[] for _ in form.texts]
    place = first + 1
    for text in texts:
        while said[place] != form.end:
            text.append(said[place])
            place += 1
        place += 1
    return (*choices, values[said[place]]), tuple(map(tuple, texts))


def frames_of(filled: Sequence[Filled]) -> list[Frame]:
    """The choices and texts of filled forms."""
    return [(one.choices, one.texts) for one in filled]


def random_form(folder: Path, posts: Sequence[str], width: int, layers: int, vocabulary: int = 5000) -> Form:
    """A form on a GPT-2 with random weights and a tokenizer made from the posts, saved in the folder and read again."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        posts, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    )
    torch.manual_seed(1)
    shape = {"n_embd": width, "n_layer": layers, "n_head": max(1, width // 64), "n_positions": 256}
    start, saved = folder / "start", folder / "form"
    GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.get_vocab_size(), **shape)).save_pretrained(start)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(start)
    form = Form.from_language_model(start, FIELDS, reads="left", known=list(CHOICES))
    form.restrict(form.words_of(posts[:200]))
    open_up(form.eval(), posts[:ROWS])
    form.save(saved)
    return Form.load(saved)


@torch.no_grad()
def open_up(form: Form, posts: Sequence[str]) -> None:
    """Exchanges yes and no of the parents that random weights say no to more often, or no form would have texts, and
    makes the end, which would follow itself, no likelier than other words."""
    form.decoder.words.weight[form.end] *= 0.1
    for name in reversed(form.parents("group")):
        filled = fill_in(form, form.read(posts), choices_only=True)
        if np.mean([one.choices[CHOICES.index(name)] == YES for one in filled]) < 0.5:
            no, yes, _ = form.ids[name]
            form.decoder.words.weight[[no, yes]] = form.decoder.words.weight[[yes, no]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has sbic/")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    arguments = parser.parse_args()
    posts = read_posts(arguments.data / "sbic")[1]["post"].sample(arguments.texts, seed=1).to_list()
    with tempfile.TemporaryDirectory(prefix="mitigate-") as place:
        form = random_form(Path(place), posts, arguments.width, arguments.layers)
        model = AutoModelForCausalLM.from_pretrained(Path(place) / "form", dtype=torch.float32).eval()
        texts = form.read(posts)
        contestants = {
            "filling in (values and texts)": lambda: frames_of(fill_in(form, texts, rows=ROWS)),
            "filling in, values only (what labels need)": lambda: fill_in(form, texts, rows=ROWS, choices_only=True),
            "generate": lambda: generated(model, form, texts),
        }
        rates: dict[str, list[float]] = {name: [] for name in contestants}
        said = {}
        for _ in range(arguments.rounds):
            for name, run in contestants.items():
                started = time.perf_counter()
                said[name] = run()
                rates[name].append(len(texts) / (time.perf_counter() - started))
    names = list(contestants)
    same = sum(one == other for one, other in zip(said[names[0]], said[names[2]], strict=True))
    asked = sum(bool(texts[0]) for _, texts in said[names[0]])
    lines = [
        "## Frames: filling in beside `generate`",
        "",
        f"Measured on {machine()}, by `python benchmarks/frames.py`: a GPT-2 with random weights, width "
        f"{arguments.width}, {arguments.layers} layers, {len(texts)} posts in batches of {ROWS}, of which {asked} "
        f"have texts; median of {arguments.rounds} rounds, contestants in turn. {same} of {len(texts)} frames are the "
        "same.",
        "",
        "| | texts a second | against `generate` |",
        "|---|---:|---:|",
        *(
            f"| {name} | {np.median(found):.1f} | {np.median(found) / np.median(rates[names[2]]):.2f} |"
            for name, found in rates.items()
        ),
    ]
    print("\n".join(lines))
    write_section("frames", "\n".join(lines), processor())


if __name__ == "__main__":
    main()
