"""Test collections in BEIR's form: a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..core import Doc, Qrels, Topic
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.folder import CORPUS, beir_file, qrels_files
from .base import Dataset


class BeirFolder(Dataset):
    """A folder in BEIR's form; each file may be packed (.gz)."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    @property
    def corpus(self) -> Iterable[Doc]:
        return read_corpus(beir_file(self._folder, CORPUS))

    @property
    def splits(self) -> list[str]:
        return list(qrels_files(self._folder))

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(self._folder).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(self._folder, split=split)
