"""Every page extends one base and shows no control character from outside; the page of a run is whole, honest, safe
with other people's texts, and free of the network."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
import report_example
from markupsafe import Markup
from matplotlib.figure import Figure
from page_elements import Elements

from mitigate import files
from mitigate.report import drawing, page
from mitigate.report.html import environment
from mitigate.report.scorer_reliability import reliability

TEMPLATES = sorted(Path(page.__file__).parent.glob("*.html.jinja"))
PARTS = ("base", "macros", "table", "filter", "targets")  # not pages themselves
FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec"
READABLE = "ab[31mc"


def test_every_page_extends_the_base_which_alone_has_a_head_and_a_content_policy() -> None:
    for part in ("<head>", "Content-Security-Policy", "<title>", '<p class="banner" role="note"><strong>DEMON'):
        assert [template.name for template in TEMPLATES if part in template.read_text()] == ["base.html.jinja"]
    pages = [path.read_text() for path in TEMPLATES if path.name.split(".")[0] not in PARTS]
    assert len(pages) >= 5
    assert all('{% extends "base.html.jinja" %}' in page or '{% extends "audit' in page for page in pages)


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


@pytest.fixture(scope="module")
def run() -> page.Report:
    return report_example.report(num_targets=40)


@pytest.fixture(scope="module")
def plain(run: page.Report) -> page.Report:
    """The run without its targets, so that a page takes no time to draw."""
    return replace(run, targets={})


@pytest.fixture(scope="module")
def html(run: page.Report) -> str:
    return page.render(run)


@pytest.fixture(scope="module")
def parsed(html: str) -> Elements:
    return Elements(html)


def text_of(report: page.Report) -> str:
    return Elements(page.render(report)).text


def test_is_well_formed_accessible_and_links_lead_somewhere(html: str, parsed: Elements) -> None:
    parsed.check()
    links = [str(a["href"])[1:] for tag, a in parsed.elements if tag == "a"]
    assert len(links) == 8
    assert set(links) <= {attributes.get("id") for _, attributes in parsed.elements}
    assert all(a.get("aria-label") and a["role"] == "img" for tag, a in parsed.elements if tag == "svg")
    assert all("<caption>" in table.split("</table>")[0] for table in html.split("<table")[1:])
    assert '<html lang="en">' in html


def test_asks_nothing_of_any_host(html: str, parsed: Elements) -> None:
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert tag not in {"link", "iframe", "object", "img"}
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policies = [a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]


def test_escapes_what_others_wrote_and_warns_of_offensive_examples(html: str, parsed: Elements) -> None:
    assert sum(tag == "script" for tag, _ in parsed.elements) == 1
    escaped = "&lt;script&gt;alert(&#34;a &amp; b&#34;)&lt;/script&gt;"
    assert html.count(escaped) >= 40
    assert report_example.UNTRUSTED not in html
    assert report_example.UNTRUSTED in parsed.text
    before, after = html.split("Examples of triples that were dropped", 1)
    assert before.rstrip().endswith("<summary>")
    assert "content warning" in after.split("</summary>")[0]
    assert html.count("content warning") == 4
    assert "<details open" not in html


def test_says_what_the_numbers_say(run: page.Report, plain: page.Report, parsed: Elements) -> None:
    assert run.verdict[0] in parsed.text
    for key in ("NSM", "NRV", "NSM/origin", "neutral_template/NRM/religion"):
        value = run.metrics[key]
        assert isinstance(value, float)
        assert f"{value:.2f}" in parsed.text
    for shown in ("DEMONSTRATION", "4 % are distinct across targets", "data, licence", "1 min 39 s"):
        assert shown in parsed.text
    assert "python -m mitigate policy=both seed=1" in parsed.text
    assert "non-binary people are missing" in parsed.text.lower()
    assert "DEMONSTRATION" not in page.render(replace(plain, demonstration=False))
    assert page.render(replace(report_example.report(num_targets=40), targets={})) == page.render(plain)


def test_the_headline_stands_beside_how_reliable_the_labels_are(plain: page.Report) -> None:
    html = page.render(plain)
    header, _, _ = Elements(html).text.partition("Measures")
    for role, scorer in plain.scorers.items():
        assert reliability(scorer, role) in header
    assert 'class="reliability"' not in page.render(replace(plain, scorers={}))


def test_shows_a_limited_number_of_examples(tmp_path: Path) -> None:
    full = report_example.report(per_target_statements=100)
    path = files.write(tmp_path / "run" / "report.html", page.render(full))
    assert path.stat().st_size < 3_000_000
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_parts_that_a_run_does_not_have_are_left_out(plain: page.Report) -> None:
    """Empty frames are as good as none, and policy none drops nothing."""
    bare = page.Report(name="audit", command="python -m mitigate recipe=audit", demonstration=False, metrics={})
    empty = replace(plain, statements=plain.statements.clear(), ledger=plain.ledger.clear())
    kept = plain.ledger.with_columns(weight=pl.lit(1.0, pl.Float32), reason=pl.lit("kept"))
    assert "This run measured no harms." in text_of(bare)
    for report, absent in (
        (bare, ("triples it kept", "Quality", "Figures", "Effect of the templates")),
        (empty, ("triples it kept", "Statements about each target")),
        (replace(plain, ledger=kept), ("triples it kept", "Examples of triples")),
    ):
        text = text_of(report)
        assert [title for title in absent if title in text] == []
