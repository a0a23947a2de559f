"""The vectors that a segment's documents have: which there are, those of an encoder, and new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import IndexFormatError, ParameterError
from ..core.progress import Report
from ..core.values import Doc
from .embeddings import DTYPES, Embeddings, find
from .encoding import Job, VectorsOfDocuments, store_vectors
from .journal import encode
from .leaf import Leaf
from .weights import TermVectors, WeightEncoding, WeightLists, find_weights, weights_of

if TYPE_CHECKING:
    from ..neural.encoders.base import Encoder
    from ..neural.sparse.base import SparseEncoder


class VectorStore:
    """The vectors of the documents of one segment, by encoder and dtype.

    Args:
        path: The index's, for messages.
        folder: The segment's.
        segment: The segment.
    """

    def __init__(self, path: Path, leaves: Sequence[Leaf]) -> None:
        segment = leaves[0].segment if leaves else None
        folder = segment.folder if segment else path / "none"
        self._path = path
        self._folder = folder
        self._segment = segment
        self._stored = find(folder)
        self._weights: dict[str, WeightLists] = {}  # that are open, by the encoder's fingerprint

    def sound(self) -> list[Embeddings]:
        """Those that can be read."""
        return [vectors for vectors in self._stored.values() if isinstance(vectors, Embeddings)]

    def of(self, encoder: Encoder, dtype: str | None) -> Embeddings:
        """Those of an encoder, the most exact ones where `dtype` is None.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        fitting = self._fitting(encoder, dtype)
        if not fitting:
            self._stored = {**find(self._folder), **self._stored}  # another process may have made them
            fitting = self._fitting(encoder, dtype)
        if fitting:
            return fitting[0]
        for vectors in self._stored.values():
            if isinstance(vectors, IndexFormatError):
                raise vectors
        remedy = f"index.encode(encoder), or fontes encode {self._path} MODEL, makes them"
        if not self._stored:
            raise ParameterError(f"{self._path} holds no vectors; {remedy}")
        kind = f"{dtype} vectors" if dtype else "vectors"
        names = " and ".join(f"{e.encoder} ({e.dtype}, fingerprint {e.meta['fingerprint'][:8]})" for e in self.sound())
        raise ParameterError(
            f"{self._path} holds vectors of {names}, but no {kind} of {encoder!r} "
            f"(fingerprint {encoder.fingerprint[:8]}); {remedy}"
        )

    def add(
        self,
        encoder: Encoder,
        settings: str | None,
        vectors_of: Callable[[Encoder, Sequence[Doc], Report], VectorsOfDocuments],
        dtype: str,
        overwrite: bool,
        progress: Report,
    ) -> None:
        """Encodes the documents, or makes the vectors of float32 ones that are there.

        Args:
            encoder: The encoder.
            settings: The text that makes the encoder again, or None.
            vectors_of: Gives the vectors of documents by an encoder.
            dtype: "float32", "float16" or "int8".
            overwrite: Whether vectors that are there already are made again.
            progress: Is called as documents are done.

        Raises:
            ParameterError: There is no such dtype.
        """
        if dtype not in DTYPES:
            raise ParameterError(f"dtype must be float32, float16 or int8, not {dtype!r}")
        ids = self._segment.ids.tolist()
        full = None if overwrite or dtype == "float32" else next(iter(self._fitting(encoder, "float32")), None)

        def vectors(first: int, last: int, report: Report) -> VectorsOfDocuments:
            if full is None:
                return vectors_of(encoder, self._segment.store.read(ids[first:last], range(first, last)), report)
            a, b = full.rows(first, last)
            bounds = np.arange(last - first + 1) if full.single else full.bounds[first : last + 1] - a
            return full.decoded(slice(a, b)), bounds

        job = Job(encoder.fingerprint, repr(encoder), settings, encoder.dim, dtype, ids, vectors)
        new = store_vectors(self._folder, job, overwrite, progress)
        self._stored = {**find(self._folder), **self._stored, job.name: new}

    def sparse(self) -> list[WeightLists]:
        """The weights of terms that can be read."""
        return [lists for lists in find_weights(self._folder, self._segment.ids) if isinstance(lists, WeightLists)]

    def weights(self, encoder: SparseEncoder) -> WeightLists:
        """The weights of terms by an encoder.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        fingerprint = encoder.fingerprint
        if (lists := self._weights.get(fingerprint)) is None:
            if (lists := weights_of(self._folder, self._segment.ids, fingerprint)) is None:
                others = " and ".join(
                    f"{each.meta['encoder']} (fingerprint {each.meta['fingerprint'][:8]})" for each in self.sparse()
                )
                raise ParameterError(
                    f"{self._path} holds no weights of {encoder!r} (fingerprint {fingerprint[:8]})"
                    f"{f', but those of {others}' if others else ''}; index.encode(encoder), or fontes encode {self._path} "
                    "--sparse MODEL, makes them"
                )
            self._weights[fingerprint] = lists
        return lists

    def add_weights(self, encoder: SparseEncoder, settings: str | None, overwrite: bool, progress: Report) -> None:
        """Encodes the documents as weighted terms; the parameters are those of `add`."""
        ids = self._segment.ids

        def vectors(first: int, last: int, report: Report) -> TermVectors:
            ordinals = range(first, last)
            return encoder.encode_documents(self._segment.store.read([ids[i] for i in ordinals], ordinals), report)

        job = WeightEncoding(encoder.fingerprint, repr(encoder), settings, ids, encoder.vocabulary, vectors)
        self._weights[encoder.fingerprint] = encode(self._folder, job, overwrite, progress)

    def _fitting(self, encoder: Encoder, dtype: str | None) -> list[Embeddings]:
        """The sound vectors of an encoder, the most exact ones first."""
        fitting = [e for e in self.sound() if e.meta["fingerprint"] == encoder.fingerprint and dtype in (None, e.dtype)]
        return sorted(fitting, key=lambda e: list(DTYPES).index(e.dtype))
