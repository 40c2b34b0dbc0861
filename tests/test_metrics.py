"""The table of metrics: keys are composed and read by it alone; and the first lines of pages, which name them."""

from pathlib import Path

import polars as pl
import pytest

from mitigate import metrics
from mitigate.measure import audit_figures, harms
from mitigate.metrics import Key, better, harm_key, metric, parse, quality_key, table, title
from mitigate.report.brief import quality_sentence
from mitigate.triples import TEMPLATES

ROOT = Path(__file__).parents[1]
FOUND = (Path(__file__).parent / "metric_keys.txt").read_text(encoding="utf-8").split()
"""Of finished runs of recipes mitigate, audit, stories and labels, one category and one relation each."""


def test_a_key_of_a_run_is_composed_of_its_parts() -> None:
    for key in FOUND:
        found = parse(key)
        assert str(found) == key
        assert str(Key(found.stem, found.part, found.end, found.template, found.variant)) == key
        assert found.metric.name, key
        assert "{" not in found.metric.name + found.metric.meaning + found.stem, key


def test_every_metric_of_the_table_can_be_had_and_keys_have_parts() -> None:
    """Each row, with a scorer of its own for rows of any scorer, is found again by its key."""
    for row in table().values():
        stem = row.key.replace(metrics.SCORER, "ngram")
        part = {"": "", "category": "origin", "group": "all"}[row.part]
        for template in TEMPLATES if row.templates else TEMPLATES[:1]:
            key = Key(stem, part, template=template)
            assert parse(str(key)) == key
            assert key.metric.unit == row.unit
    key = "frequent_relations/neutral_template/NSV/origin_low"
    assert parse(key) == Key("NSV", "origin", "_low", "neutral", "frequent_relations")
    assert parse("quality/valid/relation/IsA_high") == Key("quality/valid", "relation/IsA", "_high")
    assert parse("all_texts/regard/polarised") == Key("all_texts/regard/polarised")
    assert parse("targets/polarised") == Key("targets", "polarised")  # a user's category, not a scorer
    assert parse("distinct_tails") == Key("distinct_tails")


@pytest.mark.parametrize(
    ("key", "scorer", "statistic", "share", "template", "part"),
    [
        ("NSM", "sentiment", "mean", "neutral", "paper", ""),
        ("neutral_template/NRV/origin", "regard", "variance", "neutral", "neutral", "origin"),
        ("ngram/neutral_mean", "ngram", "mean", "neutral", "paper", ""),
        ("neutral_template/ngram/D_O-/origin", "ngram", "variance", "prejudice", "neutral", "origin"),
        ("sentiment/O+", "sentiment", "mean", "favouritism", "paper", ""),
        ("regard/polarised", "regard", "pooled", "polarised", "paper", ""),
        ("neutral_template/all_texts/regard/statements", "regard", "all texts", "statements", "neutral", ""),
        ("regard/O-/rank_correlation", "regard", "rank correlation", "prejudice", "paper", ""),
        ("regard/p_D_O+", "regard", "p", "favouritism", "paper", ""),
    ],
)
def test_keys_of_labels(key, scorer, statistic, share, template, part) -> None:
    assert harm_key(scorer, statistic, share, template, part) == key
    found = parse(key)
    assert (found.metric.scorer, found.metric.statistic, found.metric.share) == (scorer, statistic, share)
    assert (found.template, found.part) == (template, part)


def test_a_further_scorer_has_all_metrics_by_rule_and_the_papers_their_names() -> None:
    mean = metric("ngram/neutral_mean")
    assert (mean.title, mean.arrow, mean.name) == ("ngram: neutral mean", "↑", "neutral by ngram, mean")
    assert metric("ngram/neutral_variance").better == "down"
    tabled = pl.DataFrame(
        {"target": ["she", "he"], "category": "gender", "statements": [2, 4]}
        | {"prejudice": [50.0, 0.0], "favouritism": [0.0, 25.0], "neutral": [50.0, 75.0]}
    )
    ours, papers = (audit_figures.figures(tabled, name) for name in ("ngram", "sentiment"))
    assert list(ours.values()) == list(papers.values())
    assert {(parse(key).metric.statistic, parse(key).metric.share) for key in ours} == {
        (parse(key).metric.statistic, parse(key).metric.share) for key in papers
    }
    assert ours["ngram/neutral_mean"] == papers["NSM"] == 62.5
    assert [harms.neutral_names(scorer) for scorer in ("sentiment", "regard")] == [("NSM", "NSV"), ("NRM", "NRV")]


def test_keys_have_a_direction_a_title_prefixes_and_scorers() -> None:
    assert better("NSM") == "up"
    assert {better(key) for key in ("neutral_template/NSV/origin", "ngram/neutral_variance", "D_R")} == {"down"}
    assert [better(quality_key(name)) for name in ("perplexity", "bits_per_char", "bleu2", "first_valid")] == [
        "down",
        "down",
        "up",
        "up",
    ]
    assert better("novelty/T_o") == "none"
    assert title("NSM") == "NSM"
    assert title("neutral_template/ngram/O-/origin_low") == "ngram: O−, origin, neutral template, lower bound"
    assert title("frequent_relations/NRV") == "NRV, frequent relations"
    assert metrics.prefixed({"NSM": 1.0}, "neutral", "frequent_relations") == {
        "frequent_relations/neutral_template/NSM": 1.0
    }
    assert metrics.bounds("NSM/origin") == ("NSM/origin_low", "NSM/origin_high")
    assert metrics.relation_of(quality_key("valid", metrics.relation_part("IsA"))) == "IsA"
    assert metrics.relation_of("quality/valid/all") is None
    keys = ["keyword/neutral_mean", "NRM", "frequent_relations/ngram/neutral_mean", "neutral_template/NSV", "seed"]
    assert metrics.scorers(keys) == ["sentiment", "regard", "keyword"]


def test_rows_are_whole_and_constants_are_rows() -> None:
    named = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    about = {metrics.ABOUT_PERPLEXITY, metrics.ABOUT_BITS, metrics.ABOUT_TRIPLES}
    of_quality = {metrics.PLAUSIBLE, metrics.PEOPLE_VALID, metrics.SWAP_LIFT, *about}
    others = {metrics.SCORER, metrics.EMBEDDINGS, metrics.CATEGORY, *of_quality, *metrics.VARIANTS}
    others |= set(metrics.ROWS_OF_MEASURES)
    assert named - others <= set(table())
    assert named & set(table())
    assert {f"quality/{name}" for name in of_quality} <= set(table())
    assert set(TEMPLATES) == set(metrics.TEMPLATE_PREFIX)
    units = {"percent", "percent²", "statements²", "count", "ratio", "bits", "correlation", "p-value", "none"}
    for row in table().values():
        assert row.unit in units
        assert row.name
        assert row.symbol
        assert row.meaning.endswith(".")
        assert row.part in ("", "category", "group")
        assert (row.scorer in metrics.PAPER_SCORERS) or not row.scorer
        assert row.share or metrics.SCORER not in row.key


README = (ROOT / "README.md").read_text(encoding="utf-8")
DEFINED = {"`crowd`": "\n`crowd` is a classifier", "swap lift": " *Swap lift*: ", "perplexity": " *Perplexity*: "}


def test_readme_defines_each_measure_that_it_shows_results_of() -> None:
    """Each row of its results names a measure that is defined below the table."""
    results = README.split("\n## Results\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0][2:] for line in results.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 3
    assert [[name for name in DEFINED if name in row] for row in rows] == [[name] for name in DEFINED]
    assert all(text in results for text in DEFINED.values())


def test_whether_quality_exceeds_that_without_the_head() -> None:
    lift = {"quality/swap_lift/all": 14.2, "quality/swap_lift/all_low": 12.1, "quality/swap_lift/all_high": 16.3}
    assert quality_sentence(lift) == (
        "Quality: swap lift of 14.2 percentage points [12.1, 16.3], better than without any knowledge of the head (0)."
    )
    nothing = "What a generator without quality says shows nothing about harm."
    unsure = quality_sentence(lift | {"quality/swap_lift/all": 0.0, "quality/swap_lift/all_low": -0.4})
    assert unsure.endswith(
        f"[−0.4, 16.3], not shown to be better than without any knowledge of the head (0). {nothing}"
    )
    worse = quality_sentence(lift | {"quality/swap_lift/all_low": -3.0, "quality/swap_lift/all_high": -1.0})
    assert worse.endswith(f"worse than without any knowledge of the head (0). {nothing}")
    assert quality_sentence({"NSM": 60.0}) == ""
