"""Counts of the documents that have each indexed field: a name that none of them has is an error, not an empty index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..core.errors import InputError
from ..formats.decoding import warn
from ..formats.records import Fields, unseen
from .batches import PLAIN, Batch
from .component import Writer
from .settings import IndexSettings

RARE = 100  # a field that fewer than one document in RARE has is worth a remark


@dataclass
class FieldCounter(Writer):
    """Counts the documents that have each field that the user names.

    Args:
        names: Keys of the metadata.
        documents: Number of documents.
        filled: Number of documents whose title, text or value of a key is not empty.
        keys: The names that documents have, and all keys of the first documents.
    """

    names: tuple[str, ...]
    documents: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: IndexSettings, columns: Mapping[str, str] | None) -> FieldCounter:
        """Return a counter of the metadata that the arguments of `Index.build` name."""
        fields = settings.fields if settings.weights is None else ()
        return cls(tuple(name for name in dict.fromkeys([*fields, *(columns or ())]) if name not in PLAIN))

    def write(self, batch: Batch, first: int) -> None:
        values = batch.docs.values
        sizes = np.count_nonzero(batch.docs.sizes[:, : len(PLAIN)], axis=0)
        filled = {name: len([1 for row in values if row.get(name) not in (None, "")]) for name in self.names}
        keys = [key for row in values for key in row if not first or key in self.names]
        self.add(len(batch.docs), dict(zip(PLAIN, sizes.tolist(), strict=True)) | filled, keys)

    def add(self, documents: int, filled: Mapping[str, int], keys: Iterable[str]) -> None:
        """Add the counts of other documents."""
        self.documents += documents
        self.filled.update(filled)
        self.keys |= dict.fromkeys(keys)

    def close(self) -> dict[str, int]:
        return {}

    def check(self, settings: IndexSettings, columns: Mapping[str, str] | None, chosen: Fields) -> None:
        """Check the arguments of a build against its documents; warn of fields that are rare, and of columns without values.

        Raises:
            InputError: No document has one of the fields, a text in any of them, or the title that the user chose.
        """
        if not self.documents:
            return
        if problem := self._missing_title(chosen):
            raise InputError(problem)
        present = self._description()
        self._warn_of_unseen(chosen)
        if settings.weights is None and set(settings.fields) != set(PLAIN):
            self._check_fields(settings.fields, f"{present}; choose from these (fields, --fields)")
        for name in columns or ():
            if name not in self.keys:
                warn(f"no document has '{name}', which is to be a column (columns, --columns); {present}")

    def check_addition(self, settings: IndexSettings, chosen: Fields) -> None:
        """Warn of a chosen title that no added document has.

        Raise InputError if no added document has a text in the fields of the index, but some have a title or text.
        """
        if problem := self._missing_title(chosen):
            warn(problem)
        self._warn_of_unseen(chosen)
        elsewhere = settings.weights is None and any(self.filled[name] for name in PLAIN)
        if elsewhere and not any(self.filled[name] for name in settings.fields):
            raise InputError(
                f"the index searches {', '.join(settings.fields)}, and no added document has a text there; they have "
                f"{', '.join(self._present())}; nothing was added"
            )

    def _check_fields(self, fields: Iterable[str], advice: str) -> None:
        for name in fields:
            if name not in PLAIN and name not in self.keys:
                raise InputError(f"no document has a field '{name}'; {advice}")
        if self._present() and not any(self.filled[name] for name in fields):
            raise InputError(f"no document has a text in {', '.join(fields)}; {advice}")
        for name in fields:
            if self.filled[name] * RARE < self.documents:
                warn(f"{self.filled[name]:,} of {self.documents:,} documents have a text in the field '{name}'")

    def _missing_title(self, chosen: Fields) -> str:
        """Return that no document has the title that the user chose; "" if one has it."""
        if not self.documents or "title" not in chosen.chosen or self.filled["title"]:
            return ""
        return f"no document has a title in {' or '.join(map(repr, chosen.title))}; {self._description()}"

    def _warn_of_unseen(self, chosen: Fields) -> None:
        for name in unseen(chosen):
            warn(f"no document has '{name}', which is to be text (--text, fields); {self._description()}")

    def _description(self) -> str:
        return f"the documents have {', '.join(self._present()) or 'no text'}"

    def _present(self) -> list[str]:
        """Names of the fields that documents have."""
        keys = [str(key) for key in self.keys if key not in self.names or self.filled[key]]
        return list(dict.fromkeys([*(name for name in PLAIN if self.filled[name]), *keys]))
