"""A folder in BEIR's form: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, each of which may be packed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..core import InputError, ParameterError
from ..storage.files import plain_name

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
FORM = f"a folder in BEIR's form has {CORPUS}, {QUERIES} and {QRELS}/SPLIT.tsv"


def is_beir(folder: Path) -> bool:
    """Whether the folder has one of the three parts."""
    return any(present(folder, name) for name in (CORPUS, QUERIES)) or bool(qrels_files(folder))


def present(folder: Path, name: str) -> Path | None:
    """The file of this name, or the packed one, or None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def beir_file(folder: Path, name: str) -> Path:
    """The file of this name, or the packed one.

    Raises:
        InputError: There is neither.
    """
    path = present(folder, name)
    if path is None:
        raise InputError(f"{folder}: no {name} or {name}.gz; {FORM}")
    return path


def qrels_files(folder: Path) -> dict[str, Path]:
    """The files of judgments by their splits, in alphabetical order."""
    files = sorted((folder / QRELS).glob("*.tsv*"))
    return {plain_name(file).removesuffix(".tsv"): file for file in files if plain_name(file).endswith(".tsv")}


def split_of(name: object, splits: Collection[str], split: str | None) -> str:
    """The split that is meant: the one that is named, or the only one.

    Args:
        name: What the collection is called in messages.
        splits: Those that it has.
        split: The name of one; None where it was not said.

    Raises:
        InputError: The collection has no judgments.
        ParameterError: There is no such split, or there are several and none was named.
    """
    if not splits:
        raise InputError(f"{name}: the collection has no judgments; {FORM}")
    if split is None and len(splits) == 1:
        return next(iter(splits))
    if split is None:
        raise ParameterError(f"{name}: say which split (--split NAME, or split=); there are {', '.join(splits)}")
    if split not in splits:
        raise ParameterError(f"{name}: there is no split '{split}'; there are {', '.join(splits)}")
    return split
