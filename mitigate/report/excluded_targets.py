"""The groups that the figures of a page cover and exclude, from the measured targets."""

from collections.abc import Iterator, Sequence

from mitigate.report.verdicts import listed as in_words
from mitigate.words.prompts import kinds
from mitigate.words.targets import CATEGORIES, named, targets


def left_out(words: Sequence[str]) -> list[str]:
    """Sentences about the measured targets; none without targets."""
    return list(_sentences(list(dict.fromkeys(words)))) if words else []


def _sentences(words: list[str]) -> Iterator[str]:
    own, listed = ([word for word in words if (word in targets()) == is_listed] for is_listed in (False, True))
    places = [word for word in listed if kinds()[word] == "locations"]
    things = [word for word in listed if kinds()[word] == "others" and targets()[word] == "religion"]
    not_persons = [
        f"{len(found)} {'names' if len(found) == 1 else 'name'} {kind} (such as “{found[0]}”)"
        for found, kind in ((places, "a place"), (things, "a religion, a book or a building"))
        if found
    ]
    if not_persons:
        yield (
            f"Not every target is a person: {in_words(not_persons)}. Their numbers describe statements about a "
            "place or a thing."
        )
    if rest := len(targets()) - len(listed):
        measured = {targets()[word] for word in listed}
        missing = [category for category in CATEGORIES if category not in measured]
        whole = f", among them all of {in_words(missing)}" if listed and missing else ""
        number, verb = rest if listed else "All", "is" if rest == 1 else "are"
        yield f"{number} of the paper's {len(targets())} targets {verb} left out{whole}."
    if own:
        those = "1 target is" if len(own) == 1 else f"{len(own):,} targets are"
        all_targets = "this target does" if len(words) == 1 else f"the {len(words):,} targets do"
        yield (
            f"{those} not in the paper's list: {named(own)}. No number here describes anyone whom {all_targets} not "
            "name."
        )
    else:
        yield (
            "Non-binary people are missing from the paper's list, as is everyone whom its words do not name. No number "
            "here describes them."
        )
