"""Sentences to the user about something unusual: who shows them."""

import pytest

from mitigate.progress import Step, listening, notice


class Bars:
    """Shows steps, but no notices."""

    def begin(self, step: Step) -> None: ...
    def at(self, step: Step) -> None: ...
    def end(self, step: Step) -> None: ...


class Page(Bars):
    def __init__(self) -> None:
        self.shown: list[str] = []

    def notice(self, message: str) -> None:
        self.shown.append(message)


def test_the_innermost_listener_shows_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    outer, inner = Page(), Page()
    with listening(outer), listening(inner):
        notice("a file is damaged")
    assert (outer.shown, inner.shown) == ([], ["a file is damaged"])
    assert capsys.readouterr() == ("", "")


def test_without_one_that_shows_notices_they_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    notice("one")
    with listening(Bars()):
        notice("two")
    assert capsys.readouterr() == ("", "one\ntwo\n")
