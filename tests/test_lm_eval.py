"""The data of the task of docs/examples in lm-evaluation-harness."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT

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
