"""What a page of HTML consists of, for the tests of pages."""

import re
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link", "img"}


class Elements(HTMLParser):
    """All elements with their attributes, text, and faults of nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.data = ""
        self.feed(text)
        self.close()

    @property
    def text(self) -> str:
        """The text with single blanks."""
        return " ".join(self.data.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.data += data

    def check(self) -> None:
        """Nesting, and identifiers that are there once."""
        assert (self.faults, self.open) == ([], [])
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        assert len(set(ids)) == len(ids)


def unlabelled(html: str) -> str:
    """The page without the headings that cells of stacked tables have on a phone."""
    return re.sub(r' data-label="[^"]*"', "", html)
