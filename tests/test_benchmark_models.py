"""Benchmarks of models at small sizes: both sides of each comparison, and their tables."""

import re
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import pytest
import torch
from command import ROOT
from hydra import compose, initialize_config_dir
from torch import nn
from transformers import AutoModelForCausalLM

from benchmarks import generators
from benchmarks import train as contest
from benchmarks.frames import frames_of, generated, random_form
from benchmarks.generators import SHAPES, batches, compare, gap, tokenizer_of
from benchmarks.gpu import main
from benchmarks.results import RESULTS
from benchmarks.time_to_quality import BEFORE, CHOSEN, CONTESTANTS, Dion, add, orthogonal, read, section
from benchmarks.train import Contestant, Train, Work, hugging_face, original, ours, table
from mitigate.train.comet import Examples, Settings
from models.decoder import DecoderConfig, Kind
from models.filling import fill_in
from models.language_model import LanguageModel

POSTS = [
    f"the {who} {verb} {how}" for who in ("nurse", "lawyer") for verb in ("cooks", "sings") for how in ("well", "bread")
]


@pytest.mark.filterwarnings("ignore")
def test_generate_follows_the_form_to_the_same_frames(tmp_path: Path) -> None:
    form = random_form(tmp_path, POSTS, width=64, layers=2, vocabulary=300)
    form.longest_text = 5
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "form", dtype=torch.float32).eval()
    texts = form.read([*POSTS, "a", "the nurse cooks " * 5])
    filled = frames_of(fill_in(form, texts, rows=4))
    assert generated(model, form, texts) == filled
    assert any(any(said) for _, said in filled)


TEXTS = ["the lawyer wins a case", "a nurse helps people", "is capable of", "is a", "has property"]


@pytest.mark.parametrize("name", SHAPES)
def test_both_searches_find_the_same_lists(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "WORDS", 300)
    monkeypatch.setattr(generators, "SIZES", (2,))
    shape, around = SHAPES[name]
    tokenizer = tokenizer_of(TEXTS, around)
    shape(len(tokenizer)).save_pretrained(tmp_path / name)
    tokenizer.save_pretrained(tmp_path / name)
    found = compare(tmp_path / name, prompts=4, rounds=1)
    assert (found.equal, found.prompts, found.gap) == (4, 4, 0.0)
    assert f"| {name} | {found.parameters / 1e6:.1f} M | 4 of 4 |" in generators.section([found])


def test_a_list_that_differs_is_reported_with_its_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "WORDS", 300)
    tokenizer = tokenizer_of(TEXTS, "$A")
    SHAPES["gpt2"][0](len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    generator = LanguageModel.load(tmp_path)
    one = generators.ours(generator, generator.prompts(["lawyer"], ["is a"]))[0]
    other = [*one[:-1], [5] * generators.LENGTH]
    assert gap(generator, generator.prompts(["lawyer"], ["is a"])[0], one, one) == 0
    assert gap(generator, generator.prompts(["lawyer"], ["is a"])[0], one, other) > 0
    assert list(batches([[1], [1, 2], [3], [4], [5, 6]], 2)) == [[0, 2], [3], [1, 4]]


def test_it_is_ready_to_be_run() -> None:
    """The path a GPU would take, on a CPU: each size trained and probed, nothing written."""
    before = RESULTS.read_bytes()
    section = main(["--device", "cpu", "--small", "--steps", "3"])
    assert RESULTS.read_bytes() == before
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in rows[1:3]] == [["GPT-1 size", "as it is"], ["comet_minilm", "as it is"]]
    milliseconds, rate, projected = (float(cell.replace(",", "")) for cell in rows[1][2:5])
    assert rate * milliseconds / 1000 == pytest.approx(64, rel=0.1)
    assert projected == pytest.approx(100 * milliseconds, rel=0.1)
    assert re.search(r"\| 3 x 2 x 10 \|", section)
    assert [row[1] for row in rows[4:]] == ["fp32", "bf16", "fp32", "bf16"]


def row(name: str, seed: int, seconds: float, perplexity: float) -> dict[str, object]:
    found = {"contestant": name, "epochs": 0.5, "seed": seed, "batch_size": 64, "steps": 781}
    found |= {"processor_seconds": seconds, "wall_seconds": seconds, "dev_perplexity": perplexity}
    return found | {"test_perplexity": "", "machine": "one thread", "commit": "abc"}


def test_contestants_are_compared_with_the_recipe_before(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    for found in (row(BEFORE, 1, 100.0, 8.0), row("calm, lr 1e-3", 1, 40.0, 7.0), row("calm, lr 1e-3", 2, 60.0, 8.0)):
        add(file, found)
    assert [known["processor_seconds"] for known in read(file)] == [100.0, 40.0, 60.0]
    lines = section(read(file)).splitlines()
    best = next(line for line in lines if line.startswith("| calm, lr 1e-3 "))
    assert "| 781 | 2 | 50 | 0.50 | 7.50 | one thread |" in best
    assert lines.index(best) < next(n for n, line in enumerate(lines) if line.startswith(f"| {BEFORE} "))
    assert read(tmp_path / "nothing.csv") == []
    full = {"epochs": 1.9}
    rows = [row(BEFORE, seed, 100.0, 8.0 + seed / 10) | {"epochs": 2.0} for seed in (1, 2, 3)]
    rows += [row(CHOSEN, seed, 45.0, 7.0 + seed / 10) | full for seed in (1, 2)] + [row(CHOSEN, 1, 40.0, 7.5)]
    assert (
        "1.9 epochs: perplexity 7.15 (2 seeds, 7.10 to 7.20) in 0.45 of the processor seconds of the recipe before, 2 "
        "epochs of which reach 8.20 (3 seeds, 8.10 to 8.30)."
    ) in section(rows)


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
    left, right = (torch.nn.functional.normalize(torch.randn(size), dim=0) for size in (6, 4))
    weight = ours.decoder.blocks.weight
    for parameter in ours.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight.grad = 7 * torch.outer(left, right)
    dion.step()
    size = 1.0 * 0.2 * 6**0.5
    assert torch.allclose(weight.detach(), -size * torch.outer(left, right), atol=1e-5)  # whatever the gradient's size
    assert torch.allclose(dion.momenta[0], 0.95 * weight.grad, atol=1e-5)


def test_contestants_differ_and_the_chosen_one_is_the_default_of_train100k() -> None:
    assert all(contestant.what for contestant in CONTESTANTS.values())
    assert len({contestant.what for contestant in CONTESTANTS.values()}) == len(CONTESTANTS)
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        config = compose("config", ["experiment=cn100k_cpu"])
    contestant = CONTESTANTS[CHOSEN]
    assert config.model.load.dropout == contestant.dropout
    assert {name: config.trainer[name] for name in contestant.settings if name != "vocabulary"} == {
        name: value for name, value in contestant.settings.items() if name != "vocabulary"
    }


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
