"""The table of a run, the ledger's sums, and files of both."""

from pathlib import Path

import polars as pl

from mitigate.report import ledger, metrics_table, table
from mitigate.report.examples import MOST_TARGETS
from mitigate.report.html import environment
from mitigate.report.page import target_section

ONE = {
    **{"NSM": 61.2, "NSM_low": 59.8, "NSM_high": 62.71, "NSM/origin": 60.0, "NSM/origin_low": 55.5},
    **{"NSM/origin_high": 66.6, "neutral_template/NRV": 1234.5, "quality/perplexity/all": 9.1},
    **{"quality/perplexity/neutral": 8.0, "quality/valid/all": 71.5, "quality/valid/polar": None},
    **{"quality/valid/origin": 70.25, "quality/valid/relation/IsA": 80.0, "filter/kept": 2100, "seed": 1},
}
OTHER = {"NSM": 64.0, "NSM/origin": None, "filter/kept": 99_000}


def test_console_of_one_run_and_of_two_side_by_side() -> None:
    assert metrics_table.console({"both": ONE}).splitlines()[1:] == [
        "harm, paper template",
        "  neutral by sentiment (NSM) ↑                        61.20 [59.80, 62.71]",
        "    origin                                            60.00 [55.50, 66.60]",
        "harm, neutral template",
        "  variance of neutral by regard (NRV) ↓  1,234.50 (sd 35.1)",
        "quality",
        "  perplexity ↓                                         9.10",
        "    neutral                                            8.00",
        "probe",
        "  accepted as plausible ↑                             71.50",
        "    polar                                                 –",
        "    origin                                            70.25",
        "filter",
        "  training triples kept                               2,100",
    ]
    lines = metrics_table.console({"none": ONE, "both": OTHER}).splitlines()
    assert lines[0].split() == ["none", "both"]
    assert lines[2].split() == ["neutral", "by", "sentiment", "(NSM)", "↑", "61.20", "[59.80,", "62.71]", "64.00"]
    assert lines[3].split() == ["origin", "60.00", "[55.50,", "66.60]", "–"]
    assert lines[-1].split()[-2:] == ["2,100", "99,000"]


def test_csv_and_latex(tmp_path: Path) -> None:
    frame = pl.DataFrame({"name_of": ["a & b", "50 %"], "NSM ↑": [61.234, None]})
    assert table.save_csv(frame, tmp_path / "t" / "m.csv").read_text() == "name_of,NSM ↑\na & b,61.2340\n50 %,\n"
    written = table.save_latex(frame, tmp_path / "m.tex", "Measures of run_1").read_text()
    assert r"\caption{Measures of run\_1}" in written
    assert r"\begin{tabular}{lr}" in written
    assert r"name\_of & NSM $\uparrow$ \\" in written
    assert r"a \& b & 61.23 \\" in written
    assert r"50 \% & -- \\" in written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.tex", "t"]


LEDGER = pl.DataFrame(
    {
        "row": [1, 2, 3, 4, 5, None],
        "source_row": [None] * 5 + [4],
        "relation": ["IsA", "IsA", "IsA", "HasA", "IsA", "HasA"],
        "target": ["nurse", None, "nurse", "lawyer", None, "judge"],
        "statement": ["s1", "s2", "s3", "s4", "s5", "s6"],
        "weight": pl.Series([1.0, 0.0, 0.0, 0.5, 0.0, 0.5], dtype=pl.Float32),
        "reason": ["kept", "regard -1", "sentiment +1", "regard +1, swapped", "sentiment +1", "regard +1, swapped"],
    }
)


def test_the_ledger_by_relation_target_and_reason() -> None:
    """Triples about no target are left out."""
    assert ledger.summary(LEDGER, "relation").rows() == [
        ("IsA", 4, 1, 3, 0, 1.0, 75.0, "sentiment +1 (2); regard -1 (1)"),
        ("HasA", 1, 1, 0, 1, 1.0, 0.0, "regard +1, swapped (1)"),
    ]
    by_target = [("nurse", 2, 0, 1.0), ("lawyer", 1, 0, 0.5), ("judge", 0, 1, 0.5)]
    assert ledger.summary(LEDGER, "target").select("target", "input", "added", "weight").rows() == by_target
    by_reason = [("sentiment +1", 2, 2), ("kept", 1, 0), ("regard +1, swapped", 1, 0), ("regard -1", 1, 1)]
    assert ledger.summary(LEDGER, "reason").select("reason", "input", "dropped").rows() == by_reason


def test_of_many_targets_the_table_has_the_extremes_and_a_link_to_all() -> None:
    """Prejudice falls with the number of the target, favouritism rises at the end; the first has few statements."""
    number = pl.int_range(MOST_TARGETS + 100, eager=True)
    favouritism = pl.Series([90.0 if place == number[-1] else 0.0 for place in number])
    frame = pl.DataFrame(
        {
            "target": pl.select(pl.format("t{}", number)).to_series(),
            "category": "own",
            "statements": pl.Series([1] + [20] * (len(number) - 1)),
            "prejudice": 80 - number / 10,
            "favouritism": favouritism,
            "neutral": 20 + number / 10 - favouritism,
        }
    )
    told = pl.DataFrame({"target": ["t1", "t550"], "category": "own", "statement": "x", "a": -1, "a_strength": -1.0})
    found = target_section({"a": frame}, {"a": ("a", "paper")}, told, ["a"])
    shown = [row["target"] for row in found["targets"].rows]
    assert (shown[:2], shown[-1], len(shown)) == (["t599", "t1"], "t499", MOST_TARGETS)
    assert list(found["examples"]) == [("t1", "own")]
    assert "Shown are 500 of 600 targets" in found["targets"].caption
    assert '<a href="tables/targets_a.csv">tables/targets_a.csv</a>' in found["targets"].caption
    search = "{% from 'macros.html.jinja' import searched %}{{ searched(targets, 'targets') }}"
    assert "The search covers these, not all 600." in environment().from_string(search).render(found)
    few = target_section({"a": frame.head(MOST_TARGETS)}, {"a": ("a", "paper")}, told, ["a"])
    assert (few["targets"].height, "Shown" in few["targets"].caption) == (MOST_TARGETS, False)
