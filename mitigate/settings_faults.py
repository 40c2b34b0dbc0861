"""Faults of settings in sentences: the setting, the value given, and what is allowed."""

import re
from collections.abc import Sequence

from pydantic import ValidationError

from mitigate.errors import did_you_mean, one_of

WORDS = {"a valid tuple": "a list", "a valid integer": "a whole number", "a valid boolean": "true or false"}
WORDS |= {"a valid string": "a text", " after validation, not 0": "", "greater than or equal to": "at least"}
WORDS |= {"less than or equal to": "at most"}


def faults_of(error: ValidationError, prefix: str, known: Sequence[str] = ()) -> str:
    """The faults that pydantic found, one for each setting: "policy.copies=1 must be at least 2".

    prefix: the group of the settings. known: the names of all its settings, for one that is not among them."""
    faults: dict[str, str] = {}
    for one in error.errors(include_url=False):
        place, value = next(iter(one["loc"]), ""), one["input"]
        name = known[place] if isinstance(place, int) and place < len(known) else str(place)
        key, needs = f"{prefix}.{name}".rstrip("."), re.sub("^.*? should (be )?", "must \\1", one["msg"])
        for theirs, ours in WORDS.items():
            needs = needs.replace(theirs, ours)
        if one["type"] == "literal_error":
            needs = str(one_of(key, value, re.findall("'([^']+)'", one["ctx"]["expected"])))
        elif one["type"].startswith("unexpected"):
            needs = f"unknown setting {key!r}; allowed in {prefix}: {', '.join(known)}{did_you_mean(name, known)}"
        else:
            needs = f"{key} must be set" if one["type"].startswith("missing") else f"{key}={value!r} {needs}"
        faults.setdefault(name, needs)
    return "; ".join(faults.values())
