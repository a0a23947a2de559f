"""Stages of experiments that search with a model: the documents' vectors are made when the index has none yet."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core import ParameterError, Run, Stage, Topics

if TYPE_CHECKING:
    from ..index import Index

Model = str | Mapping[str, Any]


def dense(
    index: Index,
    encoder: str | dict[str, Any],
    search: str = "flat",
    k: int = 1000,
    effort: int | None = None,
    dtype: str = "float32",
    threads: int | None = None,
) -> Stage[Topics, Run]:
    """`index.dense` with vectors by `encoder`: a model's name or folder, or its parameters in a table.

    A table with `pooling` or `attention` makes a `TransformerEncoder`, any other a `SentenceEncoder`.
    """
    from ..neural import SentenceEncoder, TransformerEncoder

    pooled = isinstance(encoder, Mapping) and ("pooling" in encoder or "attention" in encoder)
    made = _model(TransformerEncoder if pooled else SentenceEncoder, encoder)
    index.encode(made, dtype=dtype)
    return index.dense(made, algorithm=search, k=k, effort=effort, dtype=dtype, threads=threads)


def late(
    index: Index,
    colbert: str | dict[str, Any],
    nbits: int = 2,
    search: str = "centroids",
    k: int = 1000,
    nprobe: int | None = None,
    threshold: float | None = None,
    candidates: int | None = None,
) -> Stage[Topics, Run]:
    """`index.late` with token vectors by `colbert`: a checkpoint's name or folder, or its parameters in a table."""
    from ..neural import ColBERT, encode_late

    made = _model(ColBERT, colbert)
    encode_late(index, made, nbits=nbits)
    return index.late(made, algorithm=search, k=k, nprobe=nprobe, threshold=threshold, candidates=candidates, nbits=nbits)


def late_reranker(colbert: str | dict[str, Any]) -> Stage[Run, Run]:
    """`LateReranker`, which encodes the documents of the run: vectors that the index has are not used."""
    from ..neural import ColBERT, LateReranker

    return LateReranker(_model(ColBERT, colbert), nbits=0)


def causal_evidence(
    encoder: str | dict[str, Any] | None = None,
    weight: float = 0.5,
    pool: str = "max",
    near: float | None = None,
    depth: int | None = None,
    head: str | None = None,
    sentences: str = "rules",
) -> Stage[Run, Run]:
    """`CausalEvidence` over `encoder`: a model's name or folder, or its parameters in a table; without one by cues alone."""
    from ..causal import CausalEvidence
    from ..neural import SentenceEncoder

    made = None if encoder is None else _model(SentenceEncoder, encoder)
    return CausalEvidence(made, weight, pool, near, depth, head, sentences)


def _model(kind: type[Any], given: Model) -> Any:
    """A model in float32 unless told otherwise: what is quickest differs from machine to machine, and so do its scores."""
    parameters = {"name_or_path": given} if isinstance(given, str) else dict(given)
    known = list(inspect.signature(kind).parameters)
    for key in parameters:
        if key not in known:
            raise ParameterError(f"{kind.__name__} has no parameter '{key}'; it has {', '.join(known)}")
    if "name_or_path" not in parameters:
        raise ParameterError("a model needs 'name_or_path', its name or folder")
    return kind(**{"precision": "float32", **parameters})
