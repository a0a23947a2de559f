"""Token pooling: similar token vectors of a document become one (Clavié, Chaffin and Adams, arXiv:2409.14683, 2024)."""

from __future__ import annotations

import numpy as np

from ...core.arrays import Float32s


def token_groups(vectors: Float32s, factor: float) -> list[list[int]]:
    """Group the rows of a document; each group becomes one vector. Groups are in the order of their first rows.

    The first row, usually [CLS], is a group by itself; the other n rows become n // factor groups, at least one, by Ward's
    method on the cosine distance, as in HierarchicalTokenPooling of sentence-transformers.

    Args:
        vectors: Token vectors of a document, (tokens, dim), of unit length.
        factor: 1 or more.
    """
    count = len(vectors) - 1
    merges = count - max(int(count // factor), 1)
    groups = [[row] for row in range(1, len(vectors))]
    if merges > 0:
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        following = vectors[1:]
        distances = squareform(np.clip(1 - following @ following.T, 0, 2), checks=False)
        for first, second in linkage(distances, method="ward")[:merges, :2].astype(int).tolist():
            groups.append(sorted(groups[first] + groups[second]))
            groups[first] = groups[second] = []
    return [[0], *sorted(filter(None, groups))] if len(vectors) else []


def pooled(vectors: Float32s, factor: float) -> Float32s:
    """Return the mean of each group of rows, scaled to unit length, float32 (groups, dim); see `token_groups`."""
    if factor == 1 or len(vectors) <= 2:
        return vectors
    groups = token_groups(vectors, factor)
    starts = np.cumsum([0, *map(len, groups[:-1])])
    sums = np.add.reduceat(vectors[np.concatenate(groups)], starts)
    means: Float32s = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means
