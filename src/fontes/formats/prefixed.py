"""Prefixes before the ids of documents, so that several collections become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..core import Doc, ParameterError
from .corpus import Corpus, joined
from .format import File, Format
from .records import Fields


def with_prefix(documents: Iterable[Doc], prefix: str) -> Iterable[Doc]:
    """Documents with a prefix before each id: "D59865" becomes "MARCO_D59865".

    Args:
        documents: A corpus, which stays one, or any documents.
        prefix: The prefix.
    """
    if not isinstance(documents, Corpus):
        return _Prefixed(documents, prefix)
    pieces = [(piece, PrefixedFormat(form, prefix)) for piece, form in documents.pieces]
    return Corpus(documents.path, pieces, documents.fields, documents.is_part)


def with_prefixes(parts: Sequence[str], prefixes: Sequence[str], read: Callable[[list[str]], Iterable[Doc]]) -> Iterable[Doc]:
    """The documents of several parts of a collection as one, with prefixes before their ids.

    Args:
        parts: The names of the parts.
        prefixes: None; one for all parts; or one for each, in their order.
        read: Gives the documents of some parts.

    Raises:
        ParameterError: There is another number of prefixes, or several are of what are no files or folders.
    """
    if not prefixes:
        return read(list(parts))
    if len(prefixes) == 1:
        return with_prefix(read(list(parts)), prefixes[0])
    if len(prefixes) != len(parts):
        raise ParameterError(
            f"there are {len(prefixes)} prefixes of ids for {len(parts)} parts; give one for all, or one for each"
        )
    return joined([with_prefix(read([part]), prefix) for part, prefix in zip(parts, prefixes, strict=True)])


class PrefixedFormat(Format):
    """A format whose documents get a prefix before their ids."""

    def __init__(self, form: Format, prefix: str) -> None:
        """The documents of `form`, with `prefix`."""
        self.form = form
        self.prefix = prefix

    @property
    def name(self) -> str:  # type: ignore[override]
        """The format's name with the prefix, which tells apart what is read of one file with different prefixes."""
        return f"{self.form.name} as {self.prefix}…"

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return iter(_Prefixed(self.form.read_corpus(file, fields), self.prefix))

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        return self.form.is_of_lines(file, fields)


@dataclass(frozen=True)
class _Prefixed:
    """Documents with a prefix before their ids."""

    documents: Iterable[Doc]
    prefix: str

    def __iter__(self) -> Iterator[Doc]:
        return (replace(doc, id=self.prefix + doc.id) for doc in self.documents)
