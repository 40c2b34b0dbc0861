import sys
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.train import Contestant, Train, Work, hugging_face, original, ours, table
from mitigate.train.comet import Examples
from models.decoder import DecoderConfig, Kind

EXAMPLES = Examples(["lawyer", "a very big church"] * 8, ["is used for"] * 16, ["win a case", "worship"] * 8)


@pytest.mark.parametrize(("make", "kind"), [(ours, "gpt2"), (hugging_face, "gpt2"), (original, "gpt1")])
def test_every_contestant_trains(make: Callable[[Work], Train], kind: Kind) -> None:
    train = make(Work(DecoderConfig(kind, vocab_size=30522, width=24, layers=1, inner=96), EXAMPLES))
    assert train(0, 2) > 0


def test_medians_are_compared_within_a_size() -> None:
    with Executor() as nobody:
        slow = Contestant("small", "Hugging Face loop", nobody, speeds=[1.0, 2.0, 9.0], peak=2.0)
        fast = Contestant("small", "mitigate, bf16", nobody, speeds=[5.0, 6.0, 7.0], peak=1.0)
        other = Contestant("large", "mitigate, bf16", nobody, speeds=[100.0])
    lines = table([slow, fast, other]).splitlines()
    assert lines[2] == "| small | Hugging Face loop | 2.0 | 1.0 2.0 9.0 | 3.0 times as fast | 2.00 |"
    assert lines[3] == "| small | mitigate, bf16 | 6.0 | 5.0 6.0 7.0 |  | 1.00 |"
