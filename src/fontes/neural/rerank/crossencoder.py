"""Cross-encoders: a transformer reads query and document together and returns one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.progress import ProgressCallback, silent
from ...passages.reranker import Reranker
from ..models.base import Loaded, Pretrained
from ..models.compute import Prepared, prepare_module
from ..models.hub import NO_CODE, library, model_errors, quiet, read_json
from ..models.tokens import TokenIds, batch

if TYPE_CHECKING:
    from ..models.bert import Plain

M = TypeVar("M", bound=Loaded)


@dataclass(frozen=True)
class PretrainedReranker(Pretrained[M], Reranker):
    """Base of rerankers with a model over pairs of texts.

    The model has the methods `inputs(pairs)`, which returns the tokenized pairs; `lengths(inputs)`, their numbers of tokens;
    and `logits(module, inputs)`, a float32 tensor with the score of each pair of a batch.
    """

    task = "reranking"
    unit = "pairs"
    cpu_tokens = 2048  # larger batches are slower, since pairs are long

    def scores(self, pairs: Sequence[tuple[str, str]], progress: ProgressCallback = silent) -> NDArray[np.float32]:
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        model: Any = self._model
        inputs = self._inputs(model, pairs)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            logits: NDArray[np.float32] = model.logits(model.prepared.module, [inputs[i] for i in batch]).cpu().numpy()
            return logits

        return self._in_batches(model.lengths(inputs), work, progress)

    def _inputs(self, model: Any, pairs: Sequence[tuple[str, str]]) -> Sequence[Any]:
        """The tokenized pairs; a subclass may pass its parameters to the model."""
        return model.inputs(pairs)  # type: ignore[no-any-return]


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)), computed in float64."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


SCORES = ("logit", "sigmoid")
SAMPLE_QUERIES = (
    "what is a geyser",
    "the effect of vitamin D on bones",
    "who wrote the first novel in Czech",
    "cost of a flight",
)
SAMPLE_DOCUMENTS = (
    "A geyser is a hot spring that erupts from time to time. It needs heat, water and a narrow pipe below the ground. ",
    "Vitamin D regulates how the body takes up calcium, and too little of it makes bones soft in children and adults. ",
    "Airlines change the prices of their tickets many times a day, as seats are sold and the day of departure comes near. ",
    "The novel appeared in the nineteenth century, and its author is remembered for plain and lively sentences since then. ",
)
SAMPLE = [(query, document * 2) for query in SAMPLE_QUERIES for document in SAMPLE_DOCUMENTS]
PACKAGE = "sentence_transformers"
# Settings of a model of sentence-transformers with which `PlainCrossEncoder` gives the same scores.
SUPPORTED_SETTINGS = {"__version__", "activation_fn", "prompts", "default_prompt_name", "model_type"}


class Start(str):
    """Name of a model to train from, which may have no layer for scores."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Start({super().__repr__()})"


@dataclass(frozen=True)
class CrossEncoder(PretrainedReranker["PlainCrossEncoder | CrossEncoderModel"], name="cross_encoder"):
    """Reranks with a cross-encoder (Nogueira and Cho, 2019), such as those of sentence-transformers.

    Both forms of the score give the same order, except that sigmoids of logits above 17.4 are all 1 in float32. The batch
    changes scores by rounding only. The model is loaded on first use.

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub; a name without an owner may belong to cross-encoder/.
        max_length: Maximum tokens of query and document together. None: the model's.
        score: "logit", or "sigmoid", from 0 to 1. With two labels the logit is the second's minus the first's.

    Raises:
        InputError: On use: the model is missing, or is not a cross-encoder with one or two labels.
    """

    kind = "cross-encoder"
    owner = "cross-encoder"

    max_length: int | None = field(default=None, metadata={"least": 1})
    score: str = field(default="logit", metadata={"choices": SCORES})

    def scores(self, pairs: Sequence[tuple[str, str]], progress: ProgressCallback = silent) -> NDArray[np.float32]:
        logits = super().scores(pairs, progress)
        return sigmoid(logits) if self.score == "sigmoid" else logits

    def check_needs(self) -> None:
        super().check_needs()
        if not isinstance(self.name_or_path, Start):
            _check_architecture(self.folder)

    def _load(self, folder: Path, device: str) -> PlainCrossEncoder | CrossEncoderModel:
        _check_architecture(folder)
        plain = PlainCrossEncoder.of(folder, self.max_length, self.precision, device)
        return plain or CrossEncoderModel(folder, self.max_length, self.precision, device)

    def _load_parameters(self) -> tuple[Any, ...]:
        return (self.max_length,)


class PlainCrossEncoder:
    """A cross-encoder based on BERT or RoBERTa, run from its files, with the same scores as in sentence-transformers."""

    def __init__(self, parts: Plain, network: Any, precision: str, device: str) -> None:
        self._tokens, self._padding = parts.tokens, parts.shape.pad_token_id
        sample = self.inputs(SAMPLE)
        self.prepared: Prepared = prepare_module(
            network, lambda module: self.logits(module, sample), precision=precision, device=device
        )

    @classmethod
    def of(cls, folder: Path, max_length: int | None, precision: str, device: str) -> PlainCrossEncoder | None:
        """Load the model of a folder; None if it needs features that are not implemented here."""
        from ..models.bert import try_plain

        parts = try_plain(lambda: _parts(folder, max_length), folder)
        return None if parts is None else cls(*parts, precision, device)

    def inputs(self, pairs: Sequence[tuple[str, str]]) -> list[TokenIds]:
        return self._tokens.encoded(pairs)

    def lengths(self, inputs: Sequence[TokenIds]) -> list[int]:
        return [len(pair.ids) for pair in inputs]

    def logits(self, module: Any, inputs: Sequence[TokenIds]) -> Any:
        ids, mask, types = batch(inputs, self._padding, next(module.parameters()).device)
        with library("torch", "a cross-encoder").inference_mode():
            logits = module(ids, mask, types).float()
            return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0]


class CrossEncoderModel:
    """A cross-encoder run by the code of sentence-transformers; supports more models than `PlainCrossEncoder`."""

    def __init__(self, folder: Path, max_length: int | None, precision: str, device: str) -> None:
        model = _load_model(folder, max_length)
        self.tokenizer = model.tokenizer
        self.prepared: Prepared = prepare_module(
            model, lambda module: self.logits(module, SAMPLE), precision=precision, device=device
        )

    def inputs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return list(pairs)

    def lengths(self, inputs: Sequence[tuple[str, str]]) -> list[int]:
        queries, documents = map(list, zip(*inputs, strict=True))
        encoded = self.tokenizer(queries, documents, truncation="longest_first", return_token_type_ids=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def logits(self, module: Any, inputs: Sequence[tuple[str, str]]) -> Any:
        return logits_of(module, list(inputs))


def logits_of(model: Any, pairs: list[tuple[str, str]]) -> Any:
    """Scores of a batch of pairs by a model of sentence-transformers, as a float32 tensor."""
    identity = library("torch", "a cross-encoder").nn.Identity()
    logits = model.predict(
        pairs, batch_size=len(pairs), activation_fn=identity, show_progress_bar=False, convert_to_tensor=True
    ).float()
    return logits[:, 1] - logits[:, 0] if logits.ndim == 2 else logits


def _parts(folder: Path, max_length: int | None) -> tuple[Plain, Any] | None:
    """Read the transformer and the network of a model from its folder; None if they are not supported."""
    from ..models.bert import classifier, plain

    settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
    modules: list[Any] = read_json(folder / "modules.json", [{"path": "", "type": f"{PACKAGE}.models.Transformer"}])
    single = len(modules) == 1 and modules[0]["path"] == "" and modules[0]["type"].startswith(f"{PACKAGE}.")
    supported = settings.keys() <= SUPPORTED_SETTINGS and not settings.get("default_prompt_name")
    if not (single and supported and _architecture(folder).endswith("ForSequenceClassification")):
        return None
    parts = plain(folder, "sequence-classification", max_length)
    return None if parts is None else (parts, classifier(parts.weights, parts.shape, _labels(parts.config)))


def _load_model(folder: Path, max_length: int | None) -> Any:
    """Load a model in float32; raise ParameterError if `max_length` exceeds its positions."""
    torch = library("torch", "a cross-encoder")
    sentence_transformers = library("sentence_transformers", "a cross-encoder")
    with model_errors(f"{folder} cannot be loaded as a cross-encoder"), quiet():
        # The activation is set here, since the configuration may name any function of torch.
        model = sentence_transformers.CrossEncoder(
            str(folder), device="cpu", max_length=max_length, activation_fn=torch.nn.Identity(), **NO_CODE
        )
    positions = getattr(model.model.config, "max_position_embeddings", None)
    if max_length is not None and positions and max_length > positions:
        raise ParameterError(f"max_length is {max_length}, but {folder.name} reads at most {positions} tokens")
    return model.float()


def is_headless(folder: Path) -> bool:
    """Whether a model is an encoder without a layer for scores, which would be random."""
    return _architecture(folder).endswith(("Model", "ForMaskedLM", "ForPreTraining"))


def _architecture(folder: Path) -> str:
    return str((read_json(folder / "config.json", {}).get("architectures") or [""])[0])


def _labels(config: Mapping[str, Any]) -> int:
    return len(config.get("id2label") or ()) or int(config.get("num_labels", 2))


def _check_architecture(folder: Path) -> None:
    """Raise InputError for a model without a layer for scores, or with more than two labels."""
    if is_headless(folder):
        raise InputError(
            f"{folder} is no cross-encoder: its architecture is {_architecture(folder)}, which has no layer for scores; "
            "take a model for sequence classification, or train one from it: fontes train cross-encoder"
        )
    if (labels := _labels(read_json(folder / "config.json", {}))) > 2:
        raise InputError(f"{folder} has {labels} labels; a reranker has one, or two of which the second is 'relevant'")
