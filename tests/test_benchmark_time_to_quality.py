"""What the benchmark of time to quality adds to training, on numbers one can check by hand, and its table."""

import sys
from pathlib import Path

import pytest
import torch
from command import ROOT
from hydra import compose, initialize_config_dir

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.time_to_quality import BEFORE, CHOSEN, CONTESTANTS, Dion, add, orthogonal, read, section
from mitigate.train.comet import Settings


def row(name: str, seed: int, seconds: float, perplexity: float) -> dict[str, object]:
    return {
        "contestant": name,
        "epochs": 0.5,
        "seed": seed,
        "batch_size": 64,
        "steps": 781,
        "processor_seconds": seconds,
        "wall_seconds": seconds,
        "dev_perplexity": perplexity,
        "test_perplexity": "",
        "machine": "one thread",
        "commit": "abc",
    }


def test_rows_are_added_and_contestants_compared_with_the_recipe_before(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    for found in (row(BEFORE, 1, 100.0, 8.0), row("calm, lr 1e-3", 1, 40.0, 7.0), row("calm, lr 1e-3", 2, 60.0, 8.0)):
        add(file, found)
    assert [known["processor_seconds"] for known in read(file)] == [100.0, 40.0, 60.0]
    lines = section(read(file)).splitlines()
    best = next(line for line in lines if line.startswith("| calm, lr 1e-3 "))
    assert "| 781 | 2 | 50 | 0.50 | 7.50 | one thread |" in best
    assert lines.index(best) < next(n for n, line in enumerate(lines) if line.startswith(f"| {BEFORE} "))
    assert read(tmp_path / "nothing.csv") == []


def test_the_chosen_recipe_is_named_beside_the_one_before() -> None:
    full = {"epochs": 1.9}
    rows = [row(BEFORE, seed, 100.0, 8.0 + seed / 10) | {"epochs": 2.0} for seed in (1, 2, 3)]
    rows += [row(CHOSEN, seed, 45.0, 7.0 + seed / 10) | full for seed in (1, 2)] + [row(CHOSEN, 1, 40.0, 7.5)]
    assert (
        "1.9 epochs: perplexity 7.15 (2 seeds, 7.10 to 7.20) in 0.45 of the processor seconds of the recipe before, 2 "
        "epochs of which reach 8.20 (3 seeds, 8.10 to 8.30)."
    ) in section(rows)


def test_the_chosen_recipe_is_the_default_of_train100k() -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        config = compose("config", ["experiment=cn100k_cpu"])
    contestant = CONTESTANTS[CHOSEN]
    assert config.model.load.dropout == contestant.dropout
    assert {name: config.trainer[name] for name in contestant.settings if name != "vocabulary"} == {
        name: value for name, value in contestant.settings.items() if name != "vocabulary"
    }


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_singular_values_become_nearly_alike(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    before, after = (torch.linalg.svdvals(found) for found in (matrix, orthogonal(matrix, 5)))
    assert before.max() / before.min() > 2
    assert 0.6 < after.min() <= after.max() < 1.3
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    assert (left.T @ orthogonal(matrix, 5) @ right.T).diagonal().min() > 0.6  # the directions stay


class Matrix(torch.nn.Module):
    """One matrix where a COMeT has its blocks, and a bias."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.decoder = torch.nn.Module()
        self.decoder.blocks = torch.nn.Linear(matrix.shape[1], matrix.shape[0])
        self.decoder.blocks.weight = torch.nn.Parameter(matrix)


def test_dion_steps_along_the_gradients_directions_and_keeps_what_it_leaves_out() -> None:
    torch.manual_seed(0)
    ours = Matrix(torch.zeros(6, 4))
    dion = Dion(ours, Settings(lr=0.5, weight_decay=0.0), {"dion": 1.0, "rank": 1})  # type: ignore[arg-type]
    left, right = (
        torch.nn.functional.normalize(torch.randn(6), dim=0),
        torch.nn.functional.normalize(torch.randn(4), dim=0),
    )
    weight = ours.decoder.blocks.weight
    for parameter in ours.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight.grad = 7 * torch.outer(left, right)
    dion.step()
    size = 1.0 * 0.2 * 6**0.5
    assert torch.allclose(weight.detach(), -size * torch.outer(left, right), atol=1e-5)  # whatever the gradient's size
    assert torch.allclose(dion.momenta[0], 0.95 * weight.grad, atol=1e-5)


def test_contestants_say_what_they_are() -> None:
    assert all(contestant.what for contestant in CONTESTANTS.values())
    assert len({contestant.what for contestant in CONTESTANTS.values()}) == len(CONTESTANTS)
