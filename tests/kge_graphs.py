"""A made-up graph for tests of recipe=kge: people with a gender, a town and a profession that goes with the gender."""

from pathlib import Path

import numpy as np

SHARES = {"smith": 0.95, "miner": 0.9, "pilot": 0.8, "nurse": 0.2, "nanny": 0.1, "midwife": 0.05}
"""Of each profession's holders, how many are male."""
SMALL = [  # overrides for a training in less than a second
    "model.dimension=8",
    "model.training.max_epochs=4",
    "model.training.evaluate_every=2",
    "model.training.batch_size=200",
    "model.training.negatives=32",
]


def planted(shares: dict[str, float] = SHARES, people: int = 300, seed: int = 0) -> list[tuple[str, str, str]]:
    """Triples of ids. Half of the people are male."""
    rng = np.random.default_rng(seed)
    chance = np.array(list(shares.values()))
    found = []
    for number in range(people):
        is_male = number < people // 2
        weights = chance if is_male else 1 - chance
        profession = rng.choice(list(shares), p=weights / weights.sum())
        found += [
            (f"p{number}", "r_gender", "q_male" if is_male else "q_female"),
            (f"p{number}", "r_job", f"q_{profession}"),
            (f"p{number}", "r_town", f"q_town{rng.integers(5)}"),
        ]
    return found


def write_graph(folder: Path, triples: list[tuple[str, str, str]], seed: int = 0) -> list[str]:
    """Write train.tsv, valid.tsv, test.tsv and names.tsv; returns the settings that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(seed).permutation(len(triples))
    splits = {"test": order[:40], "valid": order[40:80], "train": order[80:]}
    for split, numbers in splits.items():
        lines = ["\t".join(triples[number]) for number in numbers]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    ids = sorted({id_ for triple in triples for id_ in triple})
    names = [f"{id_}\t{id_.removeprefix('q_').removeprefix('r_')}" for id_ in ids if id_[:2] in ("q_", "r_")]
    (folder / "names.tsv").write_text("\n".join(names) + "\n")
    return ["data=graph", f"data.path={folder}", f"data.names={folder / 'names.tsv'}", "data.occupation=job"]
