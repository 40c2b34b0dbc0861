"""Plain words: what a person reads uses the field's terms, and none of the project's former private ones."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_examples import PAGES

ROOT = Path(__file__).parents[1]
INSTEAD = {  # the words, as whole words in any case; what to write
    r"house|room": "layout, module; space, width",
    r"floor(?!\()": "base layer",
    r"unheard|hears?": "held-out scorers",
    r"deaf(?! person| people)|hardly listens?": "ignores the target",
    r"tellers?|storytellers?": "generator",
    r"judges?|judged|judging|judgements?": "plausibility classifier, accepted as plausible; rater, rating, label",
    r"kept from before": "cached",
    r"at this very run": "already working on this run",
    r"(?:can|could) one believe": "how certain it is",
    r"labels are worth": "how reliable the labels are",
    r"all that is said of targets": "all generated statements about targets",
    r"points beside": "difference from none, percentage points",
    r"would be found": "minimum detectable difference (80 % power)",
}
COLUMNS = ("judged_valid", "generated_valid")  # stored tables have these columns
SOURCES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "conf/**/*.yaml", "mitigate/**/*.py", "models/**/*.py", "mitigate/**/*.jinja")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"  # a record of what was released
)


class Text(HTMLParser):
    """What a page shows or reads aloud: its text and labels, without styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shown = ""
        self.feed(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shown += " ".join(f" {value} " for name, value in attrs if name == "aria-label")

    def handle_data(self, data: str) -> None:
        self.shown += data


def faults(text: str) -> list[str]:
    """Each private word of a text, its line, and what to write instead. An underscore separates words."""
    for column in COLUMNS:
        text = text.replace(column, "")
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: “{found.group()}”; write: {instead}"
        for words, instead in INSTEAD.items()
        for found in re.finditer(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", text, re.IGNORECASE)
    ]


def test_a_private_word_is_found_also_within_a_name() -> None:
    assert faults("One.\nThe Judge of _check_room.") == [
        "line 2: “room”; write: layout, module; space, width",
        "line 2: “Judge”; write: plausibility classifier, accepted as plausible; rater, rating, label",
    ]
    assert faults("a warehouse, np.floor(x), the column judged_valid, a deaf person") == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_plain_words(name: str) -> None:
    assert faults(Text(PAGES[name]()).shown) == []


def test_sources_have_plain_words() -> None:
    assert len(SOURCES) > 500
    found = {str(path.relative_to(ROOT)): faults(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: words for path, words in found.items() if words} == {}
