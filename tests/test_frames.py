"""What a frame is: consistent values, the linear form and back, and the most probable frame of a malformed text."""

import itertools

import pytest

from mitigate.frames import CHOICES, Frame, assignments, consistent, is_consistent, linearise, most_probable, parse

OFFENSIVE = Frame(offensive=True, intent=False, lewd=None, targeted=True, group="women", implied="women are late")
LINE = "[STR] they hire anyone [SEP] [lewdU] [offY] [intN] [grpY] [SEP] women [SEP] women are late [SEP] [ingU] [END]"


def test_the_linear_form_is_that_of_equation_1() -> None:
    assert linearise("they  hire anyone", OFFENSIVE) == LINE
    assert parse(LINE) == ("they hire anyone", OFFENSIVE)


@pytest.mark.parametrize("post", ["", "a [SEP] b", "[offY]", "\\[SEP] x", "[STR] [END] [", "[[offN]]"])
def test_posts_that_look_like_tokens_come_back(post: str) -> None:
    for frame in (
        Frame(),
        OFFENSIVE,
        Frame(offensive=False),
        Frame(True, True, True, True, "[x] men", "are [late]", False),
    ):
        assert parse(linearise(post, frame)) == (post, frame)


def test_every_consistent_frame_comes_back() -> None:
    values = (True, False, None)
    for offensive, intent, lewd, targeted, ingroup in itertools.product(values, repeat=5):
        frame = consistent(Frame(offensive, intent, lewd, targeted, "women", "women are late", ingroup))
        assert is_consistent(frame)
        assert parse(linearise("a post", frame)) == ("a post", frame)


def test_below_a_negative_parent_nothing_stands_however_far_above() -> None:
    assert consistent(Frame(offensive=False, targeted=True, group="women", implied="x", ingroup=True)) == Frame(
        offensive=False
    )
    kept = Frame(offensive=None, targeted=True, group="women")
    assert consistent(kept) == kept  # nobody said that it is not offensive


def test_consistent_assignments_are_counted() -> None:
    """lewd and intent are free (4); offensive no, or yes with no group, or yes with a group and both of in-group."""
    found = list(assignments(list(CHOICES)))
    assert len(found) == 4 * (1 + 1 + 2)
    assert len({tuple(sorted(one.items(), key=str)) for one in found}) == len(found)
    assert {"offensive": False, "targeted": None} in list(assignments(["offensive", "targeted"]))
    assert list(assignments(["targeted"])) == [{"targeted": False}, {"targeted": True}]


def test_a_contradiction_is_solved_by_log_probabilities() -> None:
    """offensive no (-0.2) against offensive yes and a group (-1.7 - 0.1), or yes and no group (-1.7 - 2.3)."""
    text = LINE.replace("[offY]", "[offN]")
    assert parse(text, {"offensive": (-0.2, -1.7), "targeted": (-2.3, -0.1)})[1] == Frame(False, False)
    found = parse(text, {"offensive": (-2.0, -0.7), "targeted": (-2.3, -0.1)})[1]
    assert (found.offensive, found.targeted, found.group) == (True, True, "women")


def test_without_probabilities_a_group_and_a_statement_outweigh_one_value() -> None:
    _, found = parse(LINE.replace("[offY]", "[offN]"))
    assert (found.offensive, found.targeted, found.implied) == (True, True, "women are late")
    _, found = parse("[STR] a post [SEP] [lewdN] [offN] [intN] [grpY] [SEP] [SEP] [SEP] [ingN] [END]")
    assert found == Frame(offensive=False, intent=False, lewd=False)


@pytest.mark.parametrize(
    "text", ["", "[END]", "[SEP] [SEP] [SEP]", "no token at all", "[offN] [grpY] [offN] [ingY]", LINE[: len(LINE) // 2]]
)
def test_whatever_the_text_the_frame_is_consistent(text: str) -> None:
    assert is_consistent(parse(text)[1])


def test_the_last_of_several_values_counts() -> None:
    assert parse("[STR] a [SEP] [offN] [offY] [SEP]")[1].offensive is True


def test_a_frame_is_the_likeliest_of_all_consistent_ones() -> None:
    log_probs = {"lewd": (-0.3, -1.4), "offensive": (-1.0, -0.5), "targeted": (-0.9, -0.6), "ingroup": (-0.1, -2.0)}
    found = most_probable(Frame(group="women"), log_probs)
    assert found == Frame(offensive=False, lewd=False)  # -1.0 against -0.5 - 0.6 - 0.1
    log_probs["targeted"] = (-0.9, -0.2)
    assert most_probable(Frame(group="women"), log_probs).group == "women"  # -0.5 - 0.2 - 0.1
