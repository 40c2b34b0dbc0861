"""Generators as functions of plain arguments, and a file of tails in the place of one: numbers by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from refusals import refuses
from small_models import save_llama

from mitigate.errors import MitigateError
from mitigate.load.tails import locate
from mitigate.measure.filtered import measure_filter
from mitigate.measure.lift import constant_tails, echo_tails, random_tails
from mitigate.measure.quality import bits_per_char, perplexity
from mitigate.measure.results import Results
from mitigate.policies import Rerank
from mitigate.probe.corpus import held_out_likelihood
from mitigate.probe.generator import probe_generator
from mitigate.probe.likelihood import likelihood
from mitigate.probe.tails import open_tails
from mitigate.score.labeller import label_statements
from mitigate.train.base_model import Start, find_start
from mitigate.train.generator import TrainingSettings, as_it_is, examples, open_generator, train_generator
from mitigate.triples import PROBED, Labels
from mitigate.words.relations import Relation, prompt_phrases
from models.tail_prompts import Beam

TARGETS = pl.DataFrame({"target": ["nurse", "man"], "category": ["profession", "gender"]})


class Words:
    """A generator that always generates its words, in their order; each token costs 1 nat."""

    def __init__(self, folder: Path | None = None) -> None:
        self.words = ["steal", "work", "eat"]

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        return [[0] for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        return [[1] * (len(tail.split()) + 1) for tail in tails]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.ones(sum(map(len, tails)))

    def search(self, prompts: Sequence[Sequence[int]], *, beams: int = 1, **how: int) -> list[list[Beam]]:
        return [[Beam((place,), -1.0 - place, -1.0 - place, True) for place in range(beams)] for _ in prompts]

    def decode(self, tail: Sequence[int]) -> str:
        return self.words[tail[0]]

    def to(self, device: str) -> "Words":
        return self


class Theft:
    """A scorer that finds prejudice in "steal"."""

    name = fingerprint = "regard"

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = pl.Series(texts, dtype=pl.String).str.contains("steal").cast(pl.Int8).to_numpy()
        return Labels(-found, -found.astype("float32"))


def test_a_generator_is_probed_and_its_neutral_tails_put_first() -> None:
    probed = probe_generator(Words(), TARGETS, {"CapableOf": "is capable of"}, beams=3, top=3)
    assert dict(probed.schema) == PROBED
    assert probed["tail"].to_list() == ["steal", "work", "eat"] * 2
    labelled = label_statements(probed, [Theft()])
    assert labelled["statement"][0] == "nurse is capable of steal"
    assert labelled["regard"].to_list() == [-1, 0, 0] * 2
    chosen = Rerank("mine", ["regard"], "paper").choose(labelled, 2)
    expected = [("nurse", "work", 1, 2), ("nurse", "eat", 2, 3), ("man", "work", 1, 2), ("man", "eat", 2, 3)]
    assert chosen.select("target", "tail", "rank", "beam_rank").rows() == expected
    refuses(MitigateError, "the probe has no relations; give at least one", probe_generator, Words(), TARGETS, [])
    refuses(MitigateError, "the probe has no targets; give", probe_generator, Words(), TARGETS.clear(), ["IsA"])


def test_likelihood_is_of_valid_test_triples_and_filters_are_counted(tmp_path: Path) -> None:
    rows = [("nurse", "eat bread", "test", True), ("nurse", "fly", "test", False), ("man", "eat", "train", True)]
    labelled = pl.DataFrame(rows, schema=["head", "tail", "split", "valid"], orient="row")
    labelled = labelled.with_columns(relation=pl.lit("CapableOf"))
    for generator in (Words(), find_start(Words, tmp_path)):
        found = held_out_likelihood(generator, labelled)
        assert found.select("tail", "nll", "tokens", "generated").rows() == [("eat bread", 3, 3, "steal")]
    rows = [("train", 0.5, None), ("train", 0.0, None), ("train", 0.5, 1), ("dev", 1.0, None)]
    ledger = pl.DataFrame(rows, schema=["split", "weight", "source_row"], orient="row")
    of_nurse = {"target": "nurse", "category": "profession", "relation": "IsA", "tail": "x"}
    found = Results(measure_filter(ledger.with_columns(**{name: pl.lit(value) for name, value in of_nurse.items()})))
    expected = {"filter/kept": 1, "filter/dropped": 1, "filter/added": 1, "filter/weight": 1, "coverage/triples": 50}
    assert {key: found[key] for key in expected} == expected
    rows = pl.DataFrame({"head": ["nurse"], "relation": ["CapableOf"], "tail": ["eat"], "weight": [0.5]})
    found = examples(rows, {"CapableOf": "is capable of"})
    assert (found.heads, found.phrases, found.tails) == (["nurse"], ["is capable of"], ["eat"])
    assert found.weights is not None
    assert found.weights.tolist() == [0.5]


def test_generators_that_cannot_be_trained_or_laid_out_so_are_refused(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "llama", ["the nurse is a person", "a lawyer is capable of help people"])
    assert open_generator(folder, layout="packed").regimen.layout == "packed"
    refuses(MitigateError, "layout='comet' does not apply to the model in", open_generator, folder, layout="comet")
    start = find_start(Words, tmp_path)
    assert as_it_is(start) == {"trained": False, "weights": start.weights}
    ledger = pl.DataFrame(schema={"weight": pl.Float32, "split": pl.String})
    message = "Words cannot be trained; start from a model that Comet.load, LanguageModel.load, Seq2Seq.load opens"
    with pytest.raises(MitigateError, match=message):
        train_generator(ledger, start, TrainingSettings(), model=tmp_path, checkpoints=tmp_path, fingerprint="this")


ASKED = {"IsA": "<IsA>", "HasA": "<HasA>"}
LINES = "head\trelation\ttail\tscore\n\tIsA\tperson\t\nNurse\tIsA\thelper\t1\nnurse\tIsA\tworker\t2\n\tIsA\thelper\t9\n"


def start_of(path: Path, **more: Any) -> Start:
    return find_start(open_tails, path, relation="token", train=False, **more)


def written(folder: Path, text: str, name: str = "tails.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_tails_of_the_head_come_first_then_those_of_all(tmp_path: Path) -> None:
    start = start_of(written(tmp_path, LINES))
    probed = probe_generator(start, ["nurse", "lawyer"], ASKED, top=2)
    assert probed.select("target", "relation", "tail", "rank").rows() == [
        ("nurse", "IsA", "worker", 1),
        ("nurse", "IsA", "helper", 2),
        ("lawyer", "IsA", "helper", 1),
        ("lawyer", "IsA", "person", 2),
    ]
    assert probed["score"][0] == 2
    assert start_of(written(tmp_path, LINES, "other.tsv")) != start
    copy = start_of(written(tmp_path, LINES.replace("\t", ","), "tails.csv"))
    assert copy.weights != start.weights  # known by its name and its content


def test_tails_have_no_probabilities_and_hundreds_are_ranked(tmp_path: Path) -> None:
    triples = pl.DataFrame({"head": ["nurse"], "relation": ["IsA"], "tail": ["kind helper"]})
    scored = likelihood(open_tails(written(tmp_path, LINES)), triples, prompt_phrases("token"))
    assert math.isnan(scored["nll"][0])
    assert scored["tokens"][0] == 3
    assert perplexity(scored) is None
    assert bits_per_char(scored) is None
    lines = "".join(f"nurse\tIsA\ttail {number}\t{-number}\n" for number in range(1, 301))
    start = start_of(written(tmp_path, f"head\trelation\ttail\tscore\n{lines}"))
    probed = probe_generator(start, ["nurse"], ASKED, beams=300, top=300)
    assert probed["rank"].to_list() == list(range(1, 301))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "head\ttail\nnurse\thelper\n", r"has no column relation; it is TSV with the columns head, tail;"),
        ("a.tsv", "relation\ttail\nIsA\t \n", r"a.tsv:2: a blank field"),
        ("a.tsv", "relation\ttail\n", "has no rows; expected head, relation and tail in each"),
        ("a.csv", "relation,tail,score\nIsA,a, 2\nIsA,b,high\n", "a.csv:3: the score 'high' is not a number"),
        ("a.xls", "", r"a.xls is empty"),
        ("a.parquet", "no", "is not a readable Parquet file"),
    ],
)
def test_faults_of_the_file_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    refuses(MitigateError, message, locate, str(written(tmp_path, text, name)))


def test_scores_decide_no_place_where_they_are_unknown_and_a_file_must_be_there(tmp_path: Path) -> None:
    rows = {"relation": ["IsA"] * 3, "tail": ["person", "worker", "helper"]}
    written(tmp_path, "relation,tail,score\nIsA,person,\nIsA,worker, 2\nIsA,helper,3 \n", "a.csv")
    pl.DataFrame({**rows, "score": [math.nan, 2.0, 3.0]}).write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        probed = probe_generator(start_of(tmp_path / name), ["nurse"], ASKED, top=3)
        assert probed["tail"].to_list()[:3] == ["helper", "worker", "person"]
    refuses(MitigateError, r"model=tails needs model.path, which is not set; set model.path=FILE.tsv", locate, None)
    refuses(MitigateError, "no such file", locate, str(tmp_path / "none.tsv"))


def test_relations_of_the_project_and_of_ones_own_are_known(tmp_path: Path) -> None:
    own = [Relation("works_with", "works with", "works with"), Relation("mentors", "is a mentor of", "is a mentor of")]
    path = written(tmp_path, "relation\ttail\nWorks With\ta team\nmentors\ta friend\nisa\tperson\n")
    start = start_of(path, further=own)
    asked = {name: start.phrases[name] for name in ("works_with", "mentors", "IsA")}
    assert probe_generator(start, ["nurse"], asked, top=1)["tail"].to_list() == ["a team", "a friend", "person"]
    with pytest.raises(MitigateError) as error:
        start_of(path, further=own[:1])
    assert str(error.value).startswith(f"{path}:3: unknown relation 'mentors'; allowed: ")
    assert "works_with" in str(error.value)


@pytest.fixture
def labelled() -> pl.DataFrame:
    """Three neutral tails of IsA, one of them twice, and a polarised one that is the commonest."""
    tails = ["helper", "helper", "worker", "person", "thief", "thief", "thief"]
    frame = pl.DataFrame({"split": "train", "head": "nurse", "relation": "IsA", "tail": tails})
    label = pl.when(pl.col("tail") == "thief").then(-1).otherwise(0)
    return frame.with_columns(sentiment_neutral=label, regard_neutral=pl.lit(0))


def test_constants_echoes_and_random_tails(labelled: pl.DataFrame) -> None:
    assert constant_tails(labelled, 2).rows() == [("IsA", "helper"), ("IsA", "person")]
    assert constant_tails(labelled.with_columns(split=pl.lit("test"))).is_empty()
    prompts = pl.DataFrame({"head": ["nurse", "nurse", "cook"], "relation": ["IsA", "IsA", "HasA"]})
    assert echo_tails(prompts).rows() == [("nurse", "IsA", "nurse"), ("cook", "HasA", "cook")]
    drawn = random_tails(labelled, prompts, seed=2)
    assert set(drawn["tail"]) == {"helper", "worker", "person"}  # of ten draws, without repeats and polarised ones
    assert set(drawn["head"]) == {"nurse"}  # no training triple has HasA
    assert drawn.equals(random_tails(labelled, prompts, seed=2))
