"""The vectors that the documents of an index have: which there are, those of an encoder, and new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ...core.errors import FontesError, IndexFormatError, ParameterError
from ...core.progress import Progress, Report, silent
from ...core.values import Doc
from ...storage.artifact import check_folder, read_settings
from ..leaf import Leaf
from ..segment import Segment
from ..tables import union
from .embeddings import DTYPES, Embeddings, find
from .encoding import Job, VectorEncoding, VectorsOfDocuments
from .joined_embeddings import JoinedEmbeddings, SegmentEmbeddings
from .joined_weights import JoinedWeights
from .journal import Encoding, encode
from .weights import TermVectors, WeightEncoding, WeightLists, find_weights, weights_of

if TYPE_CHECKING:
    from ...cluster.encoding import RemoteEncoder
    from ...neural.encoders.base import Encoder
    from ...neural.sparse.splade import SparseEncoder

Stored = dict[str, Embeddings | IndexFormatError]
T = TypeVar("T")


@dataclass(frozen=True)
class EncodingJob(Generic[T]):
    """How an encoder's vectors are made.

    Args:
        settings: The text that makes the encoder again, or None.
        vectors: Gives the vectors of documents.
        precision: Gives the precision that its models run in; it may have to load them.
    """

    settings: str | None
    vectors: Callable[[Sequence[Doc], Report], T]
    precision: Callable[[], str | None]


class VectorStore:
    """The vectors of the documents of a reader, by encoder and dtype.

    A segment has those of all its documents, deleted ones too; a reader has an encoder's when all its segments have.

    Args:
        path: The index's, for messages.
        leaves: The segments.

    Attributes:
        changes: How often there have been others since it was opened.
    """

    def __init__(self, path: Path, leaves: Sequence[Leaf]) -> None:
        self.changes = 0
        self._path = path
        self._leaves = tuple(leaves)
        self._stored: list[Stored] = [stored_with(leaf.segment) for leaf in leaves]
        self._joined: dict[str, JoinedEmbeddings] = {}  # those that all segments have
        self._weights: dict[str, WeightLists | JoinedWeights] = {}  # by the encoder's fingerprint

    def of(self, encoder: Encoder, dtype: str | None) -> JoinedEmbeddings:
        """Those of an encoder, the most exact ones where `dtype` is None.

        Raises:
            ParameterError: Where there are none, or some documents have none.
            IndexFormatError: Where they are damaged.
            FontesError: Where another process has removed a segment meanwhile.
        """
        if not self._leaves:
            facts = {"encoder": repr(encoder), "settings": None, "fingerprint": encoder.fingerprint, "dim": encoder.dim}
            return JoinedEmbeddings((), {**facts, "dtype": dtype or "float32"})
        if (whole := self._whole(encoder, dtype)) is None:
            self._look_again()  # another process may have made them
            whole = self._whole(encoder, dtype)
        if whole is None:
            raise self._absent(encoder, dtype)
        return whole

    def add(
        self,
        encoder: Encoder,
        making: EncodingJob[VectorsOfDocuments],
        dtype: str | None,
        overwrite: bool,
        progress: Report,
        remote_encoder: RemoteEncoder | None = None,
    ) -> None:
        """Encodes the documents of the segments that have no vectors, or makes them of float32 ones that are there.

        Args:
            encoder: The encoder.
            making: How its vectors are made.
            dtype: "float32", "float16" or "int8"; None: those in which other segments have them, float32 where none has.
            overwrite: Whether vectors that are there already are made again.
            progress: Is called as documents are done.
            elsewhere: The actors that encode; None: it is done here.

        Raises:
            ParameterError: There is no such dtype.
            FontesError: Where another process has removed a segment meanwhile.
        """
        if dtype not in (None, *DTYPES):
            raise ParameterError(f"dtype must be float32, float16 or int8, not {dtype!r}")
        check_there(self._path, self._leaves)
        self._look_again()
        there = {vectors.dtype for stored in self._stored for vectors in self._fitting(stored, encoder, None)}
        for chosen in [dtype] if dtype else sorted(there, key=list(DTYPES).index) or ["float32"]:
            lacking = [overwrite or not self._fitting(stored, encoder, chosen) for stored in self._stored]
            for number, report in in_turn(self._leaves, lacking, progress):
                segment, stored = self._leaves[number].segment, self._stored[number]
                full = None if overwrite or chosen == "float32" else next(iter(self._fitting(stored, encoder, "float32")), None)
                precision = full.meta.get("precision") if full else making.precision() if lacking[number] else None
                job = partial(
                    Job, encoder.fingerprint, repr(encoder), making.settings, encoder.dim, chosen, precision=precision
                )
                if full is None:
                    make = partial(vector_encoding, job, making.vectors)
                    vectors = encode_segment(segment, make, overwrite, report, remote_encoder)
                else:
                    whole = VectorEncoding(job(ids=segment.ids.tolist(), vectors=_decoded(full)))
                    vectors = encode(segment.folder, whole, overwrite, report)
                stored[vectors.name] = vectors
                self._joined.pop(vectors.name, None)
                self.changes += 1

    def weights(self, encoder: SparseEncoder) -> WeightLists | JoinedWeights:
        """The weights of terms by an encoder.

        Raises:
            ParameterError: Where there are none, or some documents have none.
            IndexFormatError: Where they are damaged.
            FontesError: Where another process has removed a segment meanwhile.
        """
        fingerprint = encoder.fingerprint
        if (joined := self._weights.get(fingerprint)) is None:
            check_there(self._path, self._leaves)
            lists = [weights_of(leaf.segment.folder, leaf.segment.ids, fingerprint) for leaf in self._leaves]
            there = [of_leaf for of_leaf in lists if of_leaf is not None]
            if len(there) < len(lists):
                raise self._absent_weights(encoder, [of_leaf is not None for of_leaf in lists])
            if len(there) == 1 and self._leaves[0].dead is None:
                joined = there[0]
            else:
                facts = {"encoder": repr(encoder), "settings": None, "fingerprint": fingerprint}
                joined = JoinedWeights(self._leaves, there, facts)
            self._weights[fingerprint] = joined
        return joined

    def precision(self, fingerprint: str) -> object:
        """The precision in which an encoder has made vectors or weights for some documents; None where that is not known."""
        dense = [vectors.meta for stored in self._stored for vectors in stored.values() if isinstance(vectors, Embeddings)]
        sparse = [lists.meta for leaf in self._leaves for lists in _sparse(leaf.segment)]
        return next((meta.get("precision") for meta in (*dense, *sparse) if meta["fingerprint"] == fingerprint), None)

    def add_weights(
        self,
        encoder: SparseEncoder,
        making: EncodingJob[TermVectors],
        overwrite: bool,
        progress: Report,
        remote_encoder: RemoteEncoder | None = None,
    ) -> None:
        """Encodes the documents as weighted terms; the parameters are those of `add`."""
        check_there(self._path, self._leaves)
        fingerprint = encoder.fingerprint
        lacking = [
            overwrite or all(fingerprint != lists.meta["fingerprint"] for lists in _sparse(leaf.segment))
            for leaf in self._leaves
        ]
        for number, report in in_turn(self._leaves, lacking, progress):
            precision = making.precision() if lacking[number] else None
            facts = fingerprint, repr(encoder), making.settings, precision
            make = partial(weight_encoding, encoder, facts, making.vectors)
            encode_segment(self._leaves[number].segment, make, overwrite, report, remote_encoder)
            self._weights.pop(fingerprint, None)

    def check(self, deep: bool = False) -> None:
        """Reads every file of all that is attached to the segments; `deep` compares their parts with one another as well.

        Raises:
            IndexFormatError: Where anything is not as it was written or does not fit together.
        """
        for leaf in self._leaves:
            folder = leaf.segment.folder
            for attached in (*stored_with(leaf.segment).values(), *find_weights(folder, leaf.segment.ids)):
                if isinstance(attached, IndexFormatError):
                    raise attached
                attached.check(deep)
            for late in sorted(folder.glob("late-*")):
                check_folder(late)

    def info(self) -> dict[str, list[dict[str, Any]]]:
        """What there is, also for some of the documents: "vectors" and "weights", each with the documents that have them."""
        names = dict.fromkeys(name for stored in self._stored for name in stored)
        vectors = [self._vector_info(joined) for name in names if (joined := self._join(name)).shares]
        weights: dict[str, list[WeightLists]] = {}
        for leaf in self._leaves:
            for lists in _sparse(leaf.segment):
                weights.setdefault(lists.meta["fingerprint"], []).append(lists)
        return {"vectors": vectors, "weights": [_weights_info(lists) for lists in weights.values()]}

    def _vector_info(self, joined: JoinedEmbeddings) -> dict[str, Any]:
        stored = map(read_settings, sorted(joined.cache.glob("[!.]*")))
        return {**joined.info(), "approximate": [facts for facts in stored if facts]}

    def _join(self, name: str) -> JoinedEmbeddings:
        """What the segments have of these vectors, as far as they can be read."""
        pairs = ((leaf, stored.get(name)) for leaf, stored in zip(self._leaves, self._stored, strict=True))
        return JoinedEmbeddings(
            [SegmentEmbeddings(leaf, vectors) for leaf, vectors in pairs if isinstance(vectors, Embeddings)]
        )

    def _whole(self, encoder: Encoder, dtype: str | None) -> JoinedEmbeddings | None:
        """The most exact vectors of an encoder that all segments have."""
        for vectors in self._fitting(self._stored[0], encoder, dtype):
            joined = self._joined.get(vectors.name)
            if joined is None and len((new := self._join(vectors.name)).shares) == len(self._leaves):
                joined = self._joined.setdefault(vectors.name, new)
            if joined is not None:
                return joined
        return None

    def _fitting(self, stored: Stored, encoder: Encoder, dtype: str | None) -> list[Embeddings]:
        """The sound vectors of an encoder in a segment, the most exact ones first."""
        sound = [vectors for vectors in stored.values() if isinstance(vectors, Embeddings)]
        fitting = [e for e in sound if e.fingerprint == encoder.fingerprint and dtype in (None, e.dtype)]
        return sorted(fitting, key=lambda e: list(DTYPES).index(e.dtype))

    def _look_again(self) -> None:
        self.changes += 1
        self._stored = [
            {**stored_with(leaf.segment), **stored} for leaf, stored in zip(self._leaves, self._stored, strict=True)
        ]

    def _absent(self, encoder: Encoder, dtype: str | None) -> FontesError:
        """The error that says what there is instead."""
        check_there(self._path, self._leaves)
        for vectors in (vectors for stored in self._stored for vectors in stored.values()):
            if isinstance(vectors, IndexFormatError):
                return vectors
        remedy = f"index.encode(encoder), or fontes encode {self._path} MODEL, makes them"
        kind = f"{dtype} vectors" if dtype else "vectors"
        if covered := self._covered([bool(self._fitting(stored, encoder, dtype)) for stored in self._stored]):
            return ParameterError(f"{self._path} holds {kind} of {encoder!r} for {covered} documents; {remedy} for the others")
        joined = [self._join(name) for name in dict.fromkeys(name for stored in self._stored for name in stored)]
        if not joined:
            return ParameterError(f"{self._path} holds no vectors; {remedy}")
        names = " and ".join(f"{each.encoder} ({each.dtype}, fingerprint {each.fingerprint[:8]})" for each in joined)
        return ParameterError(
            f"{self._path} holds vectors of {names}, but no {kind} of {encoder!r} "
            f"(fingerprint {encoder.fingerprint[:8]}); {remedy}"
        )

    def _absent_weights(self, encoder: SparseEncoder, have: Sequence[bool]) -> ParameterError:
        """The error that says what there is instead."""
        remedy = f"index.encode(encoder), or fontes encode {self._path} --sparse MODEL, makes them"
        if covered := self._covered(have):
            return ParameterError(f"{self._path} holds weights of {encoder!r} for {covered} documents; {remedy} for the others")
        others = {facts["encoder"]: facts["fingerprint"] for facts in self.info()["weights"]}
        names = " and ".join(f"{name} (fingerprint {fingerprint[:8]})" for name, fingerprint in others.items())
        return ParameterError(
            f"{self._path} holds no weights of {encoder!r} (fingerprint {encoder.fingerprint[:8]})"
            f"{f', but those of {names}' if others else ''}; {remedy}"
        )

    def _covered(self, have: Sequence[bool]) -> str:
        """How many documents of how many are in the segments that have something; nothing where none has."""
        covered = sum(leaf.documents for leaf, has in zip(self._leaves, have, strict=True) if has)
        return f"{covered:,} of {sum(leaf.documents for leaf in self._leaves):,}" if covered else ""


def stored_with(segment: Segment) -> Stored:
    """The vectors of a segment's documents by the names of their jobs; for those that are damaged or of others the error."""
    stored = find(segment.folder)
    for name, vectors in stored.items():
        if isinstance(vectors, Embeddings) and vectors.documents != segment.documents:
            stored[name] = vectors.damaged(f"of {vectors.documents:,} documents, not {segment.documents:,}")
    return stored


def check_there(path: Path, leaves: Sequence[Leaf]) -> None:
    """Raises FontesError where another process has merged a segment into another one, or replaced the index."""
    if not all(leaf.segment.folder.is_dir() for leaf in leaves):
        raise FontesError(f"{path} has changed since it was opened; index.refresh() goes on with what it is now")


def encode_segment(
    segment: Segment,
    make: Callable[[Segment], Encoding[T]],
    overwrite: bool,
    progress: Report,
    remote_encoder: RemoteEncoder | None,
) -> T:
    """Encodes the documents of a segment and stores what comes of it there, unless that is done; see `journal.encode`.

    Args:
        segment: The segment.
        make: Makes the encoding of a segment; it can travel.
        overwrite: Whether it is encoded again where it is there.
        progress: Is called as documents are done.
        elsewhere: The actors that encode; None: it is done here.
    """
    blocks = None if remote_encoder is None else remote_encoder.blocks(make, segment)
    return encode(segment.folder, make(segment), overwrite, progress, blocks)


def vector_encoding(
    job: Callable[..., Job], vectors: Callable[[Sequence[Doc], Report], VectorsOfDocuments], segment: Segment
) -> VectorEncoding:
    """The encoding of a segment's documents as vectors, by a job that lacks `ids` and `vectors`."""
    return VectorEncoding(job(ids=segment.ids.tolist(), vectors=_encoded(segment, vectors)))


def weight_encoding(
    encoder: SparseEncoder,
    facts: tuple[str, str, str | None, str | None],
    vectors: Callable[[Sequence[Doc], Report], TermVectors],
    segment: Segment,
) -> WeightEncoding:
    """The encoding of a segment's documents as weights of terms."""
    fingerprint, name, settings, precision = facts
    own = _encoded(segment, vectors)
    return WeightEncoding(fingerprint, name, settings, segment.ids, encoder.vocabulary, own, precision)


def docs_of(segment: Segment, first: int, last: int) -> list[Doc]:
    """The documents of a segment from one place up to another, deleted ones too."""
    places = range(first, last)
    return segment.read([segment.ids[place] for place in places], places)


def in_turn(leaves: Sequence[Leaf], lacking: Sequence[bool], progress: Report) -> Iterator[tuple[int, Report]]:
    """The numbers of the segments that lack something, and for each what reports its documents among those of all.

    Args:
        leaves: The segments.
        lacking: For each whether its documents are to be encoded.
        progress: Is called as documents are done.
    """
    total = sum(leaf.segment.documents for leaf, lacks in zip(leaves, lacking, strict=True) if lacks)
    first = 0

    def shifted(offset: int, now: Progress) -> None:
        part = (offset + (now.fraction or 0.0) * (now.total or 0)) / max(1, total)
        progress(replace(now, done=offset + now.done, total=total, part=part, before=offset + now.before))

    for number, lacks in enumerate(lacking):
        yield number, partial(shifted, first) if lacks else silent
        first += leaves[number].segment.documents if lacks else 0


def _encoded(segment: Segment, vectors: Callable[[Sequence[Doc], Report], T]) -> Callable[[int, int, Report], T]:
    """The vectors of a segment's documents from one place up to another, by an encoder."""
    return lambda first, last, report: vectors(docs_of(segment, first, last), report)


def _decoded(full: Embeddings) -> Callable[[int, int, Report], VectorsOfDocuments]:
    """The same, out of those that are stored in float32."""

    def vectors(first: int, last: int, report: Report) -> VectorsOfDocuments:
        a, b = full.rows(first, last)
        bounds = np.arange(last - first + 1) if full.single else full.bounds[first : last + 1] - a
        return full.decoded(slice(a, b)), bounds

    return vectors


def _weights_info(lists: Sequence[WeightLists]) -> dict[str, Any]:
    """What the segments have of an encoder's weights, together, those of deleted documents too."""
    facts = [of_segment.info() for of_segment in lists]
    sums = {name: sum(each[name] for each in facts) for name in ("documents", "postings", "bytes")}
    return {**facts[0], **sums, "terms": len(union([of_segment.terms for of_segment in lists])[0])}


def _sparse(segment: Segment) -> list[WeightLists]:
    """The weights of a segment that can be read."""
    return [lists for lists in find_weights(segment.folder, segment.ids) if isinstance(lists, WeightLists)]
