"""Term weights of a segment's documents by a learned sparse encoder: an inverted index beside the one of their text."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Float32s, Int32s, Int64s
from ...core.errors import IndexFormatError, InputError, ParameterError
from ...core.strings import Strings, offsets_of
from ...storage.artifact import Artifact, ArtifactKind, commit, facts_of, seal, settings
from ...storage.hashes import hash_json
from ...storage.system import uninterrupted
from ..component import Described, components
from ..inversion import PostingsWriter
from ..parts import Searchable
from ..postings import PostingLists, merge_lists
from ..segment import Leaf, Segment
from ..tables import union
from .encoded import EncodedComponent, EncodingJob
from .journal import ColumnFile, Encoding
from .vectors import REMEDY

SCALE = 10_000  # factor of the weights, which are stored as whole numbers, to four decimals
MAX_WEIGHT = 200_000  # maximum weight; its product with SCALE fits into 31 bits
MEMORY = 1 << 30  # bytes of postings before they are spilled to disk
CHUNK_POSTINGS = 1 << 20  # postings read from a draft at a time
KIND = ArtifactKind("fontes-weights", 1, "weights of terms", REMEDY)


@dataclass(frozen=True, eq=False)
class TermVectors(Sequence[Mapping[str, float]]):
    """Texts as weighted terms: a sequence of mappings, one per text, from terms to weights, the greatest weight first.

    Args:
        vocabulary: The terms by number.
        bounds: int64: text i has terms[bounds[i]:bounds[i + 1]], ascending.
        terms: int32: numbers of the terms.
        weights: float32: weights of the terms, all above 0.
    """

    vocabulary: Sequence[str]
    bounds: Int64s
    terms: Int32s
    weights: Float32s

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        rows = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        terms, weights = self.terms[rows], self.weights[rows]
        order = np.argsort(-weights, kind="stable")
        return {self.vocabulary[term]: float(weight) for term, weight in zip(terms[order], weights[order], strict=True)}


class WeightLists(PostingLists):
    """Term weights of a segment's documents by one encoder.

    A document's "frequency" of a term is its weight times SCALE.

    Attributes:
        folder: The folder.
        meta: Metadata: encoder, settings, fingerprint, scale, counts, files, digest.
        ids: Document ids.

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
        """Digest of all files."""
        return self._artifact.digest

    def check(self, deep: bool = False) -> None:
        """Read every file; `deep` also compares them with one another."""
        self._artifact.check()
        if deep:
            super().check()

    def info(self) -> dict[str, Any]:
        """Encoder, fingerprint, scale, counts, bytes."""
        facts = ("encoder", "settings", "fingerprint", "precision", "scale", "documents", "terms", "postings")
        return {**facts_of(self.meta, facts), "bytes": self._artifact.bytes}


class WeightEncoding(Encoding[WeightLists]):
    """Term weights of a segment's documents.

    Args:
        fingerprint: Fingerprint of the encoder.
        encoder: Text of the encoder, for messages.
        settings: Text from which the encoder can be made again, or None.
        ids: Document ids.
        vocabulary: Terms by number.
        vectors: Returns the weights of the documents from one position up to another. It may report progress.
        precision: Precision of the encoder's models; None if it is unknown.
    """

    noun = "weights"

    def __init__(
        self,
        fingerprint: str,
        encoder: str,
        settings: str | None,
        ids: Strings,
        vocabulary: Sequence[str],
        vectors: Callable[[int, int], TermVectors],
        precision: str | None,
    ) -> None:
        self.ids: Strings = ids
        self.folder_name, self._vocabulary, self._vectors = WEIGHTS.name_of(fingerprint), vocabulary, vectors
        named = {"encoder": encoder, "settings": settings, "fingerprint": fingerprint, "precision": precision}
        self._facts: dict[str, object] = {**named, "scale": SCALE}
        self.settings = {"version": KIND.version, **self._facts, "documents": len(ids)}
        self.columns = (ColumnFile("numbers", 4), ColumnFile("weights", 4), ColumnFile("counts", 4, of_documents=True))

    def existing(self, segment: Path) -> WeightLists | None:
        with contextlib.suppress(IndexFormatError):
            return WeightLists(segment / self.folder_name, self.ids) if (segment / self.folder_name).is_dir() else None
        return None

    def block(self, first: int, last: int) -> tuple[NDArray[np.generic], ...]:
        vectors = self._vectors(first, last)
        self._check(vectors, first, last)
        scaled = np.rint(vectors.weights.astype(np.float64) * SCALE).astype(np.int32)
        positive = scaled > 0
        bounds = offsets_of(positive)
        return vectors.terms[positive], scaled[positive], np.diff(bounds[vectors.bounds]).astype(np.uint32)

    def finish(self, segment: Path, draft: Path, rows: int) -> WeightLists:
        lists_folder = draft / "whole"
        shutil.rmtree(lists_folder, ignore_errors=True)  # left by a killed process
        lists_folder.mkdir()
        postings = PostingsWriter(lists_folder, Strings.of(self._vocabulary), MEMORY)
        bounds = offsets_of(np.fromfile(draft / "counts", "<u4"))
        columns = [np.memmap(draft / name, "<i4", "r", shape=rows) if rows else np.zeros(0) for name in ("numbers", "weights")]
        first = 0
        while first < len(self.ids):
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + CHUNK_POSTINGS, side="right")) - 1)
            part, part_bounds = slice(int(bounds[first]), int(bounds[last])), bounds[first : last + 1] - bounds[first]
            numbers, weights = (np.array(column[part], dtype=np.int32) for column in columns)
            postings.append(numbers, weights, part_bounds, np.diff(offsets_of(weights)[part_bounds]))
            first = last
        counts = postings.close()
        seal(
            lists_folder,
            KIND,
            {**self._facts, "documents": len(self.ids), "terms": counts["terms"], "postings": counts["postings"]},
        )
        folder = segment / self.folder_name
        with uninterrupted():
            commit(lists_folder, folder)
            shutil.rmtree(draft, ignore_errors=True)
        return WeightLists(folder, self.ids)

    def _check(self, vectors: TermVectors, first: int, last: int) -> None:
        """Raise InputError for a weight that cannot be stored, ParameterError for vectors of a wrong shape."""
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
                f"{encoder} returned weights that are not one ascending list of numbers of its vocabulary for each of "
                f"{last - first} documents"
            )
        bad = np.flatnonzero(~((vectors.weights >= 0) & (vectors.weights <= MAX_WEIGHT)))
        if len(bad):
            doc_id = self.ids[first + int(np.searchsorted(bounds, bad[0], side="right")) - 1]
            weight = f"{float(vectors.weights[bad[0]]):g}"
            raise InputError(
                f"document '{doc_id}': {encoder} returned the weight {weight}; weights lie between 0 and {MAX_WEIGHT:,}"
            )


class DocumentWeights(Searchable):
    """Term weights of a state's documents by one encoder, for lexical search.

    Args:
        leaves: The segments.
        lists: The weights of each segment's documents, deleted ones too.
        facts: Encoder, settings and fingerprint, for a state without segments.

    Attributes:
        meta: Metadata: encoder, settings, fingerprint, precision, scale.
        scale: Factor of the stored weights.
    """

    def __init__(self, leaves: Sequence[Leaf], lists: Sequence[WeightLists], facts: dict[str, object]) -> None:
        self.leaves, self._of_leaves = tuple(leaves), tuple(lists)
        source = {"scale": SCALE, **facts} if not lists else lists[0].meta
        names = ("encoder", "settings", "fingerprint", "precision", "scale")
        self.meta: dict[str, Any] = facts_of(source, names)
        self.scale = float(self.meta["scale"])

    def lists_of(self, leaf: Leaf) -> WeightLists:
        return self._of_leaves[self.leaves.index(leaf)]

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all files and of the deletions."""
        pairs = [[part.fingerprint, leaf.state] for leaf, part in zip(self.leaves, self._of_leaves, strict=True)]
        return self._of_leaves[0].fingerprint if len(pairs) == 1 and pairs[0][1] is None else hash_json(pairs)

    def info(self) -> dict[str, Any]:
        """Encoder, fingerprint, scale, counts, bytes."""
        counts = {"documents": len(self), "terms": len(self.terms), "postings": int(self.df.sum(dtype=np.int64))}
        return {**self.meta, **counts, "bytes": sum(part.info()["bytes"] for part in self._of_leaves)}


class TermWeightsComponent(EncodedComponent[WeightLists, DocumentWeights], name="sparse"):
    """Weights of terms by learned sparse encoders, in folders NAME-ENCODER."""

    kind = KIND
    noun = "weights"
    remedy = "index.encode(encoder), or fontes encode {path} --sparse MODEL, makes them"

    def load(self, folder: Path, segment: Segment) -> WeightLists:
        return WeightLists(folder, segment.ids)

    def join(self, leaves: Sequence[Leaf], parts: Sequence[WeightLists], facts: dict[str, object]) -> DocumentWeights:
        return DocumentWeights(leaves, parts, facts)

    def encoding(
        self, encoder: object, job: EncodingJob, form: object, precision: str | None, source: WeightLists | None
    ) -> Callable[[Segment], WeightEncoding]:
        return partial(_weight_encoding, encoder, job, precision)

    def write_merged(self, leaves: Sequence[Leaf], parts: Sequence[WeightLists], segment: Path) -> None:
        first = parts[0].meta
        folder = segment / self.name_of(first["fingerprint"])
        folder.mkdir()
        counts = merge_lists(parts, leaves, folder)
        documents = sum(leaf.documents for leaf in leaves)
        facts = {"documents": documents, "terms": counts["terms"], "postings": counts["postings"]}
        seal(folder, KIND, {**settings(first), **facts})

    def facts(self, state: Described) -> dict[str, object]:
        """Sum over the segments, deleted documents too."""
        weights = []
        for _, parts in state.vectors.sound(self).values():
            infos = [part.info() for part in parts]
            sums = {name: sum(info[name] for info in infos) for name in ("documents", "postings", "bytes")}
            weights.append({**infos[0], **sums, "terms": len(union([part.terms for part in parts])[0])})
        return {"weights": weights}


WEIGHTS: TermWeightsComponent = components["sparse"]


def _weight_encoding(encoder: Any, job: EncodingJob, precision: str | None, segment: Segment) -> WeightEncoding:
    def segment_vectors(first: int, last: int) -> TermVectors:
        vectors: TermVectors = job.vectors(segment.docs(first, last))
        return vectors

    return WeightEncoding(
        encoder.fingerprint, repr(encoder), job.settings, segment.ids, encoder.vocabulary, segment_vectors, precision
    )
