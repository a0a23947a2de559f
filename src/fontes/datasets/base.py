"""What a test collection is: documents, and for each split topics and judgments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..core import Doc, InputError, ParameterError, Qrels, Topic, Topics


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
            split: The name of the split; by default the only one, or else "test".

        Raises:
            ParameterError: For a split that does not exist.
            InputError: Where the collection has no judgments.
        """
        qrels = self.qrels(split)
        return Topics(topic for topic in self._all_topics(self._split(split)) if topic.id in qrels)

    def qrels(self, split: str | None = None) -> Qrels:
        """The judgments of a split; the argument and the errors are those of `topics`."""
        return self._qrels(self._split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _split(self, split: str | None) -> str:
        splits = self.splits
        if not splits:
            raise InputError(f"{self.name}: the collection has no judgments")
        if split is None and (len(splits) == 1 or "test" in splits):
            return "test" if "test" in splits else splits[0]
        if split not in splits:
            problem = f"there is no split '{split}'" if split else "say which split"
            raise ParameterError(f"{self.name}: {problem}; there are {', '.join(splits)}")
        return split

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"
