"""Cross-encoders: a transformer reads query and document together and returns one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...core.arrays import Float32s, Indices
from ...core.errors import InputError, ParameterError
from ...rerank.reranker import Reranker
from ..models.base import Loaded, Pretrained
from ..models.compute import Prepared, prepare_module
from ..models.hub import NO_CODE, library, model_errors, quiet, read_json
from ..models.modules import PACKAGE, ModelSettings, Module, check_modules, modules_in
from ..models.tokens import TokenIds, batch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..encoders.pooling import Step
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

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        model: Any = self._model
        inputs = self._inputs(model, pairs)

        def work(batch: Indices) -> Float32s:
            logits: Float32s = model.logits(model.prepared.module, [inputs[i] for i in batch]).cpu().numpy()
            return logits

        return self._in_batches(model.lengths(inputs), work)

    def _inputs(self, model: Any, pairs: Sequence[tuple[str, str]]) -> Sequence[object]:
        """The tokenized pairs; a subclass may pass its parameters to the model."""
        inputs: Sequence[object] = model.inputs(pairs)
        return inputs


def sigmoid(logits: Float32s) -> Float32s:
    """1 / (1 + exp(-x)), computed in float64."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


SCORES = ("logit", "sigmoid", "model")
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
# Settings of a model of sentence-transformers with which `PlainCrossEncoder` gives the same scores.
SUPPORTED_SETTINGS = {"__version__", "activation_fn", "prompts", "default_prompt_name", "model_type"}
CLASS = "CrossEncoder"  # of sentence-transformers
SCORING = "ForSequenceClassification"  # end of the name of an architecture with a layer for scores
OLD_ACTIVATION = "sbert_ce_default_activation_function"  # in config.json, before sentence-transformers 4


class Start(str):
    """Name of a model to train from, which may have no layer for scores."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Start({super().__repr__()})"


@dataclass(frozen=True)
class CrossEncoder(PretrainedReranker["PlainCrossEncoder | CrossEncoderModel"], name="cross_encoder"):
    """Reranks with a cross-encoder (Nogueira and Cho, 2019), such as those of sentence-transformers.

    The model is one for sequence classification, or has modules that give a score: pooling and dense layers behind a
    transformer, or a token's logit of a decoder. "logit" and "sigmoid" give the same order, except that sigmoids of logits
    above 17.4 are all 1 in float32. The batch changes scores by rounding only. The model is loaded on first use.

    Args:
        name_or_path: A folder, or a name on the Hugging Face hub; a name without an owner may belong to cross-encoder/.
        max_length: Maximum tokens of query and document together. None: the model's.
        score: "logit"; "sigmoid", from 0 to 1; or "model", what the model's own activation makes of the logit, as in
            sentence-transformers. With two labels the logit is the second's minus the first's.
        prompt: Text before each query; for a decoder with a chat template, its instruction. None: the prompt
            `prompt_name`, or the model's default prompt, if any.
        prompt_name: Name of the model's prompt.

    Raises:
        InputError: On use: the model is missing, or is not a cross-encoder with one or two labels.
        ParameterError: On use: the model has no prompt of this name.
    """

    kind = "cross-encoder"
    owner = "cross-encoder"

    max_length: int | None = field(default=None, metadata={"least": 1})
    score: str = field(default="logit", metadata={"choices": SCORES})
    prompt: str | None = field(default=None, kw_only=True)
    prompt_name: str | None = field(default=None, kw_only=True)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        logits = super().scores(pairs)
        if self.score == "model":
            return _activated(logits, self.folder)
        return sigmoid(logits) if self.score == "sigmoid" else logits

    def check_needs(self) -> None:
        super().check_needs()
        if not isinstance(self.name_or_path, Start):
            _check_architecture(self.folder)

    def _inputs(self, model: Any, pairs: Sequence[tuple[str, str]]) -> Sequence[object]:
        settings: ModelSettings = model.settings
        if self.prompt is not None:
            prompt = self.prompt
        else:
            prompt = (
                settings.default_prompt if self.prompt_name is None else settings.prompt(self.prompt_name, self.name_or_path)
            )
        inputs: Sequence[object] = model.inputs(pairs, prompt)
        return inputs

    def _settings(self) -> dict[str, object]:
        """Parameters of the fingerprint: those of prompts only if they are set, as earlier releases had none."""
        settings = super()._settings()
        return {name: value for name, value in settings.items() if value is not None or not name.startswith("prompt")}

    def _load(self, folder: Path, device: str) -> PlainCrossEncoder | CrossEncoderModel:
        _check_architecture(folder)
        plain = PlainCrossEncoder.of(folder, self.max_length, self.precision, device)
        return plain or CrossEncoderModel(folder, self.max_length, self.precision, device)

    def _load_parameters(self) -> tuple[object, ...]:
        return (self.max_length,)


class PlainCrossEncoder:
    """A cross-encoder whose network is our own, run from its files, with the same scores as in sentence-transformers.

    Args:
        parts: Its transformer.
        network: The network, which gives logits; with `steps`, token vectors.
        steps: The modules behind the transformer, which make scores of token vectors; in float32.
        settings: Settings of the model.
        precision: Precision of the network.
        device: Device of the network.
    """

    def __init__(
        self, parts: Plain, network: nn.Module, steps: tuple[Step, ...], settings: ModelSettings, precision: str, device: str
    ) -> None:
        self._tokens, self._padding, self._steps = parts.tokens, parts.shape.pad_token_id, steps
        self.settings = settings
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

    def inputs(self, pairs: Sequence[tuple[str, str]], prompt: str = "") -> list[TokenIds]:
        return self._tokens.encoded([(prompt + query, document) for query, document in pairs])

    def lengths(self, inputs: Sequence[TokenIds]) -> list[int]:
        return [len(pair.ids) for pair in inputs]

    def logits(self, module: nn.Module, inputs: Sequence[TokenIds]) -> Tensor:
        ids, mask, types = batch(inputs, self._padding, next(module.parameters()).device)
        with library("torch", "a cross-encoder").inference_mode():
            logits: Tensor = module(ids, mask, types).float()
            if self._steps:
                features = {"token_embeddings": logits, "attention_mask": mask}
                for step in self._steps:
                    step(features)
                logits = features["scores"]
            return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0]


class CrossEncoderModel:
    """A cross-encoder run by the code of sentence-transformers; supports more models than `PlainCrossEncoder`."""

    def __init__(self, folder: Path, max_length: int | None, precision: str, device: str) -> None:
        model = _load_model(folder, max_length)
        self.tokenizer, self.settings = model.tokenizer, ModelSettings.of(folder)
        self.prepared: Prepared = prepare_module(
            model, lambda module: logits_of(module, SAMPLE), precision=precision, device=device
        )

    def inputs(self, pairs: Sequence[tuple[str, str]], prompt: str = "") -> list[tuple[str, str, str]]:
        """The pairs, each with the prompt."""
        return [(query, document, prompt) for query, document in pairs]

    def lengths(self, inputs: Sequence[tuple[str, str, str]]) -> list[int]:
        queries, documents, prompts = map(list, zip(*inputs, strict=True))
        prompted = [prompt + query for prompt, query in zip(prompts, queries, strict=True)]
        encoded = self.tokenizer(prompted, documents, truncation="longest_first", return_token_type_ids=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def logits(self, module: nn.Module, inputs: Sequence[tuple[str, str, str]]) -> Tensor:
        return logits_of(module, [(query, document) for query, document, _ in inputs], inputs[0][2])


def logits_of(model: Any, pairs: list[tuple[str, str]], prompt: str = "") -> Tensor:
    """Scores of a batch of pairs by a model of sentence-transformers, as a float32 tensor."""
    identity = library("torch", "a cross-encoder").nn.Identity()
    logits: Tensor = model.predict(
        pairs, batch_size=len(pairs), activation_fn=identity, show_progress_bar=False, convert_to_tensor=True, prompt=prompt
    ).float()
    return logits[:, 1] - logits[:, 0] if logits.ndim == 2 else logits


def _parts(folder: Path, max_length: int | None) -> tuple[Plain, nn.Module, tuple[Step, ...], ModelSettings] | None:
    """Read the transformer, the network, the modules behind it and the settings of a model; None if not supported."""
    from ..encoders.pooling import steps
    from ..models.bert import classifier, encoder, plain

    settings = ModelSettings.of(folder)
    if settings.raw.keys() - SUPPORTED_SETTINGS:
        return None
    first, *following = modules_in(folder) if settings.kind else [Module(f"{PACKAGE}.models.Transformer", folder)]
    if first.kind != "Transformer" or not first.type.startswith(f"{PACKAGE}."):
        return None
    if not following:
        parts = plain(first.folder, "sequence-classification", max_length)
        if parts is None or not _architecture(first.folder).endswith(SCORING):
            return None
        return parts, classifier(parts.weights, parts.shape, _labels(parts.config)), (), settings
    parts, behind = plain(first.folder, "feature-extraction", max_length), steps(following)
    return None if parts is None or not behind else (parts, encoder(parts.weights, parts.shape), behind, settings)


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
    """Whether a model has no trained layer for scores: it is a plain encoder, or none of its modules gives scores."""
    if modules := _modular(folder):
        return not any(map(_gives_scores, modules))
    return _architecture(folder).endswith(("Model", "ForMaskedLM", "ForPreTraining"))


def _modular(folder: Path) -> list[Module]:
    """Modules of a cross-encoder that is a transformer with modules behind it; empty for any other model."""
    modules = modules_in(folder) if ModelSettings.of(folder).kind == CLASS else []
    return modules if len(modules) > 1 else []


def _gives_scores(module: Module) -> bool:
    return module.kind == "LogitScore" or module.settings.get("module_output_name") == "scores"


def _architecture(folder: Path) -> str:
    return str((read_json(folder / "config.json", {}).get("architectures") or [""])[0])


def _labels(config: Mapping[str, Any]) -> int:
    return len(config.get("id2label") or ()) or int(config.get("num_labels", 2))


def _check_architecture(folder: Path) -> None:
    """Raise InputError for a model without a layer for scores, with more than two labels, or with code of its own."""
    check_modules(folder, "cross_encoder")
    modules = _modular(folder)
    if is_headless(folder):
        kinds = " + ".join(module.kind for module in modules)
        lacks = (
            f"none of its modules ({kinds}) gives" if kinds else f"its architecture is {_architecture(folder)}, which has no"
        )
        raise InputError(
            f"{folder} is no cross-encoder: {lacks} {'scores' if kinds else 'layer for scores'}; "
            "take a model for sequence classification, or train one from it: fontes train cross-encoder"
        )
    heads = [int(module.settings.get("out_features", 1)) for module in modules if _gives_scores(module)]
    if (labels := heads[-1] if heads else _labels(read_json(folder / "config.json", {}))) > 2:
        raise InputError(f"{folder} has {labels} labels; a reranker has one, or two of which the second is 'relevant'")


def _activated(logits: Float32s, folder: Path) -> Float32s:
    """Scores by the model's own activation, as sentence-transformers applies it to one label.

    Raises InputError for an activation that is not supported.
    """
    from ..encoders.pooling import activation

    config = read_json(folder / "config.json", {})
    older = (config.get("sentence_transformers") or {}).get("activation_fn") or config.get(OLD_ACTIVATION)
    name = ModelSettings.of(folder).raw.get("activation_fn") or older or "torch.nn.Sigmoid"
    if (function := activation(name)) is None:
        raise InputError(f"{folder} names the activation {name}, which Fontes does not run; score='logit' needs none")
    if not _modular(folder) and _labels(config) == 2 and name.rpartition(".")[2] != "Identity":
        raise InputError(f"{folder} has two labels, to which its activation {name} does not apply; take score='sigmoid'")
    torch = library("torch", "a cross-encoder")
    with torch.inference_mode():
        activated: Float32s = function(torch.from_numpy(logits)).numpy()
    return activated
