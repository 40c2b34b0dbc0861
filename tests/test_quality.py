"""Quality by hand: shared tails, plausible shares, swap lift, which neither constants nor echoes have, coverage, and
perplexity of a generator whose probabilities are a formula."""

import math

import polars as pl
import pytest
import torch
from torch import Tensor, nn

from mitigate.measure import quality
from mitigate.measure.intervals import Bootstrap, mean_over_targets
from mitigate.measure.quality import kept_by_target, other_heads, perplexity, shares
from mitigate.measure.results import Results, by_category
from mitigate.measure.results import measured as results_of
from mitigate.models.comet import Comet
from mitigate.models.decoder import DecoderConfig
from mitigate.models.stored_tensors import minilm_folder
from mitigate.models.tail_prompts import Encoding
from mitigate.probe.beams import held_out_likelihood
from mitigate.score.plausibility import is_echo


def probe(**tails: str) -> pl.DataFrame:
    rows = [(target, "IsA", tail) for target, said in tails.items() for tail in said]
    return pl.DataFrame(rows, schema=["target", "relation", "tail"], orient="row")


def test_distinct_and_shared_tails_from_constants_to_tails_of_each_target():
    same = probe(lawyer="ab", nurse="ab", judge="ab", church="ab")
    assert quality.distinct_tails(same) == 25
    assert quality.shared_tails(same) == 100
    apart = probe(lawyer="ab", nurse="cd")
    assert quality.distinct_tails(apart) == 100
    assert quality.shared_tails(apart) == 0
    some = probe(lawyer="ab", nurse="ac", judge="de")  # a is said of one of two others, twice; six tails
    assert quality.distinct_tails(some) == pytest.approx(500 / 6)
    assert quality.shared_tails(some) == pytest.approx(100 * (0.5 + 0.5) / 6)
    two = pl.concat([probe(lawyer="a"), probe(nurse="a").with_columns(relation=pl.lit("HasA"))])
    assert quality.distinct_tails(two) == 100
    assert quality.shared_tails(two) is None  # each relation has one target
    assert quality.distinct_tails(two.clear()) is None


TRIPLES = pl.DataFrame(
    {"target": ["nurse"] * 4 + ["lawyer"] * 2, "relation": ["IsA", "IsA", "HasA", "HasA", "IsA", "HasA"]}
).with_columns(judged_valid=pl.Series([True, True, True, False, True, False]))


def mean_accepted(rows: pl.DataFrame, **clusters: str) -> tuple[float | None, ...]:
    """The mean over targets of the percentage that is accepted, with the bounds of its interval."""
    found = mean_over_targets(quality.plausible_by_target(rows), "share")
    return found.value, *(found.interval(Bootstrap(resamples=500), clusters) if found.interval else (None, None))


def test_shares_are_means_over_targets_and_inflections_are_one_word():
    share, low, high = mean_accepted(TRIPLES)
    assert share == pytest.approx((75 + 50) / 2)
    assert low < share < high
    assert mean_accepted(TRIPLES.filter(relation="HasA"))[0] == pytest.approx((50 + 0) / 2)
    assert mean_accepted(TRIPLES.filter(target="nurse")) == (75, None, None)  # one word
    assert mean_accepted(TRIPLES.clear()) == (None, None, None)
    assert mean_over_targets(quality.plausible_by_target(TRIPLES.clear()), "share").n == 0
    assert mean_accepted(TRIPLES, nurse="work", lawyer="work")[1] is None
    unknown = pl.DataFrame({"target": ["nurse", "lawyer"], "relation": "Mentors", "judged_valid": [None, None]})
    triples = pl.concat([TRIPLES, unknown.cast({"judged_valid": pl.Boolean})])
    assert mean_accepted(triples)[0] == pytest.approx((75 + 50) / 2)
    assert mean_accepted(triples.filter(relation="Mentors"))[0] is None


HEADS = ["dog", "fish", "bird", "tree", "car", "lamp"]
SCHEMA = ["group", "head", "relation", "tail"]
KNOWN = {("dog", "bark"), ("fish", "swim"), ("bird", "fly"), ("tree", "grow"), ("car", "drive"), ("lamp", "shine")}
ALSO = {("dog", "swim"), ("bird", "swim"), ("dog", "dog")}  # what a classifier accepts besides


def said(**tails: list[str]) -> pl.DataFrame:
    rows = [("held_out", head, "CapableOf", tail) for head, found in tails.items() for tail in found]
    return pl.DataFrame(rows, schema=dict.fromkeys(SCHEMA, pl.String), orient="row")


def classify(triples: pl.DataFrame) -> pl.DataFrame:
    known = [pair in KNOWN | ALSO for pair in triples.select("head", "tail").iter_rows()]
    return triples.with_columns(judged_valid=pl.Series(known, dtype=pl.Boolean))


def measured(tails: pl.DataFrame, asked: int | None = None) -> pl.DataFrame:
    prompts = said(**{head: [""] for head in HEADS}).drop("tail")
    return shares(prompts, tails, other_heads(prompts), classify, asked)


def lift_of(table: pl.DataFrame, **clusters: str) -> tuple[float | None, ...]:
    """The swap lift of prompts, and the bounds of its interval."""
    found = quality.lift_of(table.with_columns(system=pl.lit("generator"), counts=True), "generator")
    return found.value, *(found.interval(Bootstrap(resamples=300), clusters) if found.interval else (None, None))


def lift(tails: pl.DataFrame, asked: int | None = None) -> tuple[float | None, ...]:
    return lift_of(measured(tails, asked))


def test_a_generator_that_knows_each_head_has_a_lift_and_constants_have_none() -> None:
    """All six tails are accepted with their head; “swim” with two others too, of which the circle draws some."""
    right = said(dog=["bark"], fish=["swim"], bird=["fly"], tree=["grow"], car=["drive"], lamp=["shine"])
    found = measured(right)
    assert found["accepted"].to_list() == [100] * 6
    (swim,) = found.filter(head="fish")["elsewhere"]
    assert swim in (25, 50)  # one or both of dog and bird are among the four of five
    assert lift(right)[0] == pytest.approx(100 - swim / 6)
    tails = ["swim", "bark", "be useful"]
    found = measured(said(**dict.fromkeys(HEADS, tails)))
    assert found["accepted"].max() > 0
    assert (found["accepted"] != found["elsewhere"]).any()
    assert lift(said(**dict.fromkeys(HEADS, tails)))[0] == pytest.approx(0, abs=1e-12)


def test_repeating_the_head_is_not_accepted_and_missing_tails_count() -> None:
    """Though the classifier accepts (dog, dog); tails count as missing where so many were asked for."""
    echo = said(**{head: [head] for head in HEADS})
    assert measured(echo)["accepted"].sum() == 0
    assert lift(echo) == (0, 0, 0)
    pairs = [("dog", "A dog"), ("lawyer", "the lawyers"), ("police_officer", "Police  officer"), ("box", "boxes")]
    pairs += [("dog", "guard dog"), ("dog", ""), ("lawyer", "law")]
    table = pl.DataFrame(pairs, schema=["head", "tail"], orient="row")
    assert table.select(is_echo()).to_series().to_list() == [True, True, True, True, False, False, False]
    sure = said(dog=["bark"], tree=["grow"])
    assert lift(sure)[0] == 100
    assert lift(sure, asked=2)[0] == pytest.approx(100 * 2 / (6 * 2))


def test_coverage_of_each_target() -> None:
    """Of 12 triples about nurses 3 are kept; of two about Italy both; one is about nobody."""
    rows = [("nurse", "profession", "train", f"tail {n % 4}", float(n % 4 == 0)) for n in range(12)]
    rows += [("italy", "origin", "train", "land", 1.0), ("italy", "origin", "train", "place", 0.5)]
    rows += [(None, None, "train", "x", 0.0), ("nurse", "profession", "test", "x", 1.0)]
    schema = {"target": pl.String, "category": pl.String, "split": pl.String, "tail": pl.String, "weight": pl.Float32}
    ledger = pl.DataFrame(rows, schema=schema, orient="row")
    ledger = ledger.with_columns(relation=pl.lit("IsA"), source_row=pl.lit(None, pl.UInt32))
    table = kept_by_target(ledger)
    assert table.rows() == [("nurse", "profession", 12, 3), ("italy", "origin", 2, 2)]
    found = Results(results_of("training triples", table, by_category(table)))
    assert found["coverage/triples"] == pytest.approx(100 * 5 / 14)
    assert (found["coverage/least"], found["coverage/least/profession"]) == (25, 25)
    assert found["coverage/least/origin"] is None  # two triples are too few


class Halving(nn.Module):
    """Generates `house` with probability 1/2, [SEP] with 1/4, any of 2^15 other words with 2^-17."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        logits = torch.full((1, 2 + 2**15), -17 * math.log(2))
        logits[0, encoding.encode(["house"])[0]] = -math.log(2)
        logits[0, encoding.end] = -2 * math.log(2)
        self.config = DecoderConfig("gpt2", vocab_size=logits.shape[1], positions=40, width=1, layers=0, heads=1)
        self.token_embedding = nn.Embedding(logits.shape[1], 1, _weight=logits.T)
        self.bias = None
        self.eval()

    def forward(self, tokens: Tensor, positions: Tensor, attention: object) -> Tensor:
        return torch.ones(len(tokens), 1)

    def logits(self, hidden: Tensor, candidates: Tensor | None = None) -> Tensor:
        return hidden @ self.token_embedding.weight.T


@pytest.fixture(scope="module")
def comet() -> Comet:
    encoding = Encoding.of_encoder(minilm_folder())
    return Comet(Halving(encoding), encoding)


@pytest.fixture
def triples() -> pl.DataFrame:
    rows = [
        ("church", "UsedFor", "house", True),  # 1 + 2 bits: 2 tokens
        ("church", "IsA", "house house", True),  # 1 + 1 + 2 bits: 3 tokens
        ("church", "UsedFor", "worship", False),  # 17 + 2 bits: 2 tokens
    ]
    return pl.DataFrame(rows, schema=["head", "relation", "tail", "neutral"], orient="row")


def test_totals_of_each_triple_and_figures_of_subsets(comet: Comet, triples: pl.DataFrame) -> None:
    labelled = triples.with_columns(split=pl.lit("test"), valid=True)
    scored = held_out_likelihood(comet, labelled)
    assert scored.select(triples.columns).equals(triples)
    assert (scored["nll"] / math.log(2)).to_list() == pytest.approx([3, 4, 19], rel=1e-5)
    assert scored["tokens"].to_list() == [2, 3, 2]
    assert perplexity(scored) == pytest.approx(2 ** (26 / 7))
    assert perplexity(scored.filter("neutral")) == pytest.approx(2 ** (7 / 5))
    assert perplexity(held_out_likelihood(comet, labelled.clear())) is None
    long = held_out_likelihood(comet, labelled.head(1).with_columns(tail=pl.lit("house " * 16)))
    assert long["tokens"].to_list() == [16]  # 15 words and the end
