import pytest

from mitigate.texts import counted, escaped, portable, readable, without_folders

FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
ORDINARY = "two\nlines\twith tabs, עברית, فارسی, \N{GRINNING FACE} and é"


def test_steering_characters_are_spelt_out_for_a_terminal() -> None:
    assert escaped(FOREIGN) == r"a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"


def test_one_is_no_plural() -> None:
    assert [counted(number, "bad line") for number in (0, 1, 2, 1200)] == [
        *("0 bad lines", "1 bad line", "2 bad lines", "1,200 bad lines")
    ]


def test_they_are_left_out_of_pages_with_what_xml_forbids() -> None:
    assert readable(FOREIGN + "\ud800\ufffe") == "ab[31mcd"


def test_ordinary_text_of_any_language_stays() -> None:
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
