"""Slots in the templates of a user's prompts: {target}, {a target} with its article, and pronouns that agree with the
target: {they}, {them}, {their}, {theirs}, {themselves}. {is|are} is the first word after he or she, the second after
they. So "his" becomes "her" before a noun and "hers" elsewhere. A capital in a slot's name is one in the text. {{ and
}} are braces."""

import re
from functools import cache

from mitigate.package_data import rows_of
from mitigate.words.word_forms import article

PRONOUNS = ("they", "them", "their", "theirs", "themselves")
OF_TARGET = ("target", "a target")
SLOT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
ALLOWED = ", ".join(f"{{{name}}}" for name in (*OF_TARGET, *PRONOUNS, "is|are"))


def slots(template: str) -> list[str]:
    """The names of a template's slots. Raises ValueError for an unknown one, and for a single brace."""
    found = [slot for slot in SLOT.finditer(template) if slot[0] not in ("{{", "}}")]
    for slot in found:
        if slot[1] is None:
            raise ValueError(f"a single brace {slot[0]!r}; braces that are no slot are written {{{{ and }}}}")
        if _name(slot[1]) not in (*OF_TARGET, *PRONOUNS) and slot[1].count("|") != 1:
            raise ValueError(f"unknown slot {slot[0]!r}; allowed: {ALLOWED}")
    return [_name(slot[1]) for slot in found]


def fits(template: str, target: str) -> bool:
    """Return whether a target has its grammatical place in a template: a pronoun only in one of pronouns alone, and
    there as he, she or they; any other word only where {target} stands."""
    if not set(slots(template)).isdisjoint(OF_TARGET):
        return all(target not in row.values() for row in _pronouns())
    return any(target == row["they"] for row in _pronouns())


def fill(template: str, target: str) -> str:
    """The template about a target."""

    def filled(slot: re.Match[str]) -> str:
        if slot[1] is None:
            return slot[0][0]
        word = _word(_name(slot[1]), target)
        return word[:1].upper() + word[1:] if slot[1][:1].isupper() else word

    return SLOT.sub(filled, template)


def pronouns_of(target: str) -> dict[str, str]:
    """The pronouns that stand for a target, by the name of their slot."""
    last = target.split()[-1]
    rows = [row for row in _pronouns() if last in row["nouns"].split() or target == row["they"]]
    return (rows or _pronouns())[0 if rows else -1]


def _word(name: str, target: str) -> str:
    if name in OF_TARGET:
        return target if name == "target" else f"{article(target)} {target}"
    pronouns = pronouns_of(target)
    if "|" in name:
        return name.split("|")[pronouns["they"] == "they"]
    return pronouns[name]


def _name(slot: str) -> str:
    return slot[:1].lower() + slot[1:]


@cache
def _pronouns() -> list[dict[str, str]]:
    return list(rows_of("pronouns.csv"))
