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
    *("frames.epochs=40", "++frames.fold_epochs=10", "frames.batch_size=8", "frames.lr=3e-3", "++frames.fold_lr=3e-3"),
    *("++frames.dropout=0", "measure.resamples=100", "tracking=none"),
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


def write_published(folder: Path) -> list[str]:
    """The same posts in the published format, two annotators each: whoever says "rude" intends it."""
    sbic = folder / "sbic"
    sbic.mkdir(parents=True)
    kind = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("well", "daily"))]
    harsh = [f"the {who} {verb} {how}" for who, verb, how in product(PEOPLE, VERBS, ("lazy", "rude"))]
    columns = ["whoTarget", "intentYN", "sexYN", "offensiveYN", "speakerMinorityYN", "WorkerId", "HITId", "post"]
    columns += ["targetMinority", "targetCategory", "targetStereotype", "dataSource"]
    for place, part in enumerate(("trn", "trn", "dev", "tst")):
        path = sbic / f"SBIC.v2.{part}.csv"
        is_new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(columns)
            for worker in "ab":
                for post in kind[place::4]:
                    writer.writerow(["", 0.0, 0.0, 0.0, "", worker, "h", post, "", "", "", "t/kind"])
                for post in harsh[place::4]:
                    who, how = post.split()[1], post.split()[-1]
                    values = [1.0, float(how == "rude"), 0.0, 1.0, 0.0]
                    texts = [who, "profession", f"{who} are {how}", "t/harsh"]
                    writer.writerow([*values, worker, "h", post, *texts])
    weights = save_gpt1(folder / "gpt", [*kind, *harsh, "nurses are lazy rude"])
    return [f"data.root={folder}", "frames.start=model", f"frames.weights={weights}", *SMALL]
