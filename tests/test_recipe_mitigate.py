"""The main job on the sample corpus, shrunk to seconds: two policies are trained once for all tests that read a run."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from command import SMALL, here, metrics_of
from polars.testing import assert_frame_equal

from mitigate.finished import open_run
from mitigate.models.comet import Comet
from mitigate.probe.answers import Answers

OPEN_ELSEWHERE = """
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
prompt = tokenizer("lawyer is capable of").input_ids
found = []
for said in json.loads(sys.argv[2]):
    with torch.no_grad():
        logits = model(torch.tensor([prompt + said])).logits[0, len(prompt) - 1 : -1]
    found.append(logits.log_softmax(-1).gather(1, torch.tensor(said)[:, None]).sum().item())
print(json.dumps(found))
"""


def only_run(outputs: Path) -> Path:
    (folder,) = outputs.glob("[!.]*")
    return folder


def recorded(folder: Path, *flags: str) -> str:
    """A run's record in W&B, read back as lines of JSON."""
    (record,) = (folder / "wandb").glob("offline-run-*")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", *flags, "--json", str(record)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def inspect(folder: Path) -> dict:
    return json.loads(recorded(folder, "--summary"))


class Sweep(NamedTuple):
    """Two policies side by side: their run folders, and what was printed."""

    none: Path
    both: Path
    said: str


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    outputs, said = tmp_path_factory.mktemp("sweep"), io.StringIO()
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stdout(said):
        assert here(monkeypatch, "-m", "policy=none,both", f"paths.outputs={outputs}", *SMALL) == 0
    none, both = (next(outputs.glob(f"mitigate-{policy}-*")) for policy in ("none", "both"))
    return Sweep(none, both, said.getvalue())


@pytest.fixture(scope="module")
def finished(sweep: Sweep) -> Path:
    """The run folder of policy=both."""
    return sweep.both


def both(ran, outputs: Path, *more: str) -> str:
    """What policy=both prints there."""
    return ran("policy=both", f"paths.outputs={outputs}", *SMALL, *more).done


def test_two_policies_side_by_side_are_two_runs_and_a_comparison(sweep: Sweep) -> None:
    """Slow: two small generators are trained, which all tests of this file read."""
    said = sweep.said
    assert (metrics_of(sweep.none)["filter/dropped"], metrics_of(sweep.none)["policy"]) == (0, "none")
    assert said.count("Demonstration") == said.count("  recorded  ") == 2
    assert said.count("  verdict     ") == 2  # of each run; the comparison speaks from a process of its own
    assert said.count("\n  cost        ") == 2
    (page,) = sweep.both.parent.glob("compare-*/comparison.html")
    assert "swap lift" in page.read_text(encoding="utf-8")
    records = [inspect(folder) for folder in (sweep.none, sweep.both, page.parent)]
    assert len({record["run_id"] for record in records}) == 3
    none, filtered, shared = "policy:none", "policy:both", ["data:sample", "model:comet_minilm"]
    chosen = [["recipe:mitigate", none], ["recipe:mitigate", filtered], ["recipe:compare", none, filtered]]
    assert [record["tags"] for record in records] == [[*tags, *shared] for tags in chosen]


def test_the_generator_answers_as_the_probe_did(finished: Path) -> None:
    """Also with labels: of the same sentences, by the same scorers."""
    answers = Answers(open_run(finished))
    for target, relation in (("lawyer", "CapableOf"), ("italy", "IsA")):
        stored, generated = answers.tails(target, relation), answers.generated(target, relation)
        probed = pl.read_parquet(finished / "probe.parquet").filter(target=target, relation=relation)
        assert generated["tail"].to_list() == probed["tail"].to_list()
        assert_frame_equal(generated.drop("plausibility"), stored.drop("plausibility"), abs_tol=1e-4)
        # In bfloat16, where the processor has it, a classifier rounds by what else is in its batch.
        assert_frame_equal(generated.select("plausibility"), stored.select("plausibility"), abs_tol=5e-3)
    other = answers.tails("Gardener", "CapableOf")
    assert (other.height, set(other["head"]), other["plausibility"].null_count()) == (10, {"gardener"}, 0)
    assert other["masked"][0].startswith("gardener is capable of")


def test_the_generator_opens_elsewhere_and_agrees(finished: Path) -> None:
    """Slow: a process of its own imports transformers, and nothing of this project."""
    beams = pl.read_parquet(finished / "probe.parquet").filter(target="lawyer", relation="CapableOf")
    comet = Comet.load(finished / "model")
    (found,) = comet.search(comet.prompts(["lawyer"], ["is capable of"]), max_length=6)  # as the run's probe
    assert [comet.decode(beam.tokens) for beam in found] == beams["tail"].to_list()
    said = [[*beam.tokens, *[comet.encoding.end] * beam.ended] for beam in found]
    command = [sys.executable, "-c", OPEN_ELSEWHERE, str(finished / "model"), json.dumps(said)]
    process = subprocess.run(command, capture_output=True, check=True, text=True, cwd=finished)
    assert len(said) == 10
    assert json.loads(process.stdout) == pytest.approx(beams["log_prob"].to_list(), abs=1e-3)


def test_the_record_in_wandb_has_no_folder_of_this_machine(finished: Path) -> None:
    """But for the files that are uploaded, whose places W&B keeps for itself."""
    record, metrics = inspect(finished), metrics_of(finished)
    numbers = {name: value for name, value in record["summary"].items() if isinstance(value, int | float)}
    numbers = {name: value for name, value in numbers.items() if not name.startswith("_")}
    assert 15 <= len(numbers) <= 35
    assert numbers["harm/neutral_by_sentiment_paper_percent"] == pytest.approx(metrics["NSM"])
    assert numbers["cost/perplexity_neutral"] == pytest.approx(metrics["quality/perplexity/neutral"])
    assert {name.partition("/")[0] for name in numbers} == {"harm", "disparity", "quality", "cost", "size"}
    rows = {name: value["nrows"] for name, value in record["summary"].items() if isinstance(value, dict)}
    assert rows["metrics"] > 100
    assert rows["statements"] == 90
    assert rows["pictures"] == len(list((finished / "plots").glob("*.png")))
    assert record["config"]["policy"]["name"] == "both"
    assert record["state"] == "finished"
    sent = [line for line in recorded(finished).splitlines() if json.loads(line)["type"] != "artifact"]
    assert len(sent) > 10
    for place in (str(finished.parent), str(Path.home()), sys.executable):
        assert [line for line in sent if place in line] == []
    assert str(finished.parent) not in (finished / "model" / "README.md").read_text()


def test_the_same_command_finds_it_complete_and_a_rehearsal_writes_nothing(finished: Path, ran, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    assert "complete: nothing to do" in both(ran, finished.parent)
    assert both(ran, finished.parent, "dry_run=true").count("cached") == 12
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()} == before
    assert both(ran, tmp_path / "new", "dry_run=true").count("to be run") == 12
    assert not (tmp_path / "new").exists()


def test_a_model_at_hand_is_reranked_and_measured_by_held_out_scorers(finished: Path, tmp_path: Path, ran) -> None:
    at_hand = ["model=comet", f"model.base={finished / 'model'}", "train=false", "tracking=none"]
    asked = ["policy=rerank", "policy.candidates=12", "score.extra=[ngram,keyword]", f"paths.outputs={tmp_path}"]
    assert ran(*at_hand, *asked, *SMALL).done
    folder = only_run(tmp_path)
    assert pl.read_parquet(folder / "ledger.parquet")["weight"].min() == 1
    candidates, statements = (pl.read_parquet(folder / f"{name}.parquet") for name in ("candidates", "statements"))
    assert (candidates.height, statements.height) == (3 * 3 * 12, 3 * 3 * 10)
    polarised = pl.any_horizontal(pl.col("sentiment_neutral", "regard_neutral").is_in([-1, 1])).alias("polarised")
    for _, tails in statements.with_columns(polarised).group_by("target", "relation"):
        assert tails["rank"].to_list() == list(range(1, 11))
        assert tails.select("polarised", "beam_rank").rows() == sorted(tails.select("polarised", "beam_rank").rows())
    metrics = metrics_of(folder)
    for scorer, key in (("ngram", "ngram"), ("keyword_neutral", "neutral_template/keyword")):
        neutral = statements.group_by("target").agg(percent=100 * pl.col(scorer).is_in([0, 2]).mean())
        assert metrics[f"{key}/neutral_mean"] == pytest.approx(neutral["percent"].mean())
        assert metrics[f"{key}/neutral_mean_low"] <= metrics[f"{key}/neutral_mean"]
        assert f"{key}/neutral_mean/origin" in metrics
    assert "ngram" not in pl.read_parquet(folder / "score.parquet").columns  # it is held out
