"""What the simulations take for the truth, by formulas."""

import math

import numpy as np
import pytest

from benchmarks import simulate
from mitigate.measure.change import Change


def test_the_truth_of_all_words_is_what_the_formulas_say() -> None:
    """5 % polarised on average, times what policy, seed and both together do: exp of half their variances."""
    polarised = 5 * math.exp((simulate.POLICY**2 + simulate.TRAINING**2 + simulate.INTERACTION**2) / 2)
    truth = simulate.of_all_words("skewed", 0.5)
    assert truth.difference == pytest.approx(polarised / 2, rel=0.05)
    assert truth.ratio == pytest.approx(0.25, rel=0.15)
    assert simulate.of_all_words("skewed", 1.0).ratio == pytest.approx(1, rel=0.15)


def test_an_interval_misses_or_not() -> None:
    known, unknown = Change(50.0, 53.0, "difference", 1.0, 10), Change(50.0, 53.0)
    assert simulate.excludes(known, 0)
    assert not simulate.excludes(known, 1)
    assert not simulate.excludes(unknown, 0)


def test_every_part_writes_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "TARGETS", (12, 40))
    monkeypatch.setattr(simulate, "SEEDS", (2,))
    monkeypatch.setattr(simulate, "SHAPES", {"tied": simulate.SHAPES["tied"]})
    monkeypatch.setattr(simulate, "ENOUGH", 40)
    parts = (simulate.one_run, simulate.two_models, simulate.policies, simulate.copies)
    text = "\n\n".join(piece for part in parts for piece in part(3))
    rows = [line for line in text.splitlines() if line.startswith("| tied")]
    assert len(rows) == 1 + 1 + 4 * 2 + 1
    shares = [float(share) for row in rows for share in row.replace("→", "|").split("|")[2:] if share.strip()]
    assert np.all((np.array(shares) >= 0) & (np.array(shares) <= 100))
