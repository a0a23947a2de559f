"""Base class of measures: cutoff, parameters, names, requirements."""

from __future__ import annotations

import dataclasses
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..core import ParameterError
from ..core.arrays import AnyArray
from ..core.registry import Registry
from .ranks import NOT_RETRIEVED, Ranks

MEASURES: Registry[type[Measure]] = Registry("fontes.measures", "measure", key=str.lower)
"""All classes of measures, by name and by alias, both in lower case."""


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure of how good a ranking is, such as `nDCG @ 10` or `P(rel=2) @ 5`.

    `measure @ k` sets the cutoff, `measure(rel=2)` sets parameters; both return a new measure. `str` gives the name that
    `parse` reads. Equal measures have equal names.

    A measure is a frozen dataclass: its fields are its parameters, all with defaults, and `values` computes it. Subclassing
    registers it under its name and any aliases from other programs:

        class AveragePrecision(Binary, name="AP", aliases=("map", "map_cut_K")): ...

    In an alias that ends in "_K", the cutoff replaces the K, as in `map_cut_100`.

    Args:
        cutoff: The cutoff, as in `AP @ 100`; None for the whole ranking.

    Attributes:
        name: Name for `parse` and `str`.
        aliases: Other names, such as those of trec_eval.
        cut: Whether the measure needs a cutoff, can have one, or takes none.
        summed: Whether values are summed over topics, not averaged.
        grouped: Whether values depend on evidence sets, so that the groups of a file of judgments are read.
        example: A sensible cutoff, for messages.

    Raises:
        ParameterError: A parameter or the cutoff is out of range.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    cut: ClassVar[Literal["required", "optional", "none"]] = "optional"
    summed: ClassVar[bool] = False
    grouped: ClassVar[bool] = False
    example: ClassVar[float] = 10

    cutoff: float | None = field(default=None, kw_only=True)

    def __init_subclass__(cls, *, name: str | None = None, aliases: tuple[str, ...] = (), **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name is None:
            return
        cls.name, cls.aliases = name, aliases
        for spelling in (name, *aliases):
            MEASURES.add(spelling.lower(), cls)

    @abstractmethod
    def values(self, ranks: Ranks) -> AnyArray:
        """Return the measure of each topic, in the order of the qrels.

        Args:
            ranks: Ranks of the judged documents in the run.
        """

    def score(self, ranks: Ranks) -> AnyArray:
        """Return `values` for the ranks, adapted to the parameters."""
        return self.values(ranks)

    def ready(self) -> Self:
        """Return the measure; raise ParameterError if it lacks a required cutoff."""
        if self.cut == "required" and self.cutoff is None:
            raise ParameterError(f"{self} needs a cutoff, as in {self @ self.example}")
        return self

    @property
    def depth(self) -> int:
        """Number of documents of each ranking that count."""
        return NOT_RETRIEVED if self.cutoff is None else int(self.cutoff)

    def __matmul__(self, cutoff: float) -> Self:
        return dataclasses.replace(self, cutoff=cutoff)

    def __call__(self, **params: Any) -> Self:
        declared = self._params()
        for key in params:
            if key not in declared:
                raise ParameterError(f"{self.name} has no parameter '{key}'; it has {', '.join(declared) or 'none'}")
        return dataclasses.replace(self, **params)

    def __post_init__(self) -> None:
        if self.cutoff is None:
            return
        if self.cut == "none":
            raise ParameterError(f"{self.name} takes no cutoff, but was given @{self.cutoff}")
        object.__setattr__(self, "cutoff", self._checked(self.cutoff))

    def _checked(self, cutoff: Any) -> float:
        """Return the cutoff as an int; raise ParameterError if it is not an integer or below 1."""
        try:
            k = 0 if isinstance(cutoff, bool) else operator.index(cutoff)
        except TypeError:
            k = 0
        if not 1 <= k <= NOT_RETRIEVED:
            raise ParameterError(f"the cutoff of {self.name} must be a whole number from 1 up, not {cutoff!r}")
        return k

    def _params(self) -> dict[str, object]:
        return {f.name: f.default for f in dataclasses.fields(self) if f.name != "cutoff"}

    def __str__(self) -> str:
        changed = {key: getattr(self, key) for key, default in self._params().items() if getattr(self, key) != default}
        params = ", ".join(f"{key}={value!r}" for key, value in changed.items())
        return self.name + (f"({params})" if params else "") + ("" if self.cutoff is None else f"@{self.cutoff}")

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure based on binary relevance.

    Args:
        rel: Least grade of a relevant document, from 1 up.
    """

    rel: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_grade("rel, the least grade that is relevant,", self.rel)


@dataclass(frozen=True, repr=False)
class Condensable(Measure):
    """A measure that can ignore unjudged documents (condensed lists; Sakai, 2007).

    Args:
        judged_only: Whether to remove unjudged documents, and those of a negative grade, from the ranking first, as with
            trec_eval's option -J.
    """

    judged_only: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(f"the judged_only of {self.name}", self.judged_only)

    def score(self, ranks: Ranks) -> AnyArray:
        return self.values(ranks.condensed() if self.judged_only else ranks)


def check_flag(name: str, value: object) -> None:
    """Raise ParameterError, naming `name`, unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} is True or False, not {value!r}")


def check_grade(name: str, value: object, minimum: int = 1) -> None:
    """Raise ParameterError, naming `name`, unless the grade `value` is an integer from `minimum` up."""
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ParameterError(f"{name} must be a whole number from {minimum} up, not {value!r}")


def probability(name: str, value: object) -> float:
    """Return a parameter as a float; raise ParameterError unless it is a number between 0 and 1.

    Args:
        name: Parameter name for messages.
        value: The caller's value.
    """
    result = number(name, value)
    if not 0 < result < 1:
        raise ParameterError(f"the {name} must lie between 0 and 1, not {value!r}")
    return result


def number(name: str, value: object) -> float:
    """Return a parameter as a float; raise ParameterError if it is not a number.

    Args:
        name: Parameter name for messages.
        value: The caller's value.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    return float(value)
