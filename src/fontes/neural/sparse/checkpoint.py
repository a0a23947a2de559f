"""Checkpoints of learned sparse models: folders of sentence-transformers' SparseEncoder, and plain masked language models.

A model without modules.json is pooled as SPLADE v2 is, by the greatest log(1 + relu(logit)); sentence-transformers does so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...storage.artifact import is_plain
from ..encoders.sentence import DOCUMENT, QUERY
from ..models.hub import read_json

POOLINGS = ("max", "sum")
LOGARITHMS = {"relu": 1, "log1p_relu": 2}  # by the name of the activation how often log(1 + x) is taken


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk, before its weights are loaded.

    Args:
        transformer: The folder of the masked language model.
        pooling: "max" or "sum" over the positions.
        logarithms: How often log(1 + x) is taken of relu(logit).
        max_length: Tokens that are read of a text; None where the checkpoint does not say.
        terms: How many terms of a vector are kept; None for all.
        query_prompt: Text before each query.
        document_prompt: Text before each document.
        static: The folder of the weights that queries get without a transformer; None where they have none.
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
    def of(cls, folder: Path) -> Checkpoint:
        """What the files of a folder say.

        Raises:
            InputError: For files that cannot be read, and for modules that make no SPLADE model.
        """
        try:
            return cls._of(folder)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{folder}: its modules.json, or a configuration that it names, is not as SparseEncoder writes it"
            ) from error

    @classmethod
    def _of(cls, folder: Path) -> Checkpoint:
        if not (folder / "modules.json").is_file():
            return cls(folder, max_length=_max_length(folder))
        listed = read_json(folder / "modules.json")
        modules = [(_kind(module["type"]), folder / _inside(folder, module["path"])) for module in listed]
        static = None
        if [kind for kind, _ in modules] == ["Router"]:
            modules, static = _routes(modules[0][1])
        kinds = [kind for kind, _ in modules]
        if len(kinds) != 2 or not kinds[0].endswith("Transformer") or kinds[1] != "SpladePooling":
            others = ", ".join(kinds) or "none"
            raise InputError(f"{folder} is no SPLADE model: its modules are {others}, not a transformer and SpladePooling")
        (_, transformer), (_, pooling) = modules
        how = read_json(pooling / "config.json")
        strategy, activation = how.get("pooling_strategy", "max"), how.get("activation_function", "relu")
        if strategy not in POOLINGS or activation not in LOGARITHMS:
            raise InputError(f"{pooling / 'config.json'}: SPLADE has no pooling '{strategy}' of '{activation}'")
        settings = read_json(folder / "config_sentence_transformers.json", {})
        return cls(
            transformer,
            strategy,
            LOGARITHMS[activation],
            _max_length(transformer),
            settings.get("max_active_dims"),
            _prompt(settings, QUERY),
            _prompt(settings, DOCUMENT),
            static,
        )


def _routes(folder: Path) -> tuple[list[tuple[str, Path]], Path | None]:
    """The modules for documents of a router, and the folder of its static weights for queries.

    Raises:
        InputError: Queries go another way than through static weights.
    """
    router = read_json(folder / "router_config.json")
    documents, queries = (
        [(_kind(router["types"][module]), folder / _inside(folder, module)) for module in router["structure"].get(name, ())]
        for name in ("document", "query")
    )
    kinds = [kind for kind, _ in queries]
    if kinds != ["SparseStaticEmbedding"]:
        others = ", ".join(kinds) or "nothing"
        raise InputError(f"{folder} sends queries through {others}; Fontes runs routers to SparseStaticEmbedding alone")
    return documents, queries[0][1]


def _prompt(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """The prompt under the first of `names` that there is; the default one where there is none."""
    prompts = settings.get("prompts") or {}
    name = next((name for name in names if name in prompts), settings.get("default_prompt_name"))
    return prompts.get(name) or ""


def _max_length(transformer: Path) -> int | None:
    length: int | None = read_json(transformer / "sentence_bert_config.json", {}).get("max_seq_length")
    return length


def _kind(type_name: str) -> str:
    return type_name.rpartition(".")[2]


def _inside(folder: Path, path: str) -> str:
    if path and not is_plain(path):
        raise InputError(f"{folder} names a module outside of the model's folder: '{path}'")
    return path
