"""Weights of terms that a model gave the documents of a segment: an inverted index of its own beside that of their text."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError, InputError, ParameterError
from ...core.progress import Report
from ...core.strings import Strings
from ...storage.artifact import Artifact, ArtifactKind, commit, seal
from ...storage.hashes import hash_text
from ...storage.interrupts import uninterrupted
from ..inverted import PostingLists
from ..postings import PostingsWriter
from .journal import Column, Encoding

SCALE = 10_000  # weights are stored as whole numbers: to four decimals
MAX_WEIGHT = 200_000  # a weight; times SCALE it fits into 31 bits
MEMORY = 1 << 30  # bytes that postings take before they are written to disk
PIECE = 1 << 20  # postings that are read of an encoding at a time
REMEDY = "encode again with overwrite=True (fontes encode --overwrite)"
KIND = ArtifactKind("fontes-weights", 1, "weights of terms", REMEDY)


@dataclass(frozen=True, eq=False)
class TermVectors(Sequence[Mapping[str, float]]):
    """Texts as weighted terms: a sequence with, for each text, its terms and their weights, the greatest first.

    Args:
        vocabulary: The terms by number.
        bounds: int64: text i has terms[bounds[i]:bounds[i + 1]], in ascending order.
        terms: int32: their numbers.
        weights: float32: their weights, all above 0.
    """

    vocabulary: Sequence[str]
    bounds: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        own = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        terms, weights = self.terms[own], self.weights[own]
        order = np.argsort(-weights, kind="stable")
        return {self.vocabulary[term]: float(weight) for term, weight in zip(terms[order], weights[order], strict=True)}


class Scaled:
    """What all lists of weights have, of one segment or of several."""

    meta: dict[str, Any]
    cf: NDArray[np.integer[Any]]

    @property
    def scale(self) -> float:
        """What weights were multiplied by when they were stored."""
        return float(self.meta["scale"])

    @cached_property
    def tokens(self) -> int:
        """The sum of all weights, times the scale."""
        return int(self.cf.sum(dtype=np.int64))


class WeightLists(Scaled, PostingLists):
    """The weights of a segment's documents by one encoder, as lexical search takes them: see `inverted.Searchable`.

    A document's "frequency" of a term is its weight times SCALE.

    Attributes:
        folder: Where they are.
        meta: Their metadata: encoder, settings, fingerprint, scale, counts, files, digest.
        ids: The ids of the documents.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, ids: Strings) -> None:
        self.folder, self.ids = folder, ids
        self._artifact = Artifact(folder, KIND)
        self.meta = self._artifact.meta
        if (documents := self._artifact.fact("documents", int)) != len(ids):
            raise self._artifact.damaged(f"{folder} has the weights of {documents} documents, not {len(ids)}")
        if self._artifact.fact("scale", int) < 1:
            raise self._artifact.damaged(f"{folder} has the scale {self.meta['scale']}")
        counts = {name: self._artifact.fact(name, int) for name in ("terms", "postings")}
        self._artifact.fact("fingerprint", str)
        super().__init__(folder, len(ids), REMEDY, counts)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def fingerprint(self) -> str:
        """The digest of all files."""
        return self._artifact.digest

    @cached_property
    def is_sound(self) -> bool:
        """Whether the files are as they were written."""
        try:
            self.check_files()
        except IndexFormatError:
            return False
        return True

    def check(self, deep: bool = True) -> None:
        """Reads every file; `deep` compares them with one another as well."""
        self.check_files()
        if deep:
            super().check()

    def check_files(self) -> None:
        """Raises IndexFormatError where a file is not as it was written."""
        self._artifact.check()

    def info(self) -> dict[str, Any]:
        """What there is: encoder, fingerprint, scale, counts, bytes."""
        facts = ("encoder", "settings", "fingerprint", "precision", "scale", "documents", "terms", "postings")
        return {**{key: self.meta.get(key) for key in facts}, "bytes": self._artifact.bytes}


def find_weights(segment: Path, ids: Strings) -> Iterator[WeightLists | IndexFormatError]:
    """All weights of a segment's documents; for damaged ones the error."""
    for folder in sorted(segment.glob("sparse-*")):
        try:
            yield WeightLists(folder, ids)
        except IndexFormatError as error:
            if folder.exists():
                yield error


def weights_of(segment: Path, ids: Strings, fingerprint: str) -> WeightLists | None:
    """The weights by the encoder with a fingerprint; None where there are none.

    Raises:
        IndexFormatError: They are damaged.
    """
    folder = segment / _folder(fingerprint)
    return WeightLists(folder, ids) if folder.is_dir() else None


def _folder(fingerprint: str) -> str:
    return f"sparse-{hash_text(fingerprint)[:16]}"


class WeightEncoding(Encoding[WeightLists]):
    """Weights of the documents of a segment.

    Args:
        fingerprint: The encoder's.
        encoder: What the encoder calls itself.
        settings: The text that makes the encoder again, or None.
        ids: The ids of the documents.
        vocabulary: The terms by number.
        vectors: Gives the weights of the documents from one ordinal up to another. It may report how many are done.
        precision: The precision that its models run in; None where nobody knows.
    """

    noun = "weights"

    def __init__(
        self,
        fingerprint: str,
        encoder: str,
        settings: str | None,
        ids: Strings,
        vocabulary: Sequence[str],
        vectors: Callable[[int, int, Report], TermVectors],
        precision: str | None,
    ) -> None:
        self.ids: Strings = ids
        self.place, self._vocabulary, self._vectors = _folder(fingerprint), vocabulary, vectors
        self._fingerprint = fingerprint
        named = {"encoder": encoder, "settings": settings, "fingerprint": fingerprint, "precision": precision}
        self._facts: dict[str, Any] = {**named, "scale": SCALE}
        self.settings = {"version": KIND.version, **self._facts, "documents": len(ids)}
        self.columns = (Column("numbers", 4), Column("weights", 4), Column("counts", 4, of_documents=True))

    def existing(self, segment: Path) -> WeightLists | None:
        with contextlib.suppress(IndexFormatError):
            return weights_of(segment, self.ids, self._fingerprint)
        return None

    def block(self, first: int, last: int, report: Report) -> tuple[NDArray[Any], ...]:
        vectors = self._vectors(first, last, report)
        self._check(vectors, first, last)
        stored = np.rint(vectors.weights.astype(np.float64) * SCALE).astype(np.int32)
        kept = stored > 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return vectors.terms[kept], stored[kept], np.diff(before[vectors.bounds]).astype(np.uint32)

    def finish(self, segment: Path, draft: Path, rows: int) -> WeightLists:
        whole = draft / "whole"
        shutil.rmtree(whole, ignore_errors=True)  # of a process that was killed
        whole.mkdir()
        postings = PostingsWriter(whole, Strings.of(self._vocabulary), MEMORY)
        bounds = np.concatenate([[0], np.cumsum(np.fromfile(draft / "counts", "<u4"), dtype=np.int64)])
        columns = [np.memmap(draft / name, "<i4", "r", shape=rows) if rows else np.zeros(0) for name in ("numbers", "weights")]
        first = 0
        while first < len(self.ids):
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + PIECE, side="right")) - 1)
            own, here = slice(int(bounds[first]), int(bounds[last])), bounds[first : last + 1] - bounds[first]
            numbers, weights = (np.array(column[own], dtype=np.int32) for column in columns)
            sums = np.concatenate([[0], np.cumsum(weights, dtype=np.int64)])
            postings.append(numbers, weights, here, np.diff(sums[here]))
            first = last
        counts = postings.close()
        seal(whole, KIND, {**self._facts, "documents": len(self.ids), "terms": counts["terms"], "postings": counts["postings"]})
        folder = segment / self.place
        with uninterrupted():
            commit(whole, folder)
            shutil.rmtree(draft, ignore_errors=True)
        return WeightLists(folder, self.ids)

    def _check(self, vectors: TermVectors, first: int, last: int) -> None:
        """Raises InputError for a weight that cannot be stored, ParameterError for vectors of another shape."""
        bounds, terms, encoder = vectors.bounds, vectors.terms, self._facts["encoder"]
        fit = len(bounds) == last - first + 1 and bounds[0] == 0 and bounds[-1] == len(terms) == len(vectors.weights)
        starts = np.zeros(len(terms) + 1, dtype=bool)
        if fit:
            starts[bounds] = True
        if (
            not fit
            or not np.all((np.diff(terms, prepend=-1) > 0) | starts[:-1])
            or np.any((terms < 0) | (terms >= len(vectors.vocabulary)))
        ):
            raise ParameterError(
                f"{encoder} gave weights that are not one ascending list of numbers of its vocabulary for each of "
                f"{last - first} documents"
            )
        bad = np.flatnonzero(~((vectors.weights >= 0) & (vectors.weights <= MAX_WEIGHT)))
        if len(bad):
            doc_id = self.ids[first + int(np.searchsorted(bounds, bad[0], side="right")) - 1]
            weight = f"{float(vectors.weights[bad[0]]):g}"
            raise InputError(
                f"document '{doc_id}': {encoder} gave the weight {weight}; weights lie between 0 and {MAX_WEIGHT:,}"
            )
