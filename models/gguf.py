"""GGUF files, the format of llama.cpp, converted once to a folder that transformers opens by itself.

Most have quantised weights. The folder stores these in float32, as they are in the file, without quantisation settings.
Its config.json names the file's hash and number type (Origin), and so does that of a model trained from it."""

import fcntl
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from models import hf_layouts
from models.digests import sha256_of
from models.stored_tensors import read_facts

MAGIC = b"GGUF"
NEEDED = "a GGUF file needs the libraries gguf and accelerate: pip install 'mitigate[gguf]'"
FLOATS = ("F64", "F32", "F16", "BF16")
FIELD = "gguf"  # of config.json


class Origin(NamedTuple):
    """The GGUF file that a model's weights come from."""

    sha256: str
    numbers: str  # type of most weights: "Q4_1", "F16"

    @property
    def is_quantised(self) -> bool:
        return self.numbers not in FLOATS


def origin_of(folder: Path) -> Origin | None:
    """The GGUF file that a folder's config.json names; None for weights from elsewhere."""
    path = folder / hf_layouts.CONFIG
    found = read_facts(path).get(FIELD) if path.is_file() else None
    return Origin(**found) if found else None


def locate(
    name: str, *, revision: str | None = None, seq2seq: bool | None = None, cache: str | Path | None = None
) -> Path:
    """hub.locate, where `name` may also be a GGUF file: its folder is then the converted one in `cache`.

    Raises as hub.locate and converted do."""
    is_file = Path(name).is_file() or name.lower().endswith(".gguf")
    from models import hub  # loads huggingface_hub, which a folder's origin is read without

    return hub.locate(str(converted(Path(name), cache)) if is_file else name, revision, seq2seq=seq2seq)


def converted(file: Path, cache: str | Path | None = None) -> Path:
    """The folder of a GGUF file's model, in `cache` by the file's hash, converted where it is not there.

    Raises FileNotFoundError where there is no such file, and ValueError for files that are not GGUF, are damaged, or
    hold what transformers does not read, and without the libraries."""
    if not file.is_file():
        raise FileNotFoundError(
            f"no such file: {file}; give the path of a GGUF file, a folder, or a name of the Hugging Face hub"
        )
    with file.open("rb") as opened:
        if (begin := opened.read(len(MAGIC))) != MAGIC:
            raise ValueError(
                f"{file} is not a GGUF file: it begins with {begin!r}, not with {MAGIC!r}; give a GGUF file, or a "
                "folder in the Hugging Face format"
            )
    sha256 = sha256_of(file)
    folder = Path(cache or _default_cache()) / "gguf" / sha256[:16]
    if folder.is_dir():
        return folder
    origin = Origin(sha256, _numbers(file))
    with _locked(folder.parent):
        if not folder.is_dir():
            part = folder.with_name(f".{folder.name}.part")  # a kill may have left one
            shutil.rmtree(part, ignore_errors=True)
            _convert(file, part, origin)
            part.rename(folder)
    return folder


def _default_cache() -> Path:
    """The folder that conf/paths/default.yaml names, for callers without a configuration."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("MITIGATE_CACHE") or base / "mitigate")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Context that holds a lock, so that jobs of a sweep convert a file once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _numbers(file: Path) -> str:
    """The type of most weights in a file. Raises ValueError as converted does."""
    if not (find_spec("gguf") and find_spec("accelerate")):
        raise ValueError(NEEDED)
    from gguf import GGUFReader  # an extra

    try:
        reader = GGUFReader(file)
        parts = field.contents() if (field := reader.get_field("split.count")) else 1
        sizes = Counter[str]()
        for tensor in reader.tensors:
            sizes[tensor.tensor_type.name] += int(tensor.n_elements)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{file} is cut short or damaged ({why}); copy or download it again") from error
    if parts > 1:
        raise ValueError(f"{file} is one of {parts} parts of a model; merge them first (llama-gguf-split --merge)")
    if not sizes:
        raise ValueError(f"{file} has no weights; give the GGUF file of a whole model")
    return sizes.most_common(1)[0][0]


def _convert(file: Path, folder: Path, origin: Origin) -> None:
    """Write the model and the tokenizer of a file to a folder. Raises ValueError for a file that transformers does not
    read."""
    from transformers import AutoTokenizer  # which takes seconds to load

    from models.progress_bars import no_bars

    with TemporaryDirectory() as alone, no_bars():  # beside other files, transformers would read these too
        link = Path(alone, "model.gguf")
        link.symlink_to(file.resolve())
        try:
            model = _dense(alone, link.name, origin)
            tokenizer = AutoTokenizer.from_pretrained(alone, gguf_file=link.name)
        except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            why = " ".join(str(error).replace(str(link), file.name).split())[:300]
            raise ValueError(
                f"{file} is a GGUF file that transformers {metadata.version('transformers')} does not read "
                f"({type(error).__name__}: {why}); give another one, or the model in the Hugging Face format"
            ) from error
        model.save_pretrained(folder)
        tokenizer.init_kwargs.pop("local_files_only", None)  # which depends on HF_HUB_OFFLINE
        tokenizer.save_pretrained(folder)


def _dense(place: str, name: str, origin: Origin) -> Any:
    """The model of a GGUF file with float32 weights, as one that was never quantised. Raises ValueError where weights
    are missing."""
    import torch
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    is_seq2seq = AutoConfig.from_pretrained(place, gguf_file=name).is_encoder_decoder
    kind: Any = AutoModelForSeq2SeqLM if is_seq2seq else AutoModelForCausalLM
    how: dict[str, Any] = {"gguf_file": name, "dtype": torch.float32, "output_loading_info": True}
    if hasattr(transformers, "GgufConfig"):  # which otherwise leaves weights packed where a kernel for them is there
        how["quantization_config"] = transformers.GgufConfig(dequantize=True)
    quantised, found = kind.from_pretrained(place, **how)
    if absent := sorted(found["missing_keys"]):
        raise ValueError(f"it lacks {', '.join(absent)}")
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    setattr(config, FIELD, origin._asdict())
    with torch.device("meta"):  # no random weights are drawn
        model = kind.from_config(config)
    model.load_state_dict(quantised.state_dict(), assign=True)
    return model
