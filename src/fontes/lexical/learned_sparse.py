"""Learned sparse retrieval: the weights are given, and stored with the index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import ParameterError
from ..core.values import Explanation
from .retriever import Lexical
from .weighting import Floats, Postings, Statistics, Weighting

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class LearnedSparseWeighting(Weighting):
    """Weights that the documents came with.

    Args:
        scale: The index stores whole numbers: the weight times this.
    """

    scale: float

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """The documents' weights, to a whole multiple of 1 / scale."""
        weights: Floats = postings.tf / self.scale
        return weights

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The weight."""
        return Explanation(float(posting.tf[0]) / self.scale, "weight in the document's vector")


@dataclass(frozen=True)
class LearnedSparse(Lexical, name="learned_sparse"):
    """The dot product of term weights: the documents' vectors, which the index was built with, and the topics' weights.

    It is for learned sparse encoders such as SPLADE or uniCOIL. A topic's vector is its `weights`; a topic with text only gets
    the weight 1 for each time that a term occurs in it.
    """

    index: Index = field(repr=False)
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @property
    def weighting(self) -> LearnedSparseWeighting:
        """The model with its parameters.

        Raises:
            ParameterError: The index is one of texts.
        """
        if self.index.scale is None:
            raise ParameterError(
                f"{self.index.path} holds texts, not vectors; Index.build(…, vectors='vector') makes one of vectors"
            )
        return LearnedSparseWeighting(self.index.scale)
