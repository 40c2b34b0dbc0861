"""Social Bias Frames (Sap et al. 2020): frames, their consistency, and their linear form (equation 1).

Independent of models and files. A missing value is None: it is written as an unknown value and has no loss."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

CHOICES = ("lewd", "offensive", "intent", "targeted", "ingroup")
"""The five classifications in the order of equation 1: w_lewd, w_off, w_int, w_grp, and after the texts w_ing."""

TEXTS = ("group", "implied")
"""The targeted group and the implied statement."""

PARENTS = {"targeted": "offensive", "group": "targeted", "implied": "targeted", "ingroup": "targeted"}
"""A variable has a value only where its parent is positive (Section 2, Figure 4)."""

SHORT = {"lewd": "lewd", "offensive": "off", "intent": "int", "targeted": "grp", "ingroup": "ing"}
START, NEXT, END = "[STR]", "[SEP]", "[END]"
VALUES = {False: "N", True: "Y", None: "U"}
"""The letter of a value: [offY], [offN], and [offU] for a missing one."""

NAMES = {
    "offensive": "offensive",
    "intent": "intent to offend",
    "lewd": "lewd",
    "targeted": "group targeted",
    "ingroup": "in-group language",
    "group": "targeted group",
    "implied": "implied statement",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One post-group-statement instance. None and "" stand for values that are missing or impossible."""

    offensive: bool | None = None
    intent: bool | None = None
    lewd: bool | None = None
    targeted: bool | None = None  # whether a group is targeted
    group: str = ""
    implied: str = ""
    ingroup: bool | None = None


def token(name: str, value: bool | None) -> str:
    """A classification's token: ("offensive", True) is "[offY]"."""
    return f"[{SHORT[name]}{VALUES[value]}]"


def consistent(frame: Frame) -> Frame:
    """The frame without impossible values: below a negative parent, at any distance, a classification is None and a
    text is "". Below a parent without a value, values stay."""
    for name, parent in PARENTS.items():
        if getattr(frame, parent) is False or (parent in PARENTS and getattr(frame, PARENTS[parent]) is False):
            nothing: Any = "" if name in TEXTS else None
            frame = replace(frame, **{name: nothing})
    return frame


def is_consistent(frame: Frame) -> bool:
    """Return whether there is no value below a negative parent."""
    return consistent(frame) == frame


def linearise(post: str, frame: Frame) -> str:
    """The text of equation 1. A variable without a value is written as [..U] or empty."""
    before = " ".join(token(name, getattr(frame, name)) for name in CHOICES[:-1])
    parts = [f"{START} {_escaped(post)}", before, _escaped(frame.group), _escaped(frame.implied)]
    return f" {NEXT} ".join(parts) + f" {NEXT} {token('ingroup', frame.ingroup)} {END}"


def parse(text: str, log_probs: Mapping[str, tuple[float, float]] | None = None) -> tuple[str, Frame]:
    """The post and the frame of a linear form: the inverse of `linearise` for its own texts.

    Any other text, such as a generated one that contradicts itself or lacks parts, gives the most probable consistent
    frame. log_probs: of no and yes under the model (most_probable)."""
    marks = {token(name, value): (name, value) for name in CHOICES for value in VALUES}
    parts: list[list[str]] = [[]]
    found: dict[str, bool | None] = {}
    for piece in re.split(_SPECIAL, text):
        if piece == NEXT:
            parts.append([])
        elif piece in marks:
            name, value = marks[piece]
            found[name] = value
        elif piece not in (START, END):
            parts[-1].append(piece)
    texts = [" ".join(" ".join(part).split()).replace("\\[", "[") for part in [*parts, [], [], [], []]]
    frame = Frame(**found, group=texts[2], implied=texts[3])  # type: ignore[arg-type]
    return texts[0], frame if is_consistent(frame) else most_probable(frame, log_probs)


def most_probable(frame: Frame, log_probs: Mapping[str, tuple[float, float]] | None = None) -> Frame:
    """The consistent frame of the highest log-probability (Section 4, constrained decoding), given one that may
    contradict itself: the sum over classifications that have a value of its log-probability. Of equal ones the first
    in the order of `assignments`.

    log_probs: of no and yes, by name, of the classifications that the model predicted; others stay as in the frame.
    Without log_probs, a value in the frame has log-probability 0 and the other one -1, and each group or statement of
    an assignment that targets no group costs 1."""
    texts = sum(bool(getattr(frame, name)) for name in TEXTS) if log_probs is None else 0
    if log_probs is None:  # those that follow from the frame alone
        given = {name: value for name in CHOICES if (value := getattr(frame, name)) is not None}
        log_probs = {name: (-1.0, 0.0) if value else (0.0, -1.0) for name, value in given.items()}
        log_probs = {"offensive": (0.0, 0.0), "targeted": (0.0, 0.0), **log_probs} if texts else log_probs
    if not log_probs:
        return consistent(frame)

    def score(candidate: Mapping[str, bool | None]) -> float:
        likely = sum(log_probs[name][value] for name, value in candidate.items() if value is not None)
        return likely - texts * (candidate.get("targeted") is not True)

    best: dict[str, Any] = max(assignments(list(log_probs)), key=score)
    return consistent(replace(frame, **best))


def assignments(names: list[str]) -> Iterator[dict[str, bool | None]]:
    """Yield all consistent values of these classifications, those with most negative values first; None below a
    negative parent. A parent that is not among them counts as positive."""
    ordered = list(dict.fromkeys(name for name in ("offensive", *CHOICES) if name in names))  # parents first
    for values in itertools.product((False, True), repeat=len(ordered)):
        given: dict[str, bool | None] = {}
        for name, value in zip(ordered, values, strict=True):
            below = name in PARENTS and given.get(PARENTS[name], True) is not True
            given[name] = None if below else value
        if all(bool(given[name]) == value for name, value in zip(ordered, values, strict=True)):
            yield given


_SPECIAL = re.compile(rf"(?<!\\)(\[(?:STR|SEP|END|(?:{'|'.join(SHORT.values())})[NYU])\])")


def _escaped(text: str) -> str:
    """The text in one line, without anything that reads as a token."""
    return " ".join(text.split()).replace("[", "\\[")


assert {field.name for field in fields(Frame)} == {*CHOICES, *TEXTS}
