"""Token vectors in an index: compressed beside their segment, with the documents of each centroid and their measured recall."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FontesError, IndexFormatError, ParameterError
from ..core.run import order_keys
from ..core.values import Topics
from ..index import Progress
from ..index.embeddings import Embeddings, Job, encode, find
from ..index.files import ByteWriter, digest, read_array, write_array
from .colbert import ColBERT
from .maxsim import interaction, maxsim, padded
from .residual import NBITS, SAMPLE, SEED, Codec, centroids_for, check_nbits, kmeans, nearest

if TYPE_CHECKING:
    from ..index import Index

FORMAT = "fontes-late"
VERSION = 1
META = "late.json"
TOKENS = 1 << 14  # of documents that a thread scores at a time
ROWS = 1 << 16  # vectors that are compressed at a time
QUERIES = 32  # that recall is measured with, unless topics are given
TOGETHER = 16  # queries that are searched exhaustively at a time
DEPTHS = (10, 100, 1000)  # at which recall is measured
REMEDY = "make it again with overwrite=True (fontes late --overwrite)"


class TokenVectors:
    """The token vectors of a segment's documents by one ColBERT: compressed, or whole beside their centroids.

    bounds      int64: document i has the tokens bounds[i]:bounds[i+1]
    codes       int32: the centroid of each token
    meta        what it is made of, and its recall

    Raises IndexFormatError where a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta = _meta(folder)
        for name, expected in self.meta["files"].items():
            file = folder / name
            if not file.is_file() or file.stat().st_size != expected["bytes"]:
                raise IndexFormatError(f"{file} is missing or damaged; {REMEDY}")
        self.nbits: int = self.meta["nbits"]
        self.codec = Codec.load(folder)
        self.bounds, self.codes, self._lists, self._list_bounds = (
            read_array(folder, name) for name in ("bounds", "codes", "lists", "lists.bounds")
        )
        self._whole = None if self.nbits in NBITS else _whole(folder.parent, self.meta["fingerprint"], self.nbits)
        if self._whole is None:
            self._residuals = read_array(folder, "residuals").reshape(len(self.codes), self.codec.width)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.bounds) - 1

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
        centroid interaction over all.
        """
        similarities = self.codec.centroids @ padded(query)
        tokens, nprobe = len(query), min(nprobe, len(self.codec.centroids))
        probed = np.unique(np.argpartition(-similarities[:, :tokens], nprobe - 1, axis=0)[:nprobe])
        there = np.zeros(self.documents, dtype=bool)
        for centroid in probed.tolist():
            there[self._lists[self._list_bounds[centroid] : self._list_bounds[centroid + 1]]] = True
        docs = np.flatnonzero(there)
        for least, kept in ((threshold, count), (-np.inf, count // 4)):
            if len(docs) > kept:
                scores = interaction(similarities, tokens, self.codes, self.bounds, docs, least)
                docs = np.sort(docs[np.argsort(-scores, kind="stable")[:kept]])
        return docs

    def scores(self, query: NDArray[np.float32], docs: NDArray[np.int64], threads: int = 1) -> NDArray[np.float32]:
        """MaxSim of the query with each of these documents; `threads` do not change it."""
        (scores,) = scores_of(self, [query], docs, threads)
        return np.asarray(scores)

    def check(self) -> None:
        """Reads every file. Raises IndexFormatError where anything is not as it was written."""
        for name, expected in self.meta["files"].items():
            if digest(self.folder / name) != expected["sha256"]:
                raise IndexFormatError(f"{self.folder / name} has changed; {REMEDY}")

    def info(self) -> dict[str, Any]:
        """What there is: model, bits, counts, bytes, recall."""
        size = sum(file["bytes"] for file in self.meta["files"].values())
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


def encode_late(
    index: Index,
    colbert: ColBERT,
    *,
    nbits: int = 2,
    centroids: int | None = None,
    topics: object = None,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Stores the documents' token vectors with the index, for `index.late(colbert)`, and measures what the search finds.

    nbits       bits a dimension of the residuals: 1, 2 or 4; or 16 or 32, which keep the vectors whole, as float16 or float32
    centroids   how many; default: four times the square root of the number of tokens, as a power of two
    topics      queries to measure recall with; default: the first sentences of 32 documents
    overwrite   make it anew where it is there already; else there is nothing to do
    progress    is called with a `Progress` as documents are encoded

    An encoding that was interrupted goes on where it was. While it lasts the vectors are on disk whole, in float16 (float32
    for nbits=32). Returns what there is then: see `TokenVectors.info`; `recall` says for the best 10, 100 and 1,000 documents
    which share of those of the exhaustive search over whole vectors `index.late(colbert)` finds.
    """
    check_nbits(nbits)
    if centroids is not None and centroids < 1:
        raise ParameterError(f"centroids must be 1 or more, not {centroids}")
    segment, name = index._folder, _name(colbert.fingerprint, nbits)
    with _alone(segment, name):
        if (folder := segment / f"late-{name}").is_dir() and not overwrite:
            return TokenVectors(folder).info()
        whole = _encoded(index, colbert, nbits, overwrite, progress)
        try:
            made = _compressed(index, colbert, whole, nbits, centroids, topics, overwrite)
        except OSError as error:
            raise FontesError(f"{index.path}: token vectors cannot be written: {error.strerror or error}") from error
        if nbits in NBITS and not (segment / f"late-{_name(colbert.fingerprint, 16)}").is_dir():
            shutil.rmtree(whole.folder, ignore_errors=True)
        return made.info()


def stored(index: Index, colbert: ColBERT, nbits: int | None = None) -> TokenVectors:
    """The token vectors that `encode_late` stored; of several the ones with most bits.

    Raises ParameterError where there are none of this model, IndexFormatError where they are damaged.
    """
    fingerprint = colbert.fingerprint
    key = ("late", fingerprint, nbits)
    if key not in index.memory:
        kept = [bits for bits in (32, 16, 4, 2, 1) if nbits in (None, bits)]
        folders = (index._folder / f"late-{_name(fingerprint, bits)}" for bits in kept)
        folder = next((folder for folder in folders if folder.is_dir()), None)
        if folder is None:
            raise ParameterError(_absent(index, colbert, nbits))
        index.memory[key] = TokenVectors(folder)
    found: TokenVectors = index.memory[key]
    return found


def _absent(index: Index, colbert: ColBERT, nbits: int | None) -> str:
    kind = f"token vectors of {nbits} bits" if nbits else "token vectors"
    held = []
    for folder in sorted(index._folder.glob("late-*")):
        with contextlib.suppress(IndexFormatError):
            meta = _meta(folder)
            held.append(f"{meta['colbert']} ({meta['nbits']} bits, fingerprint {meta['fingerprint'][:8]})")
    there = f"; it holds those of {' and '.join(held)}" if held else ""
    return (
        f"{index.path} holds no {kind} of {colbert!r} (fingerprint {colbert.fingerprint[:8]}){there}; "
        f"fontes.encode_late(index, colbert), or fontes late {index.path} MODEL, makes them"
    )


def _encoded(
    index: Index, colbert: ColBERT, nbits: int, overwrite: bool, progress: Callable[[Progress], None] | None
) -> Embeddings:
    """The documents' token vectors, whole; those that are there already serve."""
    if nbits != 32 and not overwrite:
        with contextlib.suppress(IndexFormatError):
            if (found := _find(index._folder, colbert.fingerprint, 16)) is not None:
                return found
    ids = index.ids.tolist()

    def vectors(first: int, last: int, tell: Callable[[Progress], None] | None) -> Any:
        return colbert.encode_documents(index.docs(ids[first:last]), tell)

    dtype = "float32" if nbits == 32 else "float16"
    job = Job(colbert.fingerprint, repr(colbert), colbert.width, dtype, ids, vectors)
    return encode(index._folder, job, overwrite, progress)


def _compressed(
    index: Index, colbert: ColBERT, whole: Embeddings, nbits: int, centroids: int | None, topics: object, overwrite: bool
) -> TokenVectors:
    """Makes the files of token vectors in a folder that is put in its place in one step."""
    segment, name = index._folder, _name(colbert.fingerprint, nbits)
    draft = segment / f".late-{name}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
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
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "colbert": repr(colbert),
        "fingerprint": colbert.fingerprint,
        "nbits": nbits,
        "dim": whole.dim,
        "documents": whole.documents,
        "tokens": len(whole),
        "centroids": len(codec.centroids),
    }
    _commit(draft, {**facts, "recall": {}})
    recall = _recall(index, colbert, TokenVectors(draft), whole, topics)
    _commit(draft, {**facts, "recall": recall})
    folder = segment / f"late-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return TokenVectors(folder)


def _sample(whole: Embeddings, size: int) -> NDArray[np.float32]:
    """Vectors drawn with a fixed seed, in their order; any one where there are none."""
    if not len(whole):
        return np.eye(1, whole.dim, dtype=np.float32)
    rows = np.sort(np.random.default_rng(SEED).permutation(len(whole))[:size])
    return whole.decoded(rows)


def _twin(segment: Path, fingerprint: str, count: int) -> TokenVectors | None:
    """Those of the same model in other bits with as many centroids, which need not be found again."""
    for folder in sorted(segment.glob(f"late-{_name(fingerprint, 0)[:-1]}*")):
        with contextlib.suppress(IndexFormatError):
            if len((found := TokenVectors(folder)).codec.centroids) == count:
                return found
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


def _recall(index: Index, colbert: ColBERT, made: TokenVectors, whole: Embeddings, topics: object) -> dict[str, Any]:
    """The share of the exhaustive search's best k that the search finds, for each k that the collection is larger than."""
    start = time.perf_counter()
    texts = [topic.text for topic in Topics.of(topics).values()] if topics is not None else _first_sentences(index)
    depths = [k for k in DEPTHS if k < made.documents]
    if not texts or not depths:
        return {}
    queries = colbert.encode_queries(texts)
    docs, ranks, found = np.arange(made.documents), index.ids.rank, dict.fromkeys(depths, 0)
    for first in range(0, len(queries), TOGETHER):
        part = queries[first : first + TOGETHER]
        for query, scores in zip(part, scores_of(_Whole(whole), part, docs, os.cpu_count() or 1), strict=True):
            expected = best(docs, scores, ranks, depths[-1])
            for k in depths:
                near = made.candidates(query, *effort(k))
                hits = near[best(near, made.scores(query, near, os.cpu_count() or 1), ranks, k)]
                found[k] += len(np.intersect1d(hits, expected[:k]))
    shares = {str(k): round(found[k] / (k * len(queries)), 4) for k in depths}
    source = "topics" if topics is not None else "first sentences"
    return {**shares, "queries": len(queries), "source": source, "seconds": round(time.perf_counter() - start, 1)}


def _first_sentences(index: Index) -> list[str]:
    """The first sentences of documents drawn with a fixed seed, without their titles."""
    ids, order = index.ids, np.random.default_rng(SEED).permutation(len(index))
    texts: list[str] = []
    for doc in index.docs(ids.take(order[: 4 * QUERIES])):
        sentence = doc.text.strip().partition(". ")[0]
        if sentence and len(texts) < QUERIES:
            texts.append(sentence)
    return texts


class _Whole:
    """Whole vectors, as `scores_of` reads them."""

    def __init__(self, whole: Embeddings) -> None:
        self._whole = whole
        self.bounds = whole.bounds if len(whole.bounds) else np.arange(whole.documents + 1)

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        rows, bounds = _rows(self.bounds, docs)
        return self._whole.decoded(rows), bounds


def _rows(bounds: NDArray[np.int64], docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens of these documents, and where those of each start among them."""
    sizes = bounds[docs + 1] - bounds[docs]
    starts = np.zeros(len(docs) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return np.arange(starts[-1]) + np.repeat(bounds[docs] - starts[:-1], sizes), starts


def _name(fingerprint: str, nbits: int) -> str:
    return f"{hashlib.sha256(fingerprint.encode()).hexdigest()[:16]}-{nbits}"


def _find(segment: Path, fingerprint: str, nbits: int) -> Embeddings | None:
    dtype = "float32" if nbits == 32 else "float16"
    for found in find(segment).values():
        if isinstance(found, Embeddings) and found.fingerprint == fingerprint and found.dtype == dtype:
            return found
    return None


def _whole(segment: Path, fingerprint: str, nbits: int) -> Embeddings:
    found = _find(segment, fingerprint, nbits)
    if found is None:
        raise IndexFormatError(f"{segment}: the whole token vectors are missing or damaged; {REMEDY}")
    return found


@contextlib.contextmanager
def _alone(segment: Path, name: str) -> Iterator[None]:
    """Holds the lock of the token vectors of this name. Raises FontesError where another process does."""
    try:
        file = (segment / f".late-{name}.lock").open("a")
    except OSError as error:
        raise FontesError(f"{segment.parent}: token vectors cannot be written: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FontesError(
                f"{segment.parent} is being encoded by another process with the same model; wait for it"
            ) from error
        yield


def _commit(draft: Path, facts: dict[str, Any]) -> None:
    files = {f.name: {"bytes": f.stat().st_size, "sha256": digest(f)} for f in sorted(draft.glob("*.npy"))}
    with (draft / META).open("w", encoding="utf-8") as file:
        json.dump({**facts, "files": files, "digest": _digest(facts, files)}, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())


def _digest(facts: dict[str, Any], files: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([facts, files], sort_keys=True).encode()).hexdigest()


def _meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
        facts = {key: value for key, value in meta.items() if key not in ("files", "digest")}
        sound = meta["format"] == FORMAT and meta["version"] == VERSION and meta["digest"] == _digest(facts, meta["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise IndexFormatError(f"{folder / META} is missing or damaged; {REMEDY}") from error
    if not sound:
        raise IndexFormatError(f"{folder / META} is damaged or of another format version; {REMEDY}")
    return meta
