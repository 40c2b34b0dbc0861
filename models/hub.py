"""Models by their name on the Hugging Face hub, or in a user's folder. No code from a model's folder is run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError, StrictDataclassError
from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars
from safetensors import SafetensorError
from transformers.utils import logging

from mitigate.models.stored_tensors import ANEW, CONFIG, read_facts, sha256_of

WEIGHTS = "model*.safetensors"
TOKENIZER = ("tokenizer*.json", "vocab.*", "*.model", "*.tiktoken")
FILES = ["*.json", WEIGHTS, "vocab.*", "merges.txt", "*.model", "*.jinja"]
_loading = Lock()  # transformers patches its classes while it loads, and two threads at once would leave them so


def locate(
    name: str, revision: str | None = None, *, seq2seq: bool | None = None, cache: str | Path | None = None
) -> Path:
    """The folder of a model: `name` itself when it is a folder, that of a GGUF file (from_gguf), else the hub's model
    of that name, which is downloaded once. revision: a commit, tag or branch of the hub; None: that of an earlier
    download, else the newest. seq2seq: whether it must have an encoder and a decoder; None: either will do.

    Raises FileNotFoundError when there is no such folder and the download fails, and ValueError for a model of the
    other kind or, when seq2seq is given, a folder without a model."""
    if name.lower().endswith(".gguf"):
        return from_gguf(Path(name), cache)
    folder = Path(name) if Path(name).is_dir() else _from_hub(name, revision)
    has_tokenizer = any(path for pattern in TOKENIZER for path in folder.glob(pattern))
    if not (folder / CONFIG).is_file():
        subfolders = [] if has_tokenizer else sorted(str(path.parent) for path in folder.glob(f"*/{CONFIG}"))
        suggestion = f"; did you mean {subfolders[0]}?" if subfolders else ""
        if subfolders or seq2seq is not None:  # original.py needs a tokenizer alone
            raise ValueError(f"{name} has no {CONFIG}, so it is not a model folder{suggestion}")
    if seq2seq is None:
        return folder
    if not has_tokenizer:
        raise ValueError(f"{name} has no files of a tokenizer, such as tokenizer.json; copy them into that folder")
    if seq2seq != bool(read_facts(folder / CONFIG).get("is_encoder_decoder")):
        kinds = {False: ("a causal language model", "hf"), True: ("a sequence-to-sequence model", "seq2seq")}
        kind, setting = kinds[not seq2seq]
        raise ValueError(f"{name} is {kind}, not {kinds[seq2seq][0]}; set model={setting} model.base={name}")
    return folder


def from_gguf(file: Path, cache: str | Path | None = None) -> Path:
    """The folder, in `cache` by the file's hash, into which transformers reads the GGUF file of a causal language model
    once, its weights in float32.

    Raises FileNotFoundError without the file, and ValueError where transformers cannot read it, or lacks a library."""
    if not file.is_file():
        raise FileNotFoundError(f"no such file: {file}; give the path of a GGUF file, or a folder")
    base = cache or os.environ.get("MITIGATE_CACHE") or Path.home() / ".cache" / "mitigate"
    folder = Path(base) / "gguf" / sha256_of(file)[:16]
    if folder.is_dir():
        return folder
    import transformers  # takes seconds

    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as part, no_bars():
        alone = Path(part, "alone")  # beside other files, transformers would read these too
        alone.mkdir()
        (alone / "model.gguf").symlink_to(file.resolve())
        of_file: dict[str, Any] = {"gguf_file": "model.gguf"}
        if hasattr(transformers, "GgufConfig"):  # else weights may stay packed
            of_file["quantization_config"] = transformers.GgufConfig(dequantize=True)
        try:
            model = load_complete(transformers.AutoModelForCausalLM, alone, dtype="float32", **of_file)
            tokenizer = transformers.AutoTokenizer.from_pretrained(alone, gguf_file="model.gguf")
        except ImportError as error:
            raise ValueError("a GGUF file needs libraries of its own: pip install 'mitigate[gguf]'") from error
        except Exception as error:  # of any kind: what is read may be anything
            why = " ".join(str(error).replace(str(alone / "model.gguf"), file.name).split())[:300]
            raise ValueError(
                f"{file} is damaged, or a GGUF file that transformers does not read ({type(error).__name__}: {why}); "
                "give another one, or the model in the Hugging Face format"
            ) from error
        if hasattr(model.config, "quantization_config"):  # a model that was quantised is not saved
            del model.config.quantization_config
            model.hf_quantizer = None
        model.save_pretrained(Path(part, "model"))
        tokenizer.save_pretrained(Path(part, "model"))
        with suppress(OSError):  # another process was first
            Path(part, "model").rename(folder)
    return folder


def _from_hub(name: str, revision: str | None) -> Path:
    how: dict[str, Any] = {"revision": revision, "allow_patterns": FILES}
    try:
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, **how, local_files_only=True))
            if any(folder.glob(WEIGHTS)):  # the cache may hold the tokenizer alone
                return folder
        return Path(snapshot_download(name, **how))
    except Exception as error:  # network, proxy, hub and disk each have kinds of their own
        raise FileNotFoundError(
            f"{name} is not a folder, is not in the hub's cache, and could not be downloaded from the Hugging Face hub "
            f"({type(error).__name__}). Copy the model's files (config.json, model.safetensors, tokenizer files) into "
            "a folder and give that folder's path instead of the name."
        ) from error


def load_model(kind: Any, folder: Path, **options: Any) -> Any:
    """The model of a folder in float32, by a class of transformers such as AutoModelForCausalLM. Raises ValueError for
    a model that needs code of its own or pickled weights, and ValueError or OSError for a damaged one."""
    if not any(folder.glob(WEIGHTS)):
        raise ValueError(
            f"{folder} has no model.safetensors; weights in a pickle, such as pytorch_model.bin, are not read, since a "
            "pickle can run code: save them again (transformers: model.save_pretrained), where you trust them"
        )
    return load_complete(kind, folder, use_safetensors=True, dtype="float32", **options)


def load_complete(kind: Any, folder: Path | str, **options: Any) -> Any:
    """Load a folder or a name as load_without_code does. Raises ValueError where weights are missing, which
    transformers would draw at random."""
    model, info = load_without_code(kind, folder, output_loading_info=True, **options)
    if absent := sorted(info["missing_keys"]):
        raise ValueError(f"the weights in {folder} lack {', '.join(absent)[:200]}; {ANEW}")
    return model


def load_without_code(kind: Any, folder: Path | str, **options: Any) -> Any:
    """Load a folder or a name with a class of transformers, without running code that comes with it. Raises
    ValueError where the model needs its own code, and for damaged files."""
    try:
        with _loading, no_bars():
            return kind.from_pretrained(folder, trust_remote_code=False, **options)
    except (JSONDecodeError, SafetensorError, LookupError, TypeError, AttributeError, StrictDataclassError) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"{folder} cannot be read ({why}): a file in it is damaged or incomplete; {ANEW}") from error
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ValueError(
            f"{folder} comes with code of its own (auto_map in its config.json), which is not run; give a model of an "
            "architecture that transformers has"
        ) from error


@contextmanager
def no_bars() -> Iterator[None]:
    """Context in which transformers shows no progress bars; the hub's client shows those of downloads as before."""
    shown, downloads_shown = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.disable_progress_bar()  # the hub's too
    if downloads_shown:
        enable_progress_bars()
    try:
        yield
    finally:
        if shown and downloads_shown:
            logging.enable_progress_bar()
