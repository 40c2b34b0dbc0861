"""Control characters in texts from outside: none reaches a page or a figure."""

from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

from mitigate.report import drawing
from mitigate.report.html import environment

FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec"
READABLE = "ab[31mc"


def figure() -> Figure:
    made, axes = drawing.panel(1)
    axes.annotate(FOREIGN, (0.5, 0.5))
    axes.set_yticks([0], [FOREIGN])
    return made


def test_none_in_html() -> None:
    template = environment().from_string(
        "{{ text }}|{{ text | e }}|{% macro cell(x) %}<b>{{ x }}</b>{% endmacro %}{{ cell(text) }}|{{ markup }}"
    )
    found = template.render(text=FOREIGN + "<", markup=Markup(f"<i>{FOREIGN}</i>"))
    assert found == f"{READABLE}&lt;|{READABLE}&lt;|<b>{READABLE}&lt;</b>|<i>{READABLE}</i>"


def test_none_in_the_json_of_a_page() -> None:
    template = environment().from_string("{{ content | tojson }}")
    found = template.render(content={"items": [{"text": FOREIGN, "place": 1}], "last": None})
    assert found == f'{{"items": [{{"place": 1, "text": "{READABLE}"}}], "last": null}}'


def test_numbers_stay_numbers() -> None:
    assert environment().from_string("{{ 1 + x }} {{ y }}").render(x=2, y=0.5) == "3 0.5"


def test_none_in_a_figure_of_a_page() -> None:
    found = drawing.svg(figure(), "name", alt=FOREIGN)
    assert f'aria-label="{READABLE}"' in found
    assert "".join(ElementTree.fromstring(found).itertext()).count(READABLE) == 2


def test_none_in_an_svg_file(tmp_path: Path) -> None:
    _, path = drawing.save(figure(), tmp_path / "plot")
    assert "".join(ElementTree.parse(path).getroot().itertext()).count(READABLE) == 2
