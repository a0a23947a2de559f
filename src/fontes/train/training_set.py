"""The base of what models learn from: read from JSON lines, checked, hashed, divided and written."""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

import numpy as np

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..formats.records import json_line, json_rows
from ..storage.files import reading, write


class Item(Protocol):
    """What is learned from."""

    @property
    def source(self) -> str:
        """Where it stands, for errors."""
        ...


T = TypeVar("T", bound=Item)


class TrainingSet(Sequence[T], Generic[T]):
    """What a model learns from: examples or pairs in their order, checked when they are put in. Immutable.

    Args:
        items: The examples or pairs.

    Raises:
        InputError: There are none, or one cannot be learned from; the message begins with where it stands.
    """

    noun: ClassVar[str]
    __slots__ = ("_hash", "_items")

    def __init__(self, items: Iterable[T]) -> None:
        self._items = tuple(items)
        self._hash = ""
        for number, item in enumerate(self._items, 1):
            problem = self._problem(item)
            if problem:
                raise InputError(f"{item.source or f'{self.noun} {number}'}: {problem}")
        if not self._items:
            raise InputError(f"there are no {self.noun}s to learn from")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Those of a file of JSON lines.

        Args:
            path: The file; .gz is unpacked, "-" is standard input.

        Raises:
            InputError: With file and line, for what cannot be read or learned from.
        """
        with reading(os.fspath(path)) as source:
            items = [cls._parsed(row, f"{source.name}, line {number}") for number, row in json_rows(source)]
            if not items:
                raise InputError(f"{source.name}: holds no {cls.noun}s")
        return cls(items)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes JSON lines, which read back to the same; the same examples always give the same bytes.

        Args:
            path: The file, packed where its name ends in .gz; "-" is standard output.

        Raises:
            InputError: It cannot be written.
        """
        write(os.fspath(path), self._lines())

    @property
    def hash(self) -> str:
        """The SHA-256, in hexadecimal digits, of the content in its order: of the file that `write` writes."""
        if not self._hash:
            digest = hashlib.sha256()
            for line in self._lines():
                digest.update(line)
            self._hash = digest.hexdigest()
        return self._hash

    def held_out(self, share: float, seed: int = 0) -> tuple[Self, Self]:
        """Those to learn from, and those held out; all that have the same query on one side, each side in its order.

        Which queries are held out depends on the seed and on what queries there are, not on their order.

        Args:
            share: The share of the queries to hold out, between 0 and 1; one at least.
            seed: Of the choice.

        Raises:
            InputError: There are fewer than two queries.
            ParameterError: The share lies elsewhere.
        """
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ParameterError(f"the share to hold out must lie between 0 and 1, not {share!r}")
        queries = sorted({self._query(item) for item in self})
        if len(queries) < 2:
            raise InputError(f"all {self.noun}s have one query; two at least are needed to hold one out")
        count = min(len(queries) - 1, max(1, round(share * len(queries))))
        order = np.random.default_rng(check_whole("seed", seed, 0)).permutation(len(queries))
        out = {queries[at] for at in order[:count].tolist()}
        sides = [[item for item in self if (self._query(item) in out) == inside] for inside in (False, True)]
        return type(self)(sides[0]), type(self)(sides[1])

    @abstractmethod
    def check_labels(self) -> None:
        """Raises InputError where all have one label, from which nothing can be told apart."""

    def _lines(self) -> Iterator[bytes]:
        return (json_line(self._row(item)) for item in self._items)

    @classmethod
    @abstractmethod
    def _parsed(cls, row: Mapping[str, Any], where: str) -> T:
        """The item in a JSON object. Raises InputError, which begins with `where`."""

    @staticmethod
    @abstractmethod
    def _row(item: T) -> dict[str, Any]:
        """The JSON object of an item."""

    @staticmethod
    @abstractmethod
    def _problem(item: T) -> str:
        """Why nothing can be learned from the item; empty where something can."""

    @staticmethod
    @abstractmethod
    def _query(item: T) -> str:
        """The text of which all items are on one side."""

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"


def text_under(row: Mapping[str, Any], name: str, of: str, where: str) -> str:
    """The text under a name.

    Args:
        row: A JSON object.
        name: The name.
        of: What stands after the name in an error, such as " of the positive".
        where: Where the object stands, as "FILE, line 7".

    Raises:
        InputError: There is none, or no text.
    """
    value = row.get(name)
    if not isinstance(value, str):
        kind = "is missing" if value is None else f"is a {type(value).__name__}"
        raise InputError(f"{where}: the {name}{of} {kind}, where a text belongs")
    return value
