"""ColBERT: texts become one vector for each token, by a transformer and a projection."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Indices, Int64s, Objects
from ...core.errors import InputError, ParameterError
from ...core.part import Part
from ...core.strings import offsets_of
from ...core.values import Doc, text_of
from ...core.work import unreported
from ..encoders.architectures import NO_LIMIT
from ..encoders.transformer import tokenizer_limit
from ..models.base import Pretrained, token_ids
from ..models.compute import Prepared, as_objects, in_batches, padded, prepare_module
from ..models.hub import (
    NO_CODE,
    fingerprint,
    library,
    load_once,
    model_errors,
    read_json,
    tensors,
    tokenizer_in,
    without_warnings,
)
from ..models.modules import Module, modules_in
from .pooling import pooled, token_groups

if TYPE_CHECKING:
    from torch import Tensor, nn

CLASS = "HF_ColBERT"
METADATA = "artifact.metadata"
NATIVE, MASK, POOLING = "sentence-transformers", "MultiVectorMask", "HierarchicalTokenPooling"
SENTENCE_CONFIG = "config_sentence_transformers.json"
POOLED = {"num_protected_tokens": 1, "normalize_embeddings": True, "tasks": ["document"]}  # how `pooled` works


@dataclass(frozen=True)
class TokenSettings:
    """Tokenization of queries and documents, and the tokens that get vectors.

    Args:
        form: "colbert", "pylate", "sentence-transformers" (its MultiVectorEncoder) or "encoder" (a model not trained for late
            interaction).
        query_length: Tokens per query, special tokens included; longer queries are truncated.
        document_length: Maximum number of tokens of a document, special tokens included.
        query_marker: Token inserted after the first token of a query, or with "sentence-transformers" text before the query; ""
            for none.
        document_marker: The same for a document.
        expand: Whether queries are padded with [MASK] to query_length; each [MASK] gets a vector.
        attend: Whether the other tokens attend to these [MASK] tokens.
        skip: Characters and words whose tokens get no vector in documents.
        pool: Average number of token vectors of a document that are pooled into one.
    """

    form: str
    query_length: int
    document_length: int
    query_marker: str
    document_marker: str
    expand: bool
    attend: bool
    skip: tuple[str, ...]
    pool: float = 1

    def with_(self, **changes: Any) -> TokenSettings:
        """Return a copy with the `changes` that are not None; raise ParameterError for a value out of range."""
        changed = replace(self, **{name: value for name, value in changes.items() if value is not None})
        for name in ("query_length", "document_length"):
            if (length := getattr(changed, name)) < 4:
                raise ParameterError(f"{name} must be 4 or more, as three special tokens are part of it, not {length}")
        if not isinstance(changed.pool, int | float) or not changed.pool >= 1:
            raise ParameterError(f"pool must be 1 or more, not {changed.pool!r}")
        return changed


@dataclass(frozen=True)
class ColBERTCheckpoint:
    """A checkpoint on disk, before its weights are loaded.

    Args:
        backbone: Folder of the transformer.
        dense: Folders of the projection layers; empty for HF_ColBERT, whose projection is part of the backbone's weights.
        settings: The tokenization.
    """

    backbone: Path
    dense: tuple[Path, ...]
    settings: TokenSettings

    @classmethod
    def of(cls, folder: Path) -> ColBERTCheckpoint:
        """Read the configuration of a folder; raise InputError if it has no transformer."""
        if (folder / "modules.json").is_file():
            modules = modules_in(folder)
            backbone = next((module.folder for module in modules if module.kind.endswith("Transformer")), None)
            if backbone is None:
                raise InputError(f"{folder} has no transformer among its modules, which token vectors need")
            dense = tuple(module.folder for module in modules if module.kind == "Dense")
            if any(module.kind == MASK for module in modules):
                return cls(backbone, dense, _multi_vector(folder, backbone, modules))
            if dense:
                return cls(backbone, dense, _pylate(folder))
        else:
            backbone = folder
        classes = read_json(backbone / "config.json").get("architectures") or [""]
        if classes[0] == CLASS or (backbone / METADATA).is_file():
            return cls(backbone, (), _colbert(backbone))
        return cls(backbone, (), _encoder(backbone))

    def projections(self, hidden: int, dim: int | None) -> list[Any]:
        """Load the projections as torch modules, in order of application; an orthonormal one to `dim` if there are none."""
        if self.settings.form == "colbert":
            return [_linear(tensors(self.backbone, ("linear.weight",), "the projection of ColBERT"), self.backbone)]
        layers = [_dense(folder) for folder in self.dense]
        return layers or ([] if dim in (None, hidden) else [_orthonormal(hidden, dim)])


def _colbert(folder: Path) -> TokenSettings:
    """Settings of a checkpoint of ColBERT; the defaults of its settings.py for version 1, which has no metadata."""
    setting = partial(_setting, read_json(folder / METADATA, {}))
    return TokenSettings(
        "colbert",
        setting("query_maxlen", 32),
        setting("doc_maxlen", 220),
        setting("query_token_id", "[unused0]"),
        setting("doc_token_id", "[unused1]"),
        True,
        setting("attend_to_mask_tokens", False),
        tuple(string.punctuation) if setting("mask_punctuation", True) else (),
    )


def _pylate(folder: Path) -> TokenSettings:
    """Settings of a checkpoint of PyLate."""
    setting = partial(_setting, read_json(folder / SENTENCE_CONFIG, {}))
    expand = setting("do_query_expansion", True)
    return TokenSettings(
        "pylate",
        setting("query_length", 32),
        setting("document_length", 180),
        setting("query_prefix", "[Q] "),
        setting("document_prefix", "[D] "),
        expand,
        expand and setting("attend_to_expansion_tokens", False),
        tuple(setting("skiplist_words", string.punctuation)),
    )


def _multi_vector(folder: Path, backbone: Path, modules: Sequence[Module]) -> TokenSettings:
    """Settings of a MultiVectorEncoder of sentence-transformers."""
    prompts = read_json(folder / SENTENCE_CONFIG, {}).get("prompts") or {}
    transformer = read_json(backbone / "sentence_bert_config.json", {})
    mask = next(module.settings for module in modules if module.kind == MASK)
    expansion = transformer.get("query_expansion") or {}
    unsupported = [module.kind for module in modules if module.kind not in (MASK, POOLING, "Transformer", "Dense", "Normalize")]
    if expansion and (expansion.get("strategy") != "fixed" or expansion.get("token")):
        unsupported.append(f"query_expansion {expansion}")
    if mask.get("keep_only_token_ids") or "query" in (mask.get("skiplist_tasks") or ()):
        unsupported.append(f"{MASK} for queries or for some tokens alone")
    pooling = [module.settings for module in modules if module.kind == POOLING]
    if len(pooling) > 1 or any({name: config.get(name) for name in POOLED} != POOLED for config in pooling):
        unsupported.append(f"{POOLING} with other settings than {POOLED}")
    if unsupported:
        raise InputError(f"{folder}: late interaction without {unsupported[0]} is supported; encode with sentence-transformers")
    length = min(transformer.get("max_seq_length") or NO_LIMIT, tokenizer_limit(backbone))
    length = min(length, read_json(backbone / "config.json").get("max_position_embeddings") or NO_LIMIT)
    return TokenSettings(
        NATIVE,
        expansion.get("length") or transformer.get("query_length") or length,
        transformer.get("document_length") or length,
        prompts.get("query") or "",
        prompts.get("document") or "",
        bool(expansion),
        bool(expansion.get("attend")),
        tuple(mask.get("skiplist_words") or ()),
        pooling[0].get("pool_factor") or 1 if pooling else 1,
    )


def _setting(settings: dict[str, Any], name: str, default: object) -> Any:
    """The value of a setting; `default` if it is missing or None."""
    return default if settings.get(name) is None else settings[name]


def _encoder(backbone: Path) -> TokenSettings:
    """Settings of a plain encoder: no markers and no query expansion."""
    config = read_json(backbone / "sentence_bert_config.json", {})
    longest = read_json(backbone / "config.json").get("max_position_embeddings") or 512
    length = config.get("max_seq_length") or min(longest, 512)
    return TokenSettings("encoder", length, length, "", "", False, False, tuple(string.punctuation))


def _dense(folder: Path) -> nn.Module:
    """Load a Dense layer of sentence-transformers or PyLate: linear, optional bias, activation, optional residual."""
    library("torch", "a ColBERT model")
    import torch

    config = read_json(folder / "config.json")
    weights = tensors(folder, ("linear.weight",), "the projection of ColBERT", ("linear.bias", "residual.weight"))
    name = str(config.get("activation_function") or "torch.nn.modules.linear.Identity")
    activation = getattr(torch.nn, name.rpartition(".")[2], None) if name.startswith("torch.nn.") else None
    if not (isinstance(activation, type) and issubclass(activation, torch.nn.Module)):
        raise InputError(f"{folder}: its activation function {name} is not in torch.nn")
    layer: nn.Sequential = torch.nn.Sequential(_linear(weights, folder), activation())
    if not config.get("use_residual"):
        return layer
    skip: nn.Module = torch.nn.Identity()
    if "residual.weight" in weights:
        skip = _linear({"linear.weight": weights["residual.weight"]}, folder)

    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.skip = layer, skip

        def forward(self, vectors: Tensor) -> object:
            return self.layer(vectors) + self.skip(vectors)

    return Residual()


def _linear(weights: dict[str, Tensor], folder: Path) -> nn.Linear:
    """Linear layer with the tensors `linear.weight` and, if any, `linear.bias`; raises InputError for a wrong shape."""
    torch = library("torch", "a ColBERT model")
    weight, bias = weights["linear.weight"].float(), weights.get("linear.bias")
    if weight.ndim != 2:
        raise InputError(f"{folder}: its projection linear.weight has {weight.ndim} dimensions, not 2")
    layer: nn.Linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias.float())
    return layer


SEED = 20200425  # of the random projection of a plain encoder with `dim`
SAMPLE = "A late interaction model keeps one vector for each token of a document and of a query. "


@dataclass(frozen=True)
class ColBERT(Pretrained["ColBERTModel"], name="colbert"):
    """A late-interaction model (Khattab and Zaharia, SIGIR 2020): one vector of unit length per token.

    The model is loaded when the first text is encoded.

    Args:
        name_or_path: A checkpoint of ColBERT, PyLate or sentence-transformers, or any encoder: a folder, or a name on the hub.
        dim: Dimensions of the vectors. An encoder without a projection gets a random orthonormal one, untrained. None: the
            checkpoint's.
        query_length: Tokens per query. None, here and below: the checkpoint's setting.
        document_length: Maximum tokens per document.
        expand: Whether queries are padded to query_length with [MASK]; each [MASK] gets a vector and counts.
        attend: Whether the other tokens of a query attend to these [MASK] tokens.
        skip: Characters and words whose tokens get no vector in documents; () keeps all.
        pool: Store a mean vector of each group of similar tokens of a document, n / pool for n tokens (token pooling).

    Raises:
        InputError: On use: the checkpoint is missing or cannot be read.
        ParameterError: On use: the checkpoint's vectors do not have `dim` dimensions, or `pool` is below 1.
    """

    kind = "ColBERT model"

    dim: int | None = None
    query_length: int | None = None
    document_length: int | None = None
    expand: bool | None = None
    attend: bool | None = None
    skip: tuple[str, ...] | None = None
    pool: float | None = None

    @property
    def settings(self) -> TokenSettings:
        """The checkpoint's settings, overridden by this model's parameters."""
        return self._checkpoint.settings.with_(
            query_length=self.query_length,
            document_length=self.document_length,
            expand=self.expand,
            attend=self.attend,
            skip=None if self.skip is None else tuple(self.skip),
            pool=self.pool,
        )

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a document, special tokens included."""
        return self.settings.document_length

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens included."""
        return list(map(self._model.untruncated_length, map(text_of, docs)))

    @property
    def width(self) -> int:
        """Dimensions of the vectors. Loads the model."""
        return int(self._model.width)

    @unreported
    def encode_queries(self, texts: Sequence[str]) -> list[Float32s]:
        """Token vectors of each query, float32 (tokens, dim), of unit length.

        On a CPU each query is encoded by itself; its vectors do not depend on the batch.
        """
        if not texts:
            return []
        model, settings = self._model, self.settings
        ids = [model.query_ids(text) for text in texts]
        lengths = [settings.query_length if settings.expand else len(query_ids) for query_ids in ids]

        def work(batch: Indices) -> Objects:
            return as_objects(model.queries([ids[i] for i in batch]))

        alone = model.prepared.device == "cpu"
        return list(in_batches(lengths, 1, work) if alone else self._in_batches(lengths, work))

    def encode_documents(self, docs: Sequence[Doc]) -> tuple[Float32s, Int64s]:
        """Token vectors of documents; the composition of batches changes them by rounding only.

        Returns:
            Vectors of unit length, float32 (tokens, dim), one for each token that is not skipped, or for each group of
            pooled tokens; and bounds, int64 (documents + 1,): document i has the rows bounds[i] to bounds[i + 1].
        """
        if not docs:
            return np.zeros((0, self.width), dtype=np.float32), np.zeros(1, dtype=np.int64)
        model, factor = self._model, self.settings.pool
        ids = [model.document_ids(text_of(doc)) for doc in docs]

        def work(batch: Indices) -> Objects:
            return as_objects([pooled(vectors, factor) for vectors in model.documents([ids[i] for i in batch])])

        vectors = list(self._in_batches([len(doc_ids) for doc_ids in ids], work))
        return np.concatenate(vectors), offsets_of(list(map(len, vectors)))

    def query_tokens(self, text: str) -> list[str]:
        """Tokens of a query, in the order of its vectors."""
        model = self._model
        return [str(token) for token in model.tokenizer.convert_ids_to_tokens(model.filled(model.query_ids(text)))]

    def document_tokens(self, doc: Doc) -> list[str]:
        """Tokens of a document that have vectors, in order; tokens that are pooled into one vector are joined by blanks."""
        model, factor = self._model, self.settings.pool
        ids = model.document_ids(text_of(doc))
        names = model.tokenizer.convert_ids_to_tokens([token for token in ids if token not in model.skipped])
        if factor == 1:
            return list(map(str, names))
        return [" ".join(names[row] for row in group) for group in token_groups(model.documents([ids])[0], factor)]

    @property
    def folder(self) -> Path:
        if os.fspath(self.name_or_path).endswith(".dnn"):
            raise InputError(
                f"{self.name_or_path} is in the old form of ColBERT v1, one file; load it with ColBERT's own code and save it "
                "as a folder (checkpoint.save)"
            )
        return super().folder

    @property
    def _checkpoint(self) -> ColBERTCheckpoint:
        folder = self.folder
        return load_once(("checkpoint", folder, fingerprint(folder)), lambda: ColBERTCheckpoint.of(folder))

    def _settings(self) -> dict[str, object]:
        settings = asdict(self.settings)
        if settings["pool"] == 1:
            del settings["pool"]  # the fingerprint of vectors without pooling does not depend on it
        return {"dim": self.dim, **settings}

    def _load(self, folder: Path, device: str) -> ColBERTModel:
        return ColBERTModel(self._checkpoint, self.settings, self.dim, self.precision, device)

    def _load_parameters(self) -> tuple[object, ...]:
        return self.dim, self.settings


def colbert_in(part: Part) -> ColBERT:
    """Return the ColBERT in the field `colbert` of a part, where a string is the name of a checkpoint.

    Raises ParameterError for any other value.
    """
    colbert = part.params()["colbert"]
    if not isinstance(colbert, ColBERT):
        raise ParameterError(f"{part.name}: colbert is a ColBERT, or the name of a checkpoint, not {colbert!r}")
    return colbert


class ColBERTModel:
    """A loaded checkpoint: tokenizer, transformer and projections."""

    def __init__(
        self, checkpoint: ColBERTCheckpoint, settings: TokenSettings, dim: int | None, precision: str, device: str
    ) -> None:
        self.settings = settings
        native = settings.form == NATIVE
        self._query_prompt, self._document_prompt = (settings.query_marker, settings.document_marker) if native else ("", "")
        self.tokenizer = tokenizer_in(checkpoint.backbone, f"{checkpoint.backbone} has no tokenizer that can be loaded")
        network = _network(checkpoint, dim)
        self._check_lengths(network.positions, str(checkpoint.backbone))
        self.width: int = network.width
        self.query_marker = self._marker(settings.query_marker, checkpoint)
        self.document_marker = self._marker(settings.document_marker, checkpoint)
        # PyLate's choice; ColBERT always uses [MASK].
        fills = (self.tokenizer.mask_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id, 0)
        self.fill: int = next(token for token in fills if token is not None)
        self.skipped = frozenset(self._skipped())
        sample = [self.document_ids(SAMPLE * 8), self.document_ids(SAMPLE)]
        self.prepared: Prepared = prepare_module(
            network, lambda module: _concatenated(module, sample, self.fill), precision=precision, device=device
        )

    def query_ids(self, text: str) -> list[int]:
        """Token ids of a query before padding."""
        return self._ids(self._query_prompt + text, self.settings.query_length, self.query_marker)

    def document_ids(self, text: str) -> list[int]:
        """Token ids of a document, skipped tokens included."""
        return self._ids(self._document_prompt + text, self.settings.document_length, self.document_marker)

    def untruncated_length(self, text: str) -> int:
        """Number of tokens of an untruncated document."""
        (ids,) = token_ids(self.tokenizer, [self._document_prompt + text])
        return len(ids) + (self.document_marker is not None)

    def filled(self, ids: list[int]) -> list[int]:
        """Token ids of a query that get vectors: padded with [MASK] if queries are expanded."""
        return ids + [self.fill] * (self.settings.query_length - len(ids)) if self.settings.expand else ids

    def queries(self, ids: list[list[int]]) -> list[Float32s]:
        """Vectors of a batch of queries."""
        filled = [self.filled(query_ids) for query_ids in ids]
        # Padding tokens have vectors; the other tokens attend to them only if the checkpoint was trained with this setting.
        attended = filled if self.settings.attend else ids
        vectors = _vectors(self.prepared.module, filled, self.fill, list(map(len, attended)))
        return [vectors[i, : len(query_ids)] for i, query_ids in enumerate(filled)]

    def documents(self, ids: list[list[int]]) -> list[Float32s]:
        """Vectors of a batch of documents."""
        vectors = _vectors(self.prepared.module, ids, self.fill)
        masks = [np.array([token not in self.skipped for token in doc_ids], dtype=bool) for doc_ids in ids]
        return [vectors[i, : len(mask)][mask] for i, mask in enumerate(masks)]

    def _ids(self, text: str, length: int, marker: int | None) -> list[int]:
        """Token ids of a text, truncated to `length` with its marker."""
        if marker is not None and self.settings.form == "colbert":
            ids = list(self.tokenizer(f". {text}", truncation=True, max_length=length)["input_ids"])
            ids[1] = marker
            return ids
        ids = list(self.tokenizer(text, truncation=True, max_length=length - (marker is not None))["input_ids"])
        return ids if marker is None else [*ids[:1], marker, *ids[1:]]

    def _skipped(self) -> list[int]:
        """Ids of the tokens that get no vector in documents."""
        words = self.settings.skip
        if self.settings.form == NATIVE:
            vocabulary = self.tokenizer.get_vocab()
            return [vocabulary[word] for word in words if word in vocabulary]
        if self.settings.form == "pylate":
            return list(self.tokenizer.convert_tokens_to_ids(list(words))) if words else []
        encoded = (self.tokenizer(word, add_special_tokens=False)["input_ids"] for word in words)
        skipped = [ids[0] for ids in encoded if ids]
        unknown = self.tokenizer.unk_token_id if self.settings.form == "encoder" else None
        return [token for token in skipped if token != unknown]

    def _marker(self, token: str, checkpoint: ColBERTCheckpoint) -> int | None:
        """Id of a marker that is inserted as a token; None without one."""
        if not token or self.settings.form == NATIVE:
            return None
        marker = self.tokenizer.get_vocab().get(token)
        if marker is None:
            raise InputError(f"{checkpoint.backbone}: its vocabulary has no token '{token}', which marks queries or documents")
        return int(marker)

    def _check_lengths(self, longest: int | None, name: str) -> None:
        """Raise ParameterError if a length exceeds the model's positions; None: it has no limit."""
        for parameter in ("query_length", "document_length"):
            if longest and getattr(self.settings, parameter) > longest:
                raise ParameterError(f"{parameter} is {getattr(self.settings, parameter)}, but {name} has {longest} positions")


def _vectors(module: nn.Module, ids: list[list[int]], fill: int, attended: list[int] | None = None) -> Float32s:
    """Token vectors of unit length, float32 (texts, longest, dim); `attended` as for `padded`."""
    torch = library("torch", "a ColBERT model")
    tokens, mask = padded(ids, fill, next(module.parameters()).device, attended=attended)
    with torch.inference_mode():
        states = module(tokens, mask, attended is not None).float()
        vectors: Float32s = torch.nn.functional.normalize(states, p=2, dim=2).cpu().numpy()
        return vectors


def _concatenated(module: nn.Module, ids: list[list[int]], fill: int) -> Tensor:
    """Token vectors of texts without padding, a tensor (tokens, dim)."""
    vectors = _vectors(module, ids, fill)
    rows = np.concatenate([vectors[i, : len(text_ids)] for i, text_ids in enumerate(ids)])
    tensor: Tensor = library("torch", "a ColBERT model").from_numpy(rows)
    return tensor


def _network(checkpoint: ColBERTCheckpoint, dim: int | None) -> Any:
    """Load the transformer and the projections as one module; raise ParameterError for other dimensions than `dim`."""
    library("torch", "a ColBERT model")
    transformers = library("transformers", "a ColBERT model")
    import torch

    from ..models.bert import backbone, try_plain

    body: Any = try_plain(lambda: backbone(checkpoint.backbone), checkpoint.backbone)
    runs_here = body is not None
    if not runs_here:
        # transformers does not know the projection's weights and would report them.
        with model_errors(f"{checkpoint.backbone} cannot be loaded as a transformer"), without_warnings():
            body = transformers.AutoModel.from_pretrained(checkpoint.backbone, **NO_CODE).float()
    sizes = body.shape if runs_here else body.config
    hidden = int(sizes.hidden_size)
    projections = checkpoint.projections(hidden, dim)
    with torch.inference_mode():
        width = int(torch.nn.Sequential(*projections)(torch.zeros(1, hidden)).shape[1]) if projections else hidden
    if dim not in (None, width):
        raise ParameterError(f"{checkpoint.backbone} gives vectors of {width} dimensions, not {dim}; leave dim out")

    class TokenNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.projection = body, torch.nn.Sequential(*projections)
            self.width = width
            self.positions = getattr(sizes, "max_position_embeddings", None)

        def forward(self, tokens: Tensor, mask: Tensor, every: bool) -> object:
            """Vectors of tokens; with `every` also of those whose mask is 0."""
            if runs_here:
                return self.projection(self.backbone(tokens, mask, every=every))
            return self.projection(self.backbone(input_ids=tokens, attention_mask=mask)[0])

    return TokenNetwork()


def _orthonormal(hidden: int, dim: int | None) -> nn.Linear:
    """Random linear layer with orthonormal rows, (dim, hidden), from a fixed seed."""
    torch = library("torch", "a ColBERT model")
    if not dim or not 1 <= dim <= hidden:
        raise ParameterError(f"dim must lie between 1 and {hidden}, the size of the model, not {dim!r}")
    matrix = np.random.default_rng(SEED).standard_normal((hidden, dim))
    layer: nn.Linear = torch.nn.Linear(hidden, dim, bias=False)
    layer.weight.data.copy_(torch.from_numpy(np.linalg.qr(matrix)[0].T.astype(np.float32)))
    return layer
