"""What every measure can do: take a cutoff and parameters, print itself, and say what it needs."""

from __future__ import annotations

import dataclasses
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..core import ParameterError
from .ranks import FAR, Ranks


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure of how good a ranking is, such as `nDCG @ 10` or `P(rel=2) @ 5`.

    `measure @ k` looks at the first k documents, `measure(rel=2)` changes parameters; both make a new measure. `str` gives
    the name, which `parse` reads back. Equal measures have equal names. Parameters that are out of their range raise
    ParameterError.
    """

    name: ClassVar[str]
    cut: ClassVar[Literal["required", "optional", "none"]] = "optional"
    summed: ClassVar[bool] = False
    """Whether the topics' values are added up instead of averaged."""

    cutoff: float | None = field(default=None, kw_only=True)

    @abstractmethod
    def values(self, ranks: Ranks) -> NDArray[Any]:
        """The measure of each topic, a number or truth value, in the order of the qrels."""

    def ready(self) -> Self:
        """The measure itself. Raises ParameterError if it needs a cutoff and has none."""
        if self.cut == "required" and self.cutoff is None:
            raise ParameterError(f"{self} needs a cutoff, as in {self @ self._example}")
        return self

    @property
    def depth(self) -> int:
        """How many documents of a ranking count."""
        return FAR if self.cutoff is None else int(self.cutoff)

    def __matmul__(self, cutoff: float) -> Self:
        return dataclasses.replace(self, cutoff=cutoff)

    def __call__(self, **params: Any) -> Self:
        known = self._params()
        for key in params:
            if key not in known:
                raise ParameterError(f"{self.name} has no parameter '{key}'; it has {', '.join(known) or 'none'}")
        return dataclasses.replace(self, **params)

    def __post_init__(self) -> None:
        if self.cutoff is None:
            return
        if self.cut == "none":
            raise ParameterError(f"{self.name} takes no cutoff, but was given @{self.cutoff}")
        object.__setattr__(self, "cutoff", self._checked(self.cutoff))

    _example: ClassVar[float] = 10

    def _checked(self, cutoff: Any) -> float:
        """The cutoff as an int. Raises ParameterError if it is none, or below 1."""
        try:
            k = 0 if isinstance(cutoff, bool) else operator.index(cutoff)
        except TypeError:
            k = 0
        if k < 1:
            raise ParameterError(f"the cutoff of {self.name} must be a whole number from 1 up, not {cutoff!r}")
        return k

    def _params(self) -> dict[str, Any]:
        """The parameters and their defaults."""
        return {f.name: f.default for f in dataclasses.fields(self) if f.name != "cutoff"}

    def __str__(self) -> str:
        changed = {key: getattr(self, key) for key, default in self._params().items() if getattr(self, key) != default}
        params = ", ".join(f"{key}={value!r}" for key, value in changed.items())
        return self.name + (f"({params})" if params else "") + ("" if self.cutoff is None else f"@{self.cutoff}")

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure that divides the documents into relevant ones, of grade `rel` or more, and others."""

    rel: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rel, int) or isinstance(self.rel, bool) or self.rel < 1:
            raise ParameterError(f"rel, the least grade that is relevant, must be a whole number from 1 up, not {self.rel!r}")


def number(name: str, value: Any) -> float:
    """`value` as a float. Raises ParameterError that calls it `name` if it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    return float(value)
