"""Lists of duplicate documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..core.errors import InputError
from ..core.values import Doc
from ..storage.files import reading
from .corpus import read_corpus


class Duplicates(Mapping[str, str]):
    """Mapping from the id of each duplicate to the id of its original, "" if the list does not name the original.

    If a duplicate has several originals, the first counts. If its original is itself a duplicate, both map to the original of
    the latter. A pair that would close a circle, such as ("b", "a") after ("a", "b"), is ignored.

    Args:
        pairs: Pairs (original, duplicate); the original is "" if only a duplicate is named.
    """

    __slots__ = ("_originals", "_repeated")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        parents: dict[str, str] = {}
        self._repeated: set[str] = set()  # ids listed as duplicates of themselves
        for original, duplicate in pairs:
            if original == duplicate:
                self._repeated.add(original)
            elif duplicate not in parents and _find_root(parents, original) != duplicate:
                parents[duplicate] = original
        self._originals = {doc_id: _find_root(parents, doc_id) for doc_id in parents}

    @property
    def fingerprint(self) -> str:
        """Hash of the list, 32 hexadecimal digits."""
        text = "".join(f"{duplicate}\t{original}\n" for duplicate, original in sorted(self._originals.items()))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def docs(self, corpus: str | Path | Iterable[object]) -> Iterator[Doc]:
        """Yield a corpus without its duplicates, for indexing: `Index.build(duplicates.docs(corpus), path)`.

        If an id is listed as a duplicate of itself, its first document is kept.

        Args:
            corpus: Any source that `read_corpus` accepts.
        """
        seen: set[str] = set()
        for doc in read_corpus(corpus):
            if doc.id in self._originals or doc.id in seen:
                continue
            if doc.id in self._repeated:
                seen.add(doc.id)
            yield doc

    def __getitem__(self, doc_id: str) -> str:
        return self._originals[doc_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._originals)

    def __len__(self) -> int:
        return len(self._originals)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Duplicates({len(self)})"


def read_duplicates(path: str | Path, prefix: str = "") -> Duplicates:
    """Read a file of duplicates.

    Each line has one of three forms: `original:duplicate,duplicate` (possibly without duplicates); `original duplicate`,
    separated by white space and optionally followed by a title; or the id of a duplicate alone. TREC CAsT uses these forms
    (2021: marco_duplicates.txt, wapo-near-duplicates; 2022: all_duplicates.txt).

    Args:
        path: The file (decompressed if need be); "-" is standard input.
        prefix: Prefix for ids that lack it: MS MARCO's list of 2021 has D93515 for MARCO_D93515.

    Raises:
        InputError: A line has an empty id.
    """
    with reading(path) as source:
        return Duplicates(
            (original and _add_prefix(original, prefix), _add_prefix(duplicate, prefix))
            for number, line in source.texts()
            for original, duplicate in _pairs(line, f"{source.name}, line {number}")
        )


def _pairs(line: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs (original, duplicate) of a line; the original is "" if the line names only a duplicate."""
    fields = line.split()
    if ":" in fields[0]:
        original, _, listed = line.partition(":")
        duplicates = [doc_id.strip() for doc_id in listed.split(",")] if listed.strip() else []
        if not original.strip() or not all(duplicates):
            raise InputError(f"{where}: an id is missing; 'original:duplicate,duplicate' is wanted, found '{line.strip()}'")
        if invalid := next((doc_id for doc_id in duplicates if len(doc_id.split()) > 1), None):
            raise InputError(f"{where}: '{invalid}' is not an id, since it has white space; duplicates are separated by commas")
        yield from ((original.strip(), doc_id) for doc_id in duplicates)
    elif len(fields) == 1:
        yield "", fields[0]
    else:
        yield fields[0], fields[1]


def _add_prefix(doc_id: str, prefix: str) -> str:
    return doc_id if doc_id.startswith(prefix) else prefix + doc_id


def _find_root(parents: dict[str, str], doc_id: str) -> str:
    """Return the original of the document's group, and make it the parent of all documents on the path to it."""
    path = []
    while doc_id in parents:
        path.append(doc_id)
        doc_id = parents[doc_id]
    for descendant in path:
        parents[descendant] = doc_id
    return doc_id
