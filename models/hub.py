"""Models by their name on the Hugging Face hub, or in a user's folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, StrictDataclassError
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from safetensors import SafetensorError
from transformers.utils import logging

from models import hf_layouts
from models.digests import sha256_of, sha256_of_each
from models.stored_tensors import ANEW, read_facts

WEIGHTS = "model*.safetensors"
TOKENIZER = ("tokenizer*.json", "vocab.*", "*.model", "*.tiktoken")
FILES = ["*.json", WEIGHTS, "vocab.*", "merges.txt", "*.model", "*.jinja"]
_loading = Lock()  # transformers patches its classes while it loads, and two threads at once would leave them so


def locate(
    name: str, revision: str | None = None, *, seq2seq: bool | None = None, cache: str | Path | None = None
) -> Path:
    """The folder of a model: `name` itself when it is a folder, that of a GGUF file (from_gguf), else the hub's model
    of that name, downloaded once (its file's hash is checked by the hub's client). revision: a commit, tag or branch of
    the hub; None: the newest. seq2seq: whether it has an encoder and a decoder; None: either.

    Raises FileNotFoundError when it is neither at hand nor to be had, and ValueError when it is of the other kind, or
    no model although its kind is asked for."""
    if name.lower().endswith(".gguf"):
        folder = from_gguf(Path(name), cache)
    else:
        folder = Path(name) if Path(name).is_dir() else _from_hub(name, revision)
    has_tokenizer = any(path for pattern in TOKENIZER for path in folder.glob(pattern))
    if not any((folder / file).is_file() for file in (hf_layouts.CONFIG, hf_layouts.ADAPTER)):
        below = [] if has_tokenizer else sorted(str(path.parent) for path in folder.glob(f"*/{hf_layouts.CONFIG}"))
        if below or seq2seq is not None:  # a tokenizer alone is of use, too
            meant = f"; did you mean {below[0]}?" if below else ""
            raise ValueError(f"{name} has no {hf_layouts.CONFIG}, so it is not a model folder{meant}")
    if seq2seq is not None and not has_tokenizer:
        raise ValueError(f"{name} has no files of a tokenizer, such as tokenizer.json; copy them to its config.json")
    if seq2seq is not None and (folder / hf_layouts.CONFIG).is_file() and seq2seq != is_seq2seq(folder):
        kinds = {False: ("a causal language model", "hf"), True: ("a sequence-to-sequence model", "seq2seq")}
        there, setting = kinds[not seq2seq]
        raise ValueError(f"{name} is {there}, not {kinds[seq2seq][0]}; set model={setting} model.base={name}")
    return folder


def from_gguf(file: Path, cache: str | Path | None = None) -> Path:
    """The folder, in `cache` by the file's hash, into which transformers reads the GGUF file of a model once, its
    weights in float32.

    Raises FileNotFoundError where there is no such file, and ValueError for one that transformers does not read, and
    without the libraries for it."""
    if not file.is_file():
        raise FileNotFoundError(f"no such file: {file}; give the path of a GGUF file, or a folder")
    base = cache or os.environ.get("MITIGATE_CACHE") or Path.home() / ".cache" / "mitigate"
    folder = Path(base) / "gguf" / sha256_of(file)[:16]
    if folder.is_dir():
        return folder
    import torch
    import transformers  # takes seconds
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as part, no_bars():
        alone = Path(part, "alone")  # beside other files, transformers would read these too
        alone.mkdir()
        (alone / "model.gguf").symlink_to(file.resolve())
        try:
            of_file: dict[str, Any] = {"gguf_file": "model.gguf"}
            is_pair = AutoConfig.from_pretrained(alone, **of_file).is_encoder_decoder
            kind: Any = AutoModelForSeq2SeqLM if is_pair else AutoModelForCausalLM
            if hasattr(transformers, "GgufConfig"):  # else weights may stay packed
                of_file["quantization_config"] = transformers.GgufConfig(dequantize=True)
            read = whole(kind, alone, dtype=torch.float32, **of_file)
            tokenizer = AutoTokenizer.from_pretrained(alone, gguf_file="model.gguf")
        except ImportError as error:
            raise ValueError(
                "a GGUF file needs the libraries gguf and accelerate: pip install 'mitigate[gguf]'"
            ) from error
        except Exception as error:  # of any kind: what is read may be anything
            why = " ".join(str(error).replace(str(alone / "model.gguf"), file.name).split())[:300]
            raise ValueError(
                f"{file} is damaged, or a GGUF file that transformers does not read ({type(error).__name__}: {why}); "
                "give another one, or the model in the Hugging Face format"
            ) from error
        if hasattr(read.config, "quantization_config"):  # a model that was quantised is not saved
            del read.config.quantization_config
            read.hf_quantizer = None
        read.save_pretrained(Path(part, "model"))
        tokenizer.save_pretrained(Path(part, "model"))
        with suppress(OSError):  # another process was first
            Path(part, "model").rename(folder)
    return folder


def is_seq2seq(folder: Path) -> bool:
    """Return whether the model of a folder has an encoder and a decoder, by its config.json. Raises ValueError for one
    that is no JSON."""
    path = folder / hf_layouts.CONFIG  # which the folder of a mere tokenizer may lack
    return path.is_file() and bool(read_facts(path).get("is_encoder_decoder"))


def _from_hub(name: str, revision: str | None) -> Path:
    try:
        return at_hand(name, revision) or Path(snapshot_download(name, revision=revision, allow_patterns=FILES))
    except HFValidationError as error:
        raise FileNotFoundError(
            f"there is no folder {name}, and no model of the Hugging Face hub can have such a name; give the path of a "
            "folder, or a name such as openai-community/gpt2"
        ) from error
    except Exception as error:  # network, proxy, hub and disk each have kinds of their own
        raise FileNotFoundError(
            f"{name} is not a folder, is not in the hub's cache, and could not be downloaded from the Hugging Face hub "
            f"({type(error).__name__}). Copy the model's files (config.json, model.safetensors, tokenizer files) into "
            "a folder and give that folder's path instead of the name."
        ) from error


def at_hand(name: str, revision: str | None = None) -> Path | None:
    """The model's folder in the hub's cache, or None when it would have to be downloaded. Raises HFValidationError for
    what cannot be a name there."""
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def opened(kind: Any, folder: Path, **options: Any) -> Any:
    """The model of a folder, by a class of transformers such as AutoModelForCausalLM. Nothing that is in the folder is
    run: no code that comes with the model, and no pickled weights.

    Raises ValueError for a model that needs one of these, and ValueError or OSError for a damaged one."""
    refuse_pickles(folder)
    return whole(kind, folder, use_safetensors=True, **options)


def refuse_pickles(folder: Path, weights: str = WEIGHTS) -> None:
    """Check that pickles are not the only weights in a folder, and raise ValueError if they are. weights: the pattern
    of files to be read."""
    if not any(folder.glob(weights)) and (pickled := sorted(folder.glob("*.bin"))):
        raise ValueError(
            f"{folder} has its weights as {pickled[0].name} alone, a pickle, which can run code when it is read; save "
            f"it as {weights.replace('*', '')} (transformers and peft: model.save_pretrained), where you trust it"
        )


def whole(kind: Any, folder: Path | str, **options: Any) -> Any:
    """The same of a folder or a name, where transformers would draw weights that are not there. Raises ValueError
    instead."""
    model, found = without_code(kind, folder, output_loading_info=True, **options)
    if absent := sorted(found["missing_keys"]):
        raise ValueError(f"the weights in {folder} lack {', '.join(absent)[:200]}; {ANEW}")
    return model


def without_code(kind: Any, folder: Path | str, **options: Any) -> Any:
    """Load a folder or a name with a class of transformers, without running code that comes with it. Raises
    ValueError where the model needs its own code, and for damaged weights."""
    try:
        with _loading:
            return kind.from_pretrained(folder, trust_remote_code=False, **options)
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ValueError(
            f"{folder} comes with code of its own (auto_map in its config.json), which is not run; give a model of an "
            "architecture that transformers has"
        ) from error
    except SafetensorError as error:
        raise ValueError(f"the weights in {folder} are damaged ({error}); {ANEW}") from error
    except (LookupError, TypeError, AttributeError, StrictDataclassError) as error:  # of files with other content
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"{folder} cannot be read ({why}): a file in it is damaged or incomplete; {ANEW}") from error


def missing(name: str | None, revision: str | None = None) -> list[str]:
    """The addresses that locate would download: the model's, or none; none without a name."""
    if name is None:
        return []
    try:
        is_there = Path(name).exists() or at_hand(name, revision) is not None
    except HFValidationError:  # which locate tells
        return []
    of_revision = f" at {revision}" if revision else ""
    return [] if is_there else [f"https://huggingface.co/{name}{of_revision} to the hub's cache"]


def digest_of(folder: Path) -> str:
    """The hash of a language model's weights and of its tokenizer."""
    return sha256_of_each(sorted([*folder.glob("*.safetensors"), *folder.glob("tokenizer*.json")]))


def commit_of(folder: Path) -> str | None:
    """The commit of a model in the hub's cache, which names its folder so; None for another folder."""
    return folder.name if folder.parent.name == "snapshots" else None


@contextmanager
def no_bars() -> Iterator[None]:
    """Context in which transformers shows no progress bars; the hub's client shows those of downloads as before. The
    previous settings return at its end."""
    shown, downloads_shown = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.disable_progress_bar()  # the hub's too
    if downloads_shown:
        enable_progress_bars()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # the hub's too
            if not downloads_shown:
                disable_progress_bars()
