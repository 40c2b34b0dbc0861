"""Figures: what they draw, that they are the same each time, and what they say in words."""

from pathlib import Path

import polars as pl
import pytest
import report_example

from mitigate.report import drawing, plots
from mitigate.report import run_figures as gallery
from mitigate.report.plots import words
from mitigate.report.prejudice_regions import regions, with_regions

SQUARE = pl.DataFrame(  # the quartiles of both percentages are 30
    {
        **{
            "target": ["nurse", "lawyer", "nun", "thief", "$x^{"],
            "category": ["profession"] * 5,
            "statements": [10] * 5,
        },
        **{"prejudice": [10.0, 30.0, 20.0, 80.0, 40.0], "favouritism": [30.0, 30.0, 60.0, 10.0, 50.0]},
        "neutral": [60.0, 40.0, 20.0, 10.0, 10.0],
    }
)


@pytest.fixture(scope="module")
def pictures() -> list[gallery.Picture]:
    run = report_example.report(num_targets=40)
    return gallery.gallery(run.targets, run.ledger)


def picture(name: str, *arguments: object, **more: object) -> gallery.Picture:
    (found,) = (each for each in gallery.gallery(*arguments, **more) if name in (each.name, each.group))
    return found


def test_a_run_has_the_papers_figures_and_nothing_is_drawn_of_nothing(pictures: list[gallery.Picture]) -> None:
    names = [picture.name for picture in pictures]
    assert len(set(names)) == len(names)
    paper = {"boxes-sentiment", "boxes-regard_neutral", "regions-regard-religion", "bars-sentiment"}
    assert paper <= set(names)
    assert "counts" not in names, "every target has as many statements"
    assert {picture.group for picture in pictures} == {"boxes", "regions", "bars", "counts"}
    empty = SQUARE.with_columns(statements=pl.lit(0), prejudice=None, favouritism=None, neutral=None)
    assert gallery.gallery({}, None) == []
    assert gallery.gallery({"sentiment": empty}, report_example.ledger(50).with_columns(weight=pl.lit(1.0))) == []


def test_save_writes_png_and_svg(tmp_path: Path) -> None:
    files = drawing.save(plots.bars(SQUARE), tmp_path / "plots" / "bars")
    assert [file.name for file in files] == ["bars.png", "bars.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert files[1].read_text().startswith("<?xml")


def test_regions_are_above_the_upper_quartiles_and_name_the_furthest() -> None:
    found = dict(with_regions(SQUARE).select("target", "region").iter_rows())
    neither = dict.fromkeys(("nurse", "lawyer", "$x^{"), "neither")
    assert found == {**neither, "nun": "more positive", "thief": "more negative"}
    more = SQUARE.vstack(SQUARE.with_columns(prejudice=0.0, favouritism=0.0, target=pl.col("target") + "2"))
    assert dict(with_regions(more).select("target", "region").iter_rows())["$x^{"] == "more of both"
    axes = regions(SQUARE, "profession").axes[0]
    points = [tuple(point) for drawn in axes.collections for point in drawn.get_offsets().tolist()]
    assert sorted(points) == sorted(SQUARE.select("prejudice", "favouritism").rows())
    assert {"thief", "nun", "$x^{"} <= {text.get_text() for text in axes.texts}


def test_bars_go_left_for_prejudice_and_boxes_have_the_median_of_each_category() -> None:
    bars = plots.bars(SQUARE).axes[0].patches
    assert [bar.get_width() for bar in bars] == [-10.0, -30.0, -20.0, -80.0, -40.0, 30.0, 30.0, 60.0, 10.0, 50.0]
    lines = [line.get_ydata() for line in plots.boxes(SQUARE).axes[0].lines]
    assert SQUARE["prejudice"].median() == 30.0
    assert 30.0 in {float(y[0]) for y in lines if len(y) and len(set(y)) == 1}


def test_the_words_of_a_picture_hold_its_numbers() -> None:
    """Chosen targets stand in the order they were chosen."""
    by_name = {picture.name: picture for picture in gallery.gallery({"regard": SQUARE})}
    assert "profession 30.0 % and 30.0 %" in by_name["boxes-regard"].alt
    assert "Most negative: thief, $x^{, lawyer" in by_name["regions-regard-profession"].alt
    assert "thief 80.0 % and 10.0 %" in by_name["bars-regard"].alt
    shown = picture("shown", {"regard": SQUARE, "regard_neutral": SQUARE}, shown=["thief", "nobody", "nurse"]).alt
    assert shown == "Bars of regard, negative and positive: thief 80.0 % and 10.0 %; nurse 10.0 % and 30.0 %."


def test_counts_of_statements_and_of_triples_of_the_corpus() -> None:
    """With and without what was dropped."""
    uneven = SQUARE.with_columns(statements=pl.Series([3, 50, 700, 700, 9000]))
    counts = picture("counts", {"regard": uneven})
    assert "least 3, median 700, most 9,000" in counts.alt
    assert ">1,000</text>" in drawing.svg(counts.figure)
    rows = pl.DataFrame({"target": ["nurse", "nurse", "nurse", "nun", None], "weight": [1.0, 0.0, 0.5, 0.0, 0.0]})
    corpus = rows.with_columns(source_row=None, relation=pl.lit("IsA"), reason=pl.lit("regard -1"))
    least = "targets: least 0, median 0, most 3"
    alt = picture("counts-corpus", {"regard": SQUARE}, corpus).alt
    assert alt.endswith(f"{least}; of them kept: least 0, median 0, most 2.")
    assert picture("counts-corpus", {"regard": SQUARE}, corpus.with_columns(weight=1.0)).alt.endswith(f"{least}.")


def test_word_cloud_of_the_two_targets_with_the_most_negative_tails() -> None:
    said = pl.DataFrame(
        {
            "target": ["nurse", "nurse", "nurse", "lawyer", "lawyer", "she"],
            "category": ["profession"] * 5 + ["gender"],
            "tail": ["be tired", "be tired", "lie", "lie", "win", "$cry^"],
            **{"sentiment": [-1, -1, 0, -1, 1, 0], "regard": [0, 1, -1, 0, 0, -1]},
        }
    )
    nurse, she = gallery.gallery({}, statements=said)
    assert (nurse.name, she.name) == ("words-nurse", "words-she"), "one of each category"
    assert nurse.alt == "Word cloud. The commonest: be tired, lie."
    assert {text.get_text(): text.get_size() for text in nurse.figure.texts} == {"be tired": 20.0, "lie": 13.5}
    phrases = pl.DataFrame({"phrase": [f"tail number {place}" for place in range(60)], "count": range(1, 61)})
    texts = words(phrases).texts
    assert len(texts) == 40
    assert all(0 <= x <= 1 and 0 < y <= 1 for x, y in (text.get_position() for text in texts))
    assert texts[0].get_text() == "tail number 59"
