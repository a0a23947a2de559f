"""Token vectors in an index: files of a segment, joined segments, candidates and scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Bools, Bytes, Float32s, Indices, Int32s, Int64s, Ints, UInt32s
from ...core.errors import IndexFormatError, ParameterError
from ...core.run import order_keys
from ...core.strings import offsets_of
from ...core.work import thread_count
from ...index.component import Described, components
from ...index.embeddings.encoded import EncodedComponent
from ...index.embeddings.encoding import VECTORS
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings, rows_of
from ...index.segment import Leaf, located
from ...storage.arrays import ByteWriter, write_array
from ...storage.artifact import Artifact, ArtifactKind, FileTable, facts_of, read_meta, seal, settings
from ...storage.hashes import hash_json
from ...storage.threads import in_threads
from .colbert import ColBERT
from .estimate import Estimator, interaction, levels_of
from .maxsim import maxsim, padded, products
from .residual import DEFAULT_NBITS, NBITS, WHOLE_NBITS, Codec

if TYPE_CHECKING:
    from ...index import Index
    from ...index.segment import Segment
    from ...index.state import State

SCORED_TOKENS = 1 << 12  # document tokens scored at a time by a thread
CHUNK_VECTORS = 1 << 16  # vectors compressed or copied at a time
CENTROIDS = 1 << 13  # centroids that are worth a thread
LOOKUP_TOKENS = 1 << 21  # document tokens that are worth a thread in centroid interaction
ESTIMATED_TOKENS = 1 << 16  # document tokens that are worth a thread in estimates
QUERY_BATCH = 16  # queries searched exhaustively at a time
REMEDY = "make it again with overwrite=True (fontes encode --late --overwrite)"
WIDTHS = (32, 16, 4, 2, 1)  # bits per dimension, the most exact first
FACTS = ("colbert", "fingerprint", "precision", "nbits", "dim", "centroids", "recall")
KIND = ArtifactKind("fontes-late", 1, "token vectors", REMEDY)


class TokenVectors:
    """Token vectors of a segment's documents by one ColBERT: compressed, or whole with centroids.

    Attributes:
        folder: The folder.
        meta: Metadata: model, fingerprint, nbits, counts, and the measured recall.
        nbits: Bits per dimension.
        documents: Number of documents.
        codec: Centroids and buckets.
        bounds: int64: document i has the tokens bounds[i]:bounds[i + 1].
        codes: int32: the centroid of each token.
        residuals: uint8, a row for each token; None for whole vectors.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifact = artifact = Artifact(folder, KIND)
        self.meta = artifact.meta
        self.nbits = artifact.fact("nbits", int)
        self.documents = artifact.fact("documents", int)
        if self.nbits not in (*NBITS, *WHOLE_NBITS):
            raise artifact.damaged(f"{folder} has {self.nbits} bits per dimension, which is not supported")
        arrays, tokens, centroids = artifact.arrays, artifact.fact("tokens", int), artifact.fact("centroids", int)
        fingerprint, _ = artifact.fact("fingerprint", str), artifact.fact("recall", dict)
        if centroids < 1:
            raise artifact.damaged(f"{folder} has {centroids} centroids")
        self.codec = Codec.load(arrays, centroids, artifact.fact("dim", int), self.nbits if self.nbits in NBITS else 0)
        self.bounds = arrays.bounds("bounds", tokens, self.documents, "<i8")
        self.codes = arrays.numbers("codes", centroids, "<i4", tokens)
        self._lists = arrays.numbers("lists", self.documents, "<i4", None)
        self._list_bounds = arrays.bounds("lists.bounds", len(self._lists), centroids, "<i8")
        self._whole = None if self.nbits in NBITS else whole_vectors(folder.parent, fingerprint, self.nbits)
        self.residuals: Bytes | None = None
        if self._whole is None and self.nbits in WHOLE_NBITS:
            raise IndexFormatError(f"{folder.parent}: the whole token vectors are missing; {REMEDY}")
        if self._whole is None:
            packed = arrays.array("residuals", "|u1", tokens * self.codec.width)
            self.residuals = packed.reshape(tokens, self.codec.width)
        elif len(self._whole) != tokens or self._whole.dim != self.codec.centroids.shape[1]:
            raise artifact.damaged(f"{folder} does not fit {self._whole.folder}")

    def __len__(self) -> int:
        return len(self.codes)

    def vectors(self, docs: Ints) -> tuple[Float32s, Int64s]:
        """Concatenated token vectors of these documents, float32 (tokens, dim), and their bounds, int64 (docs + 1,)."""
        rows, bounds = rows_of(self.bounds, docs)
        return self.rows(rows), bounds

    def rows(self, rows: Int64s) -> Float32s:
        """Token vectors by their row numbers, float32 (rows, dim)."""
        if self._whole is not None:
            return self._whole.decoded(rows)
        assert self.residuals is not None
        return self.codec.decompress(self.codes[rows], self.residuals[rows])

    def documents_with(self, centroids: Indices) -> Bools:
        """Whether each document has a token in one of these centroids, bool (documents,)."""
        present = np.zeros(self.documents, dtype=bool)
        for centroid in centroids.tolist():
            present[self._lists[self._list_bounds[centroid] : self._list_bounds[centroid + 1]]] = True
        return present

    def check(self, deep: bool = False) -> None:
        """Read every file; raise IndexFormatError for a damaged one."""
        self._artifact.check()

    @property
    def bytes(self) -> int:
        """Bytes of all files, whole vectors included."""
        return self._artifact.bytes + (0 if self._whole is None else int(self._whole.info()["bytes"]))

    def check_fits(self, documents: int, other: TokenVectors) -> None:
        """Raise IndexFormatError unless the vectors have this number of documents and the settings of `other`."""
        if self.documents != documents:
            raise self._artifact.damaged(f"{self.folder} is of {self.documents:,} documents, not {documents:,}")
        if (self.nbits, self.codec.centroids.shape) != (other.nbits, other.codec.centroids.shape):
            raise self._artifact.damaged(f"{self.folder} does not fit {other.folder}")

    def check_dim(self, dim: int) -> None:
        """Raise IndexFormatError unless the vectors have `dim` dimensions, as the model's vectors."""
        if (stored_dim := self.codec.centroids.shape[1]) != dim:
            raise self._artifact.damaged(f"{self.folder} has vectors of {stored_dim} dimensions, those of its model have {dim}")

    @property
    def fit(self) -> list[str]:
        """Digests of centroids and buckets, which identify a fit."""
        return fit_of(self._artifact.files)


class JoinedTokens:
    """Token vectors of the live documents of several segments by one ColBERT, in the same number of bits.

    Args:
        leaves: The segments.
        parts: Token vectors of each segment's documents, deleted ones included, with the same centroids and buckets.
        facts: colbert, fingerprint and nbits for an index without segments.

    Attributes:
        parts: As above.
        nbits: Bits per dimension.
        bounds: int64: document i has bounds[i + 1] - bounds[i] tokens.
        meta: Model, fingerprint, nbits, counts, the measured recall, and a digest of the vectors and live documents.

    Raises:
        IndexFormatError: A part belongs to other documents, or parts differ in bits, dimensions or number of centroids.
    """

    def __init__(self, leaves: Sequence[Leaf], parts: Sequence[TokenVectors], facts: dict[str, object] | None = None) -> None:
        self._leaves, self.parts = tuple(leaves), tuple(parts)
        for leaf, part in zip(leaves, parts, strict=True):
            part.check_fits(leaf.segment.documents, parts[0])
        counts = [np.diff(part.bounds)[leaf.live] for leaf, part in zip(leaves, parts, strict=True)]
        self.bounds = offsets_of(np.concatenate([np.zeros(0, np.int64), *counts]))
        meta = parts[0].meta if parts else {"dim": 0, "centroids": 0, "recall": {}, **(facts or {})}
        self.meta: dict[str, Any] = facts_of(meta, FACTS)
        self.meta |= {"documents": self.documents, "tokens": len(self), "digest": self._digest()}
        self.nbits: int = self.meta["nbits"]

    def __len__(self) -> int:
        return int(self.bounds[-1])

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.bounds) - 1

    @property
    def codec(self) -> Codec:
        """The centroids and buckets."""
        return self.parts[0].codec

    def vectors(self, docs: Ints) -> tuple[Float32s, Int64s]:
        """Concatenated token vectors of these documents, float32 (tokens, dim), and their bounds, int64 (docs + 1,)."""
        bounds = offsets_of(self.bounds[docs + 1] - self.bounds[docs])
        vectors = np.empty((0, self.meta["dim"]), dtype=np.float32)
        for number, rows, leaf_docs in located(self._leaves, docs):
            part_vectors, _ = self.parts[number].vectors(leaf_docs)
            if len(rows) == len(docs):
                return part_vectors, bounds
            if len(vectors) < bounds[-1]:
                vectors = np.empty((int(bounds[-1]), part_vectors.shape[1]), dtype=np.float32)
            vectors[rows_of(bounds, rows)[0]] = part_vectors
        return vectors, bounds

    def candidates(
        self,
        query: Float32s,
        nprobe: int,
        threshold: float,
        count: int,
        rescored: int | None = None,
        allowed: Bools | None = None,
    ) -> Int64s:
        """Select documents for exact scoring (PLAID; Santhanam et al., CIKM 2022).

        1. Documents with a token in one of the `nprobe` centroids nearest to a token of the query;
        2. with a `threshold` above -1, of these the best `count` by centroid interaction over centroids at least as similar;
        3. of these the best `count` / 4 by centroid interaction over all centroids;
        4. of these the best `rescored` by MaxSim with residuals in integers (`Estimator`), which is not in the paper.

        A collection of at most `count` / 4 documents is returned whole. With `allowed`, more centroids are probed until there
        are enough allowed documents.

        Args:
            query: Token vectors of the query, float32 (tokens, dim).
            nprobe: Centroids probed for each token of the query.
            threshold: Minimum similarity of a centroid to a token of the query, in step 2.
            count: Number of documents after step 2.
            rescored: Number of documents after step 4; None, `count` / 4 and more, or whole vectors: step 4 is left out.
            allowed: bool (documents,): the documents that pass a filter; None: all.

        Returns:
            Ordinals of documents, ascending.
        """
        self.check_queries([query])
        total = self.documents if allowed is None else int(np.count_nonzero(allowed))
        if total <= count // 4:
            return np.arange(self.documents) if allowed is None else np.flatnonzero(allowed)
        similarities = self._similarities(padded(query))
        of_tokens = np.ascontiguousarray(-similarities[:, : len(query)].T)
        nprobe = min(nprobe, len(similarities))
        while True:
            probed = np.unique(np.argpartition(of_tokens, nprobe - 1, axis=1)[:, :nprobe])
            docs = self._with_centroids(probed, allowed)
            if allowed is None or nprobe == len(similarities) or len(docs) >= count // 4:
                break
            nprobe = min(2 * nprobe, len(similarities))
        levels = levels_of(similarities, len(query), -1)
        rounds = [(levels, count // 4)]
        if threshold > -1:
            rounds.insert(0, (levels_of(similarities, len(query), threshold), count))
        for table, max_docs in rounds:
            if len(docs) > max_docs:

                def look_up(part: TokenVectors, part_docs: Int64s, table: Bytes = table) -> Int64s:
                    return interaction(table, len(query), part.codes, part.bounds, part_docs)

                docs = self._best(docs, max_docs, look_up, LOOKUP_TOKENS)
        if rescored is not None and len(docs) > rescored and self.nbits in NBITS:
            estimator = Estimator.of(self.codec, query, similarities, levels)

            def estimate(part: TokenVectors, part_docs: Int64s) -> Int64s:
                assert part.residuals is not None
                return estimator.scores(part.codes, part.residuals, part.bounds, part_docs)

            docs = self._best(docs, rescored, estimate, ESTIMATED_TOKENS)
        return docs

    def check_queries(self, queries: Sequence[Float32s]) -> None:
        """Raise IndexFormatError unless the stored vectors have as many dimensions as the vectors of queries."""
        for query in queries:
            for part in self.parts[:1]:  # all parts have the same dimensions
                part.check_dim(query.shape[1])

    def _with_centroids(self, centroids: Indices, allowed: Bools | None) -> Int64s:
        """Documents with a token in one of these centroids, ascending."""
        present = np.zeros(self.documents, dtype=bool)
        for leaf, part in zip(self._leaves, self.parts, strict=True):
            of_part = part.documents_with(centroids)
            present[leaf.first : leaf.first + leaf.documents] = of_part if leaf.dead is None else of_part[leaf.live]
        return np.flatnonzero(present if allowed is None else present & allowed)

    def _similarities(self, columns: Float32s) -> Float32s:
        """Products of all centroids with the columns of a query, float32 (centroids, padded tokens)."""
        centroids = self.codec.centroids
        similarities = np.empty((len(centroids), columns.shape[1]), dtype=np.float32)

        def multiply(first: int) -> None:
            products(columns, centroids[first : first + CENTROIDS], similarities[first : first + CENTROIDS])

        in_threads(multiply, range(0, len(centroids), CENTROIDS))
        return similarities

    def _best(self, docs: Int64s, count: int, score: Callable[[TokenVectors, Int64s], Int64s], size: int) -> Int64s:
        """The best `count` documents, ascending, by `score` of a segment's documents, of about `size` tokens for a thread."""
        scores = np.empty(len(docs), dtype=np.int64)
        for number, rows, leaf_docs in located(self._leaves, docs):
            part, part_scores = self.parts[number], np.empty(len(leaf_docs), dtype=np.int64)
            doc_tokens = part.bounds[leaf_docs + 1] - part.bounds[leaf_docs]

            def fill(
                first: int,
                last: int,
                part: TokenVectors = part,
                leaf_docs: Int64s = leaf_docs,
                part_scores: Int64s = part_scores,
            ) -> None:
                part_scores[first:last] = score(part, leaf_docs[first:last])

            edges = edges_of(doc_tokens, max(size, int(doc_tokens.sum()) // thread_count() + 1))
            in_threads(fill, edges[:-1], edges[1:])
            scores[rows] = part_scores
        least = np.partition(scores, -count)[-count]
        chosen = scores > least
        chosen[np.flatnonzero(scores == least)[: count - np.count_nonzero(chosen)]] = True  # the first of equals
        best_docs: Int64s = docs[chosen]
        return best_docs

    def scores(self, query: Float32s, docs: Int64s) -> Float32s:
        """MaxSim of the query with each of these documents, float32 (docs,)."""
        self.check_queries([query])
        (scores,) = scores_of(self, [query], docs)
        return np.asarray(scores)

    def info(self) -> dict[str, Any]:
        """Description of the vectors: model, bits, counts, bytes, recall."""
        facts = {name: value for name, value in self.meta.items() if name not in ("documents", "digest")}
        return {**facts, "bytes": sum(part.bytes for part in self.parts)}

    def _digest(self) -> str:
        if len(self.parts) == 1 and self._leaves[0].dead is None:
            return str(self.parts[0].meta["digest"])
        return hash_json([[part.meta["digest"], leaf.state] for leaf, part in zip(self._leaves, self.parts, strict=True)])


def fit_of(files: FileTable) -> list[str]:
    """Digests of centroids and buckets in a table of files."""
    return [str(files[f"{name}.npy"]["sha256"]) for name in ("centroids", "cutoffs", "weights") if f"{name}.npy" in files]


def search_settings(
    k: int, nprobe: int | None = None, threshold: float | None = None, candidates: int | None = None
) -> tuple[int, float, int, int]:
    """(nprobe, threshold, candidates, rescored) for the best k documents: those given, or the defaults.

    PLAID's own, such as (2, 0.45, 1024) for k up to 100, miss more.
    """
    few = k <= 10
    candidates = (2048 if few else max(4 * k, 4096)) if candidates is None else candidates
    rescored = 20 if few else max(64, 2 * k)
    return (
        4 if nprobe is None else nprobe,
        -1.0 if threshold is None else threshold,
        candidates,
        min(candidates // 4, rescored),
    )


def scores_of(store: JoinedTokens | WholeVectors, queries: Sequence[Float32s], docs: Int64s) -> Float32s:
    """MaxSim of each query with each document, float32 (queries, docs)."""
    scores = np.empty((len(queries), len(docs)), dtype=np.float32)
    edges = edges_of(store.bounds[docs + 1] - store.bounds[docs], SCORED_TOKENS)

    def score(first: int, last: int) -> None:
        vectors, bounds = store.vectors(docs[first:last])
        for row, query in zip(scores, queries, strict=True):
            row[first:last] = maxsim(query, vectors, bounds)

    in_threads(score, edges[:-1], edges[1:])
    return scores


def best(docs: Int64s, scores: Float32s, ranks: UInt32s, k: int) -> Indices:
    """Indices in `docs` of the best k documents in the order of runs; documents without tokens are omitted."""
    rows = np.flatnonzero(scores > -np.inf)
    return rows[np.argsort(order_keys(scores[rows], ranks[docs[rows]]))[::-1][:k]]


def stored_tokens(index: Index | State, colbert: ColBERT, nbits: int | None = None) -> JoinedTokens:
    """Return the token vectors that `encode_late` stored, in `nbits` bits or for None in the most bits.

    Raises:
        ParameterError: Some documents have no token vectors of this model.
        IndexFormatError: The vectors are damaged.
        FontesError: Another process has removed a segment meanwhile.
    """
    return index.state.vectors.of(TOKENS, colbert, nbits)


class WholeVectors:
    """Whole token vectors in the form that `scores_of` reads."""

    def __init__(self, embeddings: JoinedEmbeddings) -> None:
        self._whole = embeddings
        self.bounds = np.arange(embeddings.documents + 1) if embeddings.single else embeddings.bounds

    def vectors(self, docs: Ints) -> tuple[Float32s, Int64s]:
        rows, bounds = rows_of(self.bounds, docs)
        return self._whole.decoded(rows), bounds


def whole_vectors(segment: Path, fingerprint: str, nbits: int) -> Embeddings | None:
    """Read the uncompressed token vectors of a model in 16 or 32 bits; None if missing, IndexFormatError if damaged."""
    folder = VECTORS.folders(segment).get(VECTORS.name_of(fingerprint, "float32" if nbits == 32 else "float16"))
    return None if folder is None else Embeddings(folder)


class TokenVectorsComponent(EncodedComponent[TokenVectors, JoinedTokens], name="late"):
    """Token vectors by ColBERT models, in folders NAME-MODEL-BITS."""

    kind = KIND
    noun = "token vectors"
    forms = WIDTHS
    remedy = "fontes.neural.encode_late(index, colbert), or fontes encode {path} MODEL --late, makes them"
    misfit = "its token vectors have centroids of different fits; encode_late(…, overwrite=True) fits them again"

    def label(self, form: object) -> str:
        return f"token vectors of {form} bits" if form else self.noun

    def described(self, meta: dict[str, Any]) -> str:
        return f"{meta['colbert']} ({meta['nbits']} bits, fingerprint {meta['fingerprint'][:8]})"

    def load(self, folder: Path, segment: Segment) -> TokenVectors:
        return TokenVectors(folder)

    def fit(self, folder: Path) -> list[str]:
        return fit_of(read_meta(folder, KIND)["files"])

    def join(self, leaves: Sequence[Leaf], parts: Sequence[TokenVectors], facts: dict[str, object]) -> JoinedTokens:
        if any(part.fit != parts[0].fit for part in parts):
            raise ParameterError(
                f"{leaves[0].segment.folder.parent} holds token vectors whose centroids were fitted at different times; "
                "fit them again with encode_late(index, colbert, overwrite=True), or fontes encode --late --overwrite"
            )
        if not parts:
            facts = {"colbert": facts["encoder"], "fingerprint": facts["fingerprint"], "nbits": facts["form"] or DEFAULT_NBITS}
        return JoinedTokens(leaves, parts, facts)

    def write_merged(self, leaves: Sequence[Leaf], parts: Sequence[TokenVectors], segment: Path) -> None:
        """Write the token vectors of the live documents, which all parts compress with the same codec."""
        joined, first = self.join(leaves, parts, {}), parts[0]
        rows = [rows_of(part.bounds, leaf.live)[0] for leaf, part in zip(leaves, parts, strict=True)]
        folder = segment / first.folder.name
        folder.mkdir()
        joined.codec.save(folder)
        write_array(folder, "bounds", joined.bounds)
        codes = np.concatenate([part.codes[part_rows] for part, part_rows in zip(parts, rows, strict=True)])
        write_array(folder, "codes", codes)
        write_lists(folder, codes, joined.bounds, len(joined.codec.centroids))
        if first.residuals is not None:
            residuals = ByteWriter(folder, "residuals")
            for part, part_rows in zip(parts, rows, strict=True):
                for start in range(0, len(part_rows), CHUNK_VECTORS):
                    residuals.write(part.residuals[part_rows[start : start + CHUNK_VECTORS]].reshape(-1))  # type: ignore[index]
            residuals.close()
        seal(folder, KIND, {**settings(first.meta), "documents": joined.documents, "tokens": len(joined)})

    def facts(self, state: Described) -> dict[str, Any]:
        sound = state.vectors.sound(self).values()
        return {"token_vectors": [JoinedTokens(leaves, parts).info() for leaves, parts in sound]}


TOKENS: TokenVectorsComponent = components["late"]


def write_lists(draft: Path, codes: Int32s, bounds: Int64s, centroids: int) -> None:
    """Write the inverted lists: for each centroid the documents with a token in it, ascending."""
    documents = len(bounds) - 1
    docs = np.repeat(np.arange(documents, dtype=np.int64), np.diff(bounds))
    keys = np.unique(codes.astype(np.int64) * max(1, documents) + docs)
    list_bounds = np.searchsorted(keys, np.arange(centroids + 1, dtype=np.int64) * max(1, documents))
    write_array(draft, "lists", (keys % max(1, documents)).astype(np.int32))
    write_array(draft, "lists.bounds", list_bounds.astype(np.int64))


def edges_of(tokens: Ints, size: int) -> list[int]:
    """Edges that divide documents, by their numbers of tokens, into parts of about `size` tokens."""
    ends = np.cumsum(tokens)
    inner = np.searchsorted(ends, np.arange(size, ends[-1] if len(ends) else 0, size))
    edges: list[int] = np.unique([0, *inner, len(tokens)]).tolist()
    return edges
