"""Running models: precision chosen by a short calibration, and batches of texts of similar length."""

from __future__ import annotations

import copy
import hashlib
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from numbers import Real
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Float64s, Indices, Int64s, Ints, Objects, Scalar
from ...core.errors import FontesError, ParameterError
from ...core.work import Progress, cpuinfo, processor_features, processors, reporter, resources
from ...storage.caches import Notes
from .hub import library

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

logger = logging.getLogger("fontes.neural")

PRECISIONS = ("auto", "float32", "bfloat16", "float16", "int8")
BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}  # tokens of a batch, padding included; on a CPU per thread
TOKENS_OF_THREAD = 128  # tokens of a batch below which another thread does not pay
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # variables with the user's number of threads
INT8 = "int8"
AGREEMENT = 0.999  # minimum cosine with float32 of a faster precision
GAIN = 1.1  # minimum speedup of a faster precision
ROUNDS = 3  # timings of each precision; the shortest counts
MAX_SECONDS = 3.0  # of timing; after it no further round begins

_NOTES = Notes("precision.json")  # choices on this machine


@dataclass(frozen=True)
class ComputePrecision:
    """A precision, and how it was chosen.

    Args:
        name: "float32", "bfloat16", "float16" or "int8".
        seconds: Time of the sample in each precision; empty if the precision was set.
        agreement: Least cosine between the outputs in this precision and in float32.
    """

    name: str
    seconds: dict[str, float]
    agreement: float = 1.0

    def __str__(self) -> str:
        if not self.seconds:
            return self.name
        times = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in self.seconds.items())
        return f"{self.name} (calibration: {times}; least cosine with float32 {self.agreement:.5f})"


@dataclass(frozen=True)
class Prepared:
    """A torch.nn.Module in eval mode, the precision of its weights, and its device."""

    module: Any
    precision: ComputePrecision
    device: str


def prepare_module(
    module: nn.Module,
    outputs: Callable[[nn.Module], Tensor],
    *,
    precision: str = "auto",
    device: str = "cpu",
    cache: bool = True,
) -> Prepared:
    """Prepare a module to run: in eval mode, on `device`, in `precision`. Logs the choice.

    Args:
        module: A torch.nn.Module with float32 weights; changed in place.
        outputs: Function that runs a small, typical sample through the module that it is passed, and returns a tensor with one
            row or score per item; called within torch.inference_mode.
        precision: "float32", "bfloat16", "float16", "int8", or "auto": the fastest on the sample, int8 excluded, that keeps a
            cosine of 0.999 with float32, item by item for rows and over all items for scores. bfloat16 is tried on CPUs that
            support it (AVX512-BF16, AMX), both 16-bit precisions on a GPU. "int8" is for the weights of our own networks on a
            CPU; the rest then runs in bfloat16 or float32. A warning tells if it is slower than without int8.
        device: Device to run on.
        cache: Whether to store the choice in `precision.json` of the user's caches, by processor, torch's version, threads,
            device and shape of the model.

    Raises:
        ParameterError: The precision is unknown; or "int8" for a GPU or a module of another library.
    """
    if precision not in PRECISIONS:
        raise ParameterError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
    torch = library("torch", "running a model")
    module.eval()
    with torch.inference_mode(False):
        module.to(device)
        if precision == INT8:
            chosen = _to_int8(module, outputs, device, cache)
        else:
            chosen = _choose(module, outputs, device, cache) if precision == "auto" else ComputePrecision(precision, {})
            module.to(getattr(torch, chosen.name))
    logger.info("%s runs on %s in %s", type(module).__name__, device, chosen)
    return Prepared(module, chosen, device)


def _to_int8(module: nn.Module, outputs: Callable[[nn.Module], Tensor], device: str, cache: bool) -> ComputePrecision:
    """Give the linear layers of a module int8 weights, and compute the rest in the faster precision; warn if that is slower."""
    torch = library("torch", "running a model")
    from .layers import has_linear, to_int8

    if device != "cpu":
        raise ParameterError(f'precision "int8" is for the CPU, not for {device}; use "auto"')
    if torch.backends.quantized.engine == "none" or not hasattr(torch.ops.onednn, "qlinear_pointwise"):
        raise ParameterError('this torch cannot multiply int8 weights (oneDNN is missing); use precision="auto"')
    if not has_linear(module):
        raise ParameterError(
            "precision \"int8\" is for models of BERT's, RoBERTa's and ModernBERT's kind that Fontes runs itself, "
            f'but {type(module).__name__} runs by transformers; use precision="auto"'
        )
    rest = next(iter(candidates(device)), "float32")
    key = f"{INT8} {_choice_key(module, device)}"
    stored = _stored_choice(key) if cache else None
    if stored is not None and not {rest, INT8} <= stored.seconds.keys():
        stored = None
    modules = {rest: copy.deepcopy(module).to(getattr(torch, rest))} if stored is None else {}
    to_int8(module)
    module.to(getattr(torch, rest))
    if stored is None:
        modules[INT8] = module
        exact, rounded = (_timed(outputs, model)[0] for model in modules.values())  # also warms up
        stored = ComputePrecision(INT8, least_seconds(modules, lambda name: _timed(outputs, modules[name])[1]))
        stored = replace(stored, agreement=agreement(exact, rounded))
        if cache:
            _NOTES.note(key, asdict(stored))
    ratio = stored.seconds[INT8] / stored.seconds[rest]
    if ratio > 1:
        logger.warning('int8 takes %.2g times as long as %s for this model here; precision="auto" is faster', ratio, rest)
    return stored


def in_batches(
    lengths: Sequence[int] | Ints,
    tokens: int,
    work: Callable[[Indices], NDArray[Scalar]],
    task: str = "encoding",
    unit: str = "documents",
) -> NDArray[Scalar]:
    """Run `work` on batches of items of similar length; return the results in the order of the items.

    When memory runs out, this and the following batches are halved, and a warning is logged.

    Args:
        lengths: Number of tokens of each item.
        tokens: Tokens of a batch, padding included: the number of items times the length of the longest. A longer item is a
            batch by itself.
        work: Function from the indices of a batch's items, longest first, to an array with one row or value for each (dtype
            object for results of different shapes).
        task: Name of the work, for the progress.
        unit: Name of the items, for the progress.

    Raises:
        ParameterError: `tokens` is below 1.
        FontesError: A single item does not fit into memory.
    """
    report = reporter()
    if tokens < 1:
        raise ParameterError(f"a batch has at least one token, not {tokens}")
    sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
    order = np.argsort(-sizes, kind="stable")
    all_tokens, done, done_tokens, start = int(sizes.sum()), 0, 0, time.perf_counter()
    results: NDArray[Scalar] | None = None
    while done < len(order):
        count = max(1, tokens // int(sizes[order[done]]))
        batch = order[done : done + count]
        try:
            with torch_threads(int(sizes[batch].sum())):
                batch_results = work(batch)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            tokens = _halved_tokens(batch, sizes, error)
            continue
        if results is None:
            results = np.empty((len(order), *batch_results.shape[1:]), batch_results.dtype)
        results[batch] = batch_results
        done += len(batch)
        done_tokens += int(sizes[batch].sum())
        report(Progress(task, done, len(order), time.perf_counter() - start, unit, part=done_tokens / all_tokens))
    return work(order) if results is None else results


def set_dropout(module: nn.Module, share: float | None) -> None:
    """Set the dropout of all layers of a module, unless it is None; the configuration saved with it is unchanged."""
    if share is None:
        return
    dropout = library("torch", "running a model").nn.modules.dropout._DropoutNd
    for part in module.modules():
        if isinstance(part, dropout):
            part.p = share
        for name, value in list(vars(part).items()):
            if "dropout" in name and isinstance(value, (int, float)) and not isinstance(value, bool):
                setattr(part, name, share)


def as_objects(arrays: Sequence[NDArray[np.generic]]) -> Objects:
    """Array of dtype object with arrays as items, for results of different shapes in `in_batches`."""
    objects = np.empty(len(arrays), dtype=object)
    for i, array in enumerate(arrays):  # one by one: arrays of equal shapes would become one array
        objects[i] = array
    return objects


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a GPU or in this process."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


def batch_tokens(tokens: int | None, device: str) -> int:
    """Return `tokens`, or for None a number of tokens per batch that is fast for encoders on the device."""
    if tokens is not None:
        return tokens
    if device != "cpu":
        return BATCH_TOKENS["cuda"]
    return BATCH_TOKENS["cpu"] * most_threads()


class _Threads:
    """Number of torch's threads outside of `torch_threads`.

    Torch gives each new thread of Python the number that was set last, in whatever thread; while a block of `torch_threads`
    runs, that is not the number of the process.
    """

    def __init__(self) -> None:
        self._lock, self._blocks, self._outside = Lock(), 0, 1

    @property
    def outside(self) -> int:
        """The number that torch is set to."""
        with self._lock:
            return self._outside if self._blocks else self._current()

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block in which the number may be changed; threads may enter blocks at the same time."""
        with self._lock:
            current = self._current()  # also lets torch set up this thread, which would undo a number that is set before
            self._outside = self._outside if self._blocks else current
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1

    def _current(self) -> int:
        return int(library("torch", "running a model").get_num_threads())


_threads = _Threads()


def most_threads() -> int:
    """Number of torch's threads for large batches: what torch is set to, but no more than the machine or `work` allows.

    Torch itself starts a thread for each core of the machine. A number in OMP_NUM_THREADS or MKL_NUM_THREADS stays as it is.
    """
    threads, limit = _threads.outside, resources().threads
    return threads if _user_threads() and limit is None else min(threads, limit or processors())


def _user_threads() -> bool:
    """Whether the user has set the number of threads in the environment."""
    return any(name in os.environ for name in THREADS)


@contextmanager
def torch_threads(tokens: int) -> Iterator[None]:
    """Run torch on the CPU with as many threads as a batch of so many tokens can use, a short text with one."""
    if "torch" not in sys.modules or (resources().threads is None and _user_threads()):
        yield
        return
    torch = library("torch", "running a model")
    with _threads.block():
        torch.set_num_threads(min(most_threads(), max(1, -(-tokens // TOKENS_OF_THREAD))))
        try:
            yield
        finally:
            torch.set_num_threads(_threads.outside)


def padded(
    ids: Sequence[Sequence[int]],
    padding: int,
    device: torch.device | str,
    *,
    length: int | None = None,
    attended: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """Token ids of a batch and their mask of 1 and 0, tensors of int64 (texts, length).

    Args:
        ids: The token ids of each text.
        padding: The token id of padding.
        device: Device of the tensors.
        length: Length to pad to; None: the length of the longest text, 1 if all are empty.
        attended: Number of leading tokens of each text whose mask is 1; None: all but padding.
    """
    torch = library("torch", "running a model")
    tokens = np.full((len(ids), max(1, *map(len, ids)) if length is None else length), padding, np.int64)
    mask = np.zeros_like(tokens)
    for row, text_ids in enumerate(ids):
        tokens[row, : len(text_ids)] = text_ids
        mask[row, : len(text_ids) if attended is None else attended[row]] = 1
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


def candidates(device: str) -> list[str]:
    """Precisions worth trying on a device, besides float32."""
    torch = library("torch", "running a model")
    if device.startswith("cuda"):
        return ["float16", "bfloat16"] if torch.cuda.is_bf16_supported() else ["float16"]
    if device != "cpu":
        return ["float16"]
    return ["bfloat16"] if processor_features() & {"avx512_bf16", "amx_bf16", "bf16"} else []


def _halved_tokens(batch: Indices, sizes: Int64s, error: BaseException) -> int:
    """Half the tokens of a batch that did not fit into memory; raises FontesError for a batch of one item."""
    longest = int(sizes[batch[0]])
    if len(batch) == 1:
        raise FontesError(
            f"one text of {longest} tokens does not fit into memory: set a smaller max_length, or use a device with more memory"
        ) from error
    half = len(batch) // 2
    logger.warning("out of memory with %d texts of up to %d tokens; continuing with %d at a time", len(batch), longest, half)
    torch = library("torch", "running a model")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return half * longest


def _choose(module: nn.Module, outputs: Callable[[nn.Module], Tensor], device: str, cache: bool) -> ComputePrecision:
    """Read the stored choice of a precision, or calibrate."""
    names = candidates(device)
    if not names:
        return ComputePrecision("float32", {})
    key = _choice_key(module, device)
    if cache and (stored := _stored_choice(key)) is not None:
        return stored
    chosen = _calibrate(module, outputs, names)
    if cache:
        _NOTES.note(key, asdict(chosen))
    return chosen


def _calibrate(module: nn.Module, outputs: Callable[[nn.Module], Tensor], names: list[str]) -> ComputePrecision:
    """Choose the fastest of float32 and the precisions `names` that agree with float32."""
    torch = library("torch", "running a model")
    modules = {"float32": module, **{name: copy.deepcopy(module).to(getattr(torch, name)) for name in names}}
    results = {name: _timed(outputs, model)[0] for name, model in modules.items()}  # also warms up
    agreements = {name: agreement(results["float32"], result) for name, result in results.items()}
    agreeing = [name for name in modules if name == "float32" or agreements[name] >= AGREEMENT]
    best, seconds = fastest_of(agreeing, lambda name: _timed(outputs, modules[name])[1])
    return ComputePrecision(best, seconds, agreements[best])


def fastest_of(names: Sequence[str], timed: Callable[[str], float]) -> tuple[str, dict[str, float]]:
    """Return the fastest precision, and the seconds of each; float32 unless another is GAIN times as fast.

    Args:
        names: The precisions, "float32" among them.
        timed: Function that does the work in a precision and returns the seconds that it took.
    """
    seconds = least_seconds(names, timed)
    best = min(names, key=lambda name: seconds[name])
    return best if seconds[best] * GAIN <= seconds["float32"] else "float32", seconds


def least_seconds(names: Iterable[str], timed: Callable[[str], float]) -> dict[str, float]:
    """Return the shortest of ROUNDS times of each precision; each round times all, so that other work affects all of them."""
    seconds = dict.fromkeys(names, float("inf"))
    start = time.perf_counter()
    for turn in range(ROUNDS):
        if turn and time.perf_counter() - start > MAX_SECONDS:
            break
        for name in seconds:
            seconds[name] = min(seconds[name], timed(name))
    return seconds


def _timed(outputs: Callable[[nn.Module], Tensor], module: nn.Module) -> tuple[Float64s, float]:
    """Outputs of a module, and the seconds that they took."""
    torch = library("torch", "running a model")
    start = time.perf_counter()
    with torch.inference_mode():
        result = outputs(module).float().cpu().numpy()  # copying to the CPU waits for the GPU
    return result.astype(np.float64), time.perf_counter() - start


def agreement(expected: Float64s, other: Float64s) -> float:
    """Least cosine between the rows of two results; for one score per item, the correlation of the two lists."""
    if not np.isfinite(other).all():
        return -1.0
    if expected.ndim == 1 or expected.shape[-1] == 1:
        expected, other = expected.reshape(1, -1), other.reshape(1, -1)
        expected, other = expected - expected.mean(), other - other.mean()
    expected, other = (values.reshape(-1, values.shape[-1]) for values in (expected, other))
    norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.min(np.sum(expected * other, axis=1) / np.maximum(norms, 1e-30)))


def _choice_key(module: nn.Module, device: str) -> str:
    """Digest of everything on which the choice of a precision depends."""
    torch = library("torch", "running a model")
    shapes = [*(type(part).__name__ for part in module.modules()), *(f"{tuple(p.shape)}" for p in module.parameters())]
    processor = torch.cuda.get_device_name(device) if device.startswith("cuda") else _processor()
    parts = [processor, torch.__version__, str(torch.get_num_threads()), device, *shapes]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _stored_choice(key: str) -> ComputePrecision | None:
    """The stored choice of a precision; None if there is none, or a damaged one."""
    try:
        stored = ComputePrecision(**_NOTES.get(key))
        numbers = [stored.agreement, *stored.seconds.values()]
    except (KeyError, TypeError, AttributeError):
        return None
    return stored if stored.name in PRECISIONS[1:] and all(isinstance(number, Real) for number in numbers) else None


def _processor() -> str:
    """Model of the processor, and its instructions that affect the speed of a precision."""
    model = cpuinfo("model name") or platform.processor() or platform.machine()
    return f"{model} {' '.join(sorted(processor_features() & {'avx2', 'avx512f', 'avx512_bf16', 'amx_bf16', 'bf16'}))}"
