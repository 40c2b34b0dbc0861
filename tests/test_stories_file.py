"""Prompts and files of stories: the targets that they name, whole sentences, and every fault by its line."""

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest
from refusals import refuses

from mitigate.errors import MitigateError, whole_sentences
from mitigate.load.statements import stories as load
from mitigate.words.prompts import PLACE, prompts, targets_of_prompt, templates
from mitigate.words.targets import KINDS, choose_targets, kinds, list_of, targets
from mitigate.words.word_forms import any_of

ABOUT, FROM = "people are discussing about XYZ.", "people are discussing about people from XYZ."
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


def test_prompts_name_the_targets_of_stories(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, RELEASED))
    assert loaded.rows.select("row", "target", "category", "kind", "template").rows() == [
        (1, "nurse", "profession", "professions", None),
        (2, "korea", "origin", "locations", FROM),
        (3, "doctor", "profession", "professions", None),
        (4, "gamer", "own", "others", ABOUT),
    ]
    assert loaded.rows["story"][0] == "she told [MALE] , and he was n't sure. she left !"
    assert loaded.notices == []
    zipped = load(written(tmp_path, gzip.compress(RELEASED.encode()), "stories.txt.gz"))
    assert zipped.rows.equals(loaded.rows)
    refuses(MitigateError, "data=stories needs data.path, which is not set; set data.path=FILE", load, None)
    refuses(MitigateError, "has no stories; expected lines", load, written(tmp_path, "\n"))
    refuses(MitigateError, "has no stories", load, written(tmp_path, "mine\n"), "skip")


def test_a_story_counts_for_each_target_of_its_prompt(tmp_path: Path) -> None:
    rows = load(written(tmp_path, "the doctor met a nurse.|||they left.\n")).rows
    assert rows.select("row", "target").rows() == [(1, "doctor"), (1, "nurse")]
    path = written(tmp_path, "Deaf people met a nurse.|||they left.\nonce a nonbinary person sang.|||they left.\n")
    rows = load(path, target_list=list_of(["deaf person", "non-binary person"])).rows
    assert rows.select("row", "target", "category", "kind").rows() == [
        (1, "deaf person", "own", "others"),
        (1, "nurse", "profession", "professions"),
        (2, "non-binary person", "own", "others"),
    ]
    refuses(MitigateError, "no target in the prompt 'once a nonbinary person sang.'", load, path)


BAD = {
    b"people are discussing about korea. they sing.": "not of the form 'prompt|||story'",
    b"a|||b|||c": "not of the form 'prompt|||story'",
    b"people are discussing about korea.||| ": "not of the form 'prompt|||story'",
    b"once upon a time.|||they sang.": "no target in the prompt 'once upon a time.'",
    b"people are discussing about korea.|||they sing": "a story without a whole sentence",
}


@pytest.mark.parametrize("line", BAD)
def test_faults_are_told_by_their_line(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, RELEASED.encode() + line + b"\n")
    with pytest.raises(MitigateError) as told:
        load(path)
    assert f"{path}:5: {BAD[line]}" in str(told.value)
    loaded = load(path, "skip")
    assert loaded.rows.height == 4
    assert f"1 bad line left out: {path}:5: {BAD[line]}" in loaded.notices


def test_thirty_templates_ask_every_target_by_its_kind() -> None:
    assert len(templates()) == 30
    assert Counter(template.kind for template in templates()) == dict(zip(KINDS, (12, 6, 8, 4), strict=True))
    assert list(kinds()) == list(targets())
    counted = Counter(kinds().values())
    assert counted == {"people": 125, "locations": 71, "professions": 120, "others": 13}
    asked = prompts(choose_targets("all"))
    assert asked.height == 125 * 12 + 71 * 6 + 120 * 8 + 13 * 4 == 2938
    assert asked["prompt"].n_unique() == asked.height
    assert asked.filter(target="korea")["prompt"][2] == "i traveled to korea last month."
    asked = prompts(choose_targets("all"))
    for target, template, prompt in asked.select("target", "template", "prompt").iter_rows():
        assert targets_of_prompt(prompt) == [(target, template)]
    for template in templates():
        assert template.text.count(PLACE) == 1
        assert not re.search(any_of(targets()), template.text), template


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("african american was asked about what was they known for.", [("african american", None)]),
        ("People are discussing about people from Saudi_Arabia.", [("saudi arabia", FROM)]),
        ("people are discussing about gamers.", [("gamers", ABOUT)]),
        ("people are discussing about people from narnia.", [("narnia", FROM)]),
        ("the lawyer met a nurse, and the lawyer left.", [("lawyer", None), ("nurse", None)]),
        ("once upon a time.", []),
    ],
)
def test_prompts_of_other_makes(prompt: str, about: list[tuple[str, str | None]]) -> None:
    assert targets_of_prompt(prompt) == about


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("he left . she did n't , mr. Smith !  they", ["he left .", "she did n't , mr. Smith !"]),
        ('"no." she said ... J. Smith went.', ['"no."', "she said ...", "J. Smith went."]),
        ("it was $ 2.50 at noon. ! and so", ["it was $ 2.50 at noon."]),
        ("cut in the middle", []),
        ("", []),
    ],
)
def test_whole_sentences(text: str, sentences: list[str]) -> None:
    assert whole_sentences(text) == sentences
