"""What encoders have made of the documents of segments, and what becomes of it when these are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError
from ...storage.arrays import sync, write_array
from ...storage.artifact import seal, settings
from ..factory import merge_token_vectors, token_vectors_fit
from ..leaf import Leaf, leaves_of
from ..leftovers import DRAFT
from ..merge import merge_lists
from .embeddings import KIND, Embeddings, latest
from .encoding import write_header
from .joined_embeddings import JoinedEmbeddings, SegmentEmbeddings
from .weights import KIND as WEIGHTS, WeightLists

PIECE = 1 << 24  # numbers of vectors that are copied at a time
ENCODE = "index.encode(encoder), or fontes encode, makes them"
DROP = "drop_vectors=True (--drop-vectors) drops what not all documents have"


def attached(leaves: Sequence[Leaf]) -> str | None:
    """What stands in the way of a merge of these segments: vectors that only some of them have; None where nothing does."""
    try:
        names = [_attached(leaf.segment.folder) for leaf in leaves]
    except IndexFormatError as error:
        return str(error)
    for leaf in leaves:
        if any(DRAFT.fullmatch(entry.name) and any(entry.iterdir()) for entry in leaf.segment.folder.glob(".*-*")):
            return f"an encoding of its documents is under way or was stopped; fontes encode goes on with it; {DROP}"
    if all(set(own) == set(names[0]) for own in names):
        if all(own == names[0] for own in names):
            return None
        return f"its token vectors have centroids of different fits; encode_late(…, overwrite=True) fits them again; {DROP}"
    return f"some of its documents have no vectors of an encoder of which others have; {ENCODE}; {DROP}"


def merge_attachments(leaves: Sequence[Leaf], folder: Path, *, memory: int, threads: int) -> None:
    """Carries what all of some segments have over to the segment that they have been merged to, as encoding it would store it.

    What is there already stays.

    Args:
        leaves: The segments.
        folder: The folder of the new segment.
        memory: Bounds the bytes that postings of weights take.
        threads: How many threads work side by side.

    Raises:
        IndexFormatError: Something is not as it was written.
    """
    leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in leaves)
    names, there = [_attached(leaf.segment.folder) for leaf in leaves], _attached(folder)
    for name, fit in names[0].items() if names else ():
        if name in there or any(name not in own or own[name] != fit for own in names):
            continue
        folders = [_place(leaf.segment.folder, name) for leaf in leaves]
        if name.startswith("vectors-"):
            merge_vectors([SegmentEmbeddings(leaf, Embeddings(own)) for leaf, own in zip(leaves, folders, strict=True)], folder)
        elif name.startswith("sparse-"):
            lists = [WeightLists(own, leaf.segment.ids) for leaf, own in zip(leaves, folders, strict=True)]
            merge_weights(lists, leaves, folder / name, memory=memory, threads=threads)
        else:
            merge_token_vectors(leaves, folders, folder / name)


def merge_vectors(shares: Sequence[SegmentEmbeddings], segment: Path) -> None:
    """Writes the vectors of the documents that live to a segment's folder."""
    first, joined = shares[0].embeddings, JoinedEmbeddings(shares)
    joined.check()
    folder = segment / f"vectors-{first.name}-1"
    folder.mkdir()
    with (folder / "vectors.npy").open("wb") as file:
        write_header(file, first.dtype, (len(joined), first.dim))
        for share in shares:
            for rows in _pieces(share, max(1, PIECE // max(1, first.dim))):
                file.write(np.ascontiguousarray(share.embeddings.vectors[rows]).tobytes())
        sync(file)
    write_array(folder, "norms", joined.norms)
    if first.dtype == "int8":
        write_array(folder, "scales", np.concatenate([share.embeddings.scales[share.chosen] for share in shares]))
    if not joined.single:
        write_array(folder, "bounds", joined.bounds)
    seal(folder, KIND, {**settings(first.meta), "documents": joined.documents}, "*.npy")


def merge_weights(lists: Sequence[WeightLists], leaves: Sequence[Leaf], folder: Path, *, memory: int, threads: int) -> None:
    """Writes the weights of the documents that live to a folder.

    Args:
        lists: The weights of each segment's documents.
        leaves: The segments, the first of which has the ordinals from 0.
        folder: Where they go.
        memory: Bounds the bytes that postings take.
        threads: How many threads work side by side.
    """
    for one in lists:
        one.check_files()
    folder.mkdir()
    counts = merge_lists(lists, leaves, folder, memory=memory, threads=threads)
    documents = sum(leaf.documents for leaf in leaves)
    facts = {"documents": documents, "terms": counts["terms"], "postings": counts["postings"]}
    seal(folder, WEIGHTS, {**settings(lists[0].meta), **facts})


def _attached(segment: Path) -> dict[str, object]:
    """What is attached to a segment and complete, by name; for token vectors what tells their fit from others."""
    names: dict[str, object] = {f"vectors-{name}": None for name in latest(segment)}
    for folder in sorted(segment.glob("sparse-*")):
        names[folder.name] = None
    for folder in sorted(segment.glob("late-*")):
        names[folder.name] = token_vectors_fit(folder)
    return names


def _place(segment: Path, name: str) -> Path:
    """The folder of what is attached to a segment by this name."""
    return latest(segment)[name.removeprefix("vectors-")] if name.startswith("vectors-") else segment / name


def _pieces(share: SegmentEmbeddings, most: int) -> Iterator[slice | NDArray[np.int64]]:
    """The rows of a segment's documents that live, so many at a time."""
    for first in range(0, len(share), most):
        rows = slice(first, min(first + most, len(share)))
        yield rows if share.rows is None else share.rows[rows]
