"""Token vectors in an index: opened, joined over its segments, their candidates, their scores."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError, ParameterError
from ...core.run import order_keys
from ...index.embeddings.embeddings import Embeddings, find
from ...index.embeddings.joined_embeddings import JoinedEmbeddings, rows_of
from ...index.embeddings.store import check_there
from ...index.leaf import Leaf, located
from ...storage.artifact import Artifact, ArtifactKind, FileTable, read_meta
from ...storage.caches import Attached, Cached
from ...storage.hashes import hash_json, hash_text
from .colbert import ColBERT
from .maxsim import interaction, maxsim, padded
from .pieces import edges_of, in_threads
from .residual import FITTING, NBITS, WHOLE, Codec

if TYPE_CHECKING:
    from ...index import Index
    from ...index.state import State

TOKENS = 1 << 12  # of documents that a thread scores at a time
LOOKED_UP = 1 << 16  # of documents whose centroids are worth a thread
TOGETHER = 16  # queries that are searched exhaustively at a time
REMEDY = "make it again with overwrite=True (fontes encode --late --overwrite)"
WIDTHS = (32, 16, 4, 2, 1)  # bits a dimension, the most exact ones first
FACTS = ("colbert", "fingerprint", "precision", "nbits", "dim", "centroids", "recall")
KIND = ArtifactKind("fontes-late", 1, "token vectors", REMEDY)


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
        residuals: uint8, a row for each token; None where the vectors are kept whole.

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
        fingerprint, _ = artifact.fact("fingerprint", str), artifact.fact("recall", dict)
        if centroids < 1:
            raise artifact.damaged(f"{folder} has {centroids} centroids")
        self.codec = Codec.load(arrays, centroids, artifact.fact("dim", int), self.nbits if self.nbits in NBITS else 0)
        self.bounds = arrays.bounds("bounds", tokens, self.documents, "<i8")
        self.codes = arrays.numbers("codes", centroids, "<i4", tokens)
        self._lists = arrays.numbers("lists", self.documents, "<i4", None)
        self._list_bounds = arrays.bounds("lists.bounds", len(self._lists), centroids, "<i8")
        self._whole = None if self.nbits in NBITS else _whole(folder.parent, fingerprint, self.nbits)
        self.residuals: NDArray[np.uint8] | None = None
        if self._whole is None:
            packed = arrays.array("residuals", "|u1", tokens * self.codec.width)
            self.residuals = packed.reshape(tokens, self.codec.width)
        elif len(self._whole) != tokens or self._whole.dim != self.codec.centroids.shape[1]:
            raise artifact.damaged(f"{folder} does not fit {self._whole.folder}")

    def __len__(self) -> int:
        return len(self.codes)

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The token vectors of these documents end to end, as far as they are kept, and where those of each start."""
        rows, bounds = rows_of(self.bounds, docs)
        if self._whole is not None:
            return self._whole.decoded(rows), bounds
        assert self.residuals is not None
        return self.codec.decompress(self.codes[rows], self.residuals[rows]), bounds

    def documents_with(self, centroids: NDArray[np.intp]) -> NDArray[np.bool_]:
        """For each document whether it has a token in one of these centroids."""
        there = np.zeros(self.documents, dtype=bool)
        for centroid in centroids.tolist():
            there[self._lists[self._list_bounds[centroid] : self._list_bounds[centroid + 1]]] = True
        return there

    def check(self) -> None:
        """Reads every file.

        Raises:
            IndexFormatError: Where anything is not as it was written.
        """
        self._artifact.check()

    @property
    def bytes(self) -> int:
        """The bytes of all files, those of the whole vectors too."""
        return self._artifact.bytes + (0 if self._whole is None else int(self._whole.info()["bytes"]))

    def check_fits(self, documents: int, other: TokenVectors) -> None:
        """Raises IndexFormatError unless they are of so many documents, and of the same kind as those of another segment."""
        if self.documents != documents:
            raise self._artifact.damaged(f"{self.folder} is of {self.documents:,} documents, not {documents:,}")
        if (self.nbits, self.codec.centroids.shape) != (other.nbits, other.codec.centroids.shape):
            raise self._artifact.damaged(f"{self.folder} does not fit {other.folder}")

    def check_dim(self, dim: int) -> None:
        """Raises IndexFormatError unless they have as many dimensions as the model's vectors."""
        if (own := self.codec.centroids.shape[1]) != dim:
            raise self._artifact.damaged(f"{self.folder} has vectors of {own} dimensions, those of its model have {dim}")

    @property
    def fit(self) -> list[str]:
        """What tells their centroids and buckets from those of another fit."""
        return fit_of(self._artifact.files)


class JoinedTokens:
    """The token vectors of the living documents of a reader by one ColBERT, in as many bits.

    Args:
        leaves: The segments.
        parts: The token vectors of each segment's documents, deleted ones too; they have the same centroids and buckets.
        facts: What is known of them where there are no segments: colbert, fingerprint, nbits.

    Attributes:
        parts: The same.
        nbits: Bits a dimension.
        bounds: int64: document i has so many tokens as bounds[i + 1] - bounds[i].
        meta: Model, fingerprint, nbits, counts, the recall that was measured, and a digest of the vectors and of what lives.

    Raises:
        IndexFormatError: They are of other documents, or of different kinds.
    """

    def __init__(self, leaves: Sequence[Leaf], parts: Sequence[TokenVectors], facts: dict[str, Any] | None = None) -> None:
        self._leaves, self.parts = tuple(leaves), tuple(parts)
        for leaf, part in zip(leaves, parts, strict=True):
            part.check_fits(leaf.segment.documents, parts[0])
        counts = [np.diff(part.bounds)[leaf.live] for leaf, part in zip(leaves, parts, strict=True)]
        self.bounds = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))]).astype(np.int64)
        nothing = {"dim": 0, "centroids": 0, "recall": {}, **(facts or {})}
        meta = parts[0].meta if parts else nothing
        self.meta: dict[str, Any] = {name: meta.get(name) for name in FACTS}
        self.meta |= {"documents": self.documents, "tokens": len(self), "digest": self._digest()}
        self.nbits: int = self.meta["nbits"]

    def __len__(self) -> int:
        return int(self.bounds[-1])

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.bounds) - 1

    @property
    def codec(self) -> Codec:
        """The centroids and buckets."""
        return self.parts[0].codec

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The token vectors of these documents end to end, as far as they are kept, and where those of each start."""
        bounds = np.concatenate([[0], np.cumsum(self.bounds[docs + 1] - self.bounds[docs])]).astype(np.int64)
        vectors = np.empty((0, self.meta["dim"]), dtype=np.float32)
        for number, here, places in located(self._leaves, docs):
            own, _ = self.parts[number].vectors(places)
            if len(here) == len(docs):
                return own, bounds
            if len(vectors) < bounds[-1]:
                vectors = np.empty((int(bounds[-1]), own.shape[1]), dtype=np.float32)
            vectors[rows_of(bounds, here)[0]] = own
        return vectors, bounds

    def candidates(
        self,
        query: NDArray[np.float32],
        nprobe: int,
        threshold: float,
        count: int,
        allowed: NDArray[np.bool_] | None = None,
        threads: int = 1,
    ) -> NDArray[np.int64]:
        """The documents that are worth an exact score (Santhanam et al., CIKM 2022: PLAID).

        Those with a token in one of the `nprobe` centroids nearest to a token of the query; of these the best `count` by
        centroid interaction over the centroids that come as near as `threshold` to the query; of these the best quarter by
        centroid interaction over all. All documents, where they are no more than would be left. Where only some are `allowed`,
        more centroids are looked into until there are enough of them.
        """
        self.check_queries([query])
        total = self.documents if allowed is None else int(np.count_nonzero(allowed))
        if total <= count // 4:
            return np.arange(self.documents) if allowed is None else np.flatnonzero(allowed)
        similarities = self.codec.centroids @ padded(query)
        tokens, nprobe = len(query), min(nprobe, len(similarities))
        while True:
            probed = np.unique(np.argpartition(-similarities[:, :tokens], nprobe - 1, axis=0)[:nprobe])
            docs = self._with_centroids(probed, allowed)
            if allowed is None or nprobe == len(similarities) or len(docs) >= count // 4:
                break
            nprobe = min(2 * nprobe, len(similarities))
        for least, most in ((threshold, count), (-np.inf, count // 4)):
            if len(docs) > most:
                scores = self._interaction(similarities, tokens, docs, least, threads)
                docs = np.sort(docs[np.argsort(-scores, kind="stable")[:most]])
        return docs

    def check_queries(self, queries: Sequence[NDArray[np.float32]]) -> None:
        """Raises IndexFormatError unless they have as many dimensions as the vectors of queries."""
        for query in queries:
            for part in self.parts[:1]:  # the others are of the same kind
                part.check_dim(query.shape[1])

    def _with_centroids(self, centroids: NDArray[np.intp], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The documents with a token in one of these centroids, ascending."""
        there = np.zeros(self.documents, dtype=bool)
        for leaf, part in zip(self._leaves, self.parts, strict=True):
            own = part.documents_with(centroids)
            there[leaf.first : leaf.first + leaf.documents] = own if leaf.dead is None else own[leaf.live]
        return np.flatnonzero(there if allowed is None else there & allowed)

    def _interaction(
        self, similarities: NDArray[np.float32], tokens: int, docs: NDArray[np.int64], least: float, threads: int
    ) -> NDArray[np.float32]:
        scores = np.empty(len(docs), dtype=np.float32)
        for number, here, places in located(self._leaves, docs):
            part, near = self.parts[number], np.empty(len(places), dtype=np.float32)
            tokens_of = part.bounds[places + 1] - part.bounds[places]

            def look_up(first: int, last: int, part: TokenVectors = part, places: Any = places, near: Any = near) -> None:
                near[first:last] = interaction(similarities, tokens, part.codes, part.bounds, places[first:last], least)

            in_threads(look_up, edges_of(tokens_of, max(LOOKED_UP, int(tokens_of.sum()) // threads + 1)), threads)
            scores[here] = near
        return scores

    def scores(self, query: NDArray[np.float32], docs: NDArray[np.int64], threads: int = 1) -> NDArray[np.float32]:
        """MaxSim of the query with each of these documents; `threads` do not change it."""
        self.check_queries([query])
        (scores,) = scores_of(self, [query], docs, threads)
        return np.asarray(scores)

    def info(self) -> dict[str, Any]:
        """What there is: model, bits, counts, bytes, recall."""
        facts = {name: value for name, value in self.meta.items() if name not in ("documents", "digest")}
        return {**facts, "bytes": sum(part.bytes for part in self.parts)}

    def _digest(self) -> str:
        if len(self.parts) == 1 and self._leaves[0].dead is None:
            return str(self.parts[0].meta["digest"])
        return hash_json([[part.meta["digest"], leaf.state] for leaf, part in zip(self._leaves, self.parts, strict=True)])


def fit_of(files: FileTable) -> list[str]:
    """The digests of centroids and buckets in a table of files."""
    return [str(files[f"{name}.npy"]["sha256"]) for name in ("centroids", "cutoffs", "weights") if f"{name}.npy" in files]


def effort(k: int) -> tuple[int, float, int]:
    """(nprobe, threshold, candidates) for the best k documents: as PLAID chooses them for the next larger k.

    With PLAID's own a twentieth of the best 10, and a tenth of the best 100, would be passed over.
    """
    if k <= 10:
        return 2, 0.45, 1024
    return 4, 0.4, max(4 * k, 4096)


def scores_of(
    store: Any, queries: Sequence[NDArray[np.float32]], docs: NDArray[np.int64], threads: int = 1
) -> NDArray[np.float32]:
    """MaxSim of each query with each of these documents, (queries, documents). `store` has `bounds` and `vectors(docs)`."""
    scores = np.empty((len(queries), len(docs)), dtype=np.float32)
    edges = edges_of(store.bounds[docs + 1] - store.bounds[docs], TOKENS)

    def part(first: int, last: int) -> None:
        vectors, bounds = store.vectors(docs[first:last])
        for row, query in zip(scores, queries, strict=True):
            row[first:last] = maxsim(query, vectors, bounds)

    in_threads(part, edges, threads)
    return scores


def best(docs: NDArray[np.int64], scores: NDArray[np.float32], ranks: NDArray[np.uint32], k: int) -> NDArray[np.intp]:
    """The places in `docs` of the best k in the one order; documents without a token are none."""
    there = np.flatnonzero(scores > -np.inf)
    return there[np.argsort(order_keys(scores[there], ranks[docs[there]]))[::-1][:k]]


def stored(index: Index | State, colbert: ColBERT, nbits: int | None = None) -> JoinedTokens:
    """The token vectors that `encode_late` stored; of several the ones with most bits.

    Raises:
        ParameterError: There are none of this model, or some documents have none.
        IndexFormatError: They are damaged.
        FontesError: Another process has removed a segment meanwhile.
    """
    fingerprint, reader = colbert.fingerprint, index.state

    def open_() -> JoinedTokens:
        leaves = reader.leaves
        if not leaves:
            return JoinedTokens((), (), {"colbert": repr(colbert), "fingerprint": fingerprint, "nbits": nbits or FITTING})
        widths = [bits for bits in WIDTHS if nbits in (None, bits)]
        for bits in widths:
            folders = [leaf.segment.folder / folder_name(fingerprint, bits) for leaf in leaves]
            if all(folder.is_dir() for folder in folders):
                return joined(reader, leaves, folders)
        check_there(reader.path, leaves)
        raise ParameterError(_absent(reader, colbert, nbits))

    return _OPEN.of(reader).get((fingerprint, nbits), open_)


def joined(index: State, leaves: Sequence[Leaf], folders: Sequence[Path]) -> JoinedTokens:
    """The token vectors in these folders, one for each segment.

    Raises:
        IndexFormatError: They are damaged.
        ParameterError: They have not the same centroids.
    """
    parts = [TokenVectors(folder) for folder in folders]
    if any(part.fit != parts[0].fit for part in parts):
        raise ParameterError(
            f"{index.path} holds token vectors whose centroids were fitted at different times; "
            "fit them again with encode_late(index, colbert, overwrite=True), or fontes encode --late --overwrite"
        )
    return JoinedTokens(leaves, parts)


def _no_vectors(index: State) -> Cached[tuple[str, int | None], JoinedTokens]:
    return Cached()


_OPEN = Attached("token_vectors", _no_vectors)


def forget(index: State) -> None:
    """Closes the token vectors that are open, as there are others now."""
    _OPEN.of(index).clear()


def widths_of(index: State, fingerprint: str) -> list[int]:
    """In how many bits some documents have token vectors of a model, most bits first."""
    folders = [leaf.segment.folder for leaf in index.leaves]
    return [bits for bits in WIDTHS if any((folder / folder_name(fingerprint, bits)).is_dir() for folder in folders)]


def _absent(index: State, colbert: ColBERT, nbits: int | None) -> str:
    kind = f"token vectors of {nbits} bits" if nbits else "token vectors"
    remedy = f"fontes.neural.encode_late(index, colbert), or fontes encode {index.path} MODEL --late, makes them"
    covered: dict[int, int] = {}
    others: dict[str, None] = {}
    for leaf in index.leaves:
        for folder in sorted(leaf.segment.folder.glob("late-*")):
            with contextlib.suppress(IndexFormatError):
                meta = read_meta(folder, KIND)
                others[f"{meta['colbert']} ({meta['nbits']} bits, fingerprint {meta['fingerprint'][:8]})"] = None
                if meta["fingerprint"] == colbert.fingerprint and nbits in (None, meta["nbits"]):
                    covered[meta["nbits"]] = covered.get(meta["nbits"], 0) + leaf.documents
    if covered:
        most = max(covered.values())
        return f"{index.path} holds {kind} of {colbert!r} for {most:,} of {len(index):,} documents; {remedy} for the others"
    there = f"; it holds those of {' and '.join(others)}" if others else ""
    return f"{index.path} holds no {kind} of {colbert!r} (fingerprint {colbert.fingerprint[:8]}){there}; {remedy}"


class WholeVectors:
    """Token vectors that are kept whole, as `scores_of` reads them."""

    def __init__(self, whole: JoinedEmbeddings) -> None:
        self._whole = whole
        self.bounds = np.arange(whole.documents + 1) if whole.single else whole.bounds

    def vectors(self, docs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As `TokenVectors.vectors`."""
        rows, bounds = rows_of(self.bounds, docs)
        return self._whole.decoded(rows), bounds


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
