"""The page of knowledge-graph embeddings: state, numbers, tables and texts from outside."""

from page_elements import Elements
from study_examples import example_kge

from mitigate.report.page import render

KGE = example_kge()


def test_a_page_is_well_formed_and_trusts_no_text() -> None:
    html = render(KGE)
    Elements(html).check()
    assert html.count("<svg") == len(KGE.pictures) > 0
    assert not [text for text in ("<b>", "<i>", "<thing>") if text in html]
