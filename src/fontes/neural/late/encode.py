"""Encoding of token vectors into an index: encode, compress, measure recall, and commit."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Int32s
from ...core.errors import FontesError, IndexFormatError, ParameterError
from ...core.part import fix_precision
from ...core.values import Topics
from ...core.work import ProgressCallback, work as working
from ...index.embeddings.encoding import SegmentEncodingJob, VectorEncoding, vector_encoding
from ...index.embeddings.journal import remote_encoder
from ...index.embeddings.store import check_segments_exist, encode_segment, with_progress
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings, SegmentEmbeddings
from ...storage.arrays import ByteWriter, write_array
from ...storage.artifact import commit, drafting, seal, settings
from ..stored import check_free, check_precision, in_precision, precision_of, settings_of
from .colbert import ColBERT
from .residual import DEFAULT_NBITS, NBITS, SAMPLE, SEED, Codec, centroids_for, check_nbits, kmeans, nearest
from .store import (
    CHUNK_VECTORS,
    KIND,
    QUERY_BATCH,
    TOKENS,
    WIDTHS,
    JoinedTokens,
    TokenVectors,
    WholeVectors,
    best,
    scores_of,
    search_settings,
    stored_tokens,
    whole_vectors,
    write_lists,
)

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings.journal import BlockSource
    from ...index.segment import Segment
    from ...index.state import State

QUERIES = 32  # queries for measuring recall, unless topics are given
DEPTHS = (10, 100, 1000)  # at which recall is measured


def encode_late(
    index: Index,
    colbert: ColBERT,
    *,
    nbits: int | None = None,
    centroids: int | None = None,
    topics: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    ray: bool | str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Store the documents' token vectors with the index, for `index.late(colbert)`, and measure the recall of its search.

    Only documents without token vectors are encoded. They get the centroids and buckets of the earlier documents, which fit
    worse as the collection changes; `overwrite` fits them again. An interrupted encoding resumes. Until the end, the whole
    vectors are on disk in float16 (float32 for nbits=32).

    Args:
        index: The index.
        colbert: The model. The precision "auto" becomes the precision of the vectors already stored, if any.
        nbits: Bits per dimension of the residuals: 1, 2 or 4; or 16 or 32, which store whole vectors as float16 or float32.
            None: as the stored vectors, or 4.
        centroids: Number of centroids. None: four times the square root of the number of tokens, as a power of two.
        topics: Queries to measure recall with. None: the first sentences of 32 documents.
        overwrite: Whether stored token vectors are replaced.
        progress: Called as documents are encoded.
        ray: Encode on a cluster: True or an address, as in `index.encode`. Everything else runs here.
        name: Name of the token vectors, for `index.late(name)`. None: the one that they have, if any.

    Returns:
        `JoinedTokens.info()`; its `recall` is the share of the exhaustive search's best 10, 100 and 1,000 documents that
        `index.late(colbert)` found when the centroids were fitted.

    Raises:
        FontesError: Another process encodes with the same model, or the disk is full.
    """
    if nbits is not None:
        check_nbits(nbits)
    if centroids is not None and centroids < 1:
        raise ParameterError(f"centroids must be 1 or more, not {centroids}")
    state = index.state
    check_segments_exist(state.path, state.leaves)
    check_free(state, TOKENS, colbert.fingerprint, name, overwrite)
    widths = [nbits] if nbits else _stored_nbits(state, colbert.fingerprint) or [DEFAULT_NBITS]
    with working(ray=ray, progress=progress), remote_encoder(colbert) as actors:
        for bits in widths:
            with contextlib.ExitStack() as stack:
                _LateEncoding(state, colbert, bits, centroids, topics, overwrite).run(stack, actors)
    state.vectors.forget(TOKENS)
    state.vectors.label(TOKENS, colbert.fingerprint, name, settings_of(colbert, absolute=True))
    return stored_tokens(state, colbert, widths[0]).info()


def _stored_nbits(state: State, fingerprint: str) -> list[int]:
    """Numbers of bits in which some documents have token vectors of a model, most bits first."""
    folders = [leaf.segment.folder for leaf in state.leaves]
    return [bits for bits in WIDTHS if any((folder / TOKENS.name_of(fingerprint, bits)).is_dir() for folder in folders)]


class _LateEncoding:
    """Encoding of an index's token vectors in `nbits` bits."""

    def __init__(
        self, index: State, colbert: ColBERT, nbits: int, centroids: int | None, topics: object, overwrite: bool
    ) -> None:
        self._index, self._colbert, self._nbits = index, colbert, nbits
        self._centroids, self._topics, self._overwrite = centroids, topics, overwrite
        name = TOKENS.name_of(colbert.fingerprint, nbits)
        self._folders = [leaf.segment.folder / name for leaf in index.leaves]

    def run(self, stack: contextlib.ExitStack, actors: BlockSource | None) -> None:
        """Encode segments without vectors, fit missing centroids, compress, and commit."""
        path = self._index.path
        if not self._overwrite:
            check_precision(path, self._colbert, self._precision())
        busy = FontesError(f"{path} is being encoded by another process with the same model; wait for it")
        try:
            drafts = {n: stack.enter_context(drafting(self._folders[n], busy)) for n in self._unencoded()}
        except OSError as error:
            raise FontesError(f"{path}: token vectors cannot be written: {error.strerror}") from error
        drafts = {n: drafts[n] for n in self._unencoded()}  # another process may just have finished
        if drafts:
            vectors = self._encode(list(drafts), actors)
            try:
                self._compress(drafts, vectors)
            except OSError as error:
                raise FontesError(f"{path}: token vectors cannot be written: {error.strerror or error}") from error
        if self._nbits in NBITS:
            self._remove_whole()

    def _unencoded(self) -> list[int]:
        """Numbers of the segments to encode: without token vectors, or with `overwrite` all."""
        return [number for number, folder in enumerate(self._folders) if self._overwrite or not folder.is_dir()]

    def _encode(self, numbers: Sequence[int], actors: BlockSource | None) -> dict[int, Embeddings]:
        """Compute the whole token vectors of segments; stored float16 vectors are reused."""
        leaves, colbert = self._index.leaves, self._colbert
        vectors: dict[int, Embeddings] = {}
        if self._nbits != 32 and not self._overwrite:
            for number in numbers:
                with contextlib.suppress(IndexFormatError):
                    if (segment_vectors := whole_vectors(leaves[number].segment.folder, colbert.fingerprint, 16)) is not None:
                        vectors[number] = segment_vectors
        missing = [number in numbers and number not in vectors for number in range(len(leaves))]
        for number, reported in with_progress(leaves, missing):
            if missing[number]:
                make = self._encode_job(actors is not None)
                with reported:
                    vectors[number] = encode_segment(leaves[number].segment, make, self._overwrite, actors)
        return vectors

    def _remove_whole(self) -> None:
        """Remove whole vectors after compression, also of a killed process, unless vectors stored in 16 bits need them."""
        name = TOKENS.name_of(self._colbert.fingerprint, 16)
        for leaf in self._index.leaves:
            segment = leaf.segment.folder
            if not (segment / name).is_dir() and not (segment / f".{name}").is_dir():
                with contextlib.suppress(IndexFormatError):
                    if (vectors := whole_vectors(segment, self._colbert.fingerprint, 16)) is not None:
                        shutil.rmtree(vectors.folder, ignore_errors=True)

    def _encode_job(self, remote: bool) -> Callable[[Segment], VectorEncoding]:
        """Function that encodes a segment; on a cluster with `remote`."""
        colbert = self._colbert
        model = colbert if self._overwrite else in_precision(colbert, self._precision())
        if remote:
            model = fix_precision(model)
        dtype = "float32" if self._nbits == 32 else "float16"
        job = partial(
            SegmentEncodingJob, colbert.fingerprint, repr(colbert), None, colbert.width, dtype, precision=precision_of(model)
        )
        return partial(vector_encoding, job, model.encode_documents)

    def _precision(self) -> object:
        """Precision of the vectors already stored; None if unknown."""
        return next((TokenVectors(folder).meta.get("precision") for folder in self._folders if folder.is_dir()), None)

    def _compress(self, drafts: dict[int, Path], vectors: dict[int, Embeddings]) -> None:
        """Write token vectors to the drafts and commit the drafts one by one."""
        leaves = self._index.leaves
        for draft in drafts.values():
            for leftover in draft.iterdir():  # of a killed process
                leftover.unlink()
        existing = [TokenVectors(folder) for number, folder in enumerate(self._folders) if number not in drafts]
        for part in existing:
            part.check_dim(self._colbert.width)
        twin = None
        if existing:
            codec, recall = existing[0].codec, existing[0].meta["recall"]
        else:
            joined = JoinedEmbeddings([SegmentEmbeddings(leaf, vectors[number]) for number, leaf in enumerate(leaves)])
            count = self._centroids or centroids_for(len(joined))
            sample = _sample(joined, SAMPLE * count)
            twin = None if self._overwrite else self._twin(min(count, len(sample)))
            centroids = kmeans(sample, count) if twin is None else twin.codec.centroids
            codec = Codec.fitted(centroids, sample, self._nbits if self._nbits in NBITS else 0)
            recall = {}
        for number, draft in drafts.items():
            self._write(draft, codec, vectors[number], None if twin is None else twin.parts[number], recall)
        if not existing:
            parts = [TokenVectors(drafts[number]) for number in range(len(leaves))]
            recall = _recall(self._index, self._colbert, JoinedTokens(leaves, parts), joined, self._topics)
            for part in parts:
                seal(part.folder, KIND, {**settings(part.meta), "recall": recall})
        for number, draft in drafts.items():
            commit(draft, self._folders[number])

    def _write(
        self, draft: Path, codec: Codec, vectors: Embeddings, twin: TokenVectors | None, recall: dict[str, object]
    ) -> None:
        """Write the token vectors of a segment and their metadata to its draft."""
        bounds = np.arange(vectors.documents + 1) if vectors.single else vectors.bounds
        codec.save(draft)
        write_array(draft, "bounds", bounds)
        codes = _write_codes(draft, codec, vectors, self._nbits, twin)
        write_lists(draft, codes, bounds, len(codec.centroids))
        facts = {
            "colbert": repr(self._colbert),
            "fingerprint": self._colbert.fingerprint,
            "precision": vectors.meta.get("precision"),
            "nbits": self._nbits,
            "dim": vectors.dim,
            "documents": vectors.documents,
            "tokens": len(vectors),
            "centroids": len(codec.centroids),
        }
        seal(draft, KIND, {**facts, "recall": recall})

    def _twin(self, count: int) -> JoinedTokens | None:
        """Vectors of the same model in other bits with as many centroids, whose assignment can be reused."""
        for bits in reversed(_stored_nbits(self._index, self._colbert.fingerprint)):
            with contextlib.suppress(IndexFormatError, ParameterError):
                if len((vectors := stored_tokens(self._index, self._colbert, bits)).codec.centroids) == count:
                    return vectors
        return None


def _sample(vectors: JoinedEmbeddings, size: int) -> Float32s:
    """At most `size` vectors drawn with a fixed seed, float32 (size, dim), in order; a unit vector if there are none."""
    if not len(vectors):
        return np.eye(1, vectors.dim, dtype=np.float32)
    rows = np.sort(np.random.default_rng(SEED).permutation(len(vectors))[:size])
    return vectors.decoded(rows)


def _write_codes(draft: Path, codec: Codec, vectors: Embeddings, nbits: int, twin: TokenVectors | None) -> Int32s:
    """Write the centroid of each vector, and its residual with 1, 2 or 4 bits; return the centroids."""
    codes = np.empty(len(vectors), dtype=np.int32) if twin is None else twin.codes
    residuals = ByteWriter(draft, "residuals") if nbits in NBITS else None
    for start in range(0, len(vectors), CHUNK_VECTORS):
        rows = slice(start, start + CHUNK_VECTORS)
        block = vectors.decoded(rows)
        if twin is None:
            codes[rows] = nearest(codec.centroids, block)
        if residuals is not None:
            residuals.write(codec.compress(block, codes[rows]).reshape(-1))
    if residuals is not None:
        residuals.close()
    write_array(draft, "codes", codes)
    return codes


def _recall(
    index: State, colbert: ColBERT, stored_vectors: JoinedTokens, vectors: JoinedEmbeddings, topics: object
) -> dict[str, object]:
    """Recall of `stored_vectors` against exhaustive search of whole `vectors`, at each depth below the collection's size."""
    texts = [topic.text for topic in Topics.of(topics).values()] if topics is not None else _first_sentences(index)
    depths = [k for k in DEPTHS if k < stored_vectors.documents]
    if not texts or not depths:
        return {}
    queries = colbert.encode_queries(texts)
    docs, ranks, matches = np.arange(stored_vectors.documents), index.ids.rank, dict.fromkeys(depths, 0)
    for start in range(0, len(queries), QUERY_BATCH):
        part = queries[start : start + QUERY_BATCH]
        for query, scores in zip(part, scores_of(WholeVectors(vectors), part, docs), strict=True):
            expected = best(docs, scores, ranks, depths[-1])
            for k in depths:
                candidates = stored_vectors.candidates(query, *search_settings(k))
                hits = candidates[best(candidates, stored_vectors.scores(query, candidates), ranks, k)]
                matches[k] += len(np.intersect1d(hits, expected[:k]))
    shares = {str(k): round(matches[k] / (k * len(queries)), 4) for k in depths}
    source = "topics" if topics is not None else "first sentences"
    return {**shares, "queries": len(queries), "source": source}


def _first_sentences(index: State) -> list[str]:
    """First sentences of documents drawn with a fixed seed."""
    ids, order = index.ids, np.random.default_rng(SEED).permutation(len(index))
    texts: list[str] = []
    for doc in index.docs(ids.take(order[: 4 * QUERIES])):
        sentence = doc.text.strip().partition(". ")[0]
        if sentence and len(texts) < QUERIES:
            texts.append(sentence)
    return texts
