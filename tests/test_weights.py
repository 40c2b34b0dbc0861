"""Which number format networks compute in."""

import pytest
import torch

from mitigate.errors import MitigateError
from mitigate.score.crowd import Crowd
from mitigate.score.weights import CHOSEN_BY, native_dtype
from mitigate.train.harness import native_precision


def test_the_format_can_be_the_same_on_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that labels of runs on two machines can be compared; labels of another format are another scorer's."""
    monkeypatch.delenv(CHOSEN_BY, raising=False)
    here = native_dtype()
    prints = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("auto", here)):
        monkeypatch.setenv(CHOSEN_BY, name)
        assert native_dtype() == dtype
        prints[name] = Crowd().fingerprint
    assert prints["fp32"] != prints["bf16"]
    assert prints["auto"] in (prints["fp32"], prints["bf16"])


def test_another_format_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOSEN_BY, "fp16")
    with pytest.raises(MitigateError, match="MITIGATE_PRECISION is 'fp16'; it must be one of auto, fp32, bf16"):
        native_dtype()


@pytest.mark.parametrize(
    ("computes", "dtype", "precision"), [(True, torch.bfloat16, "bf16-mixed"), (False, torch.float32, "32-true")]
)
def test_scorers_and_training_go_by_the_same_processor(
    computes: bool, dtype: torch.dtype, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CHOSEN_BY, raising=False)
    monkeypatch.setattr("models.bf16.in_processor", lambda: computes)
    assert (native_dtype(), native_precision("cpu")) == (dtype, precision)
