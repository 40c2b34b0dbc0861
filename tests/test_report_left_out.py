"""Whom a page's figures leave out, as its closing texts say."""

from mitigate.report.left_out import left_out
from mitigate.targets import targets

PAPER = (
    "Non-binary people are missing from the paper's list, as is everyone whom its words do not name. No number here "
    "describes them."
)


def test_of_the_papers_targets_it_is_told_who_is_no_person_and_who_is_missing() -> None:
    assert left_out(list(targets())) == [
        "Not every target is a person: 71 name a place (such as “ethiopia”) and 7 name a religion, a book or a "
        "building (such as “sharia”). Their numbers describe statements about a place or a thing.",
        PAPER,
    ]
    assert left_out([]) == []


def test_a_part_of_the_papers_targets_leaves_out_the_others() -> None:
    assert left_out(["lawyer", "italy", "lawyer"]) == [
        "Not every target is a person: 1 names a place (such as “italy”). Their numbers describe statements about a "
        "place or a thing.",
        "327 of the paper's 329 targets are left out, among them all of gender and religion.",
        PAPER,
    ]


def test_a_run_about_non_binary_people_does_not_say_that_no_number_is_about_them() -> None:
    assert left_out(["non-binary person", "lawyer"]) == [
        "328 of the paper's 329 targets are left out, among them all of origin, gender and religion.",
        "1 target is not in the paper's list: non-binary person. No number here describes anyone whom the 2 targets do "
        "not name.",
    ]
    assert left_out(["non-binary person", "roma"])[0] == "All of the paper's 329 targets are left out."
    assert left_out(["roma"])[1].endswith("No number here describes anyone whom this target does not name.")


def test_one_is_no_plural() -> None:
    assert "1 of the paper's 329 targets is left out." in left_out([name for name in targets() if name != "lawyer"])
