"""Approximate vector search with HNSW graphs, FAISS or Annoy: built once with a fixed seed, kept in the user's cache.

Loading a FAISS file from an untrusted source is unsafe. A Fontes index therefore never contains one: only files built on this
machine are loaded.
"""

from __future__ import annotations

import contextlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import Float32s, Ints
from ...core.errors import IndexFormatError, MissingExtraError, ParameterError
from ...core.work import resources
from ...index.embeddings.vectors import JoinedEmbeddings
from ...storage.artifact import Artifact, ArtifactKind, settings
from ...storage.caches import Cached, DiskCache
from ...storage.hashes import hash_text
from ..models.hub import library
from ..results import Best
from .graph import EF_SEARCH, Graph, WalkLimits, drawn_levels
from .vectors import StoredVectors

SEED = 7
CACHE = DiskCache("approximate")
KIND = ArtifactKind("fontes-approximate", 1, "an approximate index", "it is built again when it is needed")
FILE = "index"  # file of the library
BLOCK_VECTORS = 1 << 16  # vectors added at a time
SAMPLE = 1 << 20  # maximum number of vectors for training FAISS
WIDTH = 32  # neighbors of a row of "hnsw" on each level above 0
MIN_WIDTH, MAX_WIDTH = 2, 1024
GRAPH_FORMAT = 1  # graphs of other numbers are built again
EF_CONSTRUCTION = 200
MIN_LISTS, LIST_SHARE = 16, 8  # IVF visits one in 8 of its lists, at least 16, and as many as contain enough rows
GRAPH = re.compile(r"hnsw|HNSW\d+(,Flat)?")
ANNOY = re.compile(r"annoy:([1-9]\d{0,8})")
RULE = (
    'algorithm must be "flat", "hnsw", a factory string of FAISS such as "IVF256,Flat", or "annoy:TREES" such as "annoy:1000"'
)

_LOCK = threading.RLock()  # FAISS keeps search parameters in the index and in the process


@dataclass
class Searcher(ABC):
    """An approximate index over all rows of `JoinedEmbeddings`.

    Args:
        spec: The algorithm, as in `Dense`.
        index: The index of the library; None until it is built or loaded.
        facts: How it was built: algorithm, library, number of vectors, recall, seconds, bytes.
    """

    spec: str
    index: Any = None
    facts: dict[str, object] = field(default_factory=dict)

    precise = False
    """Whether products are exact up to rounding, which gives rows in the order of their scores."""
    filters = False
    """Whether `candidates` applies a filter itself."""
    parameter = ""
    """The parameter of `Dense` that trades time for recall; "" without one."""

    @abstractmethod
    def build(self, embeddings: JoinedEmbeddings) -> None:
        """Build the index; reproducible, except an HNSW graph that FAISS links in several threads."""

    @abstractmethod
    def candidates(self, queries: Float32s, limits: WalkLimits) -> tuple[Float32s, Ints]:
        """Return about `count` rows for each query, and their approximate products, greatest first; missing rows are -1.

        Args:
            queries: float32 (queries, dimensions).
            limits: How many rows; `visits` is the value of `parameter`, and smaller `visits` give fewer rows.
        """

    def best(
        self, queries: Float32s, limits: WalkLimits, stored: StoredVectors, k: int
    ) -> tuple[list[Best], list[bool]] | None:
        """Score the `candidates` in the same call; see `Graph.best`. None if the searcher does not support it."""
        return None

    @abstractmethod
    def save(self, file: Path) -> None:
        """Write the index."""

    @abstractmethod
    def load(self, file: Path, embeddings: JoinedEmbeddings) -> None:
        """Read the index."""

    @property
    @abstractmethod
    def library(self) -> str:
        """The library with its version."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of vectors, and of their dimensions."""


class Faiss(Searcher):
    """Any index of `faiss.index_factory`, for inner products."""

    quantizers: tuple[object, ...] = ()  # referenced by FAISS's training, during which they must exist

    @property
    def library(self) -> str:
        return f"faiss {_faiss().__version__}"

    @property
    def shape(self) -> tuple[int, int]:
        return self.index.ntotal, self.index.d

    def build(self, embeddings: JoinedEmbeddings) -> None:
        """Train on up to SAMPLE vectors and add all vectors; in one thread, except HNSW, which gains much from several."""
        faiss = _faiss()
        if "OPQ" in self.spec and len(embeddings) < embeddings.dim:
            raise ParameterError(
                f"FAISS cannot make an index {self.spec!r} of {len(embeddings):,} vectors (its OPQ crashes where there are "
                f"fewer of them than dimensions, {embeddings.dim}); take one without OPQ, or flat"
            )
        try:
            self.index = faiss.index_factory(embeddings.dim, self.spec, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as e:
            raise ParameterError(f"FAISS cannot make an index {self.spec!r} of {embeddings.dim} dimensions; {RULE}") from e
        self.quantizers = self._seed()
        if (hnsw := self._hnsw()) is not None:
            hnsw.hnsw.efConstruction = EF_CONSTRUCTION
        with faiss_threads(1 if hnsw is None else resources().threads):
            try:
                self._fill(embeddings)
            except RuntimeError as e:
                reason = str(e).strip().rpartition("Error: ")[2].rpartition(" failed: ")[2].partition("\n")[0]
                raise ParameterError(
                    f"FAISS cannot make an index {self.spec!r} of {len(embeddings):,} vectors ({reason}); "
                    "take one with fewer lists or codes, or flat"
                ) from e

    def _seed(self) -> tuple[object, ...]:
        """Set the seed of every clustering and silence warnings about small collections; return the quantizers."""
        faiss = _faiss()
        clusterings, quantizers = [], []
        inner = faiss.downcast_index(self.index)
        if isinstance(inner, faiss.IndexPreTransform):
            for i in range(inner.chain.size()):
                transform = faiss.downcast_VectorTransform(inner.chain.at(i))
                if isinstance(transform, faiss.OPQMatrix):
                    transform.pq = faiss.ProductQuantizer(transform.d_out, transform.M, 8)
                    quantizers.append(transform.pq)
                    clusterings.append(transform.pq.cp)
            inner = faiss.downcast_index(inner.index)
        if hasattr(inner, "pq"):
            clusterings.append(inner.pq.cp)
        if (ivf := self._ivf()) is not None:
            clusterings.append(ivf.cp)
        for parameters in clusterings:
            parameters.seed, parameters.min_points_per_centroid = SEED, 1
        return tuple(quantizers)

    def _fill(self, embeddings: JoinedEmbeddings) -> None:
        count = len(embeddings)
        if not self.index.is_trained:
            rows = np.arange(count)
            if count > SAMPLE:
                rows = np.sort(np.random.default_rng(SEED).choice(count, SAMPLE, replace=False))
            self.index.train(embeddings.decoded(rows))
        for start in range(0, count, BLOCK_VECTORS):
            self.index.add(embeddings.decoded(slice(start, min(start + BLOCK_VECTORS, count))))

    def candidates(self, queries: Float32s, limits: WalkLimits) -> tuple[Float32s, Ints]:
        """Return the nearest rows; `visits` is nprobe of an IVF index, efSearch of HNSW."""
        count, visits = limits.count, limits.visits
        with faiss_threads(resources().threads):
            ivf, graph = self._inner
            if ivf is not None:
                enough = -(-2 * count * ivf.nlist // max(1, ivf.ntotal))  # lists with twice the rows
                ivf.nprobe = min(visits or max(MIN_LISTS, ivf.nlist // LIST_SHARE, enough), ivf.nlist)
            elif graph is not None:
                graph.efSearch = visits or max(count, EF_SEARCH)
                count = min(count, max(limits.min_count, visits or count))  # with one efSearch, more rows are not better
            products, rows = self.index.search(queries, count)
            return products, rows

    def save(self, file: Path) -> None:
        try:
            _faiss().write_index(self.index, str(file))
        except RuntimeError as e:
            raise OSError(str(e)) from e

    def load(self, file: Path, embeddings: JoinedEmbeddings) -> None:
        try:
            self.index = _faiss().read_index(str(file))
        except RuntimeError as e:
            raise OSError(str(e)) from e

    @cached_property
    def _inner(self) -> tuple[Any, Any]:
        """The IVF index and the HNSW graph inside a built index; None where absent."""
        hnsw = self._hnsw()
        return self._ivf(), None if hnsw is None else hnsw.hnsw

    @property
    def parameter(self) -> str:  # type: ignore[override]
        ivf, graph = self._inner
        return "nprobe" if ivf is not None else "" if graph is None else "ef_search"

    @cached_property
    def precise(self) -> bool:  # type: ignore[override]
        faiss = _faiss()
        return isinstance(faiss.downcast_index(self.index), (faiss.IndexFlat, faiss.IndexIVFFlat, faiss.IndexHNSWFlat))

    def _ivf(self) -> Any:
        return _faiss().try_extract_index_ivf(self.index)

    def _hnsw(self) -> Any:
        faiss = _faiss()
        inner = faiss.downcast_index(self.index)
        while isinstance(inner, (faiss.IndexPreTransform, faiss.IndexIDMap)):
            inner = faiss.downcast_index(inner.index)
        return inner if isinstance(inner, faiss.IndexHNSW) else None


class Hnsw(Searcher):
    """An HNSW graph, linked and searched by compiled loops."""

    filters, parameter = True, "ef_search"
    graph: Graph | None = None

    @property
    def library(self) -> str:
        return f"fontes.graph {GRAPH_FORMAT}"

    @property
    def shape(self) -> tuple[int, int]:
        assert self.graph is not None
        return self.graph.shape

    @property
    def width(self) -> int:
        """Neighbors of a row on each level above 0."""
        digits = self.spec.removeprefix("HNSW").removesuffix(",Flat")
        return int(digits) if digits.isdigit() else WIDTH

    def build(self, embeddings: JoinedEmbeddings) -> None:
        self.graph = Graph(embeddings, self.width, drawn_levels(len(embeddings), self.width))
        self.graph.link(EF_CONSTRUCTION)

    def save(self, file: Path) -> None:
        """Write the levels and the neighbors as whole numbers of 32 bits."""
        assert self.graph is not None
        np.concatenate([self.graph.levels, self.graph.neighbors]).astype("<i4").tofile(file)

    def load(self, file: Path, embeddings: JoinedEmbeddings) -> None:
        levels, neighbors = np.split(np.fromfile(file, "<i4"), [len(embeddings)])
        if len(levels) < len(embeddings) or (levels < 0).any() or len(neighbors) != np.sum(self.width * (levels + 2)):
            raise OSError(f"{file} is not a graph of {len(embeddings):,} rows")
        self.graph = Graph(embeddings, self.width, levels, neighbors)

    def candidates(self, queries: Float32s, limits: WalkLimits) -> tuple[Float32s, Ints]:
        """Return the nearest rows that pass, without products; `visits` is efSearch."""
        assert self.graph is not None
        rows = self.graph.nearest(queries, limits)
        return np.zeros((len(queries), 0), np.float32), rows

    def best(
        self, queries: Float32s, limits: WalkLimits, stored: StoredVectors, k: int
    ) -> tuple[list[Best], list[bool]] | None:
        assert self.graph is not None
        return self.graph.best(queries, limits, stored, k)


class Annoy(Searcher):
    """A forest of random projections over angles, for vectors of length 1."""

    parameter = "search_k"

    @property
    def library(self) -> str:
        _annoy()
        return f"annoy {version('annoy')}"

    @property
    def shape(self) -> tuple[int, int]:
        return self.index.get_n_items(), self.index.f

    def build(self, embeddings: JoinedEmbeddings) -> None:
        """Build the trees in one thread, since each thread would use its own seed."""
        lengths = embeddings.norms[embeddings.norms > 0]
        if len(lengths) and max(lengths.max() - 1, 1 - lengths.min()) > 0.02:
            raise ParameterError(
                "Annoy compares angles: it needs an encoder whose vectors have length 1 (normalize=True), "
                "and another dtype than rabitq1 and rabitq2"
            )
        self.index = _annoy()(embeddings.dim, "angular")
        self.index.set_seed(SEED)
        for start in range(0, len(embeddings), BLOCK_VECTORS):
            for row, vector in enumerate(embeddings.decoded(slice(start, start + BLOCK_VECTORS)), start):
                self.index.add_item(row, vector)
        self.index.build(int(self.spec.partition(":")[2]), 1)

    def candidates(self, queries: Float32s, limits: WalkLimits) -> tuple[Float32s, Ints]:
        """Return the nearest rows, with products of 0; `visits` is search_k, the nodes inspected (default: trees x count)."""
        count, visits = limits.count, limits.visits
        products, rows = np.zeros((len(queries), count), np.float32), np.full((len(queries), count), -1, np.int64)
        for query, query_rows in zip(queries, rows, strict=True):
            nearest = self.index.get_nns_by_vector(query, count, -1 if visits is None else visits)
            query_rows[: len(nearest)] = nearest
        return products, rows

    def save(self, file: Path) -> None:
        self.index.save(str(file))

    def load(self, file: Path, embeddings: JoinedEmbeddings) -> None:
        self.index = _annoy()(embeddings.dim, "angular")
        self.index.load(str(file))


def searcher(embeddings: JoinedEmbeddings, spec: str, measure: Callable[[Searcher], dict[str, Any]]) -> Searcher:
    """Return the approximate index `spec` over these vectors: from memory, from the user's cache, or newly built.

    `measure` is called with a newly built index and returns further facts. Raises the errors of `check_algorithm`.
    """

    def load_or_build() -> Searcher:
        check_algorithm(spec)
        index: Searcher = Annoy(spec) if ANNOY.fullmatch(spec) else Hnsw(spec) if GRAPH.fullmatch(spec) else Faiss(spec)
        folder = embeddings.cache / hash_text(spec)[:16]
        if not _load(index, embeddings, folder):
            index.build(embeddings)
            facts = {"algorithm": spec, "library": index.library, "vectors": len(embeddings)}
            index.facts = {**facts, **measure(index)}
            _store(index, embeddings, folder)
        return index

    searchers: Cached[str, Searcher] = embeddings.searchers
    return searchers.get(spec, load_or_build)


def check_algorithm(spec: str) -> None:
    """Check that `spec` is well formed (ParameterError) and that its library is installed (MissingExtraError)."""
    if spec.startswith("annoy") and not ANNOY.fullmatch(spec):
        raise ParameterError(f"{RULE}; it is {spec!r}")
    if ANNOY.fullmatch(spec):
        _annoy()
    elif GRAPH.fullmatch(spec):
        if not MIN_WIDTH <= Hnsw(spec).width <= MAX_WIDTH:
            raise ParameterError(f"a graph has {MIN_WIDTH} to {MAX_WIDTH:,} neighbors a row; {spec!r} is outside this range")
    elif spec != "flat":
        _faiss()


def _load(index: Searcher, embeddings: JoinedEmbeddings, folder: Path) -> bool:
    """Load an index from the cache; return False if it is missing, damaged, or of another version of the library."""
    try:
        artifact = Artifact(folder, KIND)
        if artifact.meta["library"] != index.library:
            return False
        artifact.check()  # the libraries trust the files that they read
        index.load(folder / FILE, embeddings)
        if index.shape != (len(embeddings), embeddings.dim):
            return False
        index.facts = {**settings(artifact.meta), "bytes": artifact.bytes}
        CACHE.use(folder.parent)
        return True
    except (OSError, KeyError, IndexFormatError):
        return False


def _store(index: Searcher, embeddings: JoinedEmbeddings, folder: Path) -> None:
    """Store an index in the cache atomically, if the cache is writable and the vectors are undamaged."""
    with contextlib.suppress(OSError, IndexFormatError):
        embeddings.check()
        CACHE.put(folder, KIND, index.facts, lambda draft: index.save(draft / FILE))
        index.facts["bytes"] = (folder / FILE).stat().st_size


@contextlib.contextmanager
def faiss_threads(threads: int | None) -> Iterator[None]:
    """A block with a number of FAISS threads (None: unchanged) that excludes other searches."""
    with _LOCK:
        previous = _faiss().omp_get_max_threads()
        _faiss().omp_set_num_threads(threads or previous)
        try:
            yield
        finally:
            _faiss().omp_set_num_threads(previous)


@cache
def _faiss() -> Any:
    return library("faiss", "approximate search")


def _annoy() -> Any:
    try:
        from annoy import AnnoyIndex
    except ImportError as e:
        raise MissingExtraError.of("annoy", "annoy", "the algorithm 'annoy:TREES'") from e
    return AnnoyIndex
