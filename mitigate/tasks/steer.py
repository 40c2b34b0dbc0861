"""Decodings that change the probabilities of a trained generator: by an anti-expert, or by erasing polarity."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import torch

from mitigate.errors import MitigateError
from mitigate.filter import Policy, apply
from mitigate.filter.findings import direction
from mitigate.filter.scope import in_scope
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.progress import progress
from mitigate.tasks.base_model import Start
from mitigate.tasks.train import TrainingSettings, code_after, train_generator
from mitigate.words.target_list import PAPER, TargetList
from models.comet import Comet, hidden_before
from models.erasure import Erased, Eraser, Moments
from models.experts import Experts

ANTI_EXPERT, ERASER = "anti_expert", "eraser"
"""Of a run folder: the folder of the anti-expert, and the table that says what is erased (ERASER.parquet)."""

BATCH = 128  # triples
CLASSES = 3  # prejudice, neutral, favouritism


def check_steered(policy: Policy, start: Start, train: bool, beams: int) -> None:
    """Raises MitigateError for a generator that such a policy cannot act on, and for fewer candidates than beams."""
    if not policy.steers:
        return
    if (code_after(start) if train else start.code) != Comet.load:
        raise MitigateError(
            f"policy={policy.name} changes what the project's own decoder generates, and this model is another: train "
            "one (model=comet_minilm or comet_gpt1), or give one that was trained: model=comet model.base=RUN/model"
        )
    if policy.decoding == "experts" and policy.candidates < beams:
        raise MitigateError(
            f"policy.candidates={policy.candidates} must be at least probe.beams={beams}: each beam goes on with one "
            "of these tokens"
        )


def check_findings(policy: Policy, ledger: pl.DataFrame, target_list: TargetList = PAPER) -> None:
    """Raises MitigateError where such a policy finds nothing in a ledger to act by: before the generator is trained."""
    if policy.decoding == "experts":
        dropped(policy, ledger, target_list)
    elif policy.decoding == "erase":
        _fitted_on(policy, ledger, target_list)


def dropped(policy: Policy, ledger: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """The valid training triples of a ledger that the policy would drop if that were its action. Raises MitigateError
    where these are none, or all."""
    would = replace(policy, action="drop", balance=False, decoding="none")
    found = apply(would, _training(ledger), target_list).filter(pl.col("weight") == 0)
    if found.is_empty():
        raise MitigateError(
            f"policy {policy.name!r} finds no polarised training triple, so that an anti-expert has nothing to learn "
            "from; set policy=none, or give policy.scorers that find some"
        )
    return found.with_columns(weight=pl.lit(1.0, pl.Float32))


def train_anti_expert(
    policy: Policy,
    ledger: pl.DataFrame,
    start: Start,
    target_list: TargetList,
    settings: TrainingSettings,
    **more: Any,
) -> dict[str, Any]:
    """Trains a copy of the generator further on what the policy would drop, for as many epochs as the settings give all
    training triples, and keeps its last weights. more, and what is returned: as train_generator. Raises MitigateError
    as `dropped`."""
    rows, train = dropped(policy, ledger, target_list), _training(ledger)
    steps = math.ceil(settings.num_steps(train.height) * rows.height / train.height)
    return train_generator(rows, start, replace(settings, max_steps=steps, keep="last"), **more)


def fit_eraser(
    policy: Policy, ledger: pl.DataFrame, start: Start, target_list: TargetList = PAPER, *, device: str = "cpu"
) -> pl.DataFrame:
    """What erases polarity from the generator's last hidden states: a row for each of these, columns mean, left_1,
    right_1, left_2 and right_2 (models.erasure.Eraser; fewer where it takes fewer directions).

    Fitted on the states before each token of the tails of at most `policy.fitted` valid training triples, drawn by
    seed; all those of a triple are of the class that its strongest finding has: prejudice, neutral or favouritism.
    Raises MitigateError where all triples are of one class."""
    rows = _fitted_on(policy, ledger, target_list)
    generator = start.load().to(device).eval()
    prompts = generator.prompts(rows["head"].to_list(), [start.asked[relation] for relation in rows["relation"]])
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
    return _table(moments.eraser())


def with_anti_expert(base: Start, anti_expert: Path, digest: str, policy: Policy) -> Start:
    """The generator decoded against the anti-expert in a folder; digest: a hash of that."""
    options = {"checkpoint": anti_expert, "strength": policy.expert_strength, "candidates": policy.candidates}
    return _steered(load_experts, base, digest, options)


def with_eraser(base: Start, table: Path, digest: str) -> Start:
    """The generator with the eraser of a file of fit_eraser's table; digest: a hash of that."""
    return _steered(load_erased, base, digest, {"checkpoint": table})


def load_steered(folder: Path, policy: Policy) -> Experts | Erased:
    """The generator of a finished run of a policy that steers."""
    if policy.decoding == "experts":
        how = (policy.expert_strength, policy.candidates)
        return load_experts(folder / "model", folder / ANTI_EXPERT, *how)
    return load_erased(folder / "model", folder / f"{ERASER}.parquet")


def load_experts(folder: Path, checkpoint: Path, strength: float, candidates: int) -> Experts:
    """A COMeT and its anti-expert, of two folders."""
    return Experts(Comet.load(folder), Comet.load(checkpoint), strength, candidates).eval()


def load_erased(folder: Path, checkpoint: Path) -> Erased:
    """A COMeT of a folder, and its eraser of a file."""
    table = pl.read_parquet(checkpoint, glob=False)
    parts = (table.select(pl.col(names)).to_torch().float() for names in ("^mean$", "^left_.*$", "^right_.*$"))
    mean, left, right = parts
    return Erased(Comet.load(folder), Eraser(mean[:, 0], left, right.T)).eval()


def _training(ledger: pl.DataFrame) -> pl.DataFrame:
    """What train_generator trains on where nothing is dropped."""
    train = ledger.filter(split="train")
    return train.filter("valid") if "valid" in train.columns else train


def _fitted_on(policy: Policy, ledger: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    """The triples that an eraser is fitted on, with `sign`: -1 for prejudice, 0, and 1 for favouritism. Raises
    MitigateError where all have one sign."""
    rows = _training(ledger).with_columns(
        sign=pl.when(in_scope(policy.scope, target_list)).then(direction(policy).sign().fill_nan(0.0)).otherwise(0.0)
    )
    rows = rows.sample(min(policy.fitted, rows.height), shuffle=True, seed=policy.seed)
    if rows["sign"].n_unique() < 2:
        raise MitigateError(
            f"policy {policy.name!r} cannot erase polarity: its scorers give all {rows.height:,} triples one label"
        )
    return rows


def _steered(code: Any, base: Start, digest: str, options: Mapping[str, Any]) -> Start:
    return Start(
        code, base.folder, digest_of_values(base.weights, digest), base.regimen, options, base.further, base.comet
    )


def _table(eraser: Eraser) -> pl.DataFrame:
    found = {"mean": eraser.mean}
    for number, (left, right) in enumerate(zip(eraser.left.T, eraser.right, strict=True), start=1):
        found |= {f"left_{number}": left, f"right_{number}": right}
    return pl.DataFrame({name: column.numpy() for name, column in found.items()})
