"""The verdict of a run and of a comparison, its cost and four figures; the model card; the pages of a survey."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import report_example
import yaml
from comparison_example import example_comparison
from page_elements import Elements
from page_examples import ASKED, example_ratings, example_survey

from mitigate.report import brief, card, comparison_brief, ratings, survey
from mitigate.report.verdicts import FEWEST_SEEDS

ROLES = ["sentiment", "regard"]
PERPLEXITY, LIFT = "quality/perplexity/neutral", "quality/swap_lift/all"
NONE = {
    **{"policy": "none", "NSM": 60.0, "NRM": 80.0, "neutral_template/NSM": 70.0, "neutral_template/NRM": 85.0},
    **{"neutral_template/NSV": 30.0, "neutral_template/NRV": 12.5, LIFT: 34.0, f"{LIFT}_low": 30.0},
    **{PERPLEXITY: 50.0, "filter/kept": 200, "filter/dropped": 0},
}
BOTH = NONE | {"policy": "both", "neutral_template/NRM": 94.8, LIFT: 27.2, PERPLEXITY: 60.0}
BOTH |= {"filter/kept": 150, "filter/dropped": 50}
ONE_SEED = "but with one seed each another training could differ"


def test_the_brief_of_a_run() -> None:
    assert brief.of_run(NONE, ROLES) == (
        "Of 100 statements about a target 85.0 are neutral in regard, 70.0 in sentiment.",
        "0 of 200 training triples dropped; swap lift 34.0 points (0: no knowledge of the head); perplexity 50.0 on "
        "neutral test triples.",
    )
    assert brief.of_run(BOTH, ROLES, NONE) == (
        f"9.8 points more neutral in regard than “none”, {ONE_SEED} as much.",
        "50 of 200 training triples dropped (25 %); swap lift 27.2 points, −6.8 (0: no knowledge of the head); "
        "perplexity 60.0, × 1.20 on neutral test triples.",
    )
    said, _ = brief.of_run(NONE | {"neutral_template/NRM": 85.04}, ROLES, NONE)
    assert said == f"As neutral in regard as “none”, to within 0.1 points, {ONE_SEED}."
    ignoring, _ = brief.of_run(NONE | {f"{LIFT}_low": -0.5}, ROLES)
    not_shown = (
        "It is not shown to use the head at all: what a generator without quality says shows nothing about harm."
    )
    assert ignoring.endswith(not_shown)
    own, _ = brief.of_run({"rude/neutral_mean": 91.0}, ["rude"])
    assert own == "Of 100 statements about a target 91.0 are neutral by rude."
    assert brief.of_run({}, ROLES) == ("", "")


def test_four_figures_and_their_cost_side_by_side() -> None:
    lines = brief.figures({"none": NONE, "both": BOTH}, ROLES).splitlines()
    assert lines[:3] == [
        "        NSM ↑  NSV ↓  NRM ↑  NRV ↓  swap lift ↑  perplexity ↓",
        "  none  70.00  30.00  85.00  12.50         34.0          50.0",
        "  both  70.00  30.00  94.80  12.50         27.2          60.0",
    ]
    assert lines[3].startswith("  NSM and NSV are the mean and the variance of neutral sentiment")
    assert lines[3].endswith("Means are percentages of a target's statements, with the neutral template.")
    mixed = brief.figures({"none": {"NSM": 60.0, "neutral_template/NRM": 85.0}}, ROLES)
    assert mixed.endswith("Means are percentages of a target's statements.")
    assert brief.figures({"both": {}}, ROLES) == ""


MORE = "15.0 points more neutral in regard than “none”"


@pytest.mark.parametrize(
    ("seeds", "p_holm", "words"),
    [
        ((1, 1), None, f"{MORE}, but with one seed each another training could"),
        ((3, 2), 0.01, f"{MORE}, but with 3 and 2 seeds, variation between trainings could explain it."),
        ((1, 5), None, f"{MORE}, but with 1 and 5 seeds another training could"),
        ((FEWEST_SEEDS, FEWEST_SEEDS), 0.01, f"{MORE}, shown with 5 seeds each."),
        ((2, 2), 0.2, "not shown to be more or less neutral in regard than “none” (+15.0 points; 2 seeds each)."),
    ],
)
def test_a_comparison_says_what_its_seeds_allow(seeds, p_holm, words) -> None:
    pair = example_comparison().pairs[0]
    primary = pair.primary.with_columns(p_holm=pl.lit(p_holm, pl.Float64))
    assert words in comparison_brief.verdict(replace(pair, seeds=seeds, primary=primary))
    less = primary.with_columns(value=pl.lit(79.0), change=pl.lit(-1.0), low_corrected=-2.0, high_corrected=-0.5)
    said = comparison_brief.verdict(replace(pair, seeds=seeds, primary=less))
    assert ("1 point less" in said) == ("15.0 points more" in words)


def test_the_verdict_the_cost_and_the_figures_of_a_comparison() -> None:
    """A figure that is no mean of neutral statements is higher or lower."""
    pair = example_comparison().pairs[0]
    same, variance = replace(pair, is_same=True), pair.primary.with_columns(figure=pl.lit("NRV"), p_holm=pl.lit(0.2))
    said = "“both” is not shown to be higher or lower in neutral regard, variance (NRV)"
    assert said in comparison_brief.verdict(replace(pair, primary=variance))
    assert comparison_brief.verdict(same).startswith("“both” has the same numbers as “none”")
    assert "do not tell which" in comparison_brief.verdict(replace(pair, primary=pair.primary.clear()))
    ratio = "perplexity on neutral test triples × 1.14"
    assert comparison_brief.cost(pair) == f"{ratio}; quality is worse than its margins allow."
    assert comparison_brief.cost(same) == f"{ratio}."
    head, none, both, last = comparison_brief.figures([pair]).splitlines()
    assert head.split() == ["NSM", "↑", "NRM", "↑", "NRV", "↓", "perplexity", "↓"]
    assert none.split() == ["none", "70.00", "80.00", "30.00", "7.0"]
    assert "95.00 (+15.00)" in both
    assert "8.0 (× 1.14)" in both
    assert last.endswith(", with the neutral template.")


CARD = card.Card(
    name="mitigate-both",
    license="CC-BY-SA-4.0",
    base_model="sentence-transformers/all-MiniLM-L6-v2",
    base_license="Apache-2.0",
    data='ConceptNet "train100k", by its contributors',
    prompt="lawyer is capable of",
    policy="both",
    command="python -m mitigate policy=both",
    demonstration=False,
    metrics={
        **{"NSM": 61.2, "NSM_low": 59.8, "NSM_high": 62.7, "neutral_template/NSM": 70.0, "quality/perplexity/all": 9.1},
        **{"quality/valid/all": 71.5, "quality/valid/all_low": 70.0, "quality/valid/all_high": 73.0},
        "quality/valid/polar": 66.4,
    },
)


def test_front_matter_is_yaml() -> None:
    """A licence that is not given is said."""
    _, front, body = card.render(CARD).split("---\n", 2)
    matter = yaml.safe_load(front)
    assert matter["license"] == "cc-by-sa-4.0"
    assert matter["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert matter["language"] == ["en"]
    assert "comet" in matter["tags"]
    assert body.lstrip().startswith("# mitigate-both")
    text = card.render(replace(CARD, license=None))
    assert yaml.safe_load(text.split("---\n", 2)[1])["license"] == "unknown"  # as the hub has it
    assert "Licence: not given. Trained on ConceptNet" in text
    assert 'tokenizer("lawyer is capable of", return_tensors="pt")' in text


def test_a_text_from_outside_stays_in_its_cell_and_steers_nothing() -> None:
    ledger = report_example.ledger(20).with_columns(reason=pl.lit("a|b <img src=x>\nmine -1"))
    text = card.render(replace(CARD, ledger=ledger, data="data of \x1b[31mmine"))
    assert r"| a\|b &lt;img src=x> mine -1 | 20 |" in text
    assert "Trained on data of [31mmine" in text
    assert text.endswith("```\n")


def test_numbers_stand_in_tables() -> None:
    text = card.render(CARD)
    assert "| NSM ↑ neutral sentiment, mean | 61.20 [59.80, 62.70] | 70.00 |" in text
    assert "| perplexity ↓ | all | 9.10 |" in text
    assert "| all probed statements | 71.50 [70.00, 73.00] |\n| those with a polarised label | 66.40 |\n" in text
    assert 'trained on ConceptNet "train100k", by its contributors after the filter policy `both`' in text
    assert "Licence: CC-BY-SA-4.0. Trained on ConceptNet" in text


def test_triples_that_were_left_out_and_a_demonstration_are_said(tmp_path: Path) -> None:
    """The card is the folder's readme."""
    text = card.render(replace(CARD, ledger=report_example.ledger(500)))
    assert "| sentiment +1, regard -1 | 4 | 4 | 0 | 0.0 |" in text
    assert "What the policy did" not in card.render(CARD)
    for demonstration in (True, False):
        text = card.render(replace(CARD, demonstration=demonstration))
        assert ("> **Demonstration.**" in text) == demonstration
    assert card.write(tmp_path / "model", CARD) == tmp_path / "model" / "README.md"
    assert (tmp_path / "model" / "README.md").read_text() == card.render(CARD)


def test_the_survey_warns_first_asks_nothing_of_any_host_and_says_what_raters_must_know() -> None:
    html = survey.render(example_survey())
    parsed = Elements(html)
    parsed.check()
    assert not [attributes for _, attributes in parsed.elements if {"src", "href", "action"} & set(attributes)]
    assert "default-src 'none'" in html
    body = html.partition("<body>")[2]
    assert body.index("CONTENT WARNING") < body.index("<h1")
    text = Elements(body).text
    for shown in ("You can stop at any time", "Not more than 2 a day", "20 euros an hour.", "18 or older"):
        assert shown in text
    assert "ask@example.org" in text
    assert "minimum wage" in survey.render(survey.Survey("s", ASKED, daily=2))
    controls = [attributes for tag, attributes in parsed.elements if tag in ("input", "button")]
    answers = [attributes["value"] for attributes in controls if attributes.get("type") == "radio"]
    assert answers == ["-1", "0", "1", "1", "0"]
    assert all(attributes["aria-labelledby"] for tag, attributes in parsed.elements if tag == "section")
    assert sum(tag == "legend" for tag, _ in parsed.elements) == 2


def test_the_page_and_the_tables_of_results() -> None:
    results = example_ratings()
    html = ratings.render(results)
    parsed = Elements(html)
    parsed.check()
    neutral = "neutral in 33.3 % of the ratings of “<none>” and 100.0 % of the ratings of “both”."
    assert f"People rate the statement as {neutral}" in parsed.text
    change = "both against <none>, 3 targets: human neutral mean (HNM) +66.7 percentage points"
    for shown in (change, "DEMONSTRATION", "a <notice>", "always neutral, rating", "0.3827"):  # the last is the paper's
        assert shown in parsed.text
    assert "<none>" not in html
    lines = ratings.console(results.summary, results.raters, results.differences).splitlines()
    assert lines[0].split()[:3] == ["statements", "ratings", "prejudice"]
    assert lines[1].split()[:6] == ["<none>", "3", "9", "33.3", "33.3", "33.3"]
    assert lines[-2].split()[:4] == ["HNM", "of", "both", "66.67"]


def test_a_small_p_value_is_not_zero() -> None:
    results = example_ratings()
    row = results.differences.head(1).with_columns(p=pl.lit(0.0002), difference=pl.lit(-0.04))
    rare = replace(results, differences=row)
    *_, said = ratings.findings(rare)
    assert "human neutral mean (HNM) 0.0 percentage points" in said
    assert said.endswith(", p < 0.001.")
    assert "&lt; 0.001" in ratings.render(rare)
    assert ratings.console(rare.summary, rare.raters, row).splitlines()[-1].endswith("< 0.001")
