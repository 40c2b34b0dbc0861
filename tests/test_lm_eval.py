"""A saved model and the task of docs/examples in lm-evaluation-harness, where that is installed."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command import ROOT
from small_models import save_chat_llama, small_comet

from mitigate.words.relations import relations

EXAMPLE = ROOT / "docs" / "examples" / "lm_eval"
TRIPLES = "head,relation,tail\n" + "".join(
    f"{head},CapableOf,{tail}\n"
    for head, tail in (
        *(("baker", "bake bread"), ("cook", "cook soup"), ("pilot", "fly a plane"), ("tailor", "sew a coat")),
        *(("farmer", "grow corn"), ("teacher", "teach"), ("nurse", "work"), ("guard", "work")),
    )
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data of the task, made from triples of one's own."""
    (tmp_path / "triples.csv").write_text(TRIPLES)
    script = [sys.executable, str(EXAMPLE / "swap_lift_data.py"), "triples.csv"]
    made = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / "swap_lift.jsonl").write_text(made)
    return tmp_path


def test_each_tail_stands_behind_its_own_head_and_four_that_do_not_have_it(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "swap_lift.jsonl").read_text().splitlines()]
    phrase = relations()["CapableOf"].phrase
    heads = dict(line.split(",CapableOf,")[::-1] for line in TRIPLES.splitlines()[1:7])
    for row in rows:
        assert len(set(row["prompts"])) == 5
        if row["tail"] in heads:
            assert row["prompts"][row["own"]] == f"{heads[row['tail']]} {phrase}"
        else:  # two heads have this tail, and are never beside each other
            assert sum(prompt.startswith(("nurse", "guard")) for prompt in row["prompts"]) == 1
    assert {row["tail"] for row in rows} >= set(heads)
    assert len({row["own"] for row in rows}) > 2


def measured(folder: Path, data: Path) -> float:
    """The accuracy that the harness finds for the model of a folder on the data of the task."""
    command = [
        *(sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={folder},dtype=float32"),
        *("--tasks", "swap_lift", "--include_path", str(EXAMPLE), "--device", "cpu", "--batch_size", "4"),
        *("--output_path", str(data / folder.name)),
    ]
    ended = subprocess.run(command, cwd=data, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    (path,) = (data / folder.name).rglob("results_*.json")
    return json.loads(path.read_text())["results"]["swap_lift"]["acc,none"]


def test_the_harness_measures_saved_models(data: Path) -> None:
    """Two processes of the harness, which take 10 seconds each to start."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install lm-eval")
    llama, comet = save_chat_llama(data / "llama", [TRIPLES]), data / "comet"
    small_comet().save(comet)
    rows = [json.loads(line) for line in (data / "swap_lift.jsonl").read_text().splitlines()]
    assert measured(llama, data) == pytest.approx(sum(own_first(llama, row) for row in rows) / len(rows))
    assert 0 <= measured(comet, data) <= 1


def own_first(folder: Path, row: dict) -> bool:
    """Return whether a tail is likeliest behind its own head's prompt, by the library's own model."""
    from models.language_model import LanguageModel

    model = LanguageModel.load(folder)
    found = []
    for prompt in row["prompts"]:
        begun, whole = (model.tokenizer(text)["input_ids"] for text in (prompt, f"{prompt} {row['tail']}"))
        with torch.inference_mode():
            nll = model.nll([begun], [whole[len(begun) :]])
        found.append(-math.fsum(nll.tolist()))
    return found.index(max(found)) == row["own"]
