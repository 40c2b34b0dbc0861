"""Texts as they are shown, and regular expressions of words."""

import polars as pl
import pytest

from mitigate.words.outside_text import escaped, portable, readable, without_folders
from mitigate.words.targets import list_of, targets
from mitigate.words.word_forms import pattern

FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
ORDINARY = "two\nlines\twith tabs, עברית, فارسی, \N{GRINNING FACE} and é"


def test_steering_characters_are_spelt_out_or_left_out_and_ordinary_text_stays() -> None:
    assert escaped(FOREIGN) == r"a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
    assert readable(FOREIGN + "\ud800\ufffe") == "ab[31mcd"
    assert escaped(ORDINARY) == readable(ORDINARY) == ORDINARY


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("/home/me/my data/names.csv", "names.csv"),
        ("data.root=/home/me/data", "data.root=data"),
        ("compare.runs=[/home/me/a,/home/me/b]", "compare.runs=[a,b]"),
        ("/home/o'neil/data (1)/a=b/names.csv", "names.csv"),
        ("neutral_template/NRM", "neutral_template/NRM"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_of_absolute_paths_the_last_part_is_left(given: str, left: str) -> None:
    assert without_folders(given) == left
    command = "python -m mitigate policy=both 'data.root=/home/some one/data' seed=1"
    assert portable(command) == "python -m mitigate policy=both data.root=data seed=1"


def test_a_form_that_ends_in_a_sign_a_long_word_and_forms_within_others() -> None:
    forms = frozenset(["lgbtq+", "c++", "lgbtq+ person", ".net", "+1", "lgbtq"])
    text = pl.Series(["abclgbtq+ xlgbtq lgbtq+s lgbtq+ persons", "abc++ c++11 C++", "asp.net .network .net", "+12 x+1"])
    assert text.str.replace_all(pattern(forms), "@").to_list() == [
        "abclgbtq+ xlgbtq @s @ persons",
        "abc++ @11 @",
        "asp@ .network @",
        "+12 x@",
    ]
    forms = frozenset(["lawyer", "lawyers", "glass lawyer"])
    text = pl.Series(["Glass-lawyers, glass lawyer; lawyery lawyer"])
    assert text.str.replace_all(pattern(forms), "-").to_list() == ["Glass--, -; lawyery -"]


def test_thousands_of_own_targets_are_masked_and_found() -> None:
    names = [f"{word} {other}" for word in ("glass", "paper") for other in targets()]
    own = list_of(names)
    text = pl.Series(["a Glass-nurse and paper lawyers"])
    assert text.str.replace_all(own.pattern, "-").to_list() == ["a - and -"]
    assert own.found_in(text, names).rows() == [(0, "glass nurse"), (0, "paper lawyer")]
