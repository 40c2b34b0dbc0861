"""The committed rows of benchmarks/: their tables, computed again, are those of the pages; and effects by hand."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import experiment_effects as effects
from benchmarks import experiment_tables as tables
from benchmarks.experiment_row import of_category, read

ROOT = Path(__file__).parents[1]


def test_tables_and_pictures_are_those_of_the_stored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: all pictures of the page are drawn."""
    page = ROOT / "benchmarks/experiment.md"
    again = Path(shutil.copy(page, tmp_path))
    monkeypatch.setattr(sys, "argv", ["experiment_tables.py", "--page", str(again), "--pictures", str(tmp_path)])
    tables.main()
    assert again.read_text("utf-8") == page.read_text("utf-8")
    drawn = {"policies-and-controls.png", "harm-against-quality.png", "by-category.png", "by-relation.png"}
    assert {path.name for path in tmp_path.glob("*.png")} == drawn


def test_the_results_in_readme_are_those_of_the_file() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Results\n")[1]
    found, control, policy = read(tables.CSV), "random_both_neutral", "both_neutral"
    less, more = effects.harm(found, control, policy, "", corrected=False), effects.lift(found, control, policy)
    worse = effects.over_seeds(found, control, policy, "independent_perplexity/neutral")
    assert worse is not None
    for effect, sign in ((less, -1), (more, 1), (worse, 1)):
        low, high = sorted(sign * bound for bound in effect.bounds())
        assert f"{sign * effect.value:+.1f} [{low:.1f}, {high:.1f}]".replace("-", "−") in text
    for column in (of_category(""), tables.HELD_OUT):
        before, after = (effects.of_arm(found, arm)[column].mean() for arm in (control, policy))
        assert re.search(rf"from {before:.1f}\b.* to {after:.1f}\b", text)
