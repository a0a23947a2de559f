"""Test collections: documents, and topics and judgments for each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..core import Doc, Qrels, Topic, Topics
from ..formats.folder import split_of


class Dataset(ABC):
    """A collection of documents with topics and judgments, for each split.

    Attributes:
        name: Name of the collection, for `dataset`.
    """

    name: str

    @property
    @abstractmethod
    def corpus(self) -> Iterable[Doc]:
        """The documents; can be iterated repeatedly."""

    @property
    @abstractmethod
    def splits(self) -> list[str]:
        """Names of the splits with judgments, sorted."""

    def topics(self, split: str | None = None) -> Topics:
        """Topics of a split that have judgments, in the order of the collection.

        Args:
            split: Name of the split; by default the only one.

        Raises:
            ParameterError: The split does not exist, or is missing among several.
            InputError: There are no judgments, or none for any topic.
        """
        return Topics(self._all_topics(self._split(split))).judged(self.qrels(split))

    def qrels(self, split: str | None = None) -> Qrels:
        """Judgments of a split; argument and errors as for `topics`."""
        return self._qrels(self._split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _split(self, split: str | None) -> str:
        return split_of(self.name, self.splits, split)

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"
