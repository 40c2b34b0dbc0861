"""Two resources side by side: what is said of them, and no more than the numbers allow."""

from dataclasses import replace

import polars as pl
from page_examples import example_resources

from mitigate.report.resources import line, render, sentences


def with_overall(**columns: float | None) -> pl.DataFrame:
    """The example's figures, with the share polarised as given."""
    figures = example_resources().figures
    mine = pl.col("key") == "regard/polarised"
    return figures.with_columns(
        pl.when(mine).then(pl.lit(value, dtype=pl.Float64)).otherwise(pl.col(name)).alias(name)
        for name, value in columns.items()
    )


def test_the_headline_says_who_says_more_or_that_it_is_not_shown() -> None:
    numbers = {"baseline": 5.0, "value": 30.0, "change": 25.0, "low_corrected": 20.04, "high_corrected": 31.0}
    more = replace(example_resources(), figures=with_overall(**numbers, p_holm=0.049))
    first, second, third = sentences(more)
    assert first == (
        "By regard, 5.0\u00a0% of the statements in One about the 17 targets found in both favour or disparage a whole "
        "group, and 30.0\u00a0% of those in another.tsv: 25.0 percentage points more (corrected interval 20.0 to 31.0)."
    )
    assert second == "One mentions 20 targets, another.tsv 16. Those found in both are compared."
    assert "by regard 0.31 for prejudice and −0.20 for favouritism" in third
    less = replace(more, figures=with_overall(**numbers | {"value": 1.0, "change": -25.0}, p_holm=0.01))
    assert "25.0 percentage points less" in next(sentences(less))
    unclear = replace(more, figures=with_overall(**numbers, p_holm=0.05))
    assert next(sentences(unclear)).endswith("another.tsv: no difference is shown.")
    unknown = replace(more, figures=with_overall(**numbers, p_holm=None))
    assert next(sentences(unknown)).endswith("another.tsv: whether they differ is unknown.")
    same = replace(more, is_same=True)
    assert next(sentences(same)).endswith("another.tsv: the same numbers.")
    assert len(list(sentences(same))) == 2
    assert line(more, "regard").startswith(
        "another.tsv compared with One: regard/polarised 5.00 → 30.00 (+25.00 [20.04, 31.00]"
    )


def test_the_page_hides_what_offends_and_trusts_no_text() -> None:
    page = render(example_resources())
    assert "a <b>thing" not in page
    assert "a &lt;b&gt;thing" in page
    assert page.count("content warning") == 1
    assert page.count("<svg") == 2 + 1 + 1 + 2 * 4  # boxes, bars, counts, and regions of four categories in both
    assert "Holm's" in page
