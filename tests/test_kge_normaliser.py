"""The normaliser of a softmax, beside autograd's own."""

import pytest
import torch

from models.kge.normaliser import matches, normalise


def test_matches_are_all_equal_pairs():
    own, drawn = torch.tensor([4, 7, 1, 4]), torch.tensor([1, 4, 9, 4])
    rows, columns = matches(own, drawn)
    found = set(zip(rows.tolist(), columns.tolist(), strict=True))
    assert found == {(0, 1), (0, 3), (2, 0), (3, 1), (3, 3)}
    assert len(rows) == 5


def test_values_and_gradients_are_those_of_logsumexp():
    torch.manual_seed(0)
    scores = (3 * torch.randn(4, 6)).requires_grad_()
    same = scores.detach().clone().requires_grad_()
    left_out = torch.tensor([0, 2]), torch.tensor([5, 1])
    picked = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4])
    normalisers, true = normalise(scores, left_out=left_out, picked=picked)
    mask = torch.zeros(4, 6, dtype=torch.bool)
    mask[left_out] = True
    expected = same.masked_fill(mask, -torch.inf).logsumexp(1)
    assert normalisers.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert true.tolist() == same[picked].tolist()
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    ((weights * normalisers).sum() - 2 * true.sum()).backward()
    ((weights * expected).sum() - 2 * same[picked].sum()).backward()
    assert scores.grad is not None
    assert torch.allclose(scores.grad, same.grad, atol=1e-6)


def test_a_row_far_below_what_is_left_out_has_a_finite_gradient():
    scores = torch.tensor([[500.0, 0.0]]).requires_grad_()
    normaliser, _ = normalise(scores, left_out=(torch.tensor([0]), torch.tensor([0])))
    normaliser.sum().backward()
    assert normaliser.isfinite().all()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
