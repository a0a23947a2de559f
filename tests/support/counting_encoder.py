"""An encoder that writes down what it encoded, and indexes without vectors to encode."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.hashed_encoder import vector_of
from support.small import blocks_of

from fontes.core.values import Doc
from fontes.core.work import Progress, reporter
from fontes.index import Index

COUNT = 60
BLOCK = 8


@dataclass(frozen=True)
class Counting:
    """An encoder that writes down which documents it encoded; a vector depends on the document's id alone."""

    log: str = field(default="", repr=False)
    dim: int = 12
    fingerprint: str = "counting"
    several: bool = False
    wrong: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    similarity: str = "dot"

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        if self.log:
            with Path(self.log).open("a") as file:
                file.writelines(f"{doc.id}\n" for doc in docs)
        reporter()(Progress("encoding", len(docs) // 2, len(docs), 0.1))
        made = self.encode_queries([doc.id for doc in docs])
        return self.wrong(made) if self.wrong else made

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        rows = [vector_of(text, self.dim) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)


@dataclass(frozen=True)
class Several(Counting):
    """Gives document n of a call n % 3 + 1 vectors."""

    def encode_documents_parts(self, docs: Sequence[Doc]) -> tuple[np.ndarray, np.ndarray]:
        self.encode_documents(docs)
        texts = [f"{doc.id}.{part}" for doc in docs for part in range(int(doc.id[1:]) % 3 + 1)]
        return self.encode_queries(texts), np.cumsum([0, *(int(doc.id[1:]) % 3 + 1 for doc in docs)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encodings commit blocks of a few documents."""
    blocks_of(monkeypatch, BLOCK)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("plain") / "x")


def built(path: Path) -> Path:
    """An index without vectors."""
    Index.build([(f"d{n}", f"fox {n}") for n in range(COUNT)], path)
    return path


def copied(plain: Path, folder: Path) -> Path:
    shutil.copytree(plain, folder / "x")
    return folder / "x"


def vector_files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file() and "vectors" in str(f)}
