"""Learned sparse models: checkpoints of SparseEncoder and masked language models, and the network that weights tokens.

A model without modules.json is pooled as SPLADE v2, by the greatest log(1 + relu(logit)), as in sentence-transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Records
from ...core.errors import InputError
from ..encoders.architectures import NO_LIMIT, position_limit
from ..encoders.base import sample_ids
from ..models.base import token_ids
from ..models.compute import padded, prepare_module
from ..models.hub import NO_CODE, library, model_errors, read_json, tensors, tokenizer_in, without_warnings
from ..models.modules import PROMPTS, TASKS, Module, modules_for

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase

PURPOSE = "a SPLADE model"  # in errors about missing libraries
MAX_LOGITS = 1 << 23  # logits of a masked language model in memory at a time, if its head is a separate layer
TOLERANCE = 1e-3  # between logits computed in two ways
WEIGHT = np.dtype([("term", "<i4"), ("weight", "<f4")])
"""Token id in the model's vocabulary, and the token's weight."""


class SpladeModel:
    """A loaded checkpoint.

    Attributes:
        vocabulary: The tokens by id.
        limit: Number of the model's positions.
        length: Default maximum number of tokens of a text.
    """

    def __init__(self, name: str, checkpoint: SpladeCheckpoint, precision: str, device: str) -> None:
        self.checkpoint = checkpoint
        network, size, limit = _network(checkpoint, name)
        self.tokenizer = _tokenizer(checkpoint.transformer, name)
        self.vocabulary = _vocabulary(self.tokenizer, size)
        self.limit = limit or NO_LIMIT
        self.length = int(min(checkpoint.max_length or NO_LIMIT, self.tokenizer.model_max_length, self.limit))
        self.padding: int = self.tokenizer.pad_token_id or 0
        self.static = None if checkpoint.static is None else Static(checkpoint.static, name)
        sample = [ids.tolist() for ids in sample_ids(len(self.vocabulary), min(128, self.length), 2)]
        self.prepared = prepare_module(network, lambda model: self._pooled(model, sample), precision=precision, device=device)

    def ids(self, texts: Sequence[str], length: int) -> list[list[int]]:
        return token_ids(self.tokenizer, texts, length)

    def weights(self, ids: list[list[int]], terms: int | None) -> list[Records]:
        """Tokens of each text with weights above 0, dtype WEIGHT, by ascending id; at most `terms` per text."""
        torch = library("torch", PURPOSE)
        with torch.inference_mode():
            pooled = self._pooled(self.prepared.module, ids).cpu().numpy()
        return [_nonzero(row, terms) for row in pooled]

    def _pooled(self, network: nn.Module, ids: list[list[int]]) -> Tensor:
        tokens, mask = padded(ids, self.padding, next(network.parameters()).device)
        pooled: Tensor = network(tokens, mask)
        return pooled


class Static:
    """Weights of the tokens of queries without a transformer (a static embedding of sentence-transformers)."""

    def __init__(self, folder: Path, name: str) -> None:
        self._tokenizer = _tokenizer(folder, name)
        weight = tensors(folder, ("weight",), "the weights of queries")["weight"]
        self._weights: Float32s = weight.float().numpy()
        self._length = int(min(self._tokenizer.model_max_length, NO_LIMIT))

    def weights(self, text: str, terms: int | None) -> Records:
        """Tokens of the text with weights above 0, dtype WEIGHT, by ascending id; at most `terms`."""
        (ids,) = token_ids(self._tokenizer, [text], self._length, special=False)
        row = np.zeros_like(self._weights)
        row[ids] = self._weights[ids]
        return _nonzero(row, terms)


def _nonzero(row: Float32s, terms: int | None) -> Records:
    """The weights above 0 of a row, dtype WEIGHT, or the greatest `terms` of them; ties prefer lower token ids."""
    ids = np.flatnonzero(row > 0)
    if terms is not None and len(ids) > terms:
        ids = np.sort(ids[np.argsort(-row[ids], kind="stable")[:terms]])
    weights = np.empty(len(ids), WEIGHT)
    weights["term"], weights["weight"] = ids, row[ids]
    return weights


def _masked_lm(folder: Path, name: str) -> Any:
    """Load a masked language model by transformers, in float32."""
    transformers = library("transformers", PURPOSE)
    library("torch", PURPOSE)
    problem = f"{name} is not a masked language model, whose head SPLADE needs: "
    with model_errors(f"transformers cannot read the model {name}"):
        config = transformers.AutoConfig.from_pretrained(str(folder), **NO_CODE)
    if type(config) not in transformers.MODEL_FOR_MASKED_LM_MAPPING:
        raise InputError(f"{problem}its architecture is {(config.architectures or [config.model_type])[0]}")
    with model_errors(f"transformers cannot read the model {name}"), without_warnings():
        module, report = transformers.AutoModelForMaskedLM.from_pretrained(str(folder), output_loading_info=True, **NO_CODE)
    if absent := sorted(report["missing_keys"]):
        raise InputError(f"{problem}its weights have no {', '.join(absent[:3])}{', …' if len(absent) > 3 else ''}")
    return module.float().eval()


def _tokenizer(folder: Path, name: str) -> Any:
    return tokenizer_in(folder, f"transformers finds no tokenizer in the model {name}")


def _vocabulary(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """The tokens by id; an id without a token, as in padded vocabularies, has the token "[id]"."""
    tokens = [f"[{token_id}]" for token_id in range(size)]
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < size:
            tokens[token_id] = token
    return tokens


def _network(checkpoint: SpladeCheckpoint, name: str) -> tuple[nn.Module, int, int | None]:
    """Network from token ids and a mask, (texts, length), to weights, float32 (texts, vocabulary); vocabulary, and positions.

    The logits of a batch would take far more memory than all other values. The last layer of the head is therefore detached
    from the model, and its columns are computed in parts. A model without such a layer runs unchanged.
    """
    library("torch", PURPOSE)
    import torch

    from ..models.bert import try_plain
    from ..models.masked import masked_network

    pooling, logarithms = checkpoint.pooling, checkpoint.logarithms
    network = try_plain(lambda: masked_network(checkpoint.transformer), checkpoint.transformer)
    module: Any = network
    limit: int | None
    if network is not None:
        head, size, limit = network.head.last, network.shape.vocab_size, network.shape.longest
    else:
        module = _masked_lm(checkpoint.transformer, name)
        head, size, limit = _detached_head(module), int(module.config.vocab_size), position_limit(module.base_model)

    class TermNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = module, head

        def forward(self, tokens: Tensor, mask: Tensor) -> object:
            hidden = self.body(tokens, mask) if network else self.body(input_ids=tokens, attention_mask=mask).logits
            attended = mask.bool()
            if pooling == "max":
                hidden = torch.where(attended[:, :, None], hidden, hidden[:, :1])  # replace padding by the first position
            if self.head is None:
                return _pooled(hidden.permute(2, 0, 1), hidden.new_zeros(1, 1).float(), attended, pooling, logarithms).T
            texts, positions, _ = hidden.shape
            columns = hidden.reshape(texts * positions, -1).T.contiguous()
            step = max(64, MAX_LOGITS // (texts * positions))
            parts = []
            for start in range(0, len(self.head.weight), step):
                part = slice(start, start + step)
                logits = (self.head.weight[part] @ columns).view(-1, texts, positions)
                bias = logits.new_zeros(1, 1).float() if self.head.bias is None else self.head.bias[part, None].float()
                parts.append(_pooled(logits, bias, attended, pooling, logarithms))
            return torch.cat(parts).T

    return TermNetwork(), size, limit


def _detached_head(module: Any) -> Any:
    """Detach the last linear layer of a model, which then returns the layer's input; None if it has no such layer."""
    torch = library("torch", PURPOSE)
    head = module.get_output_embeddings()
    path = next((name for name, inner in module.named_modules() if inner is head), "") if head is not None else ""
    if not path or not isinstance(head, torch.nn.Linear):
        return None
    tokens = torch.arange(8)[None] % module.config.vocab_size
    parent, name = module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
    with torch.inference_mode():
        expected = module(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
        setattr(parent, name, torch.nn.Identity())
        hidden = module(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
        if hidden.shape[-1] == head.in_features and torch.allclose(head(hidden), expected, atol=TOLERANCE):
            return head
    setattr(parent, name, head)
    return None


def _pooled(logits: Tensor, bias: Tensor, attended: Tensor, pooling: str, logarithms: int) -> Tensor:
    """Weights, float32 (tokens, texts), from logits (tokens, texts, positions) and a bias (tokens, 1).

    With "max", the logarithms are applied after the maximum, which gives equal weights.
    """
    weights = logits.amax(dim=2).float() + bias if pooling == "max" else logits.float() + bias[..., None]
    weights = weights.relu_()
    for _ in range(logarithms):
        weights = weights.log1p_()
    return weights if pooling == "max" else (weights * attended).sum(dim=2)


POOLINGS = ("max", "sum")
LOGARITHMS = {"relu": 1, "log1p_relu": 2}  # how many times log(1 + x) is applied, by activation


@dataclass(frozen=True)
class SpladeCheckpoint:
    """A checkpoint on disk, before its weights are loaded.

    Args:
        transformer: Folder of the masked language model.
        pooling: "max" or "sum" over the positions.
        logarithms: How many times log(1 + x) is applied to relu(logit).
        max_length: Maximum number of tokens of a text; None if not configured.
        terms: Maximum number of terms of a vector; None for all.
        query_prompt: Text before each query.
        document_prompt: Text before each document.
        static: Folder of static query weights, if any.
    """

    transformer: Path
    pooling: str = "max"
    logarithms: int = 1
    max_length: int | None = None
    terms: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    static: Path | None = None

    @classmethod
    def of(cls, folder: Path) -> SpladeCheckpoint:
        """Read the configuration of a folder; raise InputError if it is not a SPLADE model."""
        try:
            return cls._of(folder)
        except (KeyError, TypeError, AttributeError) as error:
            problem = "its modules.json, or a configuration that it names, does not have SparseEncoder's form"
            raise InputError(f"{folder}: {problem}") from error

    @classmethod
    def _of(cls, folder: Path) -> SpladeCheckpoint:
        if not (folder / "modules.json").is_file():
            return cls(folder, max_length=_max_length(folder))
        queries, documents = (modules_for(folder, task) for task in TASKS)
        static = None if queries == documents else _static_of(folder, queries)
        kinds = [module.kind for module in documents]
        if len(kinds) != 2 or not kinds[0].endswith("Transformer") or kinds[1] != "SpladePooling":
            others = ", ".join(kinds) or "none"
            raise InputError(f"{folder} is no SPLADE model: its modules are {others}, not a transformer and SpladePooling")
        transformer, pooling = (module.folder for module in documents)
        config = read_json(pooling / "config.json")
        strategy, activation = config.get("pooling_strategy", "max"), config.get("activation_function", "relu")
        if strategy not in POOLINGS or activation not in LOGARITHMS:
            raise InputError(f"{pooling / 'config.json'}: SPLADE has no pooling '{strategy}' of '{activation}'")
        settings = read_json(folder / "config_sentence_transformers.json", {})
        return cls(
            transformer,
            strategy,
            LOGARITHMS[activation],
            _max_length(transformer),
            settings.get("max_active_dims"),
            _prompt(settings, PROMPTS["query"]),
            _prompt(settings, PROMPTS["document"]),
            static,
        )


def _static_of(folder: Path, queries: Sequence[Module]) -> Path:
    """Folder of the static weights of a router's route for queries; InputError without static weights."""
    if [module.kind for module in queries] != ["SparseStaticEmbedding"]:
        others = ", ".join(module.kind for module in queries)
        raise InputError(f"{folder} sends queries through {others}; only routers to SparseStaticEmbedding are supported")
    return queries[0].folder


def _prompt(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """The prompt under the first of `names` that exists, or the default prompt."""
    prompts = settings.get("prompts") or {}
    name = next((name for name in names if name in prompts), settings.get("default_prompt_name"))
    return prompts.get(name) or ""


def _max_length(transformer: Path) -> int | None:
    """Configured maximum number of tokens of a text, if any."""
    length: int | None = read_json(transformer / "sentence_bert_config.json", {}).get("max_seq_length")
    return length
