import pytest
import torch

from models.dropout import Dropout, dropout


def test_what_is_kept_grows_by_what_is_dropped() -> None:
    torch.manual_seed(0)
    ones = torch.ones(1001, 101, requires_grad=True)
    found = dropout(ones, 0.25)
    assert found.unique().tolist() == [0, pytest.approx(4 / 3)]
    for quarter in range(4):  # the entries that one of four parts of a random number decides on
        assert (found.flatten()[quarter::4] == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    found.sum().backward()
    assert torch.equal(ones.grad, found)


def test_a_seed_decides_what_is_dropped() -> None:
    ones = torch.ones(64, dtype=torch.bfloat16)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(dropout(ones, 0.5))
    once, again, otherwise = found
    assert torch.equal(once, again)
    assert not torch.equal(once, otherwise)
    assert once.dtype == torch.bfloat16


def test_nothing_is_dropped_outside_training() -> None:
    layer, ones = Dropout(0.5), torch.ones(64)
    assert (layer(ones) == 0).any()
    assert torch.equal(layer.eval()(ones), ones)
