"""Models by name or folder: what is looked for on the hub, and that nothing in a model's folder is run."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from refusals import refuses
from small_models import save_bart, save_classifier, save_llama

from mitigate.models import hub
from mitigate.models.hf import LanguageModel, Seq2Seq, SequenceClassifier
from mitigate.train.base_model import find_start, origin_facts


def test_folders_are_taken_as_they_are_and_weights_that_were_cut_short_are_named(tmp_path: Path) -> None:
    assert hub.locate(str(tmp_path)) == tmp_path
    folder = save_llama(tmp_path, TEXTS)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refuses(ValueError, "cannot be read .*: a file in it is damaged", LanguageModel.load, folder)


def test_a_folder_without_a_model_is_refused_where_a_kind_is_given(tmp_path, monkeypatch):
    (tmp_path / "small").mkdir()
    for kind in (True, False):
        with pytest.raises(ValueError, match=r" has no config.json, so it is not a model folder$"):
            hub.locate(str(tmp_path), seq2seq=kind)
    save_llama(tmp_path / "small" / "llama", ["a lawyer"])
    with pytest.raises(ValueError, match=f"; did you mean {tmp_path / 'small' / 'llama'}?"):
        hub.locate(str(tmp_path / "small"), seq2seq=False)
    (tmp_path / "config.json").write_text('{"is_encoder_decoder": true}')
    refuses(ValueError, r"has no files of a tokenizer, such as tokenizer.json", hub.locate, str(tmp_path), seq2seq=True)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert hub.locate(str(tmp_path), seq2seq=True) == tmp_path
    (tmp_path / "config.json").write_text("{'a'")
    with pytest.raises(ValueError, match=r"config.json is not JSON \(Expecting property name .*copy its folder again"):
        hub.locate(str(tmp_path), seq2seq=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match="nobody/nothing is not a folder, .* give that folder's path instead"):
        hub.locate("nobody/nothing")


def test_a_revision_is_looked_for_and_its_commit_is_in_the_provenance(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit = "0123456789" * 4
    folder = save_llama(tmp_path / "models--me--small" / "snapshots" / commit, ["a lawyer"])
    (tmp_path / "models--me--small" / "refs").mkdir()
    (tmp_path / "models--me--small" / "refs" / "v1").write_text(commit)
    assert hub.locate("me/small", revision="v1", seq2seq=False) == folder
    assert origin_facts(find_start(LanguageModel.load, folder)) == {"commit of the base model": commit}


def test_a_cache_that_holds_the_tokenizer_alone_is_completed(tmp_path, monkeypatch):
    cached, complete = tmp_path / "cached", save_llama(tmp_path / "complete", TEXTS)
    shutil.copytree(complete, cached, ignore=shutil.ignore_patterns("*.safetensors"))
    folders = {True: cached, False: complete}  # by local_files_only
    monkeypatch.setattr(hub, "snapshot_download", lambda _, local_files_only=False, **how: folders[local_files_only])
    assert hub.locate("me/small", seq2seq=False) == complete
    refuses(ValueError, "has no model.safetensors; weights in a pickle", LanguageModel.load, cached)


class Touches:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def pickled(folder: Path, touched: Path) -> Path:
    """The folder of a model with weights that are a pickle alone."""
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Touches(touched)}, folder / "pytorch_model.bin")
    return folder


def with_own_code(folder: Path, touched: Path) -> Path:
    """The folder of a model whose classes come with it."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {name: f"own.{name}" for name in ("AutoConfig", *CLASSES)}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"from pathlib import Path\nPath({str(touched)!r}).touch()\n")
    return folder


CLASSES = ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification")
TEXTS = ["the lawyer is kind", "the nurse is a person"]
of_each_kind = pytest.mark.parametrize(
    ("save", "load"),
    [
        (lambda folder: save_llama(folder, TEXTS), LanguageModel.load),
        (lambda folder: save_bart(folder, TEXTS), Seq2Seq.load),
        (lambda folder: save_classifier(folder, ["neg", "neu"]), lambda folder: SequenceClassifier.load(str(folder))),
    ],
    ids=["language model", "seq2seq", "classifier"],
)


@of_each_kind
@pytest.mark.parametrize(
    ("spoil", "message"),
    [(pickled, "pickle"), (with_own_code, "comes with code of its own .* which is not run")],
    ids=["pickle", "own code"],
)
def test_nothing_in_the_folder_of_a_model_is_run(save, load, spoil, message, tmp_path) -> None:
    touched = tmp_path / "touched"
    folder = spoil(save(tmp_path / "model"), touched)
    refuses(ValueError, message, load, folder)
    assert not touched.exists()
