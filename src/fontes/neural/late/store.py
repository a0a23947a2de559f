"""Token vectors in an index: opened, their candidates, their scores."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError, ParameterError
from ...core.run import order_keys
from ...index.embeddings import Embeddings, find
from ...storage.artifact import Artifact, Kind, read_meta
from ...storage.caches import Attached, Cached
from ...storage.hashes import hash_text
from .colbert import ColBERT
from .maxsim import interaction, maxsim, padded
from .residual import NBITS, WHOLE, Codec

if TYPE_CHECKING:
    from ...index import Index

TOKENS = 1 << 12  # of documents that a thread scores at a time
TOGETHER = 16  # queries that are searched exhaustively at a time
REMEDY = "make it again with overwrite=True (fontes encode --late --overwrite)"
KIND = Kind("fontes-late", 1, "token vectors", REMEDY)


class TokenVectors:
    """The token vectors of a segment's documents by one ColBERT: compressed, or whole beside their centroids.

    Attributes:
        folder: Where they are.
        meta: Their metadata: model, fingerprint, nbits, counts, and the recall that was measured.
        nbits: Bits a dimension.
        documents: How many documents there are.
        codec: Its centroids and buckets.
        bounds: int64: document i has the tokens bounds[i]:bounds[i + 1].
        codes: int32: the centroid of each token.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifact = artifact = Artifact(folder, KIND)
        self.meta = artifact.meta
        self.nbits = artifact.fact("nbits", int)
        self.documents = artifact.fact("documents", int)
        if self.nbits not in (*NBITS, *WHOLE):
            raise artifact.damaged(f"{folder} has {self.nbits} bits, which there are not")
        arrays, tokens, centroids = artifact.arrays, artifact.fact("tokens", int), artifact.fact("centroids", int)
        self.codec = Codec.load(arrays, centroids, artifact.fact("dim", int), self.nbits if self.nbits in NBITS else 0)
        self.bounds = arrays.bounds("bounds", tokens, self.documents, "<i8")
        self.codes = arrays.numbers("codes", centroids, "<i4", tokens)
        self._lists = arrays.numbers("lists", self.documents, "<i4", None)
        self._list_bounds = arrays.bounds("lists.bounds", len(self._lists), centroids, "<i8")
        self._whole = None if self.nbits in NBITS else _whole(folder.parent, self.meta["fingerprint"], self.nbits)
        if self._whole is None:
            packed = arrays.array("residuals", "|u1", tokens * self.codec.width)
            self._residuals = packed.reshape(tokens, self.codec.width)
        elif len(self._whole) != tokens or self._whole.dim != self.codec.centroids.shape[1]:
            raise artifact.damaged(f"{folder} does not fit {self._whole.folder}")

    def __len__(self) -> int:
        return len(self.codes)

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The token vectors of these documents end to end, as far as they are kept, and where those of each start."""
        rows, bounds = _rows(self.bounds, docs)
        if self._whole is not None:
            return self._whole.decoded(rows), bounds
        return self.codec.decompress(self.codes[rows], self._residuals[rows]), bounds

    def candidates(self, query: NDArray[np.float32], nprobe: int, threshold: float, count: int) -> NDArray[np.int64]:
        """The documents that are worth an exact score (Santhanam et al., CIKM 2022: PLAID).

        Those with a token in one of the `nprobe` centroids nearest to a token of the query; of these the best `count` by
        centroid interaction over the centroids that come as near as `threshold` to the query; of these the best quarter by
        centroid interaction over all. All documents, where they are no more than would be left.
        """
        if self.documents <= count // 4:
            return np.arange(self.documents)
        similarities = self.codec.centroids @ padded(query)
        tokens, nprobe = len(query), min(nprobe, len(self.codec.centroids))
        probed = np.unique(np.argpartition(-similarities[:, :tokens], nprobe - 1, axis=0)[:nprobe])
        there = np.zeros(self.documents, dtype=bool)
        for centroid in probed.tolist():
            there[self._lists[self._list_bounds[centroid] : self._list_bounds[centroid + 1]]] = True
        docs = np.flatnonzero(there)
        for least, most in ((threshold, count), (-np.inf, count // 4)):
            if len(docs) > most:
                scores = interaction(similarities, tokens, self.codes, self.bounds, docs, least)
                docs = np.sort(docs[np.argsort(-scores, kind="stable")[:most]])
        return docs

    def scores(self, query: NDArray[np.float32], docs: NDArray[np.int64], threads: int = 1) -> NDArray[np.float32]:
        """MaxSim of the query with each of these documents; `threads` do not change it."""
        (scores,) = scores_of(self, [query], docs, threads)
        return np.asarray(scores)

    def check(self) -> None:
        """Reads every file.

        Raises:
            IndexFormatError: Where anything is not as it was written.
        """
        self._artifact.check()

    def info(self) -> dict[str, Any]:
        """What there is: model, bits, counts, bytes, recall."""
        size = self._artifact.bytes
        if self._whole is not None:
            size += self._whole.info()["bytes"]
        return {
            **{key: self.meta[key] for key in ("colbert", "fingerprint", "nbits", "dim", "tokens", "centroids", "recall")},
            "bytes": size,
        }


def effort(k: int) -> tuple[int, float, int]:
    """(nprobe, threshold, candidates) for the best k documents, as PLAID chooses them."""
    if k <= 10:
        return 1, 0.5, 256
    return (2, 0.45, 1024) if k <= 100 else (4, 0.4, max(4 * k, 4096))


def scores_of(
    store: Any, queries: Sequence[NDArray[np.float32]], docs: NDArray[np.int64], threads: int = 1
) -> NDArray[np.float32]:
    """MaxSim of each query with each of these documents, (queries, documents). `store` has `bounds` and `vectors(docs)`."""
    scores = np.empty((len(queries), len(docs)), dtype=np.float32)
    ends = np.cumsum(store.bounds[docs + 1] - store.bounds[docs])
    edges = np.unique([0, *np.searchsorted(ends, np.arange(TOKENS, ends[-1] if len(ends) else 0, TOKENS)), len(docs)]).tolist()

    def part(first: int, last: int) -> None:
        vectors, bounds = store.vectors(docs[first:last])
        for row, query in zip(scores, queries, strict=True):
            row[first:last] = maxsim(query, vectors, bounds)

    if threads == 1:
        for first, last in itertools.pairwise(edges):
            part(first, last)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, edges[:-1], edges[1:]))
    return scores


def best(docs: NDArray[np.int64], scores: NDArray[np.float32], ranks: NDArray[np.uint32], k: int) -> NDArray[np.intp]:
    """The places in `docs` of the best k in the one order; documents without a token are none."""
    there = np.flatnonzero(scores > -np.inf)
    return there[np.argsort(order_keys(scores[there], ranks[docs[there]]))[::-1][:k]]


def stored(index: Index, colbert: ColBERT, nbits: int | None = None) -> TokenVectors:
    """The token vectors that `encode_late` stored; of several the ones with most bits.

    Raises:
        ParameterError: There are none of this model.
        IndexFormatError: They are damaged.
    """
    fingerprint = colbert.fingerprint

    def open_() -> TokenVectors:
        widths = [bits for bits in (32, 16, 4, 2, 1) if nbits in (None, bits)]
        folders = (index.segment_folder / folder_name(fingerprint, bits) for bits in widths)
        folder = next((folder for folder in folders if folder.is_dir()), None)
        if folder is None:
            raise ParameterError(_absent(index, colbert, nbits))
        return TokenVectors(folder)

    return _OPEN.of(index).get((fingerprint, nbits), open_)


def _no_vectors(index: Index) -> Cached[tuple[str, int | None], TokenVectors]:
    return Cached()


_OPEN = Attached("token_vectors", _no_vectors)


def forget(index: Index) -> None:
    """Closes the token vectors that are open, as there are others now."""
    _OPEN.of(index).clear()


def _absent(index: Index, colbert: ColBERT, nbits: int | None) -> str:
    kind = f"token vectors of {nbits} bits" if nbits else "token vectors"
    others = []
    for folder in sorted(index.segment_folder.glob("late-*")):
        with contextlib.suppress(IndexFormatError):
            meta = read_meta(folder, KIND)
            others.append(f"{meta['colbert']} ({meta['nbits']} bits, fingerprint {meta['fingerprint'][:8]})")
    there = f"; it holds those of {' and '.join(others)}" if others else ""
    return (
        f"{index.path} holds no {kind} of {colbert!r} (fingerprint {colbert.fingerprint[:8]}){there}; "
        f"fontes.neural.encode_late(index, colbert), or fontes encode {index.path} MODEL --late, makes them"
    )


class WholeVectors:
    """Token vectors that are kept whole, as `scores_of` reads them."""

    def __init__(self, whole: Embeddings) -> None:
        self._whole = whole
        self.bounds = whole.bounds if len(whole.bounds) else np.arange(whole.documents + 1)

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As `TokenVectors.vectors`."""
        rows, bounds = _rows(self.bounds, docs)
        return self._whole.decoded(rows), bounds


def _rows(bounds: NDArray[np.int64], docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens of these documents, and where those of each start among them."""
    sizes = bounds[docs + 1] - bounds[docs]
    starts = np.zeros(len(docs) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return np.arange(starts[-1]) + np.repeat(bounds[docs] - starts[:-1], sizes), starts


def folder_name(fingerprint: str, nbits: int) -> str:
    """Of the token vectors of a model."""
    return f"late-{hash_text(fingerprint)[:16]}-{nbits}"


def whole_vectors(segment: Path, fingerprint: str, nbits: int) -> Embeddings | None:
    """The whole token vectors of a model in 16 or 32 bits, where there are any."""
    dtype = "float32" if nbits == 32 else "float16"
    for vectors in find(segment).values():
        if isinstance(vectors, Embeddings) and vectors.fingerprint == fingerprint and vectors.dtype == dtype:
            return vectors
    return None


def _whole(segment: Path, fingerprint: str, nbits: int) -> Embeddings:
    vectors = whole_vectors(segment, fingerprint, nbits)
    if vectors is None:
        raise IndexFormatError(f"{segment}: the whole token vectors are missing or damaged; {REMEDY}")
    return vectors
