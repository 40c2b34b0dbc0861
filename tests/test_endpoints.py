"""The primary endpoints: which figures they are, and what is corrected, by numbers from a table of Student's t."""

from dataclasses import asdict

import polars as pl
import pytest
import yaml
from command import ROOT

from mitigate.errors import MitigateError
from mitigate.measure.change import Change
from mitigate.measure.comparison import STATISTICS
from mitigate.measure.seeds import Changes, by_seeds
from mitigate.tasks.compare.endpoints import Endpoints, primary, within_margins

ONE, TWO = "NRM", "quality/valid/all"


def table(figures: dict[str, tuple[float, float]], contrasts: tuple[str, ...] = ("both",)) -> pl.DataFrame:
    """By figure: its change, and its standard error with 10 degrees of freedom; with targets fixed half of it."""
    rows = []
    for contrast in contrasts:
        for figure, (change, error) in figures.items():
            of = Change(50.0, 50.0 + change, "difference", error, 10)
            fixed = Change(50.0, 50.0 + change, "difference", error / 2, 10)
            rows.append({"contrast": contrast, "figure": figure} | of.row() | by_seeds(Changes(of, fixed), "seeds"))
    return pl.DataFrame(rows, schema={"contrast": pl.String, "figure": pl.String, **STATISTICS})


def test_two_endpoints_are_corrected_between_themselves() -> None:
    """97.5 % of t with 10 degrees of freedom lies within 2.634, 95 % within 2.228."""
    found = primary(table({ONE: (3.0, 1.0), "NSM": (9.0, 1.0)}), table({TWO: (-0.5, 0.2)}), Endpoints())
    quality, harm = found.to_dicts()
    assert (harm["endpoint"], harm["figure"], quality["endpoint"], quality["figure"]) == ("harm", ONE, "quality", TWO)
    assert (harm["low"], harm["high"]) == pytest.approx((3 - 2.228, 3 + 2.228), abs=0.001)
    assert (harm["low_corrected"], harm["high_corrected"]) == pytest.approx((3 - 2.634, 3 + 2.634), abs=0.001)
    assert harm["fixed_high_corrected"] == pytest.approx(3 + 1.317, abs=0.001)
    assert harm["level"] == 97.5
    assert harm["p_holm"] == pytest.approx(2 * min(harm["p"], quality["p"]))
    assert harm["p_holm"] <= quality["p_holm"] == pytest.approx(max(quality["p"], harm["p_holm"]))


def test_all_policies_of_a_page_are_one_family() -> None:
    names = ("both", "swap", "regard")
    found = primary(table({ONE: (3.0, 1.0)}, names), table({TWO: (-0.5, 0.2)}, names), Endpoints())
    assert found["level"].unique().to_list() == [pytest.approx(100 - 5 / 6)]


def test_the_first_figure_counts_that_all_have() -> None:
    wanted = Endpoints(harm=["neutral_template/NRM", "NRM"], quality=["quality/bleu2/all"])
    harms = pl.concat(
        [table({"neutral_template/NRM": (1.0, 1.0), ONE: (1.0, 1.0)}), table({ONE: (1.0, 1.0)}, ("swap",))]
    )
    found = primary(harms, table({TWO: (1.0, 1.0)}), wanted)
    assert found["figure"].to_list() == [ONE, ONE]  # no run has the one of quality


def test_a_margin_has_its_power_beside_it() -> None:
    """The primary figure's interval is the corrected one; a true copy with an error of 0.2 has it reach 0.527 down, and
    passes where it lies above -0.473, 2.366 errors down."""
    quality = table({TWO: (-0.4, 0.2), "quality/perplexity/neutral": (0.1, 5.0)})
    tested = primary(table({ONE: (3.0, 1.0)}), quality, Endpoints())
    share, perplexity = within_margins(quality, tested, {TWO: -1.0, "quality/perplexity/neutral": -2.0}).to_dicts()
    assert (share["low"], share["margin"]) == (pytest.approx(-0.927, abs=0.001), -1.0)
    assert share["copy_passes"] == pytest.approx(98.0, abs=0.1)
    assert perplexity["low"] == pytest.approx(0.1 - 5 * 2.228, abs=0.01)
    assert perplexity["copy_passes"] < 5


def test_the_power_is_not_known_where_nothing_varied() -> None:
    same = table({TWO: (0.0, 0.0)})
    (row,) = within_margins(same, primary(table({ONE: (0.0, 0.0)}), same, Endpoints()), {TWO: -1.0}).to_dicts()
    assert (row["low"], row["high"], row["copy_passes"]) == (None, None, None)  # NaN is no JSON


def test_the_configuration_names_the_same() -> None:
    settings = yaml.safe_load((ROOT / "conf/recipe/compare.yaml").read_text(encoding="utf-8"))["compare"]
    assert {**settings["primary"], "margins": settings["margins"]} == {
        name: value if isinstance(value, dict) else list(value) for name, value in asdict(Endpoints()).items()
    }


def test_what_is_no_metric_is_no_endpoint() -> None:
    with pytest.raises(MitigateError, match=r"compare.primary.harm names 'NRN', which is no metric; allowed are keys"):
        Endpoints(harm=["NRN"])
    with pytest.raises(MitigateError, match="compare.margins names 'quality/luck'"):
        Endpoints(margins={"quality/luck": -1.0})
