"""The page of an audit, whom figures leave out, and how reliable labels are."""

import audit_example
import polars as pl
import pytest
from audit_example import UNTRUSTED, example_audit, results, statements
from page_elements import Elements, unlabelled

from mitigate.report.audit import console, numbers
from mitigate.report.page import Page, render
from mitigate.report.sections import left_out
from mitigate.words.targets import targets


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lawyer", "italy"], "327 of the paper's 329 targets are left out, among them all of gender and religion."),
        (["roma", "lawyer"], "1 target not in the paper's list: roma."),
        (list(targets()), "Not every target is a person"),
    ],
)
def test_whom_figures_leave_out(words: list[str], said: str) -> None:
    assert said in " ".join(left_out(words))
    assert left_out([]) == []


@pytest.fixture(scope="module")
def made() -> Page:
    return example_audit()


def test_the_first_screen_says_how_much_about_whom_and_how_sure(made: Page) -> None:
    """Of 160 statements 10 about the first target and 2 of 10 about each other are negative, 1 of 10 positive."""
    assert made.state == "Polarised: 34.4 % (sentiment)"
    assert "160 statements about 16 of 16 targets" in made.hedge
    mean, spread, worst = made.numbers
    assert (mean.value, mean.note[:1]) == ("65.6 %", "[")
    assert spread.value == f"{70 * (15 / 256) ** 0.5:.1f}"  # of 70, fifteen times, and 0
    first = audit_example.NAMES["target"][0]
    assert (worst.value, worst.note) == ("100.0 %", f"[69.2, 100.0], “{first}”, 10 statements")
    assert made.picture is not None
    assert "all targets 25.0 % and 9.4 %" in made.picture.alt


def test_no_target_is_the_worst_for_a_statement_or_two() -> None:
    rows = pl.DataFrame({"target": ["a", "b"], "statements": [1, 20], "prejudice": [100.0, 30.0]})
    *_, worst = numbers(results(statements()).table, "sentiment", rows)
    assert "“b”, 20 statements" in worst.note


def test_the_page_trusts_no_text_and_shows_every_section(made: Page) -> None:
    html = render(made)
    page = unlabelled(html)
    Elements(html).check()
    assert UNTRUSTED not in page
    assert page.count("<svg") == len(made.pictures) > 5
    assert page.index("content warning") < page.index("&lt;script&gt;")
    titles = [section.title for section in made.shown_sections]
    assert titles[1:3] == ["The paper's figures and ours", "Policies against people"]
    assert titles[3:] == ["Figures", "Relations", "Targets"]
    for shown in ("<td>2,000</td>", "−50.0 %", "It differs.", "997 statements"):
        assert shown in page
    assert len(example_audit(beside=None).shown_sections) == len(titles) - 1


def test_the_terminal() -> None:
    rows = results(statements()).table
    assert "polarised by sentiment" in console(rows)
    assert "disparity" not in console(rows)
    assert "disparity in the number of statements" in console(rows, ["D_R"], verbose=True)
