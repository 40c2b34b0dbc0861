"""Plain words: pages, docs and sources use the field's terms, none of the project's former private ones, and sentences
with the subject first."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {  # the words, as whole words in any case; what to write
    r"house|room": "layout, module; space, width",
    r"floor(?!\()": "base layer",
    r"unheard|hears?": "held-out scorers",
    r"deaf(?! person| people)|hardly listens?": "ignores the target",
    r"tellers?|storytellers?": "generator",
    r"judged|judging|judgements?": "accepted as plausible; rated, rating, label",  # only a language model is a judge
    r"kept from before": "cached",
    r"at this very run": "already working on this run",
    r"(?:can|could) one believe": "how certain it is",
    r"labels are worth": "how reliable the labels are",
    r"all that is said of targets": "all generated statements about targets",
    r"points beside": "difference from none, percentage points",
    r"would be found": "minimum detectable difference (80 % power)",
}
IN_PROSE = {  # further words that docs do not use; sources still do
    r"told": "reported, informed",
    r"alike": "similar, the same, equally",
    r"is said|said of": "state, generate, about",
    r"who is asked": "the raters",
    r"is handed out": "give, return",
}
OPENING = re.compile(r"(?:^|[.!?:]\s+|\|\s+|^\s*[-*]\s+)(?:\*\*)?(What|Whom|Of which|That which|Who)\b", re.MULTILINE)
"""A sentence, an item or a cell that begins with a pronoun instead of its subject."""
FIRST_WORD = re.compile(r"\s*(?:Of|By|How|Whether|Why|Writes|Adds|Raises)\b")
"""The beginning of a docstring that is neither a noun phrase nor an imperative."""
COLUMNS = ("judged_valid", "generated_valid")  # stored tables have these columns
SOURCES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "conf/**/*.yaml", "mitigate/**/*.py", "models/**/*.py", "mitigate/**/*.jinja")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG-archive.md"  # a record of what was released
)


def faults(text: str, instead_of: dict[str, str] = INSTEAD) -> list[str]:
    """Each private word of a text, its line, and what to write instead. An underscore separates words."""
    for column in COLUMNS:
        text = text.replace(column, "")
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: “{found.group()}”; write: {instead}"
        for words, instead in instead_of.items()
        for found in re.finditer(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", text, re.IGNORECASE)
    ]


def test_sources_have_plain_words() -> None:
    assert len(SOURCES) > 100
    found = {str(path.relative_to(ROOT)): faults(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: words for path, words in found.items() if words} == {}


def inverted(text: str) -> list[str]:
    """Sentences of a text that begin with What, Whom, Of which, That which or Who, each with its line."""
    return [
        f"line {text.count(chr(10), 0, found.start(1)) + 1}: {text[found.start(1) :].split(chr(10))[0][:60]}"
        for found in OPENING.finditer(text)
    ]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a source, those below attributes included, and their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def prose(text: str) -> str:
    """A page without its headings and its blocks of code; lines stay where they are."""
    without_code = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text)
    return re.sub(r"(?m)^#.*$", "", without_code)


def test_docstrings_have_their_subject_first() -> None:
    sources = [path for folder in ("mitigate", "models", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 100
    found = {
        f"{path.relative_to(ROOT)}:{line}": wrong
        for path in sources
        for line, text in docstrings(path)
        if (wrong := inverted(text))
    }
    assert found == {}


def test_docstrings_begin_with_a_noun_phrase_or_an_imperative() -> None:
    openings = ("Whether it is so.", "\nWrites a file.", "Offset of a row.", "Return whether it is so.")
    assert [bool(FIRST_WORD.match(text)) for text in openings] == [True, True, False, False]
    sources = [path for path in SOURCES if path.suffix == ".py"]
    assert len(sources) > 100
    found = {
        f"{path.relative_to(ROOT)}:{line}": text.splitlines()[0]
        for path in sources
        for line, text in docstrings(path)
        if FIRST_WORD.match(text)
    }
    assert found == {}


def test_docs_have_their_subject_first_and_plain_words() -> None:
    pages = [path for path in SOURCES if path.suffix == ".md"]
    assert {"README.md", "CONTRIBUTING.md", "run.md", "results.md"} <= {path.name for path in pages}
    texts = {str(path.relative_to(ROOT)): prose(path.read_text(encoding="utf-8")) for path in pages}
    found = {name: inverted(text) + faults(text, IN_PROSE) for name, text in texts.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
