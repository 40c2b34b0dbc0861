"""The committed rows of benchmarks/: their tables, computed again, are those of the pages; and effects by hand."""

import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks import experiment_effects as effects
from benchmarks import experiment_tables as tables
from benchmarks import plan2_tables
from benchmarks.corrected import Accuracy, corrected_share, known_accuracy, share_error
from benchmarks.experiment_plan import EXPERIMENTS, arms
from benchmarks.experiment_row import of_category, read

ROOT = Path(__file__).parents[1]


def test_a_share_corrected_for_a_scorers_errors() -> None:
    """All three errors widen the interval. A perfect scorer changes nothing, and one at chance corrects nothing; far
    fewer polarised statements than false alarms, or far more, show that the accuracy is of other statements."""
    # of 30 % truly polarised, .8 are found, and of the others .1 labelled so: .24 + .07
    assert corrected_share(0.31, 0.0, Accuracy(0.8, 0.0, 0.9, 0.0)) == pytest.approx((0.3, 0.3, 0.3))
    found = corrected_share(0.31, 0.02, Accuracy(0.8, 0.03, 0.9, 0.01))
    error = (0.02**2 + (0.3 * 0.03) ** 2 + (0.7 * 0.01) ** 2) ** 0.5 / 0.7
    assert found == pytest.approx((0.3, 0.3 - 1.959964 * error, 0.3 + 1.959964 * error))
    assert corrected_share(0.2, 0.0, Accuracy(1.0, 0.0, 1.0, 0.0)) == pytest.approx((0.2, 0.2, 0.2))
    fewer = corrected_share(0.08, 0.02, Accuracy(0.8, 0.0, 0.9, 0.0))
    assert fewer == pytest.approx((0, 0, (-0.02 + 1.959964 * 0.02) / 0.7))
    assert corrected_share(0.2, 0.01, Accuracy(0.5, 0.02, 0.55, 0.02)) is None
    assert [corrected_share(share, 0.001, Accuracy(0.8, 0.01, 0.9, 0.01)) for share in (0.02, 0.95)] == [None, None]
    polarised, statements = np.array([1.0, 1.0, 3.0, 3.0]), np.full(4, 4.0)
    apart, pairs = (share_error(polarised, statements, np.array(of)) for of in ([0, 1, 2, 3], [0, 0, 1, 1]))
    assert apart == pytest.approx((4 * (1 / 16) ** 2 * 4 / 3) ** 0.5)  # each 1 away from 2, of 16
    assert pairs == pytest.approx((2 * (2 / 16) ** 2 * 2) ** 0.5)
    shipped = known_accuracy("COMeT")
    assert set(shipped) == {"", "origin", "gender", "profession"}  # 36 statements are about religions
    assert known_accuracy("COMeT", template="neutral")[""] != shipped[""]


def test_tables_and_pictures_are_those_of_the_stored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: all pictures of the page are drawn."""
    pages = [Path("docs/results.md"), Path("benchmarks/experiment.md")]
    again = [Path(shutil.copy(ROOT / page, tmp_path)) for page in pages]
    given = ["--page", *map(str, again), "--pictures", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["experiment_tables.py", *given])
    tables.main()
    assert [page.read_text("utf-8") for page in again] == [(ROOT / page).read_text("utf-8") for page in pages]
    drawn = {"harm-against-quality.png", "by-category.png", "by-relation.png"}
    assert {path.name for path in tmp_path.glob("*.png")} == drawn


def test_tables_of_the_second_plan_are_those_of_the_stored_rows() -> None:
    """Of the page of results, which rounds them."""
    rows, known = read(EXPERIMENTS["plan2"].table), arms(EXPERIMENTS["plan2"].arms)
    page = (ROOT / "benchmarks/plan2.md").read_text("utf-8").replace("`", "")
    of_test = plan2_tables.test(rows, known).replace("`", "").replace("test_", "")
    found = [line for line in of_test.splitlines() if line.startswith("|")]
    assert len(found) == 2 + 2 * 7
    assert [line for line in found if line not in page] == []
    accuracy = plan2_tables.accuracy_of(plan2_tables.ENDPOINTS["screening"])
    screened = plan2_tables.screening(*plan2_tables.part_of(rows, known, "screening"), accuracy).replace("`", "")
    lines = [cells for line in screened.splitlines() if len(cells := line.strip("| ").split(" | ")) == 12][1:]
    told = [" | ".join([*cells[:3], *(cell.lstrip("+") for cell in cells[4:8]), *cells[8:11]]) for cells in lines]
    assert len(told) == 6
    assert [line for line in told if line not in page] == []
    doses = plan2_tables.dose_table(plan2_tables.dose_levels(*plan2_tables.part_of(rows, known, "dose")))
    results = (ROOT / "docs/results.md").read_text("utf-8")
    figures = [line.split(" | ", 1)[1] for line in doses.splitlines()[2:]]
    assert len(figures) == 9
    assert [line for line in figures if line not in results] == []


def test_the_results_in_readme_are_those_of_the_file() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.split("\n## Results\n")[1].splitlines() if line[:1] == "|"]
    found, control, policy = read(tables.CSV), "random_both_neutral", "both_neutral"
    assert lines[0][1:4] == ["`none`", "control", f"`{policy}`"]
    less, more = effects.harm(found, control, policy, "", corrected=False), effects.lift(found, control, policy)
    perplexity = "independent_perplexity/neutral"
    worse = effects.over_seeds(found, control, policy, perplexity)
    assert worse is not None
    for column, effect, sign, line in (
        (of_category(""), less, -1, lines[2]),
        (tables.HELD_OUT, more, 1, lines[3]),
        (perplexity, worse, 1, lines[4]),
    ):
        means = [effects.of_arm(found, arm)[column].cast(pl.Float64).mean() for arm in ("none", control, policy)]
        low, high = sorted(sign * bound for bound in effect.bounds())
        cells = [f"{mean:.1f}" for mean in means] + [f"{sign * effect.value:+.1f} [{low:.1f}, {high:.1f}]"]
        assert line[1:] == [cell.replace("-", "−") for cell in cells]
