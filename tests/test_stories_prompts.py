"""Prompts for stories: whom they ask about, and how a prompt tells that again; and where sentences end."""

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from mitigate.prompts import KINDS, PLACE, asked_about, kind_of, kinds, prompts, templates
from mitigate.sentences import whole_sentences
from mitigate.target_list import list_of
from mitigate.targets import choose_targets, targets
from mitigate.word_forms import any_of


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


def test_a_template_names_no_target_but_its_own() -> None:
    for template in templates():
        assert template.text.count(PLACE) == 1
        assert not re.search(any_of(targets()), template.text), template


def test_every_prompt_tells_whom_it_is_about() -> None:
    asked = prompts(choose_targets("all"))
    for target, number, prompt in asked.select("target", "template", "prompt").iter_rows():
        assert asked_about(prompt) == [(target, number)]


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("african american was asked about what was they known for.", [("african american", None)]),
        ("People are discussing about people from Saudi_Arabia.", [("saudi arabia", 13)]),
        ("people are discussing about gamers.", [("gamers", 2)]),
        ("people are discussing about people from narnia.", [("narnia", 13)]),
        ("the lawyer met a nurse, and the lawyer left.", [("lawyer", None), ("nurse", None)]),
        ("once upon a time.", []),
    ],
)
def test_prompts_of_other_makes(prompt: str, about: list[tuple[str, int | None]]) -> None:
    assert asked_about(prompt) == about


def test_a_word_of_ones_own_is_asked_what_fits_any_word() -> None:
    assert kind_of("gamer") == "others"
    own = prompts(choose_targets(["gamer"]))
    assert own["kind"].to_list() == 4 * ["others"]
    assert own["category"].to_list() == 4 * ["own"]


OWN = list_of(["deaf person", "non-binary person"])


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("people are discussing about nonbinary people.", [("non-binary person", 27)]),
        ("a Deaf person met the lawyer.", [("deaf person", None), ("lawyer", None)]),
        ("deaf people and the non_binary person left.", [("deaf person", None), ("non-binary person", None)]),
        ("people are discussing about gamers.", [("gamers", 2)]),
    ],
)
def test_prompts_about_own_targets_in_any_of_their_forms(prompt: str, about: list[tuple[str, int | None]]) -> None:
    assert asked_about(prompt, OWN) == about


def test_own_targets_are_asked_by_the_kind_that_a_file_gives(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,category,kind\ndeaf person,own,people\nsurfer,profession,\nnarnia,own,locations\n")
    chosen, mine = choose_targets(path), list_of(path)
    asked = prompts(chosen, mine)
    assert asked.group_by("target", maintain_order=True).agg(pl.col("kind").first(), pl.len()).rows() == [
        ("deaf person", "people", 12),
        ("surfer", "professions", 8),
        ("narnia", "locations", 6),
    ]
    for target, number, prompt in asked.select("target", "template", "prompt").iter_rows():
        assert asked_about(prompt, mine) == [(target, number)]


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
