"""Policies that train a generator a second time, on hand-made triples: pairs of tails, losses by hand, own tails, the
bound of perplexity, a kill in the middle, and each kind of model."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL
from refusals import refuses
from small_models import save_llama, save_t5, small_comet
from test_filter import neutral, triples
from test_tasks_generator import Theft, Words

from mitigate.errors import MitigateError
from mitigate.filter import Policy, preferred_tails
from mitigate.recipes.stories.plan import check_policy
from mitigate.tasks.generators.base_model import Start, find_start
from mitigate.tasks.generators.probe import PartsInMemory
from mitigate.tasks.generators.train import TrainingSettings, open_generator
from mitigate.tasks.label import Labeller, label_statements
from mitigate.tasks.policies.second_training import (
    check_material,
    check_tuned,
    own_prompts,
    own_tails,
    tune_generator,
    tuned_from,
)
from mitigate.train.comet import Fitted
from mitigate.train.second_training import Bound, WithinBound, dpo, unlikelihood

PREFER = neutral(action="keep", tuning="prefer", tuning_steps=6, tuning_every=2, tuning_lr=1e-2, most_rise=1e6)
DISTIL = Policy("mine", ["regard"], action="keep", tuning="distil", distilled="rerank", candidates=3)
ROWS = [
    *(("lawyer", "CapableOf", tail, strength) for tail, strength in (("lie", -0.4), ("win", 0.5), ("read", 0.0))),
    ("lawyer", "Desires", "money", -0.3),  # its only tail
    ("nurse", "CapableOf", "walk", 0.0),
    ("nurse", "CapableOf", "hurt", -0.5),
    ("knife", "UsedFor", "cut", 0.0),
]
SETTINGS = TrainingSettings(batch_size=2, precision="32-true", checkpoint_every=1e-9)


def labelled() -> pl.DataFrame:
    """ROWS, and three dev triples, one of which is polarised."""
    dev = triples(("dog", "CapableOf", "bark", 0.0), ("dog", "CapableOf", "bite", -0.5), ("cat", "IsA", "pet", 0.0))
    return pl.concat([triples(*ROWS), dev.with_columns(split=pl.lit("dev"), row=pl.col("row") + 100)])


def pairs(policy: Policy) -> list[tuple[str, str, str]]:
    return sorted(preferred_tails(policy, labelled()).select("head", "chosen", "rejected").rows())


def test_a_neutral_tail_is_preferred_to_each_polarised_one_of_its_prompt() -> None:
    assert pairs(PREFER) == [("lawyer", "read", "lie"), ("lawyer", "read", "win"), ("nurse", "walk", "hurt")]
    assert pairs(replace(PREFER, strongest=0.5)) == [("lawyer", "read", "win"), ("nurse", "walk", "hurt")]
    assert len(pairs(replace(PREFER, fitted=2))) == 2
    assert pairs(replace(PREFER, scorers=["regard"])) == []


def test_the_control_has_the_same_pairs_in_orders_drawn_by_seed() -> None:
    rows = [("lawyer", "CapableOf", f"tail {number}", -0.5 * (number % 2)) for number in range(100)]
    ordered, *drawn = (
        preferred_tails(neutral(action="keep", tuning=tuning, seed=seed), triples(*rows))
        for tuning, seed in (("prefer", 1), ("random_prefer", 1), ("random_prefer", 1), ("random_prefer", 2))
    )
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(drawn[2])
    turned = drawn[0]["chosen"] == ordered["rejected"]
    assert 10 < turned.sum() < 40
    assert drawn[0].filter(turned)["rejected"].equals(ordered.filter(turned)["chosen"])
    assert drawn[0].filter(~turned).equals(ordered.filter(~turned))


NLL = torch.tensor([1.0, 0.5, 2.0, 0.2, 0.3])
TAILS = torch.tensor([0, 0, 1, 2, 3])  # of two pairs: a chosen tail of two tokens, three of one


def test_the_loss_of_dpo_by_hand() -> None:
    """The first pair: log-likelihoods -1.5 and -2, by the reference -2 and -1; the second as the reference."""
    reference = torch.tensor([[-2.0, -1.0], [-0.2, -0.3]])
    expected = (-math.log(1 / (1 + math.exp(-0.5 * 1.5))) + math.log(2)) / 2
    assert dpo(NLL, TAILS, reference, beta=0.5).item() == pytest.approx(expected)


def test_the_loss_of_unlikelihood_by_hand() -> None:
    """Means over the tokens of a tail; the rejected ones by -log(1 - p), which is finite for p = 1."""
    chosen, rejected = (0.75 + 0.2) / 2, sum(-math.log(1 - math.exp(-nll)) for nll in (2.0, 0.3)) / 2
    found = unlikelihood(NLL, TAILS, torch.zeros(2, 2), alpha=3.0)
    assert found.item() == pytest.approx(chosen + 3 * rejected)
    assert unlikelihood(torch.zeros(5), TAILS, torch.zeros(2, 2), alpha=1.0).isfinite()


class Trainer:
    """As far as WithinBound knows one."""

    global_step = 0


def test_the_last_weights_within_the_bound_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Perplexity was 10 and may be 10.2; after 20 steps it is 10.1, then 10.5, then 10.2."""
    kept: list[int] = []
    watch = WithinBound(None, None, None, None, before=10.0, bound=Bound(0.02, 20))
    monkeypatch.setattr(watch, "keep", lambda trainer, found: kept.append(trainer.global_step))
    trainer: Any = Trainer()
    watch.on_train_start(trainer, trainer)
    for trainer.global_step, found in ((20, 10.1), (40, 10.5), (60, 10.2)):
        assert watch.is_due(trainer.global_step)
        if watch.is_better(found):
            watch.keep(trainer, found)
    watch.on_train_start(trainer, trainer)  # of a training that goes on
    assert kept == [0, 20, 60]
    assert not watch.is_due(30)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A small random COMeT in a folder."""
    folder = tmp_path_factory.mktemp("run") / "model"
    small_comet(layers=1, heads=2).save(folder)
    return open_generator(folder)


def own() -> pl.DataFrame:
    return pl.DataFrame({"head": ["boss"] * 2, "relation": ["CapableOf"] * 2, "tail": ["read", "walk"]})


def tuned(policy: Policy, start: Start, folder: Path, **more: Any) -> tuple[dict[str, Any], Any]:
    """What comes of a second training in a folder, and the generator."""
    where = {"model": folder / "model", "checkpoints": folder / "checkpoints", "fingerprint": "one"}
    tails = own() if policy.distils else None
    first = more.pop("first", {"steps": 10, "seconds": 2.0, "planned": 12})
    found = tune_generator(policy, labelled(), tails, start, SETTINGS, first, **where, **more)
    return found, start.trained(start.code, folder / "model", "digest").load()


def nll(generator: Any, head: str, tail: str) -> float:
    """Of a tail, minus the log-likelihood."""
    with torch.inference_mode():
        return generator.nll(generator.prompts([head], ["is capable of"]), generator.tails([tail])).sum().item()


OF_PAIRS = [PREFER, replace(PREFER, preference="unlikelihood")]


@pytest.mark.parametrize("policy", OF_PAIRS, ids=["dpo", "unlikelihood"])
def test_a_neutral_tail_becomes_likelier_beside_a_polarised_one(policy: Policy, small: Start, tmp_path: Path) -> None:
    found, generator = tuned(policy, small, tmp_path)
    before, after = (nll(of, "nurse", "hurt") - nll(of, "nurse", "walk") for of in (small.load(), generator))
    assert after > before
    assert (found["steps"], found["planned"], found["tuning_steps"], found["tuning_kept"]) == (16, 18, 6, 6)
    assert found["seconds"] > 2
    assert found["tuning_tails"] == 3
    assert found["neutral_dev_perplexity"] != found["neutral_dev_perplexity_before"]


def test_own_tails_are_learnt_and_a_rise_of_perplexity_leaves_the_weights_before(small: Start, tmp_path: Path) -> None:
    policy = replace(PREFER, tuning="distil")
    _, generator = tuned(policy, small, tmp_path)
    assert nll(generator, "boss", "read") < nll(small.load(), "boss", "read")
    strict = replace(policy, most_rise=0.0, tuning_lr=1.0)
    found, same = tuned(strict, small, tmp_path / "strict", first={"trained": False})
    assert "steps" not in found  # of the first training nothing is known
    assert (found["tuning_kept"], found["tuning_steps"]) == (0, 6)
    assert found["neutral_dev_perplexity"] == found["neutral_dev_perplexity_before"]
    assert nll(same, "boss", "read") == nll(small.load(), "boss", "read")


class KilledError(Exception):
    pass


@pytest.mark.parametrize("policy", [*OF_PAIRS, replace(PREFER, tuning="distil")], ids=["dpo", "unlikelihood", "distil"])
def test_killed_in_the_middle_it_goes_on_to_the_same_figures(policy: Policy, small: Start, tmp_path: Path) -> None:
    def kill(values: dict[str, float], step: int) -> None:
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        tuned(policy, small, tmp_path / "killed", log=kill)
    steps = torch.load(tmp_path / "killed" / "checkpoints" / "last.ckpt", weights_only=True)["global_step"]
    assert steps == 3
    (killed, resumed), (whole, generator) = (tuned(policy, small, tmp_path / name) for name in ("killed", "whole"))
    assert {**killed, "seconds": 0} == {**whole, "seconds": 0}
    assert all(
        torch.allclose(a, b, rtol=0, atol=1e-6)
        for a, b in zip(resumed.parameters(), generator.parameters(), strict=True)
    )


@pytest.mark.parametrize("save", [save_llama, save_t5])
@pytest.mark.parametrize("tuning", ["prefer", "distil"])
def test_models_of_transformers_are_tuned_too(tuning: str, save: Any, tmp_path: Path) -> None:
    folder = save(tmp_path / "base", [f"{head} is capable of {tail}" for head, _, tail, _ in ROWS])
    start = open_generator(folder)
    found, generator = tuned(replace(PREFER, tuning=tuning, tuning_steps=4), start, tmp_path)
    head, better, worse = ("nurse", "walk", "hurt") if tuning == "prefer" else ("boss", "read", "hurt")
    before, after = (nll(of, head, worse) - nll(of, head, better) for of in (start.load(), generator))
    assert after > before
    assert found["tuning_kept"] == 4


def test_own_tails_are_of_persons_that_are_no_targets() -> None:
    rows = [
        ("boss", "CapableOf", "lead", 0.0),
        ("boss", "CapableOf", "shout", -0.5),
        ("a friend", "IsA", "person", 0.0),
    ]
    rows += [
        ("lawyer", "CapableOf", "lie", -0.4),
        ("friend of a nurse", "IsA", "person", 0.0),
        ("knife", "IsA", "tool", 0.0),
    ]
    given = triples(*rows)
    assert sorted(own_prompts(DISTIL, given).rows()) == [("a friend", "IsA"), ("boss", "CapableOf")]
    assert own_prompts(DISTIL, given.with_columns(valid=pl.col("head") == "lawyer")).is_empty()
    assert (
        own_prompts(replace(DISTIL, fitted=2), triples(*((f"boss {n}", "IsA", "x", 0.0) for n in range(9)))).height == 2
    )


class Echoing(Words):
    """Generates the head of the test before other words."""

    def __init__(self, folder: Path | None = None) -> None:
        self.words = ["boss", "work", "eat"]


@pytest.mark.parametrize(("distilled", "tails"), [("rerank", ["work", "eat"]), ("none", ["steal", "work"])])
def test_own_tails_come_in_the_order_that_is_distilled(distilled: str, tails: list[str], tmp_path: Path) -> None:
    """The generator's are steal, work and eat; another's first one is an echo of the head."""
    rows = pl.DataFrame({"head": ["boss"], "relation": ["CapableOf"], "tail": ["lead"], "row": [1], "split": ["train"]})
    given, policy = label_statements(rows, [Theft()]), replace(DISTIL, distilled=distilled)
    assert own_tails(policy, given, find_start(Words, tmp_path), Labeller([Theft()]), 2)["tail"].to_list() == tails
    found = own_tails(policy, given, find_start(Echoing, tmp_path), Labeller([Theft()]), 2)
    assert found["tail"].to_list() == ["work", "eat"]
    assert found["rank"].to_list() == ([1, 2] if distilled == "rerank" else [2, 3])


def test_own_tails_are_kept_across_a_kill(tmp_path: Path) -> None:
    searches: list[int] = []

    class Killed(Words):
        def search(self, prompts: Any, **how: int) -> Any:
            searches.append(len(prompts))
            if len(searches) == 2:
                raise KilledError
            return super().search(prompts, **how)

    rows = {"head": ["boss", "friend", "boss"], "relation": ["CapableOf", "CapableOf", "Desires"], "tail": ["lead"] * 3}
    given = label_statements(pl.DataFrame({**rows, "row": [1, 2, 3], "split": ["train"] * 3}), [Theft()])
    start, parts = find_start(Killed, tmp_path), PartsInMemory()
    with pytest.raises(KilledError):
        own_tails(DISTIL, given, start, Labeller([Theft()]), 2, parts=parts)
    found = own_tails(DISTIL, given, start, Labeller([Theft()]), 2, parts=parts)
    assert sorted(searches) == [1, 1, 2] or sorted(searches) == [1, 2, 2]  # by relations, in an order drawn by seed
    assert found.equals(own_tails(DISTIL, given, find_start(Words, tmp_path), Labeller([Theft()]), 2))


def test_faults_are_named_before_the_first_training(small: Start, tmp_path: Path) -> None:
    check_material(PREFER, labelled())
    check_material(neutral(), labelled().clear())
    message = "policy.tuning=prefer needs neutral dev triples, and the data has none"
    refuses(MitigateError, message, check_material, PREFER, triples(*ROWS))
    message = "policy.tuning=prefer needs pairs of a neutral and a polarised tail of one head and relation, and the"
    refuses(MitigateError, message, check_material, PREFER, labelled().filter(pl.col("sentiment_neutral") == 0))
    message = "policy.tuning=distil needs heads that name a person and no target"
    refuses(MitigateError, message, check_material, replace(PREFER, tuning="distil"), labelled())
    check_tuned(PREFER, small, True)
    adapted = replace(small, options={"lora": {"rank": 2, "save": "adapter"}})
    message = "policy.tuning=prefer starts from whole weights, and model.lora.save=adapter saves none"
    refuses(MitigateError, message, check_tuned, PREFER, adapted, True)
    (tmp_path / "tails.tsv").write_text("relation\ttail\nIsA\tperson\n")
    of_file = replace(small, folder=tmp_path / "tails.tsv")
    refuses(MitigateError, "trains the generator, and .* is a file of tails", check_tuned, PREFER, of_file, False)
    refuses(MitigateError, "needs the main job; set policy=none", check_policy, PREFER)


def test_adapters_of_the_first_training_serve_the_second(small: Start) -> None:
    first = replace(small, options={"lora": {"rank": 2}})
    assert tuned_from(small, first).options == first.options
    assert tuned_from(first, first) is first
    other = replace(first, code=Fitted)  # what it started from is loaded otherwise
    assert tuned_from(small, other) is small


WRONG = [
    ({"tuning": "prefers"}, "unknown policy.tuning 'prefers'; allowed: none, prefer, random_prefer, distil"),
    ({"preference": "ipo"}, "unknown policy.preference 'ipo'; allowed: dpo, unlikelihood"),
    ({"distilled": "erase"}, "unknown policy.distilled 'erase'; allowed: none, rerank, random_rerank, critic"),
    ({"tuning_steps": 0}, "policy.tuning_steps=0 must be at least 1"),
    ({"tuning_every": 0}, "policy.tuning_every=0 must be at least 1"),
    ({"tuning_lr": 0.0}, "policy.tuning_lr=0 must be above 0"),
    ({"most_rise": -0.1}, "policy.most_rise=-0.1 must be at least 0, a share such as 0.02"),
    ({"beta": 0.0}, "policy.beta=0 must be above 0"),
    ({"alpha": 0.0}, "policy.alpha=0 must be above 0"),
    ({"tuning": "prefer"}, "policy.tuning=prefer needs policy.scorers, which is empty"),
]


@pytest.mark.parametrize(("values", "message"), WRONG)
def test_wrong_values_are_a_sentence(values: dict[str, Any], message: str) -> None:
    refuses(MitigateError, message, Policy, "mine", **values)


def test_the_main_job_trains_a_second_time(job) -> None:
    """Takes over 3 s: a whole job."""
    asked = ["policy.tuning_steps=4", "policy.tuning_every=2", "score.plausibility=null"]
    done = job("policy=prefer", *SMALL, *asked)
    assert done.status == 0, done.complaint
    stages = [stage["stage"] for stage in json.loads((done.folder / "manifest.json").read_text())["stages"]]
    assert stages[:5] == ["score", "ledger", "train", "tune", "probe"]
    assert json.loads((done.folder / "metrics.json").read_text())["training/steps"] == 10
    assert (done.folder / "base" / "config.json").is_file()
    assert (done.folder / "model" / "README.md").is_file()
