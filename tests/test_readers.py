"""Whatever a user's file holds, its reader returns or says in a sentence what is wrong (the long form: readers.py)."""

import json
import random
import re
from base64 import b64decode
from pathlib import Path

import pytest
from guided import KEPT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readers import READERS, fault, spoilt

from mitigate.errors import MitigateError

FOUND = [  # by the long form, and mended
    ("relations", b'relation,phrase\n"a\rb,is\n'),
    ("triples.csv", b"head,relation\r,tail\nnurse,IsA,x\n"),
    ("targets", b"target,\rcategory\ndeaf person,own\n"),
    ("answers", b"rater,item,\rlabel\nr1,i1,1\n"),
    ("tails.tsv", b"head\trelation\ttail\nnurse\t\tperson\n"),
    ("texts.jsonl", b'{"text": "kind \\ud83d"}\n'),
    ("texts.jsonl", b"1" * 5000),
    ("generations", b'{"head": "\\udc00", "relation": "xAttr", "tails": ["kind"]}\n'),
    ("triples.jsonl", b"[" * 90_000),
    ("sbic", b"post,intentYN\n"),
    ("sbic", READERS["sbic"].content.replace(",nurses,", "\n").encode()),
    ("frames", b"post,targetStereotype,targetMinority\n\xff,[],[]\n"),
    ("frames", b'post,targetStereotype,targetMinority\n0,"[""\\ud83d""]",[]\n'),
    ("frames", b"post,targetStereotype,targetMinority\n0," + b"1" * 5000 + b",[]\n"),
]


@pytest.mark.parametrize("name", READERS)
def test_a_good_file_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / READERS[name].file
    path.write_text(READERS[name].content)
    assert READERS[name].read(path) is not None


@pytest.mark.parametrize(("name", "content"), FOUND, ids=[name for name, _ in FOUND])
def test_what_was_found_is_told(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / READERS[name].file
    path.write_bytes(content)
    with pytest.raises(MitigateError, match=re.escape(path.name)):
        READERS[name].read(path)


@pytest.mark.parametrize("name", READERS)
def test_inputs_that_reach_other_code_are_read_or_told(name: str, tmp_path: Path) -> None:
    """Those that guided.py kept."""
    kept = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    contents = [b64decode(one["content"]) for one in kept if one["reader"] == name]
    assert contents
    for content in contents:
        assert fault(READERS[name], content, tmp_path) is None, content[:300]


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(draw=st.randoms(use_true_random=False))
def test_a_spoilt_file_is_read_or_told(name: str, draw: random.Random, tmp_path: Path) -> None:
    content = spoilt(READERS[name].content.encode(), draw)
    found = fault(READERS[name], content, tmp_path)
    assert found is None, f"{content[:300]!r}\n{found}"
