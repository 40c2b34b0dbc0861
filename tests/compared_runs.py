"""Made-up run folders to compare: as a run leaves them, with labels drawn by chances that a test chooses."""

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from omegaconf import OmegaConf

from mitigate.files import digest_of, sealed
from mitigate.measure.harms import measure_harms
from mitigate.measure.results import Results
from mitigate.recipes.compare import Plan, differences, make_plan, write_page

RELATIONS = ("IsA", "CapableOf")
UNTRUSTED = "<b>bold</b>"  # would show on a page that trusts its texts
LABELS = [(scorer, template) for scorer in ("sentiment", "regard") for template in ("paper", "neutral")]


def make_run(outputs: Path, policy: str = "none", seed: int = 1, **more: Any) -> Path:
    """The folder of a run (_made), which is written once in a process and copied."""
    outputs.mkdir(parents=True, exist_ok=True)
    made = _made(policy, seed, **more)
    return Path(shutil.copytree(made, outputs / made.name, copy_function=shutil.copy))  # each copy has its own times


@cache
def _made(
    policy: str,
    seed: int,
    *,
    neutral: float = 0.7,
    nll: float = 2.0,
    num_targets: int = 40,
    each: int = 50,
    valid: float | None = None,
    prefix: str = "t",
    **settings: object,
) -> Path:
    """A run whose model generates neutral statements about each target with about this chance, and finds each token of
    neutral test triples half as surprising as nll; valid: the share accepted as plausible; each: statements about a
    target. settings: of the group `trainer`."""
    place, mine = Path(tempfile.mkdtemp()), os.getpid()
    atexit.register(lambda: os.getpid() == mine and shutil.rmtree(place, ignore_errors=True))  # no forked process does
    random = np.random.default_rng([seed, *policy.encode()])
    folder = place / f"mitigate-{policy}-{seed}-{'-'.join(map(str, settings.values()))}"
    folder.mkdir()
    statements = _statements(random, neutral, num_targets, each, prefix)
    statements.write_parquet(folder / "statements.parquet")
    quality = {"quality/perplexity/neutral": float(np.exp((nll + random.normal(0, 0.01)) / 2))}
    quality |= {"shared_tails": 12.0, "distinct_tails": 40.0}
    quality |= (
        {} if valid is None else {"quality/valid/all": 100 * float((random.random(statements.height) < valid).mean())}
    )
    table = pl.concat([measure_harms(statements, intervals=None).table, Results.of_json(quality).table])
    table.write_parquet(folder / "results.parquet")
    (folder / "tables").mkdir()
    statements.select("target", "category").unique(maintain_order=True).write_csv(folder / "tables" / "targets.csv")
    facts = {"policy": policy, "seed": seed, "fingerprint": f"of {num_targets} {prefix}"}
    (folder / "metrics.json").write_text(json.dumps(Results(table, facts).flat))
    scorers = {"none": [], "both": ["sentiment", "regard"]}.get(policy, [policy])
    data = {"name": "made_up", "attribution": "nobody", "licence": "MIT"}
    config = {
        "recipe": {"name": "mitigate"},
        "policy": {"name": policy, "scorers": scorers, "seed": seed, "control": policy.endswith("-control")},
        "data": data | {"own_texts": False, "demonstration": False},
        "model": {"name": "none_at_all"},
        "score": {"sentiment": "vader", "regard": "minilm"},
        "trainer": {"max_steps": 6, **settings},
        "seed": seed,
    }
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(config)))
    manifest = {"mitigate": "0.1.0", "torch": "2", "scorers": {"sentiment": "1a", "regard": "1b"}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return seal(folder)


def seal(folder: Path) -> Path:
    """The folder, its manifest naming the files as they are now."""
    manifest = json.loads((folder / "manifest.json").read_text())
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "manifest.json"]
    hashes = {str(file.relative_to(folder)): digest_of(file.read_bytes()) for file in files}
    (folder / "manifest.json").write_text(json.dumps(sealed({**manifest, "files": hashes})))
    return folder


def edit(run: Path, file: str, change: Callable[[Any], Any]) -> Path:
    """The run whose table, settings or JSON object is what `change` returns, sealed anew."""
    path = run / file
    if path.suffix == ".parquet":
        change(pl.read_parquet(path)).write_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
    else:
        path.write_text(change(path.read_text()))
    return seal(run)


def configured(run: Path, **groups: Any) -> Path:
    """The run with these settings of groups."""
    return edit(run, "config.yaml", lambda text: OmegaConf.to_yaml(OmegaConf.merge(OmegaConf.create(text), groups)))


def plan_of(*runs: Path, baseline: Any = None) -> Plan:
    """What recipe=compare would compare."""
    return make_plan([str(run) for run in runs], baseline)


def example_comparison() -> str:
    """The page of a policy with two seeds beside none, and of one with a single seed; of untrusted texts."""
    place = Path(tempfile.mkdtemp())
    runs = [
        make_run(place, policy, seed, neutral=0.7 + 0.2 * (policy == "both"))
        for policy in ("none", "both")
        for seed in (1, 2)
    ]
    runs.append(configured(make_run(place, "sentiment"), policy={"name": UNTRUSTED}))
    plan = plan_of(*runs)
    about = {"name": "compare-mine-1a2b3c4d", "command": "python -m mitigate recipe=compare", "facts": {"data": "mine"}}
    write_page(plan, differences(plan), folder=place, run=place / "compare", **about)
    page = (place / "comparison.html").read_text(encoding="utf-8")
    shutil.rmtree(place)
    return page


def _statements(random: np.random.Generator, neutral: float, num_targets: int, each: int, prefix: str) -> pl.DataFrame:
    """So many about each target; half of the targets in the category "gender", half in "origin"."""
    size = num_targets * each
    target = np.repeat(np.arange(num_targets), each)
    luck = np.clip(neutral + random.normal(0, 0.02, num_targets), 0, 1)[target]
    tails = [f"{UNTRUSTED} {number}" for number in random.integers(0, 1000, size)]
    frame = pl.DataFrame(
        {
            "target": [f"{prefix}{number}" for number in target],
            "category": np.where(target < num_targets / 2, "gender", "origin"),
            "relation": [RELATIONS[number % 2] for number in range(size)],
            "tail": tails,
            "rank": pl.Series(np.arange(size) % 10 + 1, dtype=pl.UInt8),
            "statement": [f"{prefix}{number} is {tail}" for number, tail in zip(target, tails, strict=True)],
        }
    )
    for scorer, template in LABELS:
        name = scorer if template == "paper" else f"{scorer}_neutral"
        label = np.where(random.random(size) < luck, 0, random.choice([-1, 1], size))
        frame = frame.with_columns(
            pl.Series(name, label, pl.Int8), pl.Series(f"{name}_strength", 0.5 * label, pl.Float32)
        )
    return frame
