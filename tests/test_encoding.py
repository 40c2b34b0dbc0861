from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoTokenizer

from models.encoding import Encoding
from models.minilm import locate


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.of_encoder(locate())


def test_a_text_is_lower_cased_and_gets_no_tokens_added(encoding: Encoding) -> None:
    ids = encoding.encode(["Win a CASE", ""])
    assert [encoding.tokenizer.id_to_token(i) for i in ids[0]] == ["win", "a", "case"]
    assert ids[1] == []
    assert (encoding.start, encoding.end, encoding.pad, encoding.vocab_size) == (101, 102, 0, 30522)


def test_decoding_leaves_out_special_tokens(encoding: Encoding) -> None:
    ids = encoding.encode(["unwillingly cross-examine"])[0]
    assert encoding.decode([101, *ids, 102, 0]) == "unwillingly cross - examine"


def test_auto_tokenizer_gives_a_prompt_as_we_do(encoding: Encoding, tmp_path: Path) -> None:
    encoding.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)("Lawyer is capable of")
    assert theirs.input_ids == [encoding.start, *encoding.encode(["lawyer is capable of"])[0]]
    assert set(theirs) == {"input_ids", "attention_mask"}
    ours = Encoding.load(tmp_path)
    assert (ours.start, ours.end, ours.pad) == (encoding.start, encoding.end, encoding.pad)
    assert ours.encode(["a judge"]) == encoding.encode(["a judge"])


def test_a_tokenizer_without_an_end_token_is_given_one(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordLevel({"<unk>": 0, "case": 1}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"unk_token": {"content": "<unk>"}}')
    encoding = Encoding.load(tmp_path)
    assert (encoding.start, encoding.end, encoding.pad, encoding.vocab_size) == (None, 2, 2, 3)
    assert encoding.encode(["case closed"]) == [[1, 0]]


def test_a_pad_token_that_is_not_there_is_named(tmp_path: Path) -> None:
    Tokenizer(WordLevel({"case": 0})).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": "<nothing>"}')
    with pytest.raises(ValueError, match="no token '<nothing>'"):
        Encoding.load(tmp_path)
