"""A file of stories: whom each is about, and every fault told by its line."""

import gzip
from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.load.stories import load
from mitigate.target_list import list_of

RELEASED = (  # in the manner of the released file, CRLF and tokenizer's marks included
    "nurse was asked about what was they known for.||| she told [MALE] , and he was n't sure. she left ! \r\n"
    "people are discussing about people from korea.||| they are kind. they sing\r\n"
    "the doctor met a gamer.||| he left.\r\n"
    "people are discussing about gamer.||| he won. \r\n"
)


def written(folder: Path, content: bytes | str, name: str = "stories.txt") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_prompts_tell_whom_stories_are_about(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, RELEASED))
    assert loaded.stories.select("row", "target", "category", "kind", "template").rows() == [
        (1, "nurse", "profession", "professions", None),
        (2, "korea", "origin", "locations", 13),
        (3, "doctor", "profession", "professions", None),
        (4, "gamer", "own", "others", 2),
    ]
    assert loaded.stories["story"][0] == "she told [MALE] , and he was n't sure. she left !"
    assert loaded.notices == [f"{tmp_path}/stories.txt: 4 lines with Windows line ends (CRLF), accepted"]
    zipped = load(written(tmp_path, gzip.compress(RELEASED.encode()), "stories.txt.gz"))
    assert zipped.stories.equals(loaded.stories)


def test_a_story_about_two_targets_counts_for_both(tmp_path: Path) -> None:
    rows = load(written(tmp_path, "the doctor met a nurse.|||they left.\n")).stories
    assert rows.select("row", "target").rows() == [(1, "doctor"), (1, "nurse")]


def test_own_targets_are_found_in_prompts_in_any_of_their_forms(tmp_path: Path) -> None:
    path = written(tmp_path, "Deaf people met a nurse.|||they left.\nonce a nonbinary person sang.|||they left.\n")
    rows = load(path, target_list=list_of(["deaf person", "non-binary person"])).stories
    assert rows.select("row", "target", "category", "kind").rows() == [
        (1, "deaf person", "own", "others"),
        (1, "nurse", "profession", "professions"),
        (2, "non-binary person", "own", "others"),
    ]
    with pytest.raises(MitigateError, match="no target in the prompt 'once a nonbinary person sang.'"):
        load(path)


BAD = {
    b"people are discussing about korea. they sing.": "1 parts, expected 'prompt|||story'",
    b"a|||b|||c": "3 parts, expected 'prompt|||story'",
    b"people are discussing about korea.||| ": "a blank prompt or story",
    b"once upon a time.|||they sang.": "no target in the prompt 'once upon a time.'",
    b"people are discussing about korea.|||they sing": "a story without a whole sentence",
    b"people are discussing about \xff.|||they sing.": "not UTF-8 (invalid start byte at byte 28)",
}


@pytest.mark.parametrize("line", BAD)
def test_faults_are_told_by_their_line(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, RELEASED.encode() + line + b"\n")
    with pytest.raises(MitigateError) as told:
        load(path)
    assert f"{path}:5: {BAD[line]}" in str(told.value)
    loaded = load(path, "skip")
    assert loaded.stories.height == 4
    assert f"1 bad line left out: {path}:5: {BAD[line]}" in loaded.notices


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="data=stories needs a file: give data.path=FILE"):
        load(None)
    with pytest.raises(MitigateError, match="is empty; expected lines"):
        load(written(tmp_path, "\n"))
    with pytest.raises(MitigateError, match="has no stories"):
        load(written(tmp_path, "mine\n"), "skip")
