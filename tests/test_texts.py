"""Texts as they are shown, and regular expressions of words."""

import random
import re

import polars as pl
import pytest

from mitigate.words.outside_text import counted, escaped, portable, readable, without_folders
from mitigate.words.targets import list_of, targets
from mitigate.words.word_forms import BLANK, pattern, replace_all

FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
ORDINARY = "two\nlines\twith tabs, עברית, فارسی, \N{GRINNING FACE} and é"


def test_steering_characters_are_spelt_out_or_left_out_and_ordinary_text_stays() -> None:
    assert escaped(FOREIGN) == r"a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
    assert [counted(number, "bad line") for number in (0, 1, 2, 1200)] == [
        *("0 bad lines", "1 bad line", "2 bad lines", "1,200 bad lines")
    ]
    assert readable(FOREIGN + "\ud800\ufffe") == "ab[31mcd"
    assert escaped(ORDINARY) == readable(ORDINARY) == ORDINARY


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("/home/me/my data/names.csv", "names.csv"),
        ("data.root=/home/me/data", "data.root=data"),
        ("compare.runs=[/home/me/a,/home/me/b]", "compare.runs=[a,b]"),
        ("~/data/names.csv", "names.csv"),
        ("/home/o'neil/data (1)/a=b/names.csv", "names.csv"),
        ("kge.runs=['/home/me/a','/home/me/b c']", "kge.runs=['a','b c']"),
        ("neutral_template/NRM", "neutral_template/NRM"),
        ("outputs/a-run", "outputs/a-run"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_of_absolute_paths_the_last_part_is_left(given: str, left: str) -> None:
    assert without_folders(given) == left


def test_a_command_for_others_has_no_folders_of_this_machine() -> None:
    command = "python -m mitigate policy=both 'data.root=/home/some one/data' seed=1"
    assert portable(command) == "python -m mitigate policy=both data.root=data seed=1"


PIECES = ["a", "b", "s", "A", "é", "ß", " ", " ", "-", "_", "+", ".", "k", "ſ"]


def spelled_out(forms: frozenset[str], exact: frozenset[str] = frozenset()) -> str:
    """The alternation, written out."""
    ordered = sorted(forms | exact, key=lambda form: (-len(form), form))
    written = {form: re.escape(form).replace(r"\ ", r"\ " if form in exact else BLANK) for form in ordered}
    edges = {form: [r"\b" * bool(re.match(r"\w", end)) for end in (form[0], form[-1])] for form in ordered}
    return "(?i)" + "|".join(edges[form][0] + written[form] + edges[form][1] for form in ordered)


def made_up(draw: random.Random, count: int, longest: int) -> frozenset[str]:
    drawn = ("".join(draw.choices(PIECES, k=draw.randint(1, longest))) for _ in range(count))
    return frozenset(form.lower() for form in drawn if form.strip())


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_what_an_alternation_finds(seed: int) -> None:
    draw = random.Random(seed)
    forms, exact = made_up(draw, 12, 5), made_up(draw, 4, 5)
    texts = pl.Series(["".join(draw.choices(PIECES, k=14)) for _ in range(400)])
    expected = texts.str.replace_all(spelled_out(forms, exact), "@")
    assert texts.str.replace_all(pattern(forms, exact), "@").equals(expected)
    assert (expected != texts).sum() > 100


def test_a_form_that_ends_in_a_sign_a_long_word_and_forms_within_others() -> None:
    forms = frozenset(["lgbtq+", "c++", "lgbtq+ person", ".net", "+1", "lgbtq"])
    text = pl.Series(["abclgbtq+ xlgbtq lgbtq+s lgbtq+ persons", "abc++ c++11 C++", "asp.net .network .net", "+12 x+1"])
    assert text.str.replace_all(pattern(forms), "@").to_list() == [
        "abclgbtq+ xlgbtq @s @ persons",
        "abc++ @11 @",
        "asp@ .network @",
        "+12 x@",
    ]
    assert text.str.extract_all(pattern(forms | {"lgbtq+ persons"})).to_list()[0] == ["lgbtq+", "lgbtq+ persons"]
    forms = frozenset(["lawyer", "lawyers", "glass lawyer", "x" * 5_000])
    text = pl.Series(["Glass-lawyers, glass lawyer; lawyery lawyer", "X" * 5_000])
    assert text.str.replace_all(pattern(forms), "-").to_list() == ["Glass--, -; lawyery -", "-"]


def test_thousands_of_own_targets_are_masked_and_found() -> None:
    names = [f"{word} {other}" for word in ("glass", "paper", "stone", "wool") for other in targets()]
    own = list_of(names)
    text = pl.Series(["a Glass-nurse and paper lawyers"])
    assert replace_all(text, own.pattern, "-").to_list() == ["a - and -"]
    assert own.found_in(text, names).rows() == [(0, "glass nurse"), (0, "paper lawyer")]
