"""Decodings that change the probabilities of a trained generator: by an anti-expert, or by erasing polarity."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import torch

from mitigate.errors import MitigateError
from mitigate.filter import Policy, apply_policy
from mitigate.filter.ledger import direction
from mitigate.filter.policy import in_scope
from mitigate.runs.progress import progress
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.generators.train import TrainingSettings, code_after, train_generator
from mitigate.triples import valid_rows
from mitigate.words.targets import PAPER, TargetList
from models.comet import Comet, hidden_before
from models.erasure import Erased, Eraser, Moments
from models.experts import Experts

ANTI_EXPERT, ERASER = "anti_expert", "eraser"
"""In a run folder: the folder of the anti-expert, and the table of the eraser (ERASER.parquet)."""

BATCH = 128  # triples
CLASSES = 3  # prejudice, neutral, favouritism


def check_steered(policy: Policy, start: Start, train: bool, beams: int) -> None:
    """Raise MitigateError for a generator that a steering policy cannot act on, and for fewer candidates than beams."""
    if not policy.steers:
        return
    if (code_after(start) if train else start.code) != Comet.load:
        raise MitigateError(
            f"policy={policy.name} works only with the project's own decoder, and this model is another; set "
            "model=comet_minilm or comet_gpt1, or a trained one: model=comet model.base=RUN/model"
        )
    if policy.decoding == "experts" and policy.candidates < beams:
        raise MitigateError(
            f"policy.candidates={policy.candidates} must be at least probe.beams={beams}: each beam continues with one "
            "of these tokens"
        )


def check_findings(policy: Policy, ledger: pl.DataFrame, target_list: TargetList = PAPER) -> None:
    """Raise MitigateError, before the generator is trained, where a ledger has nothing for a steering policy to learn
    from."""
    if policy.decoding == "experts":
        dropped(policy, ledger, target_list)
    elif policy.decoding == "erase":
        _fitted_on(policy, ledger, target_list)


def dropped(policy: Policy, ledger: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """The valid training triples of a ledger that the policy would drop if that were its action. Raises MitigateError
    where it would drop none."""
    would = replace(policy, action="drop", balance=False, decoding="none")
    found = apply_policy(would, _training(ledger), target_list).filter(pl.col("weight") == 0)
    if found.is_empty():
        raise MitigateError(
            f"policy {policy.name!r} finds no polarised training triple, so the anti-expert has no training data; set "
            "policy=none, or other policy.scorers"
        )
    return found.with_columns(weight=pl.lit(1.0, pl.Float32))


def train_anti_expert(
    policy: Policy, ledger: pl.DataFrame, start: Start, target_list: TargetList, settings: TrainingSettings, **more: Any
) -> dict[str, Any]:
    """Train a copy of the generator further on what the policy would drop, for as many epochs as the settings give all
    training triples, and keep its last weights. more, and the result: as train_generator. Raises MitigateError as
    `dropped`."""
    rows, train = dropped(policy, ledger, target_list), _training(ledger)
    steps = math.ceil(settings.num_steps(train.height) * rows.height / train.height)
    return train_generator(rows, start, replace(settings, max_steps=steps, keep="last"), **more)


def fit_eraser(
    policy: Policy, ledger: pl.DataFrame, start: Start, target_list: TargetList = PAPER, *, device: str = "cpu"
) -> pl.DataFrame:
    """Fit an eraser of polarity in the generator's last hidden states: a row for each of these, columns mean, left_1,
    right_1, left_2 and right_2 (models.erasure.Eraser; fewer where it takes fewer directions).

    It is fitted on the states before each token of the tails of at most `policy.fitted` valid training triples, drawn
    by seed; all states of a triple have the class of its strongest finding: prejudice, neutral or favouritism. Raises
    MitigateError where all triples are of one class."""
    rows = _fitted_on(policy, ledger, target_list)
    generator = start.load().to(device).eval()
    prompts = generator.prompts(rows["head"].to_list(), [start.phrases[relation] for relation in rows["relation"]])
    tails = generator.tails(rows["tail"].to_list())
    classes = (rows["sign"].cast(pl.Int64) + 1).to_list()
    moments = Moments(generator.decoder.config.width, CLASSES)
    with progress("eraser", len(tails), "triples") as advance, torch.inference_mode():
        for begin in range(0, len(tails), BATCH):
            batch = slice(begin, begin + BATCH)
            states = hidden_before(generator.decoder, prompts[batch], tails[batch], generator.unseen)
            lengths = torch.tensor([len(tail) for tail in tails[batch]])
            moments.add(states[: int(lengths.sum())], torch.tensor(classes[batch]).repeat_interleave(lengths))
            advance(len(lengths))
    eraser = moments.eraser()
    columns = {"mean": eraser.mean}
    for number, (left, right) in enumerate(zip(eraser.left.T, eraser.right, strict=True), start=1):
        columns |= {f"left_{number}": left, f"right_{number}": right}
    return pl.DataFrame({name: column.numpy() for name, column in columns.items()})


def with_anti_expert(base: Start, anti_expert: Path, digest: str, policy: Policy) -> Start:
    """The generator decoded against the anti-expert in a folder; digest: a hash of that folder."""
    options = {"checkpoint": anti_expert, "strength": policy.expert_strength, "candidates": policy.candidates}
    return base.steered(load_experts, digest, options)


def with_eraser(base: Start, table: Path, digest: str) -> Start:
    """The generator with the eraser of a file of fit_eraser's table; digest: a hash of that file."""
    return base.steered(load_erased, digest, {"checkpoint": table})


def load_steered(folder: Path, policy: Policy) -> Experts | Erased:
    """Load the generator of a finished run of a policy that steers."""
    if policy.decoding == "experts":
        return load_experts(folder / "model", folder / ANTI_EXPERT, policy.expert_strength, policy.candidates)
    return load_erased(folder / "model", folder / f"{ERASER}.parquet")


def load_experts(folder: Path, checkpoint: Path, strength: float, candidates: int) -> Experts:
    """Load a COMeT and its anti-expert from two folders."""
    return Experts(Comet.load(folder), Comet.load(checkpoint), strength, candidates).eval()


def load_erased(folder: Path, checkpoint: Path) -> Erased:
    """Load a COMeT from a folder and its eraser from a file."""
    table = pl.read_parquet(checkpoint, glob=False)
    columns = ("^mean$", "^left_.*$", "^right_.*$")
    mean, left, right = (table.select(pl.col(names)).to_torch().float() for names in columns)
    return Erased(Comet.load(folder), Eraser(mean[:, 0], left, right.T)).eval()


def _training(ledger: pl.DataFrame) -> pl.DataFrame:
    """The rows that train_generator trains on where nothing is dropped."""
    return valid_rows(ledger.filter(split="train"))


def _fitted_on(policy: Policy, ledger: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    """The triples that an eraser is fitted on, with `sign`: -1 prejudice, 0 neutral, 1 favouritism. Raises
    MitigateError where all have one sign."""
    rows = _training(ledger).with_columns(
        sign=pl.when(in_scope(policy.scope, target_list)).then(direction(policy).sign().fill_nan(0.0)).otherwise(0.0)
    )
    rows = rows.sample(min(policy.fitted, rows.height), shuffle=True, seed=policy.seed)
    if rows["sign"].n_unique() < 2:
        raise MitigateError(
            f"policy {policy.name!r} cannot erase polarity: its scorers give all {rows.height:,} triples the same "
            "label; set other policy.scorers, or policy=none"
        )
    return rows
