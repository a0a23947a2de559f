"""The judgments as a test collection: topics and qrels in files that `fontes eval` and others read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...core.errors import InputError, ParameterError
from ...formats.folder import QRELS, QUERIES
from ...formats.format import format_named
from ...storage.files import write
from .agreement import AGREED, SETTLED, judgments_of
from .store import Store

ALL = "judgments.jsonl"


def names(store: Store) -> list[str]:
    """The files that there can be: the topics, the judgments by each rule in TREC's form and in BEIR's, and all there is."""
    rules = (SETTLED, AGREED, *store.judges())
    return [QUERIES, *(f"{rule}{ending}" for rule in rules for ending in (".qrels", ".tsv")), ALL]


def content(store: Store, name: str) -> Iterable[bytes]:
    """The bytes of a file, in pieces.

    Args:
        store: The judgments.
        name: One of `names`.

    Raises:
        ParameterError: There is no such file.
        InputError: Ids cannot be written in this form.
    """
    if name not in names(store):
        raise ParameterError(f"there is no '{name[:100]}' to export; there are {', '.join(names(store))}")
    if name == QUERIES:
        return format_named("jsonl", "write", "topics").write_topics(store.topics())
    if name == ALL:
        return _lines(store)
    rule, _, ending = name.rpartition(".")
    return format_named("trec" if ending == "qrels" else "beir", "write", "qrels").write_qrels(judgments_of(store, rule))


def export(store: Store, folder: Path) -> list[str]:
    """Writes all files into a folder, which is one of BEIR's form but for the documents.

    Args:
        store: The judgments.
        folder: The folder; it is made where there is none.

    Returns:
        Why files were left out: sentences, such as for ids that a form cannot hold.
    """
    left_out = []
    try:
        (folder / QRELS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made ({error.strerror or error})") from None
    for name in names(store):
        path = folder / QRELS / name if name.endswith(".tsv") else folder / name
        try:
            pieces = list(content(store, name))
        except InputError as error:
            left_out.append(f"{path} is left out: {error}")
            continue
        if len(pieces) <= name.endswith(".tsv"):  # its header alone
            left_out.append(f"{path} is left out: there is nothing to write into it")
            path.unlink(missing_ok=True)
            continue
        write(path, pieces)
    return left_out


def _lines(store: Store) -> Iterator[bytes]:
    """Each judge's grade of each document, with the note and the time, as a line of JSON."""
    notes, settled = store.notes(), store.settled()
    for judgment in store.judgments():
        key = judgment.judge, judgment.topic, judgment.document
        line = {**judgment._asdict(), "note": notes.get(key, ""), "settled": settled.get(key[1:], (None,))[0]}
        yield (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
