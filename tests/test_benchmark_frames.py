"""What benchmarks/frames.py compares: filling in and `generate` give the same frames."""

import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.frames import frames_of, generated, random_form
from models.filling import fill_in

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
