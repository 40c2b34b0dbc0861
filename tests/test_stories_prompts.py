"""Prompts for stories: whom they ask about, and how a prompt tells that again; and where sentences end."""

import re
from collections import Counter

import pytest

from mitigate.prompts import KINDS, PLACE, asked_about, kind_of, kinds, prompts, templates
from mitigate.sentences import whole_sentences
from mitigate.targets import any_of, choose_targets, targets


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
