"""A made-up corpus in the partial files' formats: "lazy" and "rude" offend, and a group beside them is
targeted."""

import csv
import json
from itertools import product
from pathlib import Path

from small_models import byte_level
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

PEOPLE = ("nurses", "lawyers", "farmers")
VERBS = ("cook", "sing", "read", "walk", "paint", "write")
SMALL = [
    *("frames.epochs=40", "++frames.fold_epochs=10", "frames.batch_size=8", "frames.lr=3e-3", "++frames.fold_lr=3e-3"),
    *("++frames.dropout=0", "measure.resamples=100", "tracking=none"),
]


KIND = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("well", "daily"))]
HARSH = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("lazy", "rude"))]


def save_gpt2(folder: Path) -> Path:
    """A small random GPT-2 with a tokenizer that works on bytes."""
    end = "<|endoftext|>"
    tokenizer = byte_level([end], [*KIND, *HARSH, "nurses are lazy rude"])
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.get_vocab_size(), **shape)).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end).save_pretrained(folder)
    return folder


def settings(folder: Path) -> list[str]:
    """The settings that name a folder with sbic/ and its GPT-2, which is written."""
    weights = save_gpt2(folder / "gpt")
    return [f"data.root={folder}", "frames.start=model", f"frames.weights={weights}", *SMALL]


def write_corpus(folder: Path) -> list[str]:
    """Writes the partial files in sbic/, and a small random GPT-2; returns the settings that name them."""
    sbic = folder / "sbic"
    sbic.mkdir(parents=True)
    train = [[post for place, post in enumerate(posts) if place % 3] for posts in (KIND, HARSH)]
    test = [posts[::3] for posts in (KIND, HARSH)]
    rest = [f"you {verb} {how}" for verb, how in product(VERBS, ("lazy", "rude"))]
    statements = [(post, [f"{post.split()[1]} are {post.split()[-1]}"], [post.split()[1]]) for post in test[1]]
    files = {
        "offensive_train.csv": [*((0, post) for post in train[0]), *((1, post) for post in train[1])],
        "offensive_test.csv": [*((0, post) for post in test[0]), *((1, post) for post in test[1] + rest)],
        "groups_trn.csv": [("post", "target_minority", "label"), *((post, post.split()[1], 0) for post in train[1])],
        "frames_test_posts.csv": [
            ("", "post", "targetStereotype", "targetMinority"),
            *((number, post, *map(json.dumps, texts)) for number, (post, *texts) in enumerate(statements)),
        ],
    }
    for name, rows in files.items():
        with (sbic / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return settings(folder)


def write_published(folder: Path) -> list[str]:
    """The same posts in the published format, two annotators each: whoever says "rude" intends it."""
    sbic = folder / "sbic"
    sbic.mkdir(parents=True)
    columns = ["whoTarget", "intentYN", "sexYN", "offensiveYN", "speakerMinorityYN", "WorkerId", "post"]
    parts: dict[str, list] = {"trn": [], "dev": [], "tst": []}
    for place, part in enumerate(("trn", "trn", "dev", "tst")):
        for worker in "ab":
            parts[part] += [["", 0.0, 0.0, 0.0, "", worker, post, "", ""] for post in KIND[place::4]]
            for post in HARSH[place::4]:
                who, how = post.split()[1], post.split()[-1]
                values = [1.0, float(how == "rude"), 0.0, 1.0, 0.0]
                parts[part].append([*values, worker, post, who, f"{who} are {how}"])
    for part, rows in parts.items():
        with (sbic / f"SBIC.v2.{part}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([[*columns, "targetMinority", "targetStereotype"], *rows])
    return settings(folder)
