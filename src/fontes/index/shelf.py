"""The vectors that an index holds: which there are, those of an encoder, and new ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import IndexFormatError, ParameterError
from .build import Progress
from .embeddings import DTYPES, Embeddings, find
from .encoding import Job, encode
from .segment import Segment

if TYPE_CHECKING:
    from ..neural.encoders.base import Encoder


class Shelf:
    """The vectors of the documents of one segment, by encoder and dtype."""

    def __init__(self, path: Path, folder: Path, segment: Segment) -> None:
        """`path` is the index's, for messages; `folder` the segment's."""
        self._path = path
        self._folder = folder
        self._segment = segment
        self._held = find(folder)

    def sound(self) -> list[Embeddings]:
        """Those that can be read."""
        return [held for held in self._held.values() if isinstance(held, Embeddings)]

    def of(self, encoder: Encoder, dtype: str | None) -> Embeddings:
        """Those of an encoder, the most exact ones where no dtype is given.

        Raises ParameterError where there are none, IndexFormatError where they are damaged.
        """
        fitting = self._fitting(encoder, dtype)
        if not fitting:
            self._held = {**find(self._folder), **self._held}  # another process may have made them
            fitting = self._fitting(encoder, dtype)
        if fitting:
            return fitting[0]
        for held in self._held.values():
            if isinstance(held, IndexFormatError):
                raise held
        remedy = f"index.encode(encoder), or fontes encode {self._path} MODEL, makes them"
        if not self._held:
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
        settings: dict[str, Any] | None,
        vectors_of: Callable[..., Any],
        dtype: str,
        overwrite: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        """Encodes the documents, or makes the vectors of float32 ones that are there. Raises ParameterError for the dtype.

        `settings` are the encoder's, as JSON; `vectors_of` takes the encoder, documents and who is told of progress.
        """
        if dtype not in DTYPES:
            raise ParameterError(f"dtype must be float32, float16 or int8, not {dtype!r}")
        ids = self._segment.ids.tolist()
        full = None if overwrite or dtype == "float32" else next(iter(self._fitting(encoder, "float32")), None)

        def vectors(first: int, last: int, tell: Any) -> Any:
            if full is None:
                return vectors_of(encoder, self._segment.store.read(ids[first:last], range(first, last)), tell)
            a, b = full.rows(first, last)
            bounds = np.arange(last - first + 1) if full.single else full.bounds[first : last + 1] - a
            return full.decoded(slice(a, b)), bounds

        job = Job(encoder.fingerprint, repr(encoder), settings, encoder.dim, dtype, ids, vectors)
        made = encode(self._folder, job, overwrite, progress)
        self._held = {**find(self._folder), **self._held, job.name: made}

    def _fitting(self, encoder: Encoder, dtype: str | None) -> list[Embeddings]:
        """The sound vectors of an encoder, the most exact ones first."""
        fitting = [e for e in self.sound() if e.meta["fingerprint"] == encoder.fingerprint and dtype in (None, e.dtype)]
        return sorted(fitting, key=lambda e: list(DTYPES).index(e.dtype))
