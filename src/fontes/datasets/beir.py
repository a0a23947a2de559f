"""Test collections in BEIR's form: a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..core import Doc, InputError, Qrels, Topic
from ..formats import read_corpus, read_qrels, read_topics
from ..storage.files import plain_name
from .base import Dataset


class BeirFolder(Dataset):
    """A folder in BEIR's form; each file may be packed (.gz)."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    @property
    def corpus(self) -> Iterable[Doc]:
        return read_corpus(self._file("corpus.jsonl"))

    @property
    def splits(self) -> list[str]:
        return sorted(self._qrels_files())

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(self._file("queries.jsonl")).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(self._qrels_files()[split])

    def _qrels_files(self) -> dict[str, Path]:
        files = sorted((self._folder / "qrels").glob("*.tsv*"))
        return {plain_name(f).removesuffix(".tsv"): f for f in files if plain_name(f).endswith(".tsv")}

    def _file(self, name: str) -> Path:
        for path in (self._folder / name, self._folder / f"{name}.gz"):
            if path.is_file():
                return path
        raise InputError(f"{self._folder}: no {name} or {name}.gz; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/")
