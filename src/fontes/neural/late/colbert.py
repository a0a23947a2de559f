"""ColBERT: texts become one vector for each token, by a transformer and a projection."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.part import Part
from ...core.values import Doc
from ..encoders.base import text_of
from ..models.compute import Prepared, batch_tokens, in_batches, prepared
from ..models.hub import device, fingerprint, library, loaded, located, quiet, readable
from .checkpoint import Checkpoint, Settings

if TYPE_CHECKING:
    from ...core.progress import Progress

SEED = 20200425  # of the projection that a plain encoder gets where `dim` is given
SAMPLE = "A late interaction model keeps one vector for each token of a document and of a query. "


@dataclass(frozen=True)
class ColBERT(Part, name="colbert"):
    """A late-interaction model (Khattab and Zaharia, SIGIR 2020): one vector of unit length for each token.

    name_or_path      a checkpoint of ColBERT v1 or v2 (HF_ColBERT: BERT with `linear.weight`, and artifact.metadata), one of
                      PyLate or sentence-transformers (a transformer and Dense layers), or any encoder of transformers; a folder
                      or a name on the Hugging Face hub
    dim               the dimensions of the vectors. None: as the checkpoint has them. An encoder without a projection keeps
                      its own; with a dim it gets a random orthonormal projection, the same each time, which is no trained model
    query_length      tokens of a query, longer ones are cut. None for this and what follows: as the checkpoint says
    document_length   tokens of a document at most
    expand            fill queries up to query_length with [MASK], each of which gets a vector and counts
    attend            let the tokens of a query attend to these
    skip              characters and words whose tokens get no vector in documents; () keeps all
    precision         "auto" (the quickest that agrees with float32), "float32", "bfloat16" or "float16"
    device            "cpu", "cuda", …; None takes a GPU where there is one

    Nothing is loaded before texts are encoded. Raises InputError for a checkpoint that is not there or cannot be read, and
    ParameterError for a dim that the checkpoint does not have.
    """

    name_or_path: str | os.PathLike[str]
    dim: int | None = None
    query_length: int | None = None
    document_length: int | None = None
    expand: bool | None = None
    attend: bool | None = None
    skip: tuple[str, ...] | None = None
    precision: str = field(default="auto", repr=False)
    device: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        given = [f"{name}={value!r}" for name, value in shown.items() if value is not None and name != "name_or_path"]
        return f"ColBERT({', '.join([repr(os.fspath(self.name_or_path)), *given])})"

    @property
    def settings(self) -> Settings:
        """How texts become tokens: the checkpoint's settings, with the parameters that were given."""
        return self._checkpoint.settings.with_(
            query_length=self.query_length,
            document_length=self.document_length,
            expand=self.expand,
            attend=self.attend,
            skip=None if self.skip is None else tuple(self.skip),
        )

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of all that changes vectors: weights, vocabulary, settings, dim; not the precision."""
        facts = {"model": fingerprint(self._folder), "dim": self.dim, **asdict(self.settings)}
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def width(self) -> int:
        """The dimensions of the vectors. Loads the model."""
        return int(self._model.width)

    @property
    def chosen_precision(self) -> str:
        """The precision that the model runs in, and what the calibration found. Loads the model."""
        return str(self._model.prepared.precision)

    def encode_queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """For each query its token vectors, (tokens, dim), float32, of unit length.

        Each is encoded by itself on a CPU, where a batch would gain little, so that its vectors do not depend on the others.
        """
        model, settings = self._model, self.settings
        ids = [model.query_ids(text) for text in texts]
        asked = [settings.query_length if settings.expand else len(one) for one in ids]
        if not texts:
            return []

        def work(batch: NDArray[np.intp]) -> NDArray[Any]:
            return _objects(model.queries([ids[i] for i in batch]))

        tokens = 1 if model.prepared.device == "cpu" else batch_tokens(None, model.prepared.device)
        return list(in_batches(asked, tokens, work))

    def encode_documents(
        self, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """(vectors, bounds): the rows bounds[i] to bounds[i + 1] are those of document i, one for each token that is kept.

        vectors   (tokens, dim), float32, of unit length
        bounds    int64, one entry more than there are documents

        What else is in a batch changes the vectors by rounding alone.
        """
        bounds = np.zeros(len(docs) + 1, dtype=np.int64)
        if not docs:
            return np.zeros((0, self.width), dtype=np.float32), bounds
        model = self._model
        ids = [model.document_ids(text_of(doc)) for doc in docs]

        def work(batch: NDArray[np.intp]) -> NDArray[Any]:
            return _objects(model.documents([ids[i] for i in batch]))

        found = in_batches([len(one) for one in ids], batch_tokens(None, model.prepared.device), work, progress)
        np.cumsum([len(one) for one in found], out=bounds[1:])
        return np.concatenate(list(found)), bounds

    def query_tokens(self, text: str) -> list[str]:
        """The tokens of a query, in the order of its vectors."""
        model = self._model
        return [str(token) for token in model.tokenizer.convert_ids_to_tokens(model.filled(model.query_ids(text)))]

    def document_tokens(self, doc: Doc) -> list[str]:
        """The tokens of a document that have vectors, in their order."""
        model = self._model
        kept = [token for token in model.document_ids(text_of(doc)) if token not in model.skipped]
        return [str(token) for token in model.tokenizer.convert_ids_to_tokens(kept)]

    @property
    def _folder(self) -> Path:
        if os.fspath(self.name_or_path).endswith(".dnn"):
            raise InputError(
                f"{self.name_or_path} is in the old form of ColBERT v1, one file; load it with ColBERT's own code and save it "
                "as a folder (checkpoint.save)"
            )
        return located(self.name_or_path, "ColBERT model")

    @property
    def _checkpoint(self) -> Checkpoint:
        folder = self._folder
        return loaded(("checkpoint", folder, fingerprint(folder)), lambda: Checkpoint.of(folder))

    @property
    def _model(self) -> _Model:
        folder, where = self._folder, device(self.device)
        key = ("ColBERT", folder, fingerprint(folder), self.dim, self.settings, self.precision, where)
        return loaded(key, lambda: _Model(self._checkpoint, self.settings, self.dim, self.precision, where))


class _Model:
    """A loaded checkpoint: tokenizer, transformer and projections."""

    def __init__(self, checkpoint: Checkpoint, settings: Settings, dim: int | None, precision: str, where: str) -> None:
        self.settings = settings
        self.tokenizer = _tokenizer(checkpoint)
        network = _network(checkpoint, dim)
        self._check_lengths(network.backbone.config, str(checkpoint.backbone))
        self.width: int = network.width
        self.query_marker = self._marker(settings.query_marker, checkpoint)
        self.document_marker = self._marker(settings.document_marker, checkpoint)
        # PyLate's choice; ColBERT's code has [MASK] always.
        fills = (self.tokenizer.mask_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id, 0)
        self.fill: int = next(token for token in fills if token is not None)
        self.skipped = frozenset(self._skipped())
        sample = [self.document_ids(SAMPLE * 8), self.document_ids(SAMPLE)]
        self.prepared: Prepared = prepared(
            network, lambda module: _flat(*_vectors(module, sample, self.fill, where)), precision=precision, device=where
        )

    def query_ids(self, text: str) -> list[int]:
        """The tokens of a query, before it is filled up."""
        return self._ids(text, self.settings.query_length, self.query_marker)

    def document_ids(self, text: str) -> list[int]:
        """The tokens of a document, those without a vector included."""
        return self._ids(text, self.settings.document_length, self.document_marker)

    def filled(self, ids: list[int]) -> list[int]:
        """The tokens of a query that get vectors."""
        return ids + [self.fill] * (self.settings.query_length - len(ids)) if self.settings.expand else ids

    def queries(self, ids: list[list[int]]) -> list[NDArray[np.float32]]:
        """The vectors of queries of one batch."""
        filled = [self.filled(one) for one in ids]
        # Tokens that fill up have vectors, yet nobody attends to them unless the checkpoint was trained so.
        attended = filled if self.settings.attend else ids
        vectors, _ = _vectors(self.prepared.module, filled, self.fill, self.prepared.device, [len(one) for one in attended])
        return [vectors[i, : len(one)] for i, one in enumerate(filled)]

    def documents(self, ids: list[list[int]]) -> list[NDArray[np.float32]]:
        """The vectors of documents of one batch."""
        vectors, _ = _vectors(self.prepared.module, ids, self.fill, self.prepared.device)
        kept = [np.array([token not in self.skipped for token in one], dtype=bool) for one in ids]
        return [vectors[i, : len(keep)][keep] for i, keep in enumerate(kept)]

    def _ids(self, text: str, length: int, marker: int | None) -> list[int]:
        if marker is not None and self.settings.form == "colbert":
            ids = list(self.tokenizer(f". {text}", truncation=True, max_length=length)["input_ids"])
            ids[1] = marker
            return ids
        ids = list(self.tokenizer(text, truncation=True, max_length=length - (marker is not None))["input_ids"])
        return ids if marker is None else [*ids[:1], marker, *ids[1:]]

    def _skipped(self) -> list[int]:
        words = self.settings.skip
        if self.settings.form == "pylate":
            return list(self.tokenizer.convert_tokens_to_ids(list(words))) if words else []
        encoded = (self.tokenizer(word, add_special_tokens=False)["input_ids"] for word in words)
        return [ids[0] for ids in encoded if ids]

    def _marker(self, token: str, checkpoint: Checkpoint) -> int | None:
        if not token:
            return None
        found = self.tokenizer.get_vocab().get(token)
        if found is None:
            raise InputError(f"{checkpoint.backbone}: its vocabulary has no token '{token}', which marks queries or documents")
        return int(found)

    def _check_lengths(self, config: Any, name: str) -> None:
        longest = getattr(config, "max_position_embeddings", None)
        for what in ("query_length", "document_length"):
            if longest and getattr(self.settings, what) > longest:
                raise ParameterError(f"{what} is {getattr(self.settings, what)}, but {name} has {longest} positions")


def _vectors(
    module: Any, ids: list[list[int]], fill: int, where: str, attended: list[int] | None = None
) -> tuple[NDArray[np.float32], list[int]]:
    """Token vectors of unit length, (texts, longest, dim), and the length of each text."""
    torch = library("torch", "a ColBERT model")
    lengths = [len(one) for one in ids]
    tokens = torch.full((len(ids), max(lengths)), fill, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for i, (one, length) in enumerate(zip(ids, attended or lengths, strict=True)):
        tokens[i, : len(one)] = torch.tensor(one)
        mask[i, :length] = 1
    with torch.inference_mode():
        found = module(tokens.to(where), mask.to(where)).float()
        return torch.nn.functional.normalize(found, p=2, dim=2).cpu().numpy(), lengths


def _flat(vectors: NDArray[np.float32], lengths: list[int]) -> Any:
    """The vectors of a sample as rows of a tensor, for the calibration."""
    torch = library("torch", "a ColBERT model")
    return torch.from_numpy(np.concatenate([vectors[i, :length] for i, length in enumerate(lengths)]))


def _network(checkpoint: Checkpoint, dim: int | None) -> Any:
    torch, transformers = library("torch", "a ColBERT model"), library("transformers", "a ColBERT model")
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # the projection is none of the weights that it knows
    try:
        with readable(f"{checkpoint.backbone} cannot be loaded as a transformer"), quiet():
            backbone = transformers.AutoModel.from_pretrained(checkpoint.backbone).float()
    finally:
        transformers.logging.set_verbosity(verbosity)
    hidden = int(backbone.config.hidden_size)
    projections = checkpoint.projections() or ([] if dim in (None, hidden) else [_orthonormal(hidden, dim)])
    with torch.inference_mode():
        width = int(torch.nn.Sequential(*projections)(torch.zeros(1, hidden)).shape[1]) if projections else hidden
    if dim not in (None, width):
        raise ParameterError(f"{checkpoint.backbone} gives vectors of {width} dimensions, not {dim}; leave dim out")

    class Network(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.projection = backbone, torch.nn.Sequential(*projections)
            self.width = width

        def forward(self, tokens: Any, mask: Any) -> Any:
            return self.projection(self.backbone(input_ids=tokens, attention_mask=mask)[0])

    return Network()


def _orthonormal(hidden: int, dim: int | None) -> Any:
    torch = library("torch", "a ColBERT model")
    if not dim or not 1 <= dim <= hidden:
        raise ParameterError(f"dim must lie between 1 and {hidden}, the size of the model, not {dim!r}")
    drawn = np.random.default_rng(SEED).standard_normal((hidden, dim))
    layer = torch.nn.Linear(hidden, dim, bias=False)
    layer.weight.data.copy_(torch.from_numpy(np.linalg.qr(drawn)[0].T.astype(np.float32)))
    return layer


def _tokenizer(checkpoint: Checkpoint) -> Any:
    transformers = library("transformers", "a ColBERT model")
    with readable(f"{checkpoint.backbone} has no tokenizer that can be loaded"):
        return transformers.AutoTokenizer.from_pretrained(checkpoint.backbone)


def _objects(arrays: list[NDArray[np.float32]]) -> NDArray[Any]:
    objects = np.empty(len(arrays), dtype=object)
    for i, array in enumerate(arrays):  # at once, arrays of one shape would become one array
        objects[i] = array
    return objects
