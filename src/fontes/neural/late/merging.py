"""Token vectors of several segments become those of the one that these are merged to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...index.embeddings.joined_embeddings import rows_of
from ...index.leaf import Leaf
from ...storage.arrays import ByteWriter, write_array
from ...storage.artifact import read_meta, seal, settings
from .encode import ROWS, write_lists
from .store import KIND, JoinedTokens, TokenVectors, fit_of


def merge_tokens(leaves: Sequence[Leaf], folders: Sequence[Path], folder: Path) -> None:
    """Writes the token vectors of the documents that live to a folder, as compressing them with the same codec would.

    Args:
        leaves: The segments.
        folders: Where the token vectors of each are; they have the same centroids and buckets.
        folder: Where the new ones go.

    Raises:
        IndexFormatError: A file is not as it was written.
    """
    parts = [TokenVectors(one) for one in folders]
    for part in parts:
        part.check()
    rows = [rows_of(part.bounds, leaf.live)[0] for leaf, part in zip(leaves, parts, strict=True)]
    joined = JoinedTokens(leaves, parts)
    folder.mkdir()
    joined.codec.save(folder)
    write_array(folder, "bounds", joined.bounds)
    codes = np.concatenate([part.codes[own] for part, own in zip(parts, rows, strict=True)])
    write_array(folder, "codes", codes)
    write_lists(folder, codes, joined.bounds, len(joined.codec.centroids))
    if parts[0].residuals is not None:
        residuals = ByteWriter(folder, "residuals")
        for part, own in zip(parts, rows, strict=True):
            for first in range(0, len(own), ROWS):
                residuals.write(part.residuals[own[first : first + ROWS]].reshape(-1))  # type: ignore[index]
        residuals.close()
    seal(folder, KIND, {**settings(parts[0].meta), "documents": joined.documents, "tokens": len(joined)})


def fit_in(folder: Path) -> list[str]:
    """What tells the centroids and buckets of token vectors from those of another fit.

    Raises:
        IndexFormatError: Their metadata are missing or damaged.
    """
    return fit_of(read_meta(folder, KIND)["files"])
