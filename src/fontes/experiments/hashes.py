"""Hashes of data, by which it is known again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..core import Doc, InputError
from ..datasets import Dataset, dataset
from ..storage.hashes import hash_file, hash_json
from .cache import topic_facts
from .settings import IRDS


def hash_of(source: Path | str, use: str) -> str:
    """The SHA-256 of a file, of a folder's files, or of what a collection of ir-datasets holds for `use`.

    Raises InputError, which names `use`, for what cannot be read.
    """
    if isinstance(source, str):
        return hash_of_dataset(dataset(source.removeprefix(IRDS)), use)
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        return hash_json([[path.relative_to(source).as_posix(), hash_of(path, use)] for path in files])
    try:
        return hash_file(source)
    except FileNotFoundError:
        raise InputError(f"{source}: there is no such file ({use})") from None
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror or error})") from None


def hash_of_dataset(given: Dataset, use: str) -> str:
    """The SHA-256 of what a collection holds for `use`: qrels, topics, or else the documents."""
    if use == "qrels":
        return hash_json([[topic, dict(grades)] for topic, grades in given.qrels().items()])
    if use == "topics":
        return hash_json([topic_facts(topic) for topic in given.topics().values()])
    return hash_of_docs(given.corpus)


def hash_of_docs(docs: Iterable[Doc]) -> str:
    """The SHA-256 of what documents hold, in their order."""
    total = hashlib.sha256()
    for doc in docs:
        total.update(hash_json([doc.id, doc.title, doc.text, dict(doc.metadata)]).encode())
    return total.hexdigest()
