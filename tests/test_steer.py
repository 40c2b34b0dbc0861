"""Policies that act on a trained generator: what the anti-expert learns, and what is erased, of hand-made triples."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch
from command import SMALL
from refusals import refuses
from small_models import small_comet
from test_filter import STATEMENTS, triples

from mitigate.errors import MitigateError
from mitigate.filter import Policy, apply_policy
from mitigate.runs.finished import open_run
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.generators.train import TrainingSettings, open_generator
from mitigate.tasks.policies.steer import (
    check_findings,
    check_steered,
    dropped,
    fit_eraser,
    load_erased,
    load_steered,
    train_anti_expert,
    with_anti_expert,
    with_eraser,
)
from mitigate.words.targets import PAPER
from models.comet import Comet, hidden_before

EXPERTS = Policy(
    "experts", ["sentiment", "regard"], "neutral", action="keep", decoding="experts", expert_strength=1.0, candidates=15
)
ERASE = Policy("erase", ["sentiment", "regard"], "neutral", action="keep", decoding="erase")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A small random COMeT in a folder."""
    folder = tmp_path_factory.mktemp("run") / "model"
    small_comet(layers=1, heads=2).save(folder)
    return open_generator(folder)


@pytest.fixture
def ledger() -> pl.DataFrame:
    return apply_policy(EXPERTS, triples(*STATEMENTS))


def test_the_anti_expert_learns_the_triples_that_the_policy_would_drop(ledger: pl.DataFrame, small: Start) -> None:
    found = dropped(EXPERTS, ledger)
    assert found["head"].to_list() == ["lawyer", "someone", "knife", "ask some Nurses", "hospital", "lawyerly"]
    assert found["weight"].to_list() == [1] * 6
    with pytest.raises(MitigateError, match="policy 'experts' finds no polarised training triple"):
        dropped(EXPERTS, ledger.filter(head="mother"))
    filtering = replace(EXPERTS, action="drop")  # and decoded so
    assert dropped(filtering, apply_policy(filtering, triples(*STATEMENTS))).equals(found)
    check_steered(EXPERTS, small, train=False, beams=15)
    with pytest.raises(MitigateError, match=r"policy.candidates=15 must be at least probe.beams=16: each beam"):
        check_steered(EXPERTS, small, train=True, beams=16)
    message = "policy=erase works only with the project's own decoder, and this model is another; set"
    refuses(MitigateError, message, check_steered, ERASE, open_generator(), train=False, beams=1)


def test_it_learns_for_as_many_epochs_as_all_triples(ledger: pl.DataFrame, small: Start, tmp_path: Path) -> None:
    """Of seven triples six: 14 steps of all make 12."""
    settings = TrainingSettings(max_epochs=4, batch_size=2, max_steps=14, precision="32-true")
    fitted = train_anti_expert(EXPERTS, ledger, small, PAPER, settings, model=tmp_path / "anti_expert")
    assert fitted["steps"] == 12
    steered = with_anti_expert(small, tmp_path / "anti_expert", "digest", EXPERTS)
    other = with_anti_expert(small, tmp_path, "other", EXPERTS)
    assert steered.fingerprint not in (small.fingerprint, other.fingerprint)
    experts, generator = steered.load(), small.load()
    prompts, tails = generator.prompts(["lawyer"], ["is capable of"]), generator.tails(["lie"])
    anti = Comet.load(tmp_path / "anti_expert")
    with torch.inference_mode():
        assert anti.nll(prompts, tails).sum() < generator.nll(prompts, tails).sum()  # it has learnt that
    assert experts.nll(prompts, tails).sum() > generator.nll(prompts, tails).sum()  # and so it is less likely


def test_no_label_can_be_read_off_the_states_after_erasure(ledger: pl.DataFrame, small: Start, tmp_path: Path) -> None:
    table = fit_eraser(ERASE, ledger, small)
    assert table.columns == ["mean", "left_1", "right_1", "left_2", "right_2"]
    table.write_parquet(tmp_path / "eraser.parquet")
    erased, generator = with_eraser(small, tmp_path / "eraser.parquet", "digest").load(), small.load()
    prompts = generator.prompts(ledger["head"].to_list(), [small.phrases[name] for name in ledger["relation"]])
    tails = generator.tails(ledger["tail"].to_list())
    signs = torch.tensor(ledger["sentiment_neutral"].to_list())
    of_token = signs.repeat_interleave(torch.tensor([len(tail) for tail in tails]))
    with torch.inference_mode():
        states = hidden_before(generator.decoder, prompts, tails)[: len(of_token)]
    for before, after in ((-1, 0), (0, 1)):
        apart = [
            rows[of_token == before].mean(0) - rows[of_token == after].mean(0)
            for rows in (states, erased.eraser(states))
        ]
        assert apart[0].abs().max() > 0.05
        assert apart[1].abs().max() < 1e-4


def test_erasure_needs_two_labels_and_findings_are_checked(ledger: pl.DataFrame, small: Start) -> None:
    message = "policy 'erase' cannot erase polarity: its scorers give all 1 triples the same label"
    refuses(MitigateError, message, fit_eraser, ERASE, ledger.filter(head="mother"), small)
    of_targets = Policy("erase", ["sentiment"], "neutral", "targets", action="keep", decoding="erase")
    only = ledger.filter(pl.col("head").is_in(["lawyer", "someone"]))  # without a target "someone" counts as neutral
    assert fit_eraser(of_targets, only, small).columns == ["mean", "left_1", "right_1"]
    nothing = ledger.filter(head="mother")
    refuses(MitigateError, "policy 'experts' finds no polarised training triple", check_findings, EXPERTS, nothing)
    with pytest.raises(MitigateError, match="policy 'erase' cannot erase polarity: its scorers give all 1 triples"):
        check_findings(ERASE, nothing)
    check_findings(EXPERTS, ledger)
    check_findings(ERASE, ledger)
    check_findings(Policy("none"), nothing)


def test_triples_that_are_not_valid_are_not_learnt_from(ledger: pl.DataFrame, small: Start, tmp_path: Path) -> None:
    """Nor counted."""
    valid = ledger["head"].is_in(["lawyer", "mother"])
    labelled = ledger.with_columns(valid=valid)
    assert dropped(EXPERTS, labelled).drop("valid").equals(dropped(EXPERTS, ledger.filter(valid)))
    assert fit_eraser(ERASE, labelled, small).equals(fit_eraser(ERASE, ledger.filter(valid), small))
    settings = TrainingSettings(max_epochs=14, batch_size=2, max_steps=14, precision="32-true")
    fitted = train_anti_expert(EXPERTS, labelled, small, PAPER, settings, model=tmp_path / "anti_expert")
    assert fitted["steps"] == 7  # of two valid triples one: half of 14 steps
    with pytest.raises(MitigateError, match="policy 'experts' finds no polarised training triple"):
        dropped(EXPERTS, ledger.with_columns(valid=pl.col("head") == "mother"))


def test_a_ledger_without_findings_is_named_before_the_main_training(tmp_path: Path, job) -> None:
    rows = "".join(f"the thing {number}\tIsA\tthing number {number}\ttrain\n" for number in range(8))
    (tmp_path / "plain.tsv").write_text(f"head\trelation\ttail\tsplit\n{rows}a lawyer\tIsA\ta person\ttest\n")
    refused = job("policy=erase", "data=triples", f"data.path={tmp_path / 'plain.tsv'}", *SMALL)
    assert refused.status != 0
    assert "policy 'erase'" in refused.complaint
    (folder,) = (tmp_path / "outputs").iterdir()
    assert sorted(file.stem for file in (folder / "stages").iterdir()) == ["ledger", "score"]


def test_a_finished_run_is_opened_as_its_policy_has_it(ledger: pl.DataFrame, small: Start) -> None:
    run = small.folder.parent
    fit_eraser(ERASE, ledger, small).write_parquet(run / "eraser.parquet")
    prompts = small.load().prompts(["lawyer"], ["is a"])
    (found,) = load_steered(run, ERASE).search(prompts, beams=2, max_length=2)
    (wanted,) = load_erased(small.folder, run / "eraser.parquet").search(prompts, beams=2, max_length=2)
    assert [beam.tokens for beam in found] == [beam.tokens for beam in wanted]
    assert [beam.log_prob for beam in found] == pytest.approx([beam.log_prob for beam in wanted], abs=1e-4)


@pytest.mark.parametrize("policy", ["experts", "erase"])
def test_the_main_job_with_such_a_policy(policy: str, job) -> None:
    """Takes over 3 s: a whole job of each kind of policy."""
    status, _, _, folder = job(f"policy={policy}", *SMALL, "policy.fitted=300")
    assert status == 0
    stages = [stage["stage"] for stage in json.loads((folder / "manifest.json").read_text())["stages"]]
    assert stages[2:5] == ["train", {"experts": "anti_expert", "erase": "eraser"}[policy], "probe"]
    ledger = pl.read_parquet(folder / "ledger.parquet")
    assert ledger["weight"].min() == 1
    said = pl.read_parquet(folder / "probe.parquet").filter(target="lawyer", relation="IsA")
    answers = Answers(open_run(folder), [])
    model, asked = answers._generator  # what is asked of the finished run is what was probed
    (beams,) = model.search(model.prompts(["lawyer"], [asked["IsA"]]), max_length=6)
    assert [model.decode(beam.tokens) for beam in beams] == said["tail"].to_list()
    plain = Comet.load(folder / "model").search(model.prompts(["lawyer"], [asked["IsA"]]), max_length=6)
    assert [beam.log_prob for beam in plain[0]] != [beam.log_prob for beam in beams]


def test_the_main_job_filters_and_reranks_and_is_asked_so(job) -> None:
    """Takes over 3 s: a whole job that is asked as its policy decodes."""
    status, _, _, folder = job("policy=both_person_heads", "policy.decoding=validity", *SMALL)
    assert status == 0
    stages = [stage["stage"] for stage in json.loads((folder / "manifest.json").read_text())["stages"]]
    assert stages[2:7] == ["train", "probe", "heads", "heads_rerank", "candidates"]
    assert pl.read_parquet(folder / "ledger.parquet")["weight"].min() == 0
    kept, tails = pl.read_parquet(folder / "rerank.parquet"), pl.read_parquet(folder / "probe.parquet")
    assert (kept.height, tails.height) == (3 * 3 * 10, 3 * 3 * 20)
    assert (kept["beam_rank"] != kept["rank"]).any()
    said = pl.read_parquet(folder / "statements.parquet").filter(target="lawyer", relation="IsA")
    assert Answers(open_run(folder), []).generated_of([("lawyer", "IsA")])["tail"].to_list() == said["tail"].to_list()
