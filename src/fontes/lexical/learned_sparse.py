"""Learned sparse retrieval with weights stored in the index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.arrays import Float64s
from ..core.errors import ParameterError
from ..core.values import Explanation
from .retriever import Lexical
from .weighting import Postings, Statistics, Weighting

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class LearnedSparseWeighting(Weighting):
    """Document weights stored in the index.

    Args:
        scale: Factor of the stored whole numbers.
    """

    scale: float

    def postings(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return the documents' weights, multiples of 1 / scale."""
        weights: Float64s = postings.tf / self.scale
        return weights

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The weight."""
        return Explanation(float(posting.tf[0]) / self.scale, "weight in the document's vector")


@dataclass(frozen=True)
class LearnedSparse(Lexical, name="learned_sparse"):
    """The dot product of term weights: the documents' vectors, which the index was built with, and the topics' weights.

    For learned sparse encoders such as SPLADE or uniCOIL. A topic's vector is its `weights`; for a topic with text only, its
    term counts.
    """

    index: Index = field(repr=False)
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @property
    def weighting(self) -> LearnedSparseWeighting:
        """Model with its parameters.

        Raises:
            ParameterError: The index is one of texts.
        """
        if self.index.scale is None:
            raise ParameterError(
                f"{self.index.path} holds texts, not vectors; Index.build(…, vectors='vector') makes one of vectors"
            )
        return LearnedSparseWeighting(self.index.scale)
