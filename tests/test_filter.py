import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.filter import Policy, apply, count_reasons

# sentiment, regard, sentiment_neutral, regard_neutral of five training triples and one test triple
LABELS = [(0, 0, 0, 0), (1, 0, 0, 0), (0, -1, 0, -1), (-1, 1, -1, 0), (0, 2, 0, 2), (1, 1, 1, 1)]


@pytest.fixture
def labelled() -> pl.DataFrame:
    frame = pl.DataFrame(
        LABELS, schema=["sentiment", "regard", "sentiment_neutral", "regard_neutral"], orient="row"
    ).cast(pl.Int8)
    return frame.with_columns(split=pl.Series(["train"] * 5 + ["test"]), row=pl.int_range(1, 7))


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        (Policy("none"), ["kept"] * 6),
        (Policy("sentiment", ["sentiment"]), ["kept", "sentiment +1", "kept", "sentiment -1", "kept", "kept"]),
        (Policy("regard", ["regard"]), ["kept", "kept", "regard -1", "regard +1", "kept", "kept"]),
        (
            Policy("both", ["sentiment", "regard"]),
            ["kept", "sentiment +1", "regard -1", "sentiment -1, regard +1", "kept", "kept"],
        ),
        (
            Policy("both", ["sentiment", "regard"], template="neutral"),
            ["kept", "kept", "regard -1", "sentiment -1", "kept", "kept"],
        ),
        (
            Policy("both", ["sentiment", "regard"], splits="all"),
            ["kept", "sentiment +1", "regard -1", "sentiment -1, regard +1", "kept", "sentiment +1, regard +1"],
        ),
    ],
)
def test_reasons_and_weights(labelled: pl.DataFrame, policy: Policy, reasons: list[str]) -> None:
    ledger = apply(policy, labelled)
    assert ledger["reason"].to_list() == reasons
    assert ledger["weight"].to_list() == [float(reason == "kept") for reason in reasons]
    assert ledger["row"].to_list() == labelled["row"].to_list()


def test_a_policy_that_drops_everything(labelled: pl.DataFrame) -> None:
    with pytest.raises(
        MitigateError, match=r"policy 'sentiment' drops every training triple: sentiment \+1 1, sentiment -1 1"
    ):
        apply(Policy("sentiment", ["sentiment"]), labelled[[1, 3]])


def test_count_reasons(labelled: pl.DataFrame) -> None:
    ledger = apply(Policy("sentiment", ["sentiment"]), labelled)
    assert count_reasons(ledger) == "kept 3, sentiment +1 1, sentiment -1 1"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scorers": ["feeling"]}, "unknown scorer in policy.scorers 'feeling'; allowed: sentiment, regard"),
        ({"template": "own"}, "unknown policy.template 'own'; allowed: paper, neutral"),
        ({"splits": "test"}, "unknown filter.splits 'test'; allowed: train, all"),
    ],
)
def test_unknown_values_name_the_allowed(values: dict, message: str) -> None:
    with pytest.raises(MitigateError) as error:
        Policy("mine", **values)
    assert str(error.value) == message
