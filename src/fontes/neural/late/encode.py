"""Making the token vectors of an index: encoded, compressed, measured, and put in their place in one step."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FontesError, IndexFormatError, ParameterError
from ...core.progress import Report, silent
from ...core.values import Topics
from ...index.embeddings import Embeddings
from ...index.encoding import Job, VectorsOfDocuments, store_vectors
from ...storage.arrays import ByteWriter, write_array
from ...storage.artifact import commit, drafting, seal
from .colbert import ColBERT
from .residual import NBITS, SAMPLE, SEED, Codec, centroids_for, check_nbits, kmeans, nearest
from .store import (
    KIND,
    TOGETHER,
    TokenVectors,
    WholeVectors,
    best,
    effort,
    folder_name,
    forget,
    scores_of,
    whole_vectors,
)

if TYPE_CHECKING:
    from ...index import Index

ROWS = 1 << 16  # vectors that are compressed at a time
QUERIES = 32  # that recall is measured with, unless topics are given
DEPTHS = (10, 100, 1000)  # at which recall is measured


def encode_late(
    index: Index,
    colbert: ColBERT,
    *,
    nbits: int = 2,
    centroids: int | None = None,
    topics: object = None,
    overwrite: bool = False,
    progress: Report = silent,
) -> dict[str, Any]:
    """Stores the documents' token vectors with the index, for `index.late(colbert)`, and measures what the search finds.

    An encoding that was interrupted goes on where it was. While it lasts the vectors are on disk whole, in float16 (float32
    for nbits=32).

    Args:
        index: The index.
        colbert: The model.
        nbits: Bits a dimension of the residuals: 1, 2 or 4; or 16 or 32, which store the vectors whole, as float16 or float32.
        centroids: How many; default: four times the square root of the number of tokens, as a power of two.
        topics: Queries to measure recall with; default: the first sentences of 32 documents.
        overwrite: Make it anew where it is there already; else there is nothing to do.
        progress: Is called as documents are encoded.

    Returns:
        What there is then: see `TokenVectors.info`; `recall` says for the best 10, 100 and 1,000 documents which share of those
        of the exhaustive search over whole vectors `index.late(colbert)` finds.

    Raises:
        FontesError: Another process encodes with the same model, or the disk is full.
    """
    check_nbits(nbits)
    if centroids is not None and centroids < 1:
        raise ParameterError(f"centroids must be 1 or more, not {centroids}")
    segment, name = index.segment_folder, folder_name(colbert.fingerprint, nbits)
    with contextlib.ExitStack() as stack:
        try:
            draft = stack.enter_context(drafting(segment / name, _busy(index)))
        except OSError as error:
            raise FontesError(f"{index.path}: token vectors cannot be written: {error.strerror}") from error
        if (folder := segment / name).is_dir() and not overwrite:
            return TokenVectors(folder).info()
        whole = _encoded(index, colbert, nbits, overwrite, progress)
        try:
            stored = _compressed(index, colbert, draft, whole, nbits, centroids, topics, overwrite)
        except OSError as error:
            raise FontesError(f"{index.path}: token vectors cannot be written: {error.strerror or error}") from error
        if nbits in NBITS and not (segment / folder_name(colbert.fingerprint, 16)).is_dir():
            shutil.rmtree(whole.folder, ignore_errors=True)
        forget(index)
        return stored.info()


def _busy(index: Index) -> FontesError:
    return FontesError(f"{index.path} is being encoded by another process with the same model; wait for it")


def _encoded(index: Index, colbert: ColBERT, nbits: int, overwrite: bool, progress: Report) -> Embeddings:
    """The documents' token vectors, whole; those that are there already serve."""
    if nbits != 32 and not overwrite:
        with contextlib.suppress(IndexFormatError):
            if (whole := whole_vectors(index.segment_folder, colbert.fingerprint, 16)) is not None:
                return whole
    ids = index.ids.tolist()

    def vectors(first: int, last: int, report: Report) -> VectorsOfDocuments:
        return colbert.encode_documents(index.docs(ids[first:last]), report)

    dtype = "float32" if nbits == 32 else "float16"
    job = Job(colbert.fingerprint, repr(colbert), None, colbert.width, dtype, ids, vectors)
    return store_vectors(index.segment_folder, job, overwrite, progress)


def _compressed(
    index: Index,
    colbert: ColBERT,
    draft: Path,
    whole: Embeddings,
    nbits: int,
    centroids: int | None,
    topics: object,
    overwrite: bool,
) -> TokenVectors:
    """Makes the files of token vectors in a draft that is put in its place in one step."""
    segment, name = index.segment_folder, folder_name(colbert.fingerprint, nbits)
    for left in draft.iterdir():  # by a process that was killed
        left.unlink()
    bounds = whole.bounds if len(whole.bounds) else np.arange(whole.documents + 1)
    count = centroids or centroids_for(len(whole))
    sample = _sample(whole, SAMPLE * count)
    twin = None if overwrite else _twin(segment, colbert.fingerprint, min(count, len(sample)))
    chosen = kmeans(sample, count) if twin is None else twin.codec.centroids
    codec = Codec.fitted(chosen, sample, nbits if nbits in NBITS else 0)
    codec.save(draft)
    write_array(draft, "bounds", bounds)
    codes = _write_codes(draft, codec, whole, nbits, twin)
    _write_lists(draft, codes, bounds, len(codec.centroids))
    settings = {
        "colbert": repr(colbert),
        "fingerprint": colbert.fingerprint,
        "nbits": nbits,
        "dim": whole.dim,
        "documents": whole.documents,
        "tokens": len(whole),
        "centroids": len(codec.centroids),
    }
    seal(draft, KIND, {**settings, "recall": {}})
    recall = _recall(index, colbert, TokenVectors(draft), whole, topics)
    seal(draft, KIND, {**settings, "recall": recall})
    folder = segment / name
    commit(draft, folder)
    return TokenVectors(folder)


def _sample(whole: Embeddings, size: int) -> NDArray[np.float32]:
    """Vectors drawn with a fixed seed, in their order; any one where there are none."""
    if not len(whole):
        return np.eye(1, whole.dim, dtype=np.float32)
    rows = np.sort(np.random.default_rng(SEED).permutation(len(whole))[:size])
    return whole.decoded(rows)


def _twin(segment: Path, fingerprint: str, count: int) -> TokenVectors | None:
    """Those of the same model in other bits with as many centroids, which need not be found again."""
    for folder in sorted(segment.glob(f"{folder_name(fingerprint, 0)[:-1]}*")):
        with contextlib.suppress(IndexFormatError):
            if len((vectors := TokenVectors(folder)).codec.centroids) == count:
                return vectors
    return None


def _write_codes(draft: Path, codec: Codec, whole: Embeddings, nbits: int, twin: TokenVectors | None) -> NDArray[np.int32]:
    """Writes codes, and residuals where vectors are not kept whole."""
    codes = np.empty(len(whole), dtype=np.int32) if twin is None else twin.codes
    residuals = ByteWriter(draft, "residuals") if nbits in NBITS else None
    for first in range(0, len(whole), ROWS):
        rows = slice(first, first + ROWS)
        vectors = whole.decoded(rows)
        if twin is None:
            codes[rows] = nearest(codec.centroids, vectors)
        if residuals is not None:
            residuals.write(codec.compress(vectors, codes[rows]).reshape(-1))
    if residuals is not None:
        residuals.close()
    write_array(draft, "codes", codes)
    return codes


def _write_lists(draft: Path, codes: NDArray[np.int32], bounds: NDArray[np.int64], centroids: int) -> None:
    """Writes for each centroid the documents with a token there, in ascending order."""
    documents = len(bounds) - 1
    docs = np.repeat(np.arange(documents, dtype=np.int64), np.diff(bounds))
    pairs = np.unique(codes.astype(np.int64) * max(1, documents) + docs)
    list_bounds = np.searchsorted(pairs, np.arange(centroids + 1, dtype=np.int64) * max(1, documents))
    write_array(draft, "lists", (pairs % max(1, documents)).astype(np.int32))
    write_array(draft, "lists.bounds", list_bounds.astype(np.int64))


def _recall(index: Index, colbert: ColBERT, vectors: TokenVectors, whole: Embeddings, topics: object) -> dict[str, Any]:
    """The share of the exhaustive search's best k that the search finds, for each k that the collection is larger than."""
    texts = [topic.text for topic in Topics.of(topics).values()] if topics is not None else _first_sentences(index)
    depths = [k for k in DEPTHS if k < vectors.documents]
    if not texts or not depths:
        return {}
    queries = colbert.encode_queries(texts)
    docs, ranks, matches = np.arange(vectors.documents), index.ids.rank, dict.fromkeys(depths, 0)
    for first in range(0, len(queries), TOGETHER):
        part = queries[first : first + TOGETHER]
        for query, scores in zip(part, scores_of(WholeVectors(whole), part, docs, os.cpu_count() or 1), strict=True):
            expected = best(docs, scores, ranks, depths[-1])
            for k in depths:
                near = vectors.candidates(query, *effort(k))
                hits = near[best(near, vectors.scores(query, near, os.cpu_count() or 1), ranks, k)]
                matches[k] += len(np.intersect1d(hits, expected[:k]))
    shares = {str(k): round(matches[k] / (k * len(queries)), 4) for k in depths}
    source = "topics" if topics is not None else "first sentences"
    return {**shares, "queries": len(queries), "source": source}


def _first_sentences(index: Index) -> list[str]:
    """The first sentences of documents drawn with a fixed seed, without their titles."""
    ids, order = index.ids, np.random.default_rng(SEED).permutation(len(index))
    texts: list[str] = []
    for doc in index.docs(ids.take(order[: 4 * QUERIES])):
        sentence = doc.text.strip().partition(". ")[0]
        if sentence and len(texts) < QUERIES:
            texts.append(sentence)
    return texts
