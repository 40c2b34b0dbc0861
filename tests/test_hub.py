from pathlib import Path

import pytest

from models import hub


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert hub.locate(str(tmp_path)) == tmp_path
    assert hub.missing(str(tmp_path)) == []


def test_a_model_that_is_not_at_hand_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match="nobody/nothing is no folder, .* give that folder's path instead"):
        hub.locate("nobody/nothing")
    assert hub.missing("nobody/nothing") == ["https://huggingface.co/nobody/nothing to the hub's cache"]
