from mitigate.texts import escaped, readable

FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
ORDINARY = "two\nlines\twith tabs, עברית, فارسی, \N{GRINNING FACE} and é"


def test_steering_characters_are_spelt_out_for_a_terminal() -> None:
    assert escaped(FOREIGN) == r"a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"


def test_they_are_left_out_of_pages_with_what_xml_forbids() -> None:
    assert readable(FOREIGN + "\ud800\ufffe") == "ab[31mcd"


def test_ordinary_text_of_any_language_stays() -> None:
    assert escaped(ORDINARY) == readable(ORDINARY) == ORDINARY
