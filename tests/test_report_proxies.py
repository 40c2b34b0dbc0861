"""What the labels are reliability: the figures that come with the project are those that its recipe finds."""

from importlib.resources import files

import pytest

from mitigate.report.html import environment
from mitigate.report.identity import ERRORS, identity_errors
from mitigate.report.proxies import measured, paper, proxies, reliability

SHIPPED = {"sentiment": "vader", "regard": "minilm"}


def test_our_figures_stand_beside_the_papers() -> None:
    rows = {(row.role, row.resource): row for row in proxies(SHIPPED)}
    assert list(rows) == [(role, name) for role in SHIPPED for name in ("ConceptNet", "GenericsKB", "COMeT")]
    regard = rows["regard", "ConceptNet"]
    assert (regard.favouritism, regard.prejudice) == (0.428, 0.474)
    assert (regard.paper_favouritism, regard.paper_prejudice) == (0.408, 0.459)
    generated = rows["regard", "COMeT"]
    assert (generated.kappa, generated.kappa_low, generated.kappa_high) == (0.674, 0.585, 0.746)
    assert (generated.raters, generated.paper_prejudice) == (0.643, None)
    assert rows["sentiment", "GenericsKB"].always_neutral == pytest.approx(0.612)


def test_the_reliability_of_a_scorer_in_a_few_words() -> None:
    assert reliability(proxies(SHIPPED), "regard") == (
        "F1 with people: favouritism 0.43 to 0.56, prejudice 0.47 to 0.81 (minilm)"
    )
    assert reliability(proxies({"regard": "bert"}), "regard") == "agreement with people not measured (bert)"


def test_the_table_says_what_nobody_measured() -> None:
    macro = '{% from "reliability.html.jinja" import reliability_table %}{{ reliability_table(proxies) }}'
    page = environment().from_string(macro).render(proxies=proxies({"regard": "bert"}))
    assert "regard (bert)" in page
    # kappa, favouritism, prejudice and accuracy of each source, and what the paper does not say of COMeT
    assert page.count("not measured</small>") == 4 * 3
    assert page.count("not in the paper</small>") == 2
    assert "–</td>" not in page
    assert page.count("<td>0.46</td>") == 1  # the paper's own classifier


def test_f1_follow_from_precision_and_recall() -> None:
    for figures in [*measured().values(), *paper().values()]:
        for name in ("favouritism", "prejudice"):
            if f"{name}/f1" in figures:
                recall, precision = figures[f"{name}/recall"], figures[f"{name}/precision"]
                assert figures[f"{name}/f1"] == pytest.approx(2 * recall * precision / (recall + precision), abs=0.002)


def test_errors_on_identity_terms_stand_beside() -> None:
    rows = identity_errors(SHIPPED | {"mine": "mine"})  # nobody measured the last
    assert [(row.role, row.error) for row in rows] == [(role, error) for role in SHIPPED for error in ERRORS.values()]
    macro = '{% from "reliability.html.jinja" import identity_table %}{{ identity_table(rows) }}'
    page = environment().from_string(macro).render(rows=rows)
    regard = rows[2]
    assert regard.low < regard.largest < regard.high
    assert f"{regard.beyond} of 32" in page
    assert f"{regard.mean:.1f}" in page


@pytest.mark.parametrize("scorer", ["minilm", "ngram"])
def test_the_shipped_cards_have_the_errors_that_pages_show(scorer: str) -> None:
    card = files("mitigate").joinpath("data/regard", scorer, "README.md").read_text(encoding="utf-8")
    for row in identity_errors({"regard": scorer}):
        line = f"| unseen terms, unseen frames | {row.error} | {row.mean:.1f} | {row.masked:.1f} | {row.term} | "
        assert line in card
        assert f"| {row.beyond} of {row.terms} |" in card
