"""Stories from elsewhere, a line `prompt|||story` each, as the harms paper's authors released those of CSG. The
prompt gives the target of a story."""

from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check, fields, read_lines, report_faults
from mitigate.load.stream import Loaded
from mitigate.words.outside_text import whole_sentences
from mitigate.words.prompts import PROMPTS, kind_of, targets_of_prompt
from mitigate.words.targets import PAPER, TargetList

BETWEEN = "|||"
EXPECTED = f"prompt{BETWEEN}story"


def load(path: str | None, on_bad_line: OnBadLine = "error", target_list: TargetList = PAPER) -> Loaded:
    """The stories of a file, `.gz` or plain, about targets of the list or in the place of a template; prompts and
    stories stay unchanged. The rows have the columns PROMPTS and story, in the order of the lines; row is the line's
    number. A story whose prompt names several targets has a row for each.

    Raises MitigateError for no path, for a file that is missing, unreadable or empty, and, unless on_bad_line is
    "skip", for lines that are not UTF-8 or not of these two parts, for prompts that name no target, and for stories
    without a whole sentence."""
    check(on_bad_line)
    if path is None:
        raise MitigateError(f"data=stories needs a file: give data.path=FILE, of lines '{EXPECTED}'")
    lines, notices = read_lines(Path(path), EXPECTED)
    rows: list[tuple] = []
    faults: list[str] = []
    for number, written in fields(lines, path, BETWEEN, faults):
        parts = [part.strip() for part in written]
        about = targets_of_prompt(parts[0], target_list)
        if fault := _fault(parts, bool(about)):
            faults.append(f"{path}:{number}: {fault}")
            continue
        prompt, story = parts
        for target, template in about:
            category, kind = target_list.categories.get(target, "own"), kind_of(target, target_list)
            rows.append((number, target, category, kind, template, prompt, story))
    notices += report_faults(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no stories; expected lines '{EXPECTED}'")
    stories = pl.DataFrame(rows, schema={**PROMPTS, "story": pl.String}, orient="row")
    return Loaded(stories, notices, kind="stories")


def _fault(parts: list[str], names_a_target: bool) -> str | None:
    if len(parts) != 2:
        return f"{len(parts)} parts, expected '{EXPECTED}'"
    if not all(parts):
        return "a blank prompt or story"
    if not names_a_target:
        return f"no target in the prompt {parts[0]!r}"
    if not whole_sentences(parts[1]):
        return "a story without a whole sentence"
    return None
