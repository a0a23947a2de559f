"""Sentence encoders with the modules, prompts and settings of sentence-transformers, but run faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtraError, ParameterError
from ...core.progress import ProgressCallback, silent
from ...core.strings import encodable
from ...core.values import Doc, text_of
from ..models.base import token_ids
from ..models.compute import ComputePrecision, Prepared, prepare_module
from ..models.hub import NO_CODE, find_local_model, fingerprint, library, model_errors, quiet, read_json
from ..models.tokens import STATIC, TokenIds, batch
from .architectures import NO_LIMIT, declared_attention, install_attention, position_limit
from .base import PretrainedEncoder, sample_ids, unit
from .static import StaticModel, stated_truncation, static_module

if TYPE_CHECKING:
    from ..models.bert import Plain
    from .pooling import Step


# Settings of a model of sentence-transformers with which `PlainModel` gives the same vectors.
SUPPORTED_SETTINGS = {"__version__", "similarity_fn_name", "prompts", "default_prompt_name", "model_type", "truncate_dim"}


@dataclass(frozen=True)
class _Parts:
    """A model's transformer, pooling, projections and prompts."""

    transformer: Plain
    network: Any
    modes: tuple[str, ...]
    steps: tuple[Step, ...]
    settings: dict[str, Any]


class PlainModel:
    """A model of sentence-transformers run from its files, with equal vectors; only its transformer uses `precision`."""

    def __init__(self, parts: _Parts, precision: str, device: str) -> None:
        self._parts, self.tokenizer, self.length = parts, parts.transformer.tokens, parts.transformer.length
        self.prompts: dict[str, str | None] = parts.settings.get("prompts") or {}
        self.default_prompt_name: str | None = parts.settings.get("default_prompt_name")
        sample = np.stack(sample_ids(parts.transformer.shape.vocab_size, min(256, self.length)))
        self.prepared: Prepared = prepare_module(
            parts.network, lambda module: _plain_means(module, sample), precision=precision, device=device
        )
        self.dim = int(self.vectors(self.inputs(["a"], ""), "", "").shape[1])

    @classmethod
    def of(cls, folder: Path, max_length: int | None, precision: str, device: str) -> PlainModel | None:
        """Load the model of a folder; None if it needs features that are not implemented here."""
        from ..models.bert import try_plain

        parts = try_plain(lambda: _parts(folder, max_length), folder)
        return None if parts is None else cls(parts, precision, device)

    def inputs(self, texts: Sequence[str], prompt: str) -> list[TokenIds]:
        return self.tokenizer.encoded([prompt + text for text in texts])

    def lengths(self, inputs: Sequence[TokenIds], prompt: str) -> list[int]:
        return [len(encoded.ids) for encoded in inputs]

    def untruncated_lengths(self, texts: Sequence[str]) -> list[int]:
        return self.tokenizer.lengths(texts)

    def vectors(self, inputs: Sequence[TokenIds], prompt: str, task: str) -> NDArray[np.float32]:
        """Vectors of one batch, float32 (texts, dim)."""
        from .pooling import pooled

        torch = library("torch", "SentenceEncoder")
        ids, mask, types = batch(inputs, self._parts.transformer.shape.pad_token_id, self.prepared.device)
        with torch.inference_mode():
            pooling = pooled(self.prepared.module(ids, mask, types).float(), mask, self._parts.modes)
            for step in self._parts.steps:
                pooling = step(pooling)
            vectors: NDArray[np.float32] = pooling.cpu().numpy()
        return vectors


def _parts(folder: Path, max_length: int | None) -> _Parts | None:
    """Read the parts of a model from its folder; None if one of them is not supported."""
    from ..models.bert import encoder, plain
    from .pooling import modes, step

    settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
    supported = settings.keys() <= SUPPORTED_SETTINGS and settings.get("truncate_dim") is None
    modules = [(str(module["type"]).split("."), Path(module["path"])) for module in read_json(folder / "modules.json")]
    kinds = [name[-1] for name, _ in modules]
    inside = all(not path.is_absolute() and ".." not in path.parts for _, path in modules)
    of_package = all(name[0] == "sentence_transformers" for name, _ in modules)
    of_sentences = settings.get("model_type", "SentenceTransformer") == "SentenceTransformer"
    if not (supported and inside and of_package and of_sentences and kinds[:2] == ["Transformer", "Pooling"]):
        return None
    (_, transformer_path), (_, pooling_path), *following = modules
    transformer = plain(folder / transformer_path, "feature-extraction", max_length)
    pooling = modes(folder / pooling_path)
    steps = [step(name[-1], folder / path) for name, path in following]
    if transformer is None or pooling is None or None in steps:
        return None
    network = encoder(transformer.weights, transformer.shape)
    return _Parts(transformer, network, pooling, tuple(function for function in steps if function is not None), settings)


def _plain_means(module: Any, ids: NDArray[np.int32]) -> Any:
    """Mean hidden state of each text by a network of `models.bert`, float32 (texts, width)."""
    torch = library("torch", "SentenceEncoder")
    tokens = torch.from_numpy(ids.astype(np.int64)).to(next(module.parameters()).device)
    return module(tokens, torch.ones_like(tokens)).float().mean(dim=1)


QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")  # names of prompts in sentence-transformers


@dataclass(frozen=True)
class SentenceEncoder(PretrainedEncoder["StaticModel | PlainModel | SentenceModel"], name="sentence_encoder"):
    """An encoder of sentence-transformers with its own pooling, projections, normalization and prompts, or one of Model2Vec.

    The transformer runs in `precision`, everything after it in float32. A BERT, RoBERTa or XLM-RoBERTa with usual settings runs
    from its files alone, others by the code of sentence-transformers. A Nyströmformer runs with Nyström attention, as in
    `TransformerEncoder`, not with the full attention of its configuration. A model trained with Fontes declares in
    `fontes.json` that it runs as a `TransformerEncoder` does. Static embeddings, of Model2Vec or sentence-transformers, run
    without torch. A model whose first module is of another kind (a router) runs through sentence-transformers' `encode`, in
    float32.

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub (`all-MiniLM-L6-v2`, `intfloat/e5-base-v2`, …).
        query_prompt: Text before each query. None: the model's prompt for queries, if any.
        document_prompt: Text before each document. None: the model's prompt for documents, if any.
        max_length: Maximum tokens read of a text, special ones included. None: the model's.

    Raises:
        InputError: On use: the model is missing.
        ParameterError: On use: a parameter is outside its range.
    """

    kind = "sentence encoder"
    owner = "sentence-transformers"

    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = field(default=None, metadata={"least": 3})

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text."""
        return self._model.length

    def encode_documents(self, docs: Sequence[Doc], progress: ProgressCallback = silent) -> NDArray[np.float32]:
        """Vectors of documents (title, a space, text), float32 (documents, dim)."""
        return self._encode([text_of(doc) for doc in docs], self.document_prompt, DOCUMENT, progress)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 (queries, dim)."""
        return self._encode(texts, self.query_prompt, QUERY, silent)

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens and prompt included.

        A model without a transformer over text has no limit; the result is then the number of characters.
        """
        model: Any = self._model
        prompt = own_prompt(model, DOCUMENT) if self.document_prompt is None else self.document_prompt
        return list(model.untruncated_lengths([prompt + text_of(doc) for doc in docs]))

    def check_needs(self) -> None:
        folder = find_local_model(self.name_or_path, self.owner)
        if folder is None or static_module(folder, fingerprint(folder)) is None:
            super().check_needs()
            return
        for name in ("tokenizers", "safetensors"):
            if find_spec(name) is None:
                raise MissingExtraError.of(name, "static", STATIC)

    def _encode(
        self, texts: Sequence[str], prompt: str | None, names: tuple[str, ...], progress: ProgressCallback
    ) -> NDArray[np.float32]:
        """Vectors of texts after `prompt`, or for None after the model's prompt of one of these names."""
        model: Any = self._model
        prefix = own_prompt(model, names) if prompt is None else prompt
        if isinstance(model, StaticModel):
            vectors = model.vectors([prefix + text for text in texts], progress)
            return unit(vectors) if self.normalize else vectors
        inputs = model.inputs(texts, prefix)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            vectors: NDArray[np.float32] = model.vectors([inputs[i] for i in batch], prefix, names[0])
            return vectors

        return self._vectors(model.lengths(inputs, prefix), work, progress)

    def _settings(self) -> dict[str, Any]:
        """Parameters of the fingerprint: also the truncation of a StaticEmbedding, which earlier releases read whole."""
        settings, module_folder = super()._settings(), static_module(self.folder, fingerprint(self.folder))
        if self.max_length is None and module_folder is not None:
            length = stated_truncation(module_folder, fingerprint(self.folder))
            settings |= {} if length is None else {"truncation": length}
        return settings

    def _device_of(self, folder: Path, fingerprint: str) -> str:
        return "cpu" if static_module(folder, fingerprint) else super()._device_of(folder, fingerprint)

    def _load(self, folder: Path, device: str) -> StaticModel | PlainModel | SentenceModel:
        if (module_folder := static_module(folder, fingerprint(folder))) is not None:
            return StaticModel(folder, module_folder, self.max_length)
        plain = PlainModel.of(folder, self.max_length, self.precision, device)
        return plain or SentenceModel(str(self.name_or_path), folder, self.max_length, self.precision, device)

    def _load_parameters(self) -> tuple[Any, ...]:
        return (self.max_length,)


class SentenceModel:
    """A model of sentence-transformers run by its own code; supports more models than `PlainModel`."""

    def __init__(self, name: str, folder: Path, max_length: int | None, precision: str, device: str) -> None:
        self.model, self.transformer = sentence_transformer(name, folder, max_length, device)
        self.model.eval().float()
        self.tokenizer: Any = self.model.tokenizer
        self.prompts: dict[str, str | None] = self.model.prompts or {}
        self.default_prompt_name: str | None = self.model.default_prompt_name
        self.length = int(min(self.model.max_seq_length or NO_LIMIT, NO_LIMIT))
        if self.transformer is None:
            self.prepared = Prepared(self.model, ComputePrecision("float32", {}), device)
        else:
            sample = np.stack(sample_ids(self.transformer.config.vocab_size, min(256, self.length)))
            self.prepared = prepare_module(
                self.transformer, lambda network: _means(network, sample), precision=precision, device=device
            )
        self.dim = int(self.vectors(["a"], "", DOCUMENT[0]).shape[1])

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

    def vectors(self, texts: list[str], prompt: str, task: str) -> NDArray[np.float32]:
        """Vectors of one batch, float32 (texts, dim)."""
        torch = library("torch", "SentenceEncoder")
        if self.transformer is None:
            encode = getattr(self.model, f"encode_{task}", self.model.encode)
            encoded = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
            return np.asarray(encoded, np.float32)
        features = dict(self.model.preprocess(texts, prompt=prompt or None))
        features = {name: value.to(self.prepared.device) if hasattr(value, "to") else value for name, value in features.items()}
        with torch.inference_mode():
            features = self.model[0](features)
            for name, value in features.items():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    features[name] = value.float()
            for module in list(self.model)[1:]:
                features = module(features)
            vectors: NDArray[np.float32] = features["sentence_embedding"].float().cpu().numpy()
        return vectors


def sentence_transformer(name: str, folder: Path, max_length: int | None, device: str) -> tuple[Any, Any]:
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


def own_prompt(model: Any, names: tuple[str, ...]) -> str:
    """A model's prompt: the first non-empty one under these names; its default prompt if it has none of these names."""
    prompts: dict[str, str | None] = model.prompts or {}
    named = [prompts[name] or "" for name in names if name in prompts]
    return next(filter(None, named), "") if named else prompts.get(model.default_prompt_name or "") or ""


def _means(module: Any, ids: NDArray[np.int32]) -> Any:
    """Mean hidden state of each text by a model of transformers, float32 (texts, width)."""
    torch = library("torch", "SentenceEncoder")
    tokens = torch.from_numpy(ids.astype(np.int64)).to(next(module.parameters()).device)
    hidden = module(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
    return hidden.float().mean(dim=1)
