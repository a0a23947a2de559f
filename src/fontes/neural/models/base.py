"""`Pretrained`: the base of stages and parts that run a model: encoders, rerankers, rewriters, classifiers."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from ...core.arrays import Indices, Scalar
from ...core.checks import check_whole
from ...core.errors import MissingExtraError, ParameterError
from ...core.part import Part, fields
from ...core.strings import encodable
from .compute import PRECISIONS, Prepared, batch_tokens, in_batches
from .hub import device, find_model, fingerprint, load_once

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NAMELESS = {"leading": True}
"""Metadata of a `name_or_path` with a default, so that the text of a part omits its name: `mono_t5("owner/model")`."""


class Loaded(Protocol):
    """A loaded model with its tokenizer, ready to run."""

    prepared: Prepared
    """The network on its device in its precision, as returned by `compute.prepare_module`."""


M = TypeVar("M", bound=Loaded)


@dataclass(frozen=True)
class Pretrained(Part, Generic[M]):
    """A part with a pretrained model, which is loaded on first use and kept as long as the part.

    Parts with the same settings share one model. Unused models are kept up to `hub.CACHE_BYTES` bytes.

    A subclass is a frozen dataclass whose fields are its parameters. It sets `kind`, loads the model of a folder in `_load`,
    and runs `_model` over its texts with `_in_batches`:

        class T5:
            def __init__(self, folder: Path, precision: str, device: str) -> None:
                network, self.tokenizer = seq2seq(folder, "T5 rewriter")
                self.prepared = prepared(network, outputs, precision=precision, device=device)

        @dataclass(frozen=True)
        class CanardT5(Pretrained[T5], Stage[Topics, Topics], name="canard_t5"):
            kind = "T5 rewriter"
            num_beams: int = field(default=10, metadata={"least": 1})

            def _load(self, folder: Path, device: str) -> T5:
                return T5(folder, self.precision, device)

    The base has the model's folder, `fingerprint`, `key`, `chosen_precision`, batches, and `check`, which reads the metadata of
    the fields: `{"least": 1}` for a whole number from 1 up, `{"choices": ("a", "b")}` for one of several words; None is
    allowed if it is the default. A subclass with more checks calls `super().check()`. The fields below, except the first, are
    passed by keyword.

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub.
        batch_size: Texts of maximum length per batch; batches of shorter texts are larger. None: a fast size for the device.
        precision: "float32", "bfloat16", "float16", "int8" (weights of BERT, RoBERTa or ModernBERT on a CPU; slower for small
            models, of which a warning tells), or "auto": the fastest of the first three here that agrees with float32.
        device: "cpu", "cuda", …; None uses a GPU if there is one.
    """

    kind: ClassVar[str] = "model"
    """Noun for the model in errors: "sentence encoder", "cross-encoder", …"""
    owner: ClassVar[str] = ""
    """Default owner of a name on the hub: "sentence-transformers" for `all-MiniLM-L6-v2`."""
    task: ClassVar[str] = "encoding"
    """Task in the `Progress` of batches."""
    unit: ClassVar[str] = "documents"
    """Unit in the `Progress` of batches."""
    cpu_tokens: ClassVar[int | None] = None
    """Tokens of a batch on a CPU without `batch_size`; None: the default of encoders."""
    cuda_tokens: ClassVar[int | None] = None
    """Tokens of a batch on a GPU without `batch_size`; None: the default of encoders."""

    name_or_path: str | Path
    batch_size: int | None = field(default=None, repr=False, kw_only=True, metadata={"least": 1})
    precision: str = field(default="auto", kw_only=True, metadata={"choices": PRECISIONS})
    device: str | None = field(default=None, repr=False, kw_only=True)

    @abstractmethod
    def _load(self, folder: Path, device: str) -> M:
        """Load the model of a folder, ready to run on a device in `self.precision`."""

    def _device_of(self, folder: Path, fingerprint: str) -> str:
        """Device for the model of a folder with this fingerprint."""
        return device(self.device)

    def _load_parameters(self) -> tuple[object, ...]:
        """Parameters, besides folder, precision and device, on which the loaded model depends."""
        return ()

    def _settings(self) -> dict[str, object]:
        """Parameters that are part of the fingerprint; by default all that change results."""
        excluded = ("name_or_path", "precision", "index")
        shown = [parameter.name for parameter in fields(type(self)) if parameter.repr]
        return {name: getattr(self, name) for name in shown if name not in excluded}

    @property
    def folder(self) -> Path:
        """The model's folder on this machine; downloads a missing model. Raises InputError if there is no such model."""
        return find_model(self.name_or_path, self.kind, self.owner)

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the model's content and of settings that change its results, except the precision."""
        self.check()
        return hexadecimal(type(self).__name__, fingerprint(self.folder), self._settings())

    def key(self) -> str | None:
        """Text of the class, the fingerprint, and all parameters that change results, except the model's path."""
        shown = {name: value for name, value in self.shown().items() if name != "name_or_path"}
        return f"{type(self).__module__}.{type(self).__qualname__}({self.fingerprint}, {shown})"

    @property
    def chosen_precision(self) -> str:
        """The model's precision and the result of its calibration. Loads the model."""
        return str(self._model.prepared.precision)

    def check(self) -> None:
        check_fields(self)
        super().check()

    def check_needs(self) -> None:
        for name in ("torch", "transformers"):
            if find_spec(name) is None:
                raise MissingExtraError.of(name, "neural", f"a {self.kind}")
        super().check_needs()

    @property
    def _model(self) -> M:
        """The model, shared by all parts with the same settings."""
        self.check()
        folder = self.folder
        digest = fingerprint(folder)
        target = self._device_of(folder, digest)
        key = (type(self), folder, digest, self._load_parameters(), self.precision, target)
        model = vars(self)["_loaded_model"] = load_once(key, lambda: self._load(folder, target))
        return model

    def _in_batches(self, lengths: Sequence[int], work: Callable[[Indices], NDArray[Scalar]]) -> NDArray[Scalar]:
        """Results of `work` on batches of items of similar length, in the order of the items; see `compute.in_batches`."""
        target = self._model.prepared.device
        tokens = self.batch_size and self.batch_size * max(lengths, default=1)
        tokens = batch_tokens(tokens or (self.cpu_tokens if target == "cpu" else self.cuda_tokens), target)
        return in_batches(lengths, tokens, work, task=self.task, unit=self.unit)


def check_fields(part: Part) -> None:
    """Raise ParameterError for a parameter that violates its field's metadata; see `Pretrained`."""
    for parameter in fields(type(part)):
        value = getattr(part, parameter.name)
        if value is None and parameter.default is None:
            continue
        if "least" in parameter.metadata:
            check_whole(parameter.name, value, parameter.metadata["least"])
        if (choices := parameter.metadata.get("choices")) and value not in choices:
            raise ParameterError(f"{parameter.name} is one of {', '.join(choices)}, not {value!r}")


def hexadecimal(*values: object) -> str:
    """32 hexadecimal digits (BLAKE2b) of plain values, for fingerprints."""
    return hashlib.blake2b(json.dumps(values, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def token_ids(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], length: int | None = None, *, special: bool = True
) -> list[list[int]]:
    """Token ids of each text by a tokenizer of transformers; characters without a UTF-8 form are replaced.

    `length` is the maximum number of tokens, special ones included (None: no limit); `special` adds special tokens.
    """
    if not texts:
        return []
    limits = {"truncation": False, "verbose": False} if length is None else {"truncation": True, "max_length": length}
    encoded = tokenizer(
        list(map(encodable, texts)), add_special_tokens=special, padding=False, return_attention_mask=False, **limits
    )
    ids: list[list[int]] = encoded["input_ids"]
    return ids
