"""A made-up corpus in the partial files' formats: "lazy" and "rude" offend, and a group beside them is
targeted."""

import csv
import json
from itertools import product
from pathlib import Path

from small_models import save_gpt1

PEOPLE = ("nurses", "lawyers", "farmers")
VERBS = ("cook", "sing", "read", "walk", "paint", "write")
SMALL = [
    *("frames.epochs=40", "frames.fold_epochs=10", "frames.batch_size=8", "frames.lr=3e-3", "frames.fold_lr=3e-3"),
    *("frames.dropout=0", "measure.resamples=100", "tracking=none"),
]


def write_corpus(folder: Path) -> list[str]:
    """Writes sbic/ and a small random GPT-1; returns the settings that name them."""
    sbic = folder / "sbic"
    sbic.mkdir(parents=True)
    kind = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("well", "daily"))]
    harsh = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("lazy", "rude"))]
    train = [[post for place, post in enumerate(posts) if place % 3] for posts in (kind, harsh)]
    test = [posts[::3] for posts in (kind, harsh)]
    with (sbic / "offensive_train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([(0, post) for post in train[0]] + [(1, post) for post in train[1]])
    with (sbic / "offensive_test.csv").open("w", newline="") as file:
        rest = [(1, f"you {verb} {how}") for verb, how in product(VERBS, ("lazy", "rude"))]
        csv.writer(file).writerows([(0, post) for post in test[0]] + [(1, post) for post in test[1]] + rest)
    with (sbic / "groups_trn.csv").open("w", newline="") as file:
        rows = [(post, post.split()[1], 0) for post in train[1]]
        csv.writer(file).writerows([("post", "target_minority", "label"), *rows])
    with (sbic / "frames_test_posts.csv").open("w", newline="") as file:
        rows = [(post, json.dumps([f"{post.split()[1]} are {post.split()[-1]}"]), post.split()[1]) for post in test[1]]
        table = [(number, post, said, json.dumps([who])) for number, (post, said, who) in enumerate(rows)]
        csv.writer(file).writerows([("", "post", "targetStereotype", "targetMinority"), *table])
    weights = save_gpt1(folder / "gpt", [*kind, *harsh, "nurses are lazy rude"])
    return [f"data.root={folder}", "frames.start=model", f"frames.weights={weights}", *SMALL]
