"""Sentence encoders with the modules, prompts and settings of sentence-transformers, but run faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Indices, Int32s
from ...core.errors import InputError, MissingExtraError, ParameterError
from ...core.strings import encodable
from ...core.values import Doc, text_of
from ...core.work import unreported
from ..models.base import token_ids
from ..models.compute import ComputePrecision, Prepared, prepare_module
from ..models.hub import NO_CODE, find_local_model, fingerprint, library, model_errors, quiet
from ..models.modules import PACKAGE, PROMPTS, ROUTERS, TASKS, ModelSettings, Module, check_modules, modules_for
from ..models.tokens import STATIC, TokenIds, batch
from .architectures import NO_LIMIT, declared_attention, install_attention, position_limit
from .base import PretrainedEncoder, sample_ids, unit
from .static import MODULES as STATIC_MODULES, StaticModel, stated_truncation, static_module

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor, nn
    from transformers import PreTrainedModel

    from ..models.bert import Plain
    from .pooling import Step


# Settings of a model of sentence-transformers with which `PlainModel` gives the same vectors.
SUPPORTED_SETTINGS = {"__version__", "similarity_fn_name", "prompts", "default_prompt_name", "model_type", "truncate_dim"}


@dataclass(frozen=True)
class _Parts:
    """A transformer with its folder and network, the modules behind it, and the model's settings."""

    folder: Path
    transformer: Plain
    network: nn.Module
    steps: tuple[Step, ...]
    settings: ModelSettings


class PlainModel:
    """A model of sentence-transformers run from its files, with equal vectors; only its transformer uses `precision`."""

    def __init__(self, parts: _Parts, precision: str, device: str, prepared: Prepared | None = None) -> None:
        self._parts, self.tokenizer, self.length = parts, parts.transformer.tokens, parts.transformer.length
        self.settings = parts.settings
        sample = np.stack(sample_ids(parts.transformer.shape.vocab_size, min(256, self.length)))
        self.prepared: Prepared = prepared or prepare_module(
            parts.network, lambda module: _means(module, sample), precision=precision, device=device
        )
        self.dim = int(self.vectors(self.inputs(["a"], ""), "", "").shape[1])

    @classmethod
    def of(cls, folder: Path, max_length: int | None, precision: str, device: str) -> PlainModel | RoutedModel | None:
        """Load the model of a folder; None if it needs features that are not implemented here."""
        from ..models.bert import try_plain

        routes = try_plain(lambda: _routes(folder, max_length), folder)
        if routes is None:
            return None
        loaded: dict[str, StaticModel | PlainModel] = {}
        prepared: dict[int, Prepared] = {}  # by identity of the network, which two routes may share
        for task, parts in routes.items():
            if isinstance(parts, StaticModel):
                loaded[task] = parts
                continue
            loaded[task] = model = cls(parts, precision, device, prepared.get(id(parts.network)))
            prepared[id(parts.network)] = model.prepared
        return RoutedModel(folder, loaded) if len(loaded) > 1 else model

    def inputs(self, texts: Sequence[str], prompt: str) -> list[TokenIds]:
        return self.tokenizer.encoded([prompt + text for text in texts])

    def lengths(self, inputs: Sequence[TokenIds], prompt: str) -> list[int]:
        return [len(encoded.ids) for encoded in inputs]

    def untruncated_lengths(self, texts: Sequence[str]) -> list[int]:
        return self.tokenizer.lengths(texts)

    def vectors(self, inputs: Sequence[TokenIds], prompt: str, task: str) -> Float32s:
        """Vectors of one batch, float32 (texts, dim)."""
        torch = library("torch", "SentenceEncoder")
        ids, mask, types = batch(inputs, self._parts.transformer.shape.pad_token_id, self.prepared.device)
        with torch.inference_mode():
            features = {"token_embeddings": self.prepared.module(ids, mask, types).float(), "attention_mask": mask}
            for step in self._parts.steps:
                step(features)
            vectors: Float32s = features["sentence_embedding"].cpu().numpy()
        return vectors


class RoutedModel:
    """A model with a router: one model for queries, another for documents, of which the attributes here are."""

    def __init__(self, folder: Path, routes: Mapping[str, StaticModel | PlainModel]) -> None:
        self.routes = routes
        documents: StaticModel | PlainModel = routes["document"]
        self.prepared: Prepared = documents.prepared
        self.tokenizer, self.settings, self.length = documents.tokenizer, documents.settings, documents.length
        self.untruncated_lengths = documents.untruncated_lengths
        self.dim = documents.dim
        if routes["query"].dim != self.dim:
            raise InputError(f"{folder} gives vectors of {routes['query'].dim} dimensions to queries, {self.dim} to documents")


def _routes(folder: Path, max_length: int | None) -> dict[str, _Parts | StaticModel] | None:
    """Read the parts of a model from its folder, by task if they differ; None if one of them is not supported."""
    settings = ModelSettings.of(folder)
    if settings.raw.keys() - SUPPORTED_SETTINGS or settings.kind != "SentenceTransformer":
        return None
    modules = {task: modules_for(folder, task) for task in TASKS}
    if modules["query"] == modules["document"]:
        parts = _parts(modules["document"], settings, max_length)
        return None if parts is None else {"document": parts}
    routes: dict[str, _Parts | StaticModel] = {}
    for task, path in modules.items():
        if [module.kind for module in path] in STATIC_MODULES:
            routes[task] = StaticModel(folder, path[0].folder, max_length, normalized=len(path) > 1)
            continue
        others = (other for other in routes.values() if isinstance(other, _Parts))
        network = next((other.network for other in others if other.folder == path[0].folder), None)
        parts = _parts(path, settings, max_length, network)
        if parts is None:
            return None
        routes[task] = parts
    return routes


def _parts(
    modules: list[Module], settings: ModelSettings, max_length: int | None, network: nn.Module | None = None
) -> _Parts | None:
    """Read a transformer, unless `network` is its network, and the modules behind it; None if one is not supported."""
    from ..models.bert import encoder, plain
    from .pooling import steps

    first, *following = modules
    if first.kind != "Transformer" or not first.type.startswith(f"{PACKAGE}."):
        return None
    transformer = plain(first.folder, "feature-extraction", max_length)
    behind = steps(following)
    if transformer is None or behind is None:
        return None
    return _Parts(first.folder, transformer, network or encoder(transformer.weights, transformer.shape), behind, settings)


@dataclass(frozen=True)
class SentenceEncoder(PretrainedEncoder["StaticModel | PlainModel | RoutedModel | SentenceModel"], name="sentence_encoder"):
    """An encoder of sentence-transformers with its own modules, prompts and dimensions, or one of Model2Vec.

    The transformer runs in `precision`, everything after it in float32. A BERT, RoBERTa, XLM-RoBERTa or ModernBERT with usual
    modules (pooling, dense layers, normalization, a router with parts for queries and documents) runs from its files alone,
    others by the code of sentence-transformers. A Nyströmformer runs with Nyström attention, as in `TransformerEncoder`, not
    with the full attention of its configuration. A model trained with Fontes declares in `fontes.json` that it runs as a
    `TransformerEncoder` does. Static embeddings, of Model2Vec or sentence-transformers, run without torch. A model whose first
    module is of another kind runs through sentence-transformers' `encode`, in float32.

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub (`all-MiniLM-L6-v2`, `intfloat/e5-base-v2`, …).
        query_prompt: Text before each query. None: the prompt `query_prompt_name`, or the model's prompt for queries, if any.
        document_prompt: Text before each document. None: the prompt `document_prompt_name`, or the model's prompt for
            documents, if any.
        max_length: Maximum tokens read of a text, special ones included. None: the model's.
        query_prompt_name: Name of the model's prompt before each query.
        document_prompt_name: Name of the model's prompt before each document.
        dims: Number of leading dimensions of a vector that are used, before it is normalized. None: the model's
            `truncate_dim`, or all.

    Raises:
        InputError: On use: the model is missing, or one of its modules is code of its own.
        ParameterError: On use: a parameter is outside its range.
    """

    kind = "sentence encoder"
    owner = "sentence-transformers"

    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = field(default=None, metadata={"least": 3})
    query_prompt_name: str | None = field(default=None, kw_only=True)
    document_prompt_name: str | None = field(default=None, kw_only=True)
    dims: int | None = field(default=None, kw_only=True, metadata={"least": 1})

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        return self._dim(self._model)

    def _dim(self, model: Any) -> int:
        dim: int = model.dim
        if self.dims is not None and self.dims > dim:
            raise ParameterError(f"dims is {self.dims}, but {self.name_or_path} gives {dim} dimensions only")
        return min(dim, self.dims or model.settings.truncate_dim or dim)

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text."""
        return self._model.length

    def encode_documents(self, docs: Sequence[Doc]) -> Float32s:
        """Vectors of documents (title, a space, text), float32 (documents, dim)."""
        return self._encode([text_of(doc) for doc in docs], "document")

    @unreported
    def encode_queries(self, texts: Sequence[str]) -> Float32s:
        """Vectors of queries, float32 (queries, dim)."""
        return self._encode(texts, "query")

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens and prompt included.

        A model without a transformer over text has no limit; the result is then the number of characters.
        """
        model = self._model
        prompt = self.prompt("document", model.settings)
        return list(model.untruncated_lengths([prompt + text_of(doc) for doc in docs]))

    def prompt(self, task: str, settings: ModelSettings | None = None) -> str:
        """Text before each text of a task, "query" or "document".

        Args:
            task: The task.
            settings: Settings of the model; None reads them.

        Raises:
            ParameterError: The model has no prompt of the name that a parameter states.
        """
        text = self.query_prompt if task == "query" else self.document_prompt
        name = self.query_prompt_name if task == "query" else self.document_prompt_name
        if text is not None:
            return text
        settings = settings or ModelSettings.of(self.folder)
        return settings.prompt_for(PROMPTS[task]) if name is None else settings.prompt(name, self.name_or_path)

    def check_needs(self) -> None:
        folder = find_local_model(self.name_or_path, self.owner)
        if folder is None or static_module(folder, fingerprint(folder)) is None:
            super().check_needs()
            return
        for name in ("tokenizers", "safetensors"):
            if find_spec(name) is None:
                raise MissingExtraError.of(name, "static", STATIC)

    def _encode(self, texts: Sequence[str], task: str) -> Float32s:
        """Vectors of texts of a task, "query" or "document", after its prompt."""
        model: Any = self._model
        prompt, dim = self.prompt(task, model.settings), self._dim(model)
        if isinstance(model, RoutedModel):
            model = model.routes[task]
        if isinstance(model, StaticModel):
            vectors = model.vectors([prompt + text for text in texts])[:, :dim]
            return unit(vectors) if self.normalize else vectors
        inputs = model.inputs(texts, prompt)

        def work(batch: Indices) -> Float32s:
            vectors: Float32s = model.vectors([inputs[i] for i in batch], prompt, task)
            return vectors[:, :dim]

        return self._vectors(model.lengths(inputs, prompt), work)

    def _settings(self) -> dict[str, object]:
        """Parameters of the fingerprint.

        It has what earlier releases had; what they did not read is in it where it is set: names of prompts, the truncation of
        vectors, and that of texts for a StaticEmbedding.
        """
        settings, module_folder = super()._settings(), static_module(self.folder, fingerprint(self.folder))
        del settings["query_prompt_name"]
        dims = self.dims or (None if module_folder else ModelSettings.of(self.folder).truncate_dim)
        for name, value in (("dims", dims), ("document_prompt_name", self.document_prompt_name)):
            settings.pop(name)
            settings |= {} if value is None else {name: value}
        if self.max_length is None and module_folder is not None:
            length = stated_truncation(module_folder, fingerprint(self.folder))
            settings |= {} if length is None else {"truncation": length}
        return settings

    def _device_of(self, folder: Path, fingerprint: str) -> str:
        return "cpu" if static_module(folder, fingerprint) else super()._device_of(folder, fingerprint)

    def _load(self, folder: Path, device: str) -> StaticModel | PlainModel | RoutedModel | SentenceModel:
        check_modules(folder, "sentence_transformer")
        if (module_folder := static_module(folder, fingerprint(folder))) is not None:
            return StaticModel(folder, module_folder, self.max_length)
        plain = PlainModel.of(folder, self.max_length, self.precision, device)
        return plain or SentenceModel(str(self.name_or_path), folder, self.max_length, self.precision, device)

    def _load_parameters(self) -> tuple[object, ...]:
        return (self.max_length,)


class SentenceModel:
    """A model of sentence-transformers run by its own code; supports more models than `PlainModel`."""

    def __init__(self, name: str, folder: Path, max_length: int | None, precision: str, device: str) -> None:
        self.model, self.transformer = sentence_transformer(name, folder, max_length, device)
        self.model.eval().float()
        self.tokenizer: Any = self.model.tokenizer
        self.settings = ModelSettings.of(folder)
        self.model.truncate_dim = None  # `SentenceEncoder` truncates the vectors
        self.length = int(min(self.model.max_seq_length or NO_LIMIT, NO_LIMIT))
        if self.transformer is None:
            self.prepared = Prepared(self.model, ComputePrecision("float32", {}), device)
        else:
            sample = np.stack(sample_ids(self.transformer.config.vocab_size, min(256, self.length)))
            self.prepared = prepare_module(
                self.transformer, lambda network: _means(network, sample), precision=precision, device=device
            )
        try:
            self.dim = int(self.vectors(["a"], "", "document").shape[1])
        except (KeyError, ValueError, RuntimeError) as error:
            kinds = " + ".join(type(module).__name__ for module in self.model)
            raise InputError(f"{name}: its modules {kinds} cannot be run: {type(error).__name__} {error}") from error

    def inputs(self, texts: Sequence[str], prompt: str) -> list[str]:
        return list(map(encodable, texts))

    def lengths(self, texts: Sequence[str], prompt: str) -> list[int]:
        """Number of tokens of each text; of characters for a model without a transformer."""
        if self.transformer is None:
            return list(map(len, texts))
        length = self.length if self.length < NO_LIMIT else None
        return list(map(len, token_ids(self.tokenizer, [prompt + text for text in texts], length)))

    def untruncated_lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each untruncated text; of characters for a model without a transformer."""
        return list(map(len, texts if self.transformer is None else token_ids(self.tokenizer, texts)))

    def vectors(self, texts: list[str], prompt: str, task: str) -> Float32s:
        """Vectors of one batch, float32 (texts, dim)."""
        torch = library("torch", "SentenceEncoder")
        if self.transformer is None:
            encode = getattr(self.model, f"encode_{task}", self.model.encode)
            encoded = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
            return np.asarray(encoded, np.float32)
        features = dict(self.model.preprocess(texts, prompt=prompt or None, task=task))
        features = {name: value.to(self.prepared.device) if hasattr(value, "to") else value for name, value in features.items()}
        with torch.inference_mode():
            features = self.model[0](features)
            for name, value in features.items():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    features[name] = value.float()
            for module in list(self.model)[1:]:
                features = module(features, task=task) if type(module).__name__ in ROUTERS else module(features)
            vectors: Float32s = features["sentence_embedding"].float().cpu().numpy()
        return vectors


def sentence_transformer(
    name: str, folder: Path, max_length: int | None, device: str
) -> tuple[SentenceTransformer, PreTrainedModel | None]:
    """Load a model of sentence-transformers with the attention that its folder declares.

    Returns the model and its transformer, None without one. Raises InputError if the model cannot be read, and ParameterError
    if `max_length` exceeds its positions.
    """
    library("torch", "SentenceEncoder")
    sentence_transformers = library("sentence_transformers", "SentenceEncoder")
    with model_errors(f"sentence-transformers cannot read the model {name}"), quiet():
        model = sentence_transformers.SentenceTransformer(str(folder), device=device, **NO_CODE)
    transformer: Any = getattr(model[0], "auto_model", None)
    if not hasattr(getattr(transformer, "config", None), "vocab_size"):
        if max_length is not None:
            raise ParameterError(f"the model {name} is not a transformer over text and takes no max_length")
        return model, None
    # A model without declared attention runs as in sentence-transformers, except a Nyströmformer, which ignores the mask there.
    declaration = declared_attention(folder) or ({} if transformer.config.model_type == "nystromformer" else None)
    limit = position_limit(transformer) if declaration is None else install_attention(transformer, **declaration)
    if max_length is not None:
        if limit is not None and max_length > limit:
            raise ParameterError(f"max_length is {max_length}, but {name} has positions for {limit} tokens only")
        model.max_seq_length = max_length
    return model, transformer


def _means(module: nn.Module, ids: Int32s) -> Tensor:
    """Mean hidden state of each text by a network of `models.bert` or transformers, float32 (texts, width)."""
    torch = library("torch", "SentenceEncoder")
    tokens = torch.from_numpy(ids.astype(np.int64)).to(next(module.parameters()).device)
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    hidden: Tensor = module(**inputs).last_hidden_state if hasattr(module, "config") else module(*inputs.values())
    return hidden.float().mean(dim=1)
