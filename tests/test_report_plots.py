"""Figures: what they draw, that they are the same each time, and what they say in words."""

from pathlib import Path

import polars as pl
import pytest
import report_example

from mitigate.report import drawing, plots
from mitigate.report import run_figures as gallery

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
