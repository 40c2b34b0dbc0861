"""Every page extends one base, and says what its run was."""

from pathlib import Path

import pytest

from mitigate.report import html
from mitigate.report.html import Page, Stage, render_page

TEMPLATES = sorted(Path(html.__file__).parent.glob("*.html.jinja"))
PARTS = ("base", "macros", "reliability", "filter", "targets", "lift")  # not pages themselves


def test_only_the_base_has_a_head_and_a_content_policy() -> None:
    for part in ("<head>", "Content-Security-Policy", "<title>", '<p class="banner" role="note"><strong>DEMON'):
        assert [template.name for template in TEMPLATES if part in template.read_text()] == ["base.html.jinja"]


@pytest.mark.parametrize("template", [path for path in TEMPLATES if path.name.split(".")[0] not in PARTS])
def test_every_page_extends_the_base(template: Path) -> None:
    assert '{% extends "base.html.jinja" %}' in template.read_text() or '{% extends "audit' in template.read_text()


def test_the_base_shows_what_every_page_has_and_leaves_out_what_is_empty() -> None:
    page = Page(
        name="run-1",
        command="python -m mitigate seed=<1>",
        demonstration=True,
        stages=[Stage("load", 0.21, False), Stage("score", 61.0, True)],
        facts={"seed": 1, "data": {"licence": "MIT"}},
        notices=["One seed."],
    )
    text = render_page("base.html.jinja", page, sentences=["First.", "Second."], scorers={"regard": "minilm"})
    assert '<p class="lede">First.</p>' in text
    assert "<p>Second.</p>" in text
    for shown in ("DEMONSTRATION", "seed=&lt;1&gt;", "data, licence", "One seed.", "1 min 1 s", 'id="reliability"'):
        assert shown in text
    assert text.count(">computed<") == text.count(">cached<") == 1
    bare = render_page("base.html.jinja", Page(name="a", command="b", demonstration=False), sentences=["First."])
    for absent in ("DEMONSTRATION", "<dl", "<ul class", "<table", 'id="reliability"'):
        assert absent not in bare
