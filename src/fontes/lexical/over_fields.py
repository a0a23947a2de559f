"""`FieldedModel`: base class of lexical models that can weigh the fields of documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, Self

from ..core.parameters import tuned
from ..core.part import FrozenDict, fields
from ..index.parts import Searchable
from .fields import chosen_fields, field_weights
from .retriever import Lexical
from .weighting import Weighting

WEIGHTS: Any = tuned(None, (0.5, 10.0, 0.5), (0.0, math.inf), entry=1.0)
"""The dataclass field of the weights."""


class FieldedModel(Lexical):
    """A lexical model of all fields joined, or of weighted fields.

    Attributes:
        fields: Weights of separate fields, such as {"title": 3, "text": 1}; others are not searched.
            None: all fields as one text.
    """

    fields: Mapping[str, float] | None

    def _parameters_of(self, weighting: type[Weighting]) -> dict[str, Any]:
        """Return the parameters that are fields of a weighting; of the weights of fields only those above 0."""
        parameters = {field.name: getattr(self, field.name) for field in fields(weighting)}
        return parameters | {"fields": field_weights(self.index.state, self.fields)}

    @cached_property
    def searched(self) -> Searchable:
        """Source of the postings: the index, or some of its fields."""
        weights = field_weights(self.index.state, self.fields)
        return self.index if weights is None else chosen_fields(self.index.state, weights)

    @property
    def _complete(self) -> Self:
        """Canonical form for comparisons: defaults in place of None, weights as floats, without weights of 0."""
        if not isinstance(self.fields, Mapping):
            return self
        weights = {name: float(weight) if isinstance(weight, Real) else weight for name, weight in self.fields.items()}
        positive = FrozenDict({name: weight for name, weight in weights.items() if weight != 0})
        return replace(self, fields=positive)

    def key(self) -> str | None:
        return super(FieldedModel, self._complete).key()

    def entries(self, name: str) -> Mapping[str, Any]:
        if name == "fields" and self.fields is None:
            return dict.fromkeys(self.index.state.separate, 1.0)
        return super().entries(name)
