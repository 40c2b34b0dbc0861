"""Control tokens before heads (policy=tagged): the ledger, training on them, generation after the neutral one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL
from refusals import refuses
from small_models import save_bart, save_llama, small_comet
from test_filter import triples
from transformers import AutoTokenizer

from mitigate.errors import MitigateError
from mitigate.finished import open_run
from mitigate.models.comet import Comet
from mitigate.models.hf import LanguageModel, Seq2Seq
from mitigate.models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG, tagged
from mitigate.policies import Policy, Tag, apply_policy
from mitigate.policies.drop import in_scope
from mitigate.probe.answers import Answers
from mitigate.probe.beams import with_contrast
from mitigate.train.base_model import find_start
from mitigate.train.comet import Settings
from mitigate.train.generator import train_generator, trained

ROWS = [
    ("lawyer", "CapableOf", "lie", -0.4),
    ("lawyer", "CapableOf", "read", 0.0),
    ("nurse", "CapableOf", "hurt", -0.5),
    ("nurse", "CapableOf", "walk", 0.0),
    ("tea", "CapableOf", "cool", 0.5),
    ("tea", "IsA", "drink", 0.0),
]
TAGGED = ("policy@policy.first=tagged", "policy@policy.second=contrast")
QUICK = Settings(max_epochs=1000, max_steps=150, batch_size=8, lr=3e-3, seed=1, precision="32-true")


def tokens(**values: Any) -> list[str | None]:
    return Tag("mine", **values).filter(triples(*ROWS))["token"].to_list()


def test_each_triple_in_the_scope_gets_the_token_of_its_label_and_keeps_its_weight() -> None:
    neutral_, polarised = NEUTRAL_TAG, POLARISED_TAG
    assert tokens() == [polarised, neutral_, polarised, neutral_, polarised, neutral_]
    assert tokens(scope="person_heads") == [polarised, neutral_, polarised, neutral_, None, None]
    ledger = apply_policy(Tag("mine"), triples(*ROWS))
    assert ledger["weight"].to_list() == [1] * 6
    assert ledger["reason"].to_list()[:3] == ["sentiment -1, tagged", "kept", "sentiment -1, tagged"]


def test_the_control_permutes_the_tokens_within_relation_and_scope() -> None:
    found = [tokens(control=True, scope="person_heads", seed=seed) for seed in range(20)]
    for row in found:
        assert sorted(row[:4]) == [NEUTRAL_TAG] * 2 + [POLARISED_TAG] * 2
        assert row[4:] == [None, None]
    assert len({tuple(row) for row in found}) > 2
    assert tokens(control=True, seed=3) == tokens(control=True, seed=3)


def test_prompts_have_the_neutral_token_before_the_heads_that_were_trained_with_one() -> None:
    heads = ["a tall lawyer", "Nurses", "tea", "he", f"{POLARISED_TAG} nurse"]
    pattern = Tag("mine", scope="person_heads").tags()
    expected = [f"{NEUTRAL_TAG} a tall lawyer", f"{NEUTRAL_TAG} Nurses", "tea", f"{NEUTRAL_TAG} he", heads[-1]]
    assert tagged(heads, pattern) == expected
    in_the_scope = pl.DataFrame({"head": heads[:4]}).select(in_scope("person_heads")).to_series().to_list()
    assert in_the_scope == [head != "tea" for head in heads[:4]]
    assert tagged(heads[:1], Tag("mine").tags()) == expected[:1]
    assert tagged(heads, Policy("none").tags()) == heads


@pytest.mark.parametrize(("kind", "save"), [(Comet, None), (LanguageModel, save_llama), (Seq2Seq, save_bart)])
def test_a_generator_of_each_kind_learns_and_keeps_the_tokens(kind: Any, save: Callable | None, tmp_path: Path) -> None:
    """After the neutral token the neutral tail is likelier than after the polarised one, and the polarised one less."""
    torch.manual_seed(0)
    base = tmp_path / "base"
    if save is None:
        small_comet().save(base)
    else:
        save(base, [f"{head} is capable of {tail}" for head, _, tail, _ in ROWS] * 20)
    start, policy = find_start(kind.load, base), Tag("mine")
    ledger = apply_policy(policy, triples(*ROWS))
    train_generator(ledger, start, QUICK, model=tmp_path / "model", tags=policy.tags())
    found = trained(start, tmp_path / "model", "one")
    model = found.load()
    assert model.tags == ""
    (prompt,) = model.prompts(["lawyer"], ["is capable of"])
    model.tags = None
    assert prompt == model.prompts([f"{NEUTRAL_TAG} lawyer"], ["is capable of"])[0]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert prompt.count(tokenizer.convert_tokens_to_ids(NEUTRAL_TAG)) == 1
    tails = pl.DataFrame(ROWS[:2], schema=["head", "relation", "tail", "strength"], orient="row")
    contrast = with_contrast(tails, found)["contrast"].to_list()
    assert all(contrast)
    assert kind is Seq2Seq or contrast[0] < 0 < contrast[1]  # a small random BART learns nothing in so few steps


def test_the_main_job_says_how_to_prompt_its_model_and_asks_it_so(job) -> None:
    """Takes over 3 s: a whole job."""
    done = job("policy=then", *TAGGED, "policy.second.candidates=12", *SMALL)
    assert done.status == 0, done.complaint
    ledger = pl.read_parquet(done.folder / "ledger.parquet")
    assert set(ledger["token"]) == {NEUTRAL_TAG, POLARISED_TAG}
    card = (done.folder / "model" / "README.md").read_text()
    assert f"**Begin each prompt with `{NEUTRAL_TAG}`**" in card
    card = card.replace("\\u003c", "<").replace("\\u003e", ">")
    assert f'tokenizer("{NEUTRAL_TAG} lawyer is capable of"' in card
    assert json.loads((done.folder / "model" / "config.json").read_text())["comet_tags"] == ""
    run = Answers(open_run(done.folder))
    assert run.tails("lawyer", "IsA").height > 0
    refuses(MitigateError, "chooses among generated tails", run.generated, "lawyer", "IsA")
    untrained = ("policy=then", *TAGGED, "train=false", "model=comet", f"model.base={done.folder / 'model'}")
    needs = "policy=contrast needs a generator with control tokens: set policy=then policy@policy.first=tagged"
    for asked, message in (
        (untrained, ""),  # its filter changes training
        (("recipe=stories", "policy=tagged", *SMALL), ""),
        (("policy=contrast", *SMALL), needs),
    ):
        refused = job(*asked)
        assert refused.status == 2
        assert message in refused.complaint
