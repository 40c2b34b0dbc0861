"""Numbers that numpy computes for a few texts and questions are those of PyTorch, which is not loaded for them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from small_models import save_gpt1, small_comet

from mitigate.score.plausibility import FewPlausibility, Plausibility
from models import numpy_layers
from models.comet import Comet
from models.decoder import Decoder, DecoderConfig, Kind
from models.encoding import Encoding
from models.few_tails import FewTails
from models.hf_layouts import tensor_names
from models.kinds import kind_of
from models.tail_prompts import Layout

ROOT = Path(__file__).parents[1]


def test_gelu_is_that_of_torch() -> None:
    x = np.linspace(-6, 6, 9 * 50, dtype=np.float32).reshape(50, 9)
    for kind in ("none", "tanh"):
        wanted = torch.nn.functional.gelu(torch.from_numpy(x), approximate=kind).numpy()
        assert numpy_layers.gelu(x.copy(), kind) == pytest.approx(wanted, abs=1e-6)


def made(kind: Kind, layout: Layout, folder: Path) -> Comet:
    """A small random COMeT of a kind of decoder."""
    if kind == "minilm":
        return small_comet(layout=layout)
    encoding = Encoding.load(save_gpt1(folder, ["a lawyer can argue", "the nurse is kind and helps people"]))
    torch.manual_seed(0)
    config = DecoderConfig(kind, vocab_size=encoding.vocab_size, positions=64, width=16, layers=2, heads=4, inner=64)
    decoder = Decoder(config)
    for parameter in decoder.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return Comet(decoder, encoding, layout).eval()


@pytest.mark.parametrize(("kind", "layout"), [("minilm", "packed"), ("gpt1", "comet"), ("gpt2", "packed")])
def test_tails_are_those_of_torch(kind: Kind, layout: Layout, tmp_path: Path) -> None:
    comet = made(kind, layout, tmp_path / "tokenizer")
    assert sorted(tensor_names(kind, 2)) == sorted(comet.decoder.state_dict())
    comet.save(tmp_path / "model")
    assert FewTails.fits(tmp_path / "model")
    few = FewTails.load(tmp_path / "model")
    prompts = few.prompts(["lawyer", "the kind nurse", "a"], ["is a", "can", "helps people"])
    assert prompts == comet.prompts(["lawyer", "the kind nurse", "a"], ["is a", "can", "helps people"])
    for beams, max_length in ((10, 6), (1, 3), (4, 1)):
        wanted = comet.search(prompts, beams=beams, max_length=max_length)
        found = few.search(prompts, beams=beams, max_length=max_length)
        for mine, theirs in zip(found, wanted, strict=True):
            assert [(beam.tokens, beam.ended) for beam in mine] == [(beam.tokens, beam.ended) for beam in theirs]
            assert [beam.log_prob for beam in mine] == pytest.approx([beam.log_prob for beam in theirs], abs=1e-4)
            assert [beam.score for beam in mine] == pytest.approx([beam.score for beam in theirs], abs=1e-4)
    assert few.decode(found[0][0].tokens) == comet.decode(wanted[0][0].tokens)
    with pytest.raises(ValueError, match="a prompt is empty"):
        few.search([[]])


def test_a_model_that_was_not_saved_as_a_comet_is_left_to_torch(tmp_path: Path) -> None:
    assert not FewTails.fits(save_gpt1(tmp_path, ["a lawyer can argue"]))
    assert kind_of(tmp_path) is Comet


def test_weights_that_are_damaged_or_lack_one_are_a_fault(tmp_path: Path) -> None:
    small_comet().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"lack bert\.encoder\.layer\.2"):
        FewTails.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="absent or damaged"):
        FewTails.load(tmp_path)


def test_plausibility_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads the two shipped networks: 3 s."""
    monkeypatch.setenv("MITIGATE_PRECISION", "fp32")
    texts = ["bird\tCapableOf\tfly", "stone\tCapableOf\tfly", "a long walk\tHasProperty\tgood", "cat\tIsA\tanimal"]
    few = Plausibility.of_few()
    assert isinstance(few, FewPlausibility)
    labels, wanted = few(texts), Plausibility()(texts)
    assert labels.label.tolist() == wanted.label.tolist()
    assert labels.strength == pytest.approx(wanted.strength, abs=1e-4)
    assert few([]).label.shape == (0,)
    with pytest.raises(ValueError, match="relations Eats are unknown"):
        few(["cat\tEats\tmouse"])


def test_filtering_a_few_triples_loads_no_torch(tmp_path: Path) -> None:
    """One process, since this one has loaded PyTorch."""
    table = pl.DataFrame({"head": ["lawyer", "cat"], "relation": ["CapableOf", "IsA"], "tail": ["argue", "animal"]})
    table.write_csv(tmp_path / "triples.tsv", separator="\t")
    arguments = ["", "recipe=filter", "data=triples", f"data.path={tmp_path / 'triples.tsv'}", "tracking=none"]
    arguments += [f"paths.outputs={tmp_path}", f"paths.cache={tmp_path}"]
    code = f"""
        import sys
        sys.argv = {arguments}
        from mitigate.recipes.main import run
        run()
        print([name for name in ("torch", "transformers", "wandb", "pandas", "matplotlib") if name in sys.modules])"""
    lines = [line.strip() for line in code.strip().splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
