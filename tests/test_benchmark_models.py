"""Benchmarks of models at small sizes: both sides of each comparison, and their tables."""

import re
from collections.abc import Callable
from concurrent.futures import Executor

import pytest
from torch import nn

from benchmarks import train as contest
from benchmarks.gpu import main
from benchmarks.results import RESULTS
from benchmarks.train import Contestant, Train, Work, hugging_face, original, ours, table
from mitigate.train.comet import Examples
from models.decoder import DecoderConfig, Kind


def test_it_is_ready_to_be_run() -> None:
    """The path a GPU would take, on a CPU: each size trained and probed, nothing written."""
    before = RESULTS.read_bytes()
    section = main(["--device", "cpu", "--small", "--steps", "3"])
    assert RESULTS.read_bytes() == before
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:3]] == ["GPT-1 size", "comet_minilm"]
    milliseconds, rate, projected = (float(cell.replace(",", "")) for cell in rows[1][1:4])
    assert rate * milliseconds / 1000 == pytest.approx(64, rel=0.1)
    assert projected == pytest.approx(100 * milliseconds, rel=0.1)
    assert re.search(r"\| 3 x 2 x 10 \|", section)
    assert [row[1] for row in rows[4:]] == ["fp32", "bf16", "fp32", "bf16"]


EXAMPLES = Examples(["lawyer", "a very big church"] * 8, ["is used for"] * 16, ["win a case", "worship"] * 8)


def keeping(models: list[nn.Module], maker: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """The maker, what it makes put into the list."""

    def make(*shape: object) -> nn.Module:
        models.append(maker(*shape))
        return models[-1]

    return make


@pytest.mark.parametrize(("make", "kind"), [(ours, "gpt2"), (hugging_face, "gpt2"), (original, "gpt1")])
def test_every_contestant_trains(make: Callable[[Work], Train], kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[nn.Module] = []
    for maker in (contest.comet, contest.theirs):
        monkeypatch.setattr(contest, maker.__name__, keeping(models, maker))
    train = make(Work(DecoderConfig(kind, vocab_size=30522, width=24, layers=1, inner=96), EXAMPLES))
    weights = dict(models[0].named_parameters())  # another may be made for its encoding
    before = {name: weight.detach().clone() for name, weight in weights.items()}
    assert train(0, 2) > 0
    assert all(weight.isfinite().all() for weight in weights.values())
    assert [name for name, weight in weights.items() if weight.equal(before[name])] == []


def test_medians_are_compared_within_a_size() -> None:
    with Executor() as nobody:
        slow = Contestant("small", "Hugging Face loop", nobody, speeds=[1.0, 2.0, 9.0], peak=2.0)
        fast = Contestant("small", "mitigate, bf16", nobody, speeds=[5.0, 6.0, 7.0], peak=1.0)
        other = Contestant("large", "mitigate, bf16", nobody, speeds=[100.0])
    lines = table([slow, fast, other]).splitlines()
    assert lines[2] == "| small | Hugging Face loop | 2.0 | 1.0 2.0 9.0 | 3.0 times as fast | 2.00 |"
    assert lines[3] == "| small | mitigate, bf16 | 6.0 | 5.0 6.0 7.0 |  | 1.00 |"
