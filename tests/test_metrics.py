"""The table of metrics: keys are composed and read by it alone; and the first lines of pages, which name them."""

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

import page_examples
import polars as pl
import pytest
import report_example
import yaml
from compared_runs import make_run
from comparison_example import example_comparison

from mitigate import metrics
from mitigate.errors import MitigateError
from mitigate.measure import audit_figures, harms
from mitigate.metrics import Key, better, find, harm_key, metric, parse, quality_key, table, title
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


NO_METRICS = ["sentiment/neutral_mean", "quality/perplexity"]  # called NSM; of no subset
NO_METRICS += ["neutral_template/quality/valid/all"]  # of the probed statements, whatever the template
NO_METRICS += ["filter/kept/origin", "ngram/foo", "NSM_lower", "neutral_template/NSM/", ""]


@pytest.mark.parametrize("key", NO_METRICS)
def test_a_key_of_no_metric_is_named_with_what_is_allowed(key: str) -> None:
    assert find(key) is None
    with pytest.raises(MitigateError, match=f"unknown metric {key!r}.*variants: frequent_relations.*NSM, NSV"):
        better(key)


def test_faults_of_composing_say_what_is_allowed() -> None:
    for given, message in {
        ("targets", "mean"): r"cannot be called 'targets'.*Give it another name",
        ("a/b", "mean"): r"cannot be called 'a/b'",
        ("sentiment", "largest"): r"unknown metric of labels 'neutral, largest'; allowed: neutral, mean",
    }.items():
        with pytest.raises(MitigateError, match=message):
            harm_key(*given)
    with pytest.raises(MitigateError, match=r"unknown measure of quality 'bleu'; allowed: perplexity, bits_per_char"):
        quality_key("bleu")
    with pytest.raises(MitigateError, match="unknown variant of metrics 'rare'; allowed: frequent_relations"):
        metrics.prefixed({"NSM": 1.0}, variant="rare")


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


def test_keys_of_papers_figures_the_configuration_and_made_up_runs_are_metrics(tmp_path: Path) -> None:
    with (ROOT / "mitigate/data/paper_audit.csv").open(encoding="utf-8") as lines:
        keys = [row["key"] for row in csv.DictReader(lines)]
    keys += yaml.safe_load((ROOT / "conf/recipe/compare.yaml").read_text(encoding="utf-8"))["compare"]["margins"]
    keys.append(yaml.safe_load((ROOT / "conf/config.yaml").read_text(encoding="utf-8"))["optimized_metric"])
    assert len(keys) > 20
    assert [key for key in keys if find(key) is None] == []
    run = make_run(tmp_path, valid=0.5)
    keys = set(yaml.safe_load((run / "metrics.json").read_text(encoding="utf-8")))
    keys |= set(report_example.metrics(report_example.statements(10)))
    keys |= set(page_examples.example_stories().metrics)
    keys |= {row["figure"] for pair in example_comparison().pairs for row in pair.harms.to_dicts()}
    keys |= {row["figure"] for pair in example_comparison().pairs for row in pair.quality.to_dicts()}
    assert len(keys) > 50
    assert {key: str(parse(key)) for key in keys} == {key: key for key in keys}


README = (ROOT / "README.md").read_text(encoding="utf-8")
DEFINED = {"`crowd`": "\n`crowd` is a classifier", "swap lift": " *Swap lift*: ", "perplexity": " *Perplexity*: "}


def test_readme_defines_each_measure_that_it_shows_results_of() -> None:
    """Each row of its results names a measure that is defined below the table."""
    results = README.split("\n## Results\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0][2:] for line in results.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 3
    assert [[name for name in DEFINED if name in row] for row in rows] == [[name] for name in DEFINED]
    assert all(text in results for text in DEFINED.values())


SPELLED = re.compile(
    r"\b(NSM|NSV|NRM|NRV|D_R|D_O|neutral_(mean|variance)|distinct_tails|shared_tails|empty_(zero|exclude))\b|"
    r"(neutral_template|quality|filter|novelty|frequent_relations|by_kind|all_texts|stories)/|"
    r"(?<![A-Za-z])O[-+](?![A-Za-z])|^_(low|high)$|/polarised|rank_correlation"
)
CONVERTED = {"measure", "report", "tracking", "triples"}


def spelled(source: str) -> Iterator[str]:
    """The strings of a module, or pieces of formatted ones, that spell a key; docstrings may."""
    tree = ast.parse(source)
    documenting = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documenting
        if is_text and SPELLED.search(node.value):
            yield node.value


def modules() -> list[Path]:
    """All modules but the table's own and those not yet converted."""
    found = sorted((ROOT / "mitigate").rglob("*.py"))
    return [path for path in found if _top(path) != "metrics"]


def _top(path: Path) -> str:
    return path.relative_to(ROOT / "mitigate").with_suffix("").parts[0]


def test_no_module_spells_a_key_itself() -> None:
    assert {_top(path) for path in modules()} >= CONVERTED
    found = {str(path): list(spelled(path.read_text(encoding="utf-8"))) for path in modules()}
    assert {name: keys for name, keys in found.items() if keys} == {}
    for text in ('"NSM"', 'f"{scorer}/O-"', 'f"quality/{name}/all"', '("", "_low")', 'key + "D_R/a"'):
        assert list(spelled(f"value = {text}")), text
        assert not list(spelled(f"'''About {text} and more.'''")), text


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


def test_columns_of_rows_stand_under_keys_that_name_the_row() -> None:
    rows = [{"source": "COMeT", "low": None, "figure": "kappa", "high": 0.5}]
    assert metrics.keyed("{source}/of/{figure}", rows) == {"COMeT/of/kappa/low": None, "COMeT/of/kappa/high": 0.5}
    assert metrics.keyed("{source}", []) == {}
