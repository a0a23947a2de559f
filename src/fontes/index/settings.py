"""Settings of an index: which fields of a document are indexed, by which analyzer, with which components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..core.errors import InputError, ParameterError
from ..core.strings import encodable
from ..core.values import Doc
from ..text import Analyzer
from .component import components

FIELDS, POSITIONS = "fields", "positions"  # components that are built with the postings
MAX_FIELDS = 100  # maximum number of fields with separate statistics
SCALE = 100  # factor of the documents' term weights, which are stored as whole numbers


@dataclass(frozen=True)
class TermWeights:
    """Term weights in place of texts, for example from learned sparse encoders, stored as weight times SCALE.

    Args:
        field: Key of the weights in the metadata.
    """

    field: str

    def of(self, doc: Doc) -> dict[str, int]:
        """Return the term weights of a document as whole numbers; raise InputError if it has none, or invalid ones."""
        vector = doc.metadata.get(self.field)
        if not isinstance(vector, Mapping):
            raise InputError(f"document '{doc.id}' has no vector '{self.field}': a JSON object of terms and weights")
        scaled = {}
        for term, weight in vector.items():
            if not isinstance(weight, Real) or not 0 <= (value := float(weight) * SCALE) < 2**31 - 1:
                raise InputError(f"document '{doc.id}', term '{term}': the weight {weight!r} is not a number from 0 up")
            if round(value):
                scaled[encodable(str(term))] = round(value)
        return scaled


@dataclass(frozen=True)
class IndexSettings:
    """Settings of an index: which fields of a document are indexed, and by which analyzer.

    Args:
        analyzer: Makes the terms of texts and queries.
        fields: The fields whose text is indexed.
        weights: Term weights that are indexed in place of texts; None indexes texts.
        components: Names of further components that are built with the documents; see `component.Component`.
    """

    analyzer: Analyzer
    fields: tuple[str, ...]
    weights: TermWeights | None = None
    components: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        analyzer: Any,
        fields: Sequence[str],
        vectors: str | None,
        further: Sequence[str] = (),
        separate: bool = False,
        positions: bool = False,
    ) -> IndexSettings:
        """Return the settings for arguments of `Index.build`.

        Raises:
            ParameterError: The fields are no list of names, an analyzer or component is unknown, or they are incompatible.
        """
        if isinstance(fields, str) or not fields:
            raise ParameterError("fields must be a list of field names, such as ('title', 'text')")
        all_components = [*further, *([FIELDS] if separate else []), *([POSITIONS] if positions else [])]
        names = tuple(components[name].name for name in dict.fromkeys(all_components))
        settings = cls(Analyzer.of(analyzer), tuple(fields), None if vectors is None else TermWeights(vectors), names)
        if settings.weights is not None and (settings.separate or settings.positions):
            raise ParameterError("term weights (vectors) have neither fields nor positions; leave out separate and positions")
        if settings.separate and (len(set(settings.fields)) < len(settings.fields) or len(settings.fields) > MAX_FIELDS):
            raise ParameterError(f"separate fields must differ from each other, and be {MAX_FIELDS} at most")
        if settings.positions and not settings.allows_positions:
            raise ParameterError("positions need an analyzer of one term for each token; leave out its n-grams, or positions")
        return settings

    def with_positions(self) -> IndexSettings:
        """Return these settings with positions; ParameterError if they allow none."""
        weights = None if self.weights is None else self.weights.field
        return self.of(self.analyzer, self.fields, weights, self.components, positions=True)

    @property
    def allows_positions(self) -> bool:
        """Whether texts are indexed, by one term for each token, so that positions can be stored."""
        return self.weights is None and self.analyzer.words == (1, 1) and self.analyzer.chars is None

    @property
    def separate(self) -> bool:
        """Whether frequencies and lengths of each field are stored."""
        return FIELDS in self.components

    @property
    def positions(self) -> bool:
        """Whether positions are stored."""
        return POSITIONS in self.components

    @property
    def apart(self) -> bool:
        """Whether each field is analysed by itself, so that no n-gram or phrase crosses fields."""
        return len(self.fields) > 1 and (self.separate or self.positions)

    @property
    def facts(self) -> dict[str, object]:
        """Entries of the manifest."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "fields": list(self.fields) if self.weights is None else [self.weights.field],
            "scale": None if self.weights is None else SCALE,
            **({"components": list(self.components)} if self.components else {}),
        }
