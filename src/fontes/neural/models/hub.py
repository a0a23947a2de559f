"""Model files: finding, downloading, fingerprinting and loading them, and the device of models."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import queue
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from ...core.errors import FontesError, InputError, MissingExtraError, ParameterError
from ...storage.artifact import is_plain
from ...storage.caches import Notes
from .packaged import EXAMPLE, INSTALL, packaged_model

if TYPE_CHECKING:
    from sentence_transformers.sentence_transformer.modules import Transformer
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

T = TypeVar("T")

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # variables that say how threads wait
HUB_TIMEOUT = 3.0  # seconds to wait for the hub's answer
WEIGHTS = (".safetensors", ".bin")
SETTINGS = (".json", ".txt", ".model", ".spm", ".vocab", ".bpe", ".codes", ".py")  # configurations, vocabularies, code
# Other formats of the same weights and traces of training, which do not change what a model computes.
IGNORED_FOLDERS = ("onnx", "openvino", "eval", "runs", ".cache", ".git")
IGNORED_FILES = [
    "training_args.bin",
    "optimizer.bin",
    "scheduler.bin",
    "trainer_state.json",
    "training.json",
    "data_config.json",
]
NOT_DOWNLOADED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.mlmodel", "*.gguf", "coreml/*"]

# Models are read from their folders without running Python files in them.
NO_CODE: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}

MIN_STORED_FILE = 1 << 20  # bytes of a file whose digest is stored

_NOTES = Notes("models.json")  # sizes, times and digests of model files
CACHE_BYTES = 2 << 30  # bytes of unused models kept in memory; the last one is kept regardless of its size
MIN_BYTES = 1 << 24  # minimum bytes counted for a model or a tokenizer
_recent: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()  # models used last, with their sizes
_in_use: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_lock = threading.RLock()


def library(name: str, purpose: str, extra: str = "neural") -> ModuleType:
    """Import the module `name`; raise MissingExtraError, which names `purpose` and the extra, if it is not installed."""
    try:
        with _passive_waiting():
            return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        if error.name and error.name.partition(".")[0] != package:
            raise  # installed, but one of its own dependencies is broken
        raise MissingExtraError.of(package, extra, purpose) from None


@contextmanager
def _passive_waiting() -> Iterator[None]:
    """Let the threads of torch, if it is imported in the block, sleep while they wait for each other.

    By default they spin, which on a busy machine takes the time of the threads that they wait for. OpenMP reads the environment
    once, when it is loaded; variables that the user has set are left alone, and other processes do not inherit the setting.
    """
    if "torch" in sys.modules or any(name in os.environ for name in WAITING):
        yield
        return
    os.environ[WAITING[0]] = "PASSIVE"
    try:
        yield
    finally:
        os.environ.pop(WAITING[0], None)


def find_model(name_or_path: str | os.PathLike[str], kind: str = "model", owner: str = "") -> Path:
    """Return the local folder of a model, which is downloaded if needed.

    A name is looked up in the hub's cache, then among the models of installed packages, without network access. A missing
    model is downloaded, unless HF_HUB_OFFLINE is set or the hub does not answer within three seconds (HF_HUB_ETAG_TIMEOUT,
    if set).

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub.
        kind: Noun for errors: "model", "sentence encoder", "cross-encoder", …
        owner: Default owner of a name without an owner: "sentence-transformers" for `all-MiniLM-L6-v2`.

    Raises:
        InputError: The folder is missing or not a model; the name is not cached and the hub cannot be reached; or the hub
            refuses access.
    """
    model = os.fspath(name_or_path)
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        if not _is_model(folder):
            raise InputError(f"the folder {model} holds no {kind}: it has no config.json with weights (*.safetensors, *.bin)")
        return folder.resolve()
    if not model or folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or folder.exists():
        raise InputError(f"there is no {kind} at '{model}': give the folder of a model, or its name on the hub (owner/name)")
    if (cached := find_local_model(model, owner)) is not None:
        return cached
    name = _candidate_names(model, owner)[-1]
    hub = library("huggingface_hub", f"the {kind} {model}")
    if hub.constants.HF_HUB_OFFLINE or _is_set("HF_HUB_OFFLINE"):
        raise InputError(_not_here(kind, name, "HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE to download it here"))
    return _downloaded(name, kind)


def find_local_model(name_or_path: str | os.PathLike[str], owner: str = "") -> Path | None:
    """Return the local folder of a model without a download; None if it is not on this machine.

    It is a folder, a model in the hub's cache, or one in an installed package, in this order.
    """
    model = os.fspath(name_or_path)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve() if _is_model(folder) else None
    cached = next((cached for name in _candidate_names(model, owner) if (cached := _cached(name)) is not None), None)
    return packaged_model(model) if cached is None else cached


def fingerprint(folder: str | os.PathLike[str]) -> str:
    """Digest of a model's weights, configurations and vocabularies: 32 hexadecimal digits (BLAKE2b).

    `*.bin` weights are ignored beside `*.safetensors`, which are loaded instead. A file of unchanged path, size and times is
    read once per process, a large one once per machine, since its digest is stored in the user's caches.
    """
    root = Path(folder).absolute()
    digest = hashlib.blake2b(digest_size=16)
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in model_files(root)):
        status = path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        digest.update(f"{name}\0{status.st_size}\0{_file_digest(path, status.st_size, times)}\n".encode())
    return digest.hexdigest()


def device(name: str | None = None) -> str:
    """Return `name`, or for None "cuda" with a GPU and else "cpu"; raise ParameterError for an unknown device."""
    torch = library("torch", "running a model")
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        parsed = torch.device(name)
        kind, index = parsed.type, parsed.index or 0
    except (RuntimeError, TypeError):
        raise ParameterError(f"device is 'cpu', 'cuda', 'cuda:0', …, 'mps' or None, not {name!r}") from None
    cuda, mps = kind == "cuda" and index < torch.cuda.device_count(), kind == "mps" and torch.backends.mps.is_available()
    if not (kind == "cpu" or cuda or mps):
        raise ParameterError(f"torch finds no device '{name}' here; device=None takes a GPU if there is one, else the CPU")
    return name


def load_once(key: Hashable, load: Callable[[], T]) -> T:
    """Return the result of `load` for `key`, cached while it is in use.

    Unused results are kept up to `CACHE_BYTES` bytes, the most recent ones first. Concurrent callers wait for one load.
    """
    with _lock:
        result: T
        if key in _recent:
            result, _ = _recent[key]
            _recent.move_to_end(key)
            return result
        shared = _in_use.get(key)
        result = load() if shared is None else shared
        _recent[key] = result, _size(result)
        while sum(size for _, size in _recent.values()) > CACHE_BYTES and len(_recent) > 1:
            _recent.popitem(last=False)
        with suppress(TypeError):  # objects without weak references, which have no weights
            _in_use[key] = result
        return result


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing progress bars while a model is read."""
    transformers = library("transformers", "reading a model").utils.logging
    if not transformers.is_progress_bar_enabled():
        yield
        return
    transformers.disable_progress_bar()
    try:
        yield
    finally:
        transformers.enable_progress_bar()


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence reports of transformers and sentence-transformers on missing weights, such as the weights of a new head."""
    transformers = library("transformers", "reading a model").utils.logging
    sentences = logging.getLogger("sentence_transformers")
    levels = transformers.get_verbosity(), sentences.level
    transformers.set_verbosity_error()
    sentences.setLevel(logging.ERROR)
    try:
        with quiet():
            yield
    finally:
        transformers.set_verbosity(levels[0])
        sentences.setLevel(levels[1])


@contextmanager
def model_errors(problem: str) -> Iterator[None]:
    """Turn the exceptions that libraries raise for a damaged model into an InputError that begins with `problem`.

    The block should contain the call into the library only. KeyError and AttributeError are programming errors and pass
    through.
    """
    safetensors = library("safetensors", "reading a model")
    # tokenizers has no errors of its own and raises Exception.
    broken = (OSError, ValueError, RuntimeError, ImportError, EOFError, UnpicklingError, safetensors.SafetensorError)
    try:
        yield
    except FontesError:
        raise
    except Exception as error:
        if type(error) is not Exception and not isinstance(error, broken):
            raise
        raise InputError(f"{problem}: {_first_line(error)}") from error


def seq2seq(folder: Path, kind: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an encoder-decoder such as T5, in float32, and its tokenizer; raise InputError if the folder has none."""
    transformers = library("transformers", f"a {kind}")
    library("torch", f"a {kind}")
    problem = f"{folder} cannot be loaded as a {kind}"
    with model_errors(problem):
        config = transformers.AutoConfig.from_pretrained(folder, **NO_CODE)
    if not getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{folder} is no {kind}: its architecture is {(config.architectures or ['unknown'])[0]}")
    with model_errors(problem), quiet():
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **NO_CODE)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
    return model.float(), tokenizer


def transformer_module(folder: Path, problem: str, **settings: object) -> Transformer:
    """Load the Transformer module of sentence-transformers from a folder, in float32 for training.

    Raises an InputError that begins with `problem` if the module cannot be loaded.
    """
    torch = library("torch", "training")
    modules = library("sentence_transformers", "training").sentence_transformer.modules
    with model_errors(problem), quiet():
        transformer: Transformer = modules.Transformer(
            str(folder),
            model_kwargs={**NO_CODE, "dtype": torch.float32},
            processor_kwargs=dict(NO_CODE),
            config_kwargs=dict(NO_CODE),
            **settings,
        )
    return transformer


def read_json(path: Path, default: object = None) -> Any:
    """Read a JSON file of settings; for a missing file return `default`, unless it is None.

    Raises InputError if the file is damaged, or missing without a default.
    """
    if default is not None and not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error


def inside(folder: Path, path: str) -> Path:
    """Join a path from a model's files to its folder; raise InputError if it leads outside."""
    if path not in ("", ".") and not is_plain(path):
        raise InputError(f"{folder} names a module outside of the model's folder: '{path}'")
    return folder / path


def tokenizer_in(folder: Path, problem: str) -> Any:
    """Load the tokenizer of a folder with transformers; raise an InputError that begins with `problem` if this fails."""
    transformers = library("transformers", "reading a model")
    with model_errors(problem), quiet():
        return transformers.AutoTokenizer.from_pretrained(str(folder), **NO_CODE)


def tensors(folder: Path, needed: Sequence[str], purpose: str, optional: Sequence[str] = ()) -> dict[str, Tensor]:
    """Read tensors from a folder's weights: *.safetensors, else pytorch_model*.bin.

    Args:
        folder: The folder.
        needed: Names of required tensors.
        purpose: Description of the required tensors in errors.
        optional: Names of optional tensors.

    Raises:
        InputError: A required tensor is missing.
    """
    torch, safetensors = library("torch", purpose), library("safetensors", purpose)
    by_name: dict[str, Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            by_name |= {name: file.get_tensor(name) for name in (*needed, *optional) if name in file.keys()}  # noqa: SIM118
    if not by_name:
        for path in sorted(folder.glob("pytorch_model*.bin")):
            stored = torch.load(path, map_location="cpu", weights_only=True)
            by_name |= {name: stored[name] for name in (*needed, *optional) if name in stored}
    if absent := [name for name in needed if name not in by_name]:
        raise InputError(f"{folder}: its weights have no {', '.join(absent)}, {purpose}")
    return by_name


def _is_set(variable: str) -> bool:
    # huggingface_hub reads its variables once, on import.
    return os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE")


def _size(model: object) -> int:
    """Bytes of a model's weights, at least MIN_BYTES."""
    prepared = getattr(model, "prepared", None)
    if prepared is None:
        return MIN_BYTES
    size: int = sum(tensor.nbytes for tensor in prepared.module.state_dict().values())
    return max(MIN_BYTES, size)


def _is_model(folder: Path) -> bool:
    # A model of sentence-transformers may have its weights in the folder of a module (0_Transformer, 0_StaticEmbedding).
    settings = any((folder / name).is_file() for name in ("config.json", "modules.json"))
    return settings and any(path.suffix in WEIGHTS for path in model_files(folder))


def model_files(folder: Path) -> list[Path]:
    """List the files that make up a model: weights, configurations and vocabularies."""
    files: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS and not name.startswith("checkpoint-")]
        paths = [Path(parent, name) for name in names if name not in IGNORED_FILES and name.endswith((*WEIGHTS, *SETTINGS))]
        files += [path for path in paths if path.suffix and path.is_file()]
    with_safetensors = {path.parent for path in files if path.suffix == ".safetensors"}
    return [path for path in files if path.suffix != ".bin" or path.parent not in with_safetensors]


@lru_cache(maxsize=4096)
def _file_digest(path: Path, size: int, times: tuple[int, ...]) -> str:
    """Digest of a file; size and times are part of the cache key."""
    note = _NOTES.get(str(path)) if size >= MIN_STORED_FILE else None
    if isinstance(note, list) and note[:-1] == [size, *times] and isinstance(note[-1], str):
        return note[-1]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    if size >= MIN_STORED_FILE:
        _NOTES.note(str(path), [size, *times, digest])
    return digest


def _candidate_names(name: str, owner: str) -> list[str]:
    """Candidate names of a model on the hub."""
    return [name] if "/" in name or not owner else [name, f"{owner}/{name}"]


def _cached(name: str) -> Path | None:
    """Folder of a complete copy of the model in the hub's cache; None without one."""
    hub = library("huggingface_hub", f"the model {name}")
    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
    except (hub.errors.LocalEntryNotFoundError, hub.errors.HFValidationError, FileNotFoundError):
        return None
    return folder if _is_model(folder) else None


def _downloaded(name: str, kind: str) -> Path:
    """Download a model from the hub; return its folder. Raises InputError if this fails."""
    hub = library("huggingface_hub", f"the {kind} {name}")
    seconds = float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or HUB_TIMEOUT)
    try:
        files = _list_files(name, seconds)
        # Skip *.bin weights, which duplicate *.safetensors.
        duplicates = ["*.bin"] if any(file.endswith(".safetensors") for file in files) else []
        return Path(hub.snapshot_download(name, ignore_patterns=[*NOT_DOWNLOADED, *duplicates], etag_timeout=seconds))
    except hub.errors.GatedRepoError:
        address = f"{hub.constants.ENDPOINT}/{name}"
        raise InputError(f"the {kind} {name} is gated: request access at {address}, then `hf auth login`") from None
    except (hub.errors.RepositoryNotFoundError, hub.errors.HFValidationError):
        reason = f"neither a folder nor a name on {hub.constants.ENDPOINT} (if it is private, `hf auth login`)"
        raise InputError(f"there is no {kind} {name}: {reason}") from None
    except _UnreachableError as error:
        host = urlsplit(hub.constants.ENDPOINT).hostname
        raise InputError(_not_here(kind, name, f"{host} cannot be reached ({error})", "try again with a network")) from error
    except (hub.errors.HfHubHTTPError, hub.errors.LocalEntryNotFoundError, OSError) as error:
        raise InputError(_not_here(kind, name, f"its download failed ({_first_line(error)})", "try again")) from error


def _list_files(name: str, seconds: float) -> list[str]:
    """List a model's files on the hub; in a thread, since looking up the host may take many seconds."""
    hub = library("huggingface_hub", f"the model {name}")
    answers: queue.Queue[list[str] | Exception] = queue.Queue()

    def request() -> None:
        try:
            answers.put([file.rfilename for file in hub.HfApi().model_info(name, timeout=seconds).siblings or ()])
        except Exception as error:
            answers.put(error)

    threading.Thread(target=request, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise _UnreachableError(f"no answer in {seconds:g} s; HF_HUB_ETAG_TIMEOUT sets how long to wait") from None
    if isinstance(answer, (hub.errors.HfHubHTTPError, hub.errors.HFValidationError)):
        raise answer
    if isinstance(answer, Exception):  # its class depends on the version of huggingface_hub
        raise _UnreachableError(_first_line(answer)) from answer
    names: list[str] = answer
    return names


class _UnreachableError(Exception):
    """The hub did not answer."""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _not_here(kind: str, name: str, reason: str, alternative: str) -> str:
    """Message of the error for a model that is not on this machine."""
    install = f"{INSTALL}; or " if name.rpartition("/")[2].lower() == EXAMPLE[0].lower() else ""
    return (
        f"the {kind} {name} is not on this machine and {reason}: {install}run `hf download {name}` on a machine with network "
        f"access and copy its folder or the hub's cache (HF_HOME) here, give the folder of a model instead of its name, or "
        f"{alternative}"
    )
