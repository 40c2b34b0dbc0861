"""Every page extends one base, says what its run was, and shows no control character of a text from outside."""

from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

from mitigate.report import drawing, html
from mitigate.report.html import Page, Stage, environment, render_page

TEMPLATES = sorted(Path(html.__file__).parent.glob("*.html.jinja"))
PARTS = ("base", "macros", "reliability", "filter", "targets", "lift")  # not pages themselves
FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec"
READABLE = "ab[31mc"


def test_every_page_extends_the_base_which_alone_has_a_head_and_a_content_policy() -> None:
    for part in ("<head>", "Content-Security-Policy", "<title>", '<p class="banner" role="note"><strong>DEMON'):
        assert [template.name for template in TEMPLATES if part in template.read_text()] == ["base.html.jinja"]
    pages = [path.read_text() for path in TEMPLATES if path.name.split(".")[0] not in PARTS]
    assert len(pages) >= 10
    assert all('{% extends "base.html.jinja" %}' in page or '{% extends "audit' in page for page in pages)


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


def test_no_control_character_in_html_and_json_of_a_page() -> None:
    """Numbers stay numbers."""
    template = "{{ text }}|{{ text | e }}|{% macro cell(x) %}<b>{{ x }}</b>{% endmacro %}{{ cell(text) }}|{{ markup }}"
    found = environment().from_string(template).render(text=FOREIGN + "<", markup=Markup(f"<i>{FOREIGN}</i>"))
    assert found == f"{READABLE}&lt;|{READABLE}&lt;|<b>{READABLE}&lt;</b>|<i>{READABLE}</i>"
    content = {"items": [{"text": FOREIGN, "place": 1}], "last": None}
    found = environment().from_string("{{ content | tojson }}").render(content=content)
    assert found == f'{{"items": [{{"place": 1, "text": "{READABLE}"}}], "last": null}}'
    assert environment().from_string("{{ 1 + x }} {{ y }}").render(x=2, y=0.5) == "3 0.5"


def figure() -> Figure:
    made, axes = drawing.panel(1)
    axes.annotate(FOREIGN, (0.5, 0.5))
    axes.set_yticks([0], [FOREIGN])
    return made


def test_no_control_character_in_a_figure_of_a_page_or_a_file(tmp_path: Path) -> None:
    found = drawing.svg(figure(), "name", alt=FOREIGN)
    assert f'aria-label="{READABLE}"' in found
    assert "".join(ElementTree.fromstring(found).itertext()).count(READABLE) == 2
    _, path = drawing.save(figure(), tmp_path / "plot")
    assert "".join(ElementTree.parse(path).getroot().itertext()).count(READABLE) == 2
