"""Test collections: documents, and topics and judgments for each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..core import Doc, Qrels, Topic, Topics
from ..formats.folder import split_of


class Dataset(ABC):
    """A collection of documents with topics and judgments, for each split.

    Attributes:
        name: The name of the collection, by which `dataset` finds it.
    """

    name: str

    @property
    @abstractmethod
    def corpus(self) -> Iterable[Doc]:
        """The documents; can be iterated again and again."""

    @property
    @abstractmethod
    def splits(self) -> list[str]:
        """The names of the splits that have judgments, in alphabetical order."""

    def topics(self, split: str | None = None) -> Topics:
        """The topics of a split, those with judgments, in the order of the collection.

        Args:
            split: The name of the split; by default the only one.

        Raises:
            ParameterError: For a split that does not exist, and for several of which none is named.
            InputError: Where the collection has no judgments, or none of its topics has.
        """
        return Topics(self._all_topics(self._split(split))).judged(self.qrels(split))

    def qrels(self, split: str | None = None) -> Qrels:
        """The judgments of a split; the argument and the errors are those of `topics`."""
        return self._qrels(self._split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _split(self, split: str | None) -> str:
        return split_of(self.name, self.splits, split)

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"
