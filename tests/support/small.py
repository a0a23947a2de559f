"""Limits of the index and of training made small, so that little work is divided like much."""

import pytest

from fontes.index import build, draft
from fontes.index.embeddings import journal


def small_batches(monkeypatch: pytest.MonkeyPatch, size: int, documents: int = 1) -> None:
    """Let a build make batches of so many bytes of text, from so many documents that it reads at a time."""
    monkeypatch.setattr(build, "READ_SIZE", documents)
    monkeypatch.setattr(build, "BATCH", size)


def small_tiers(monkeypatch: pytest.MonkeyPatch, segments: int, documents: int | None = None) -> None:
    """Let so many segments be merged into one, the lowest tier of them with so many documents, or with the usual number."""
    monkeypatch.setattr(draft, "FACTOR", segments)
    monkeypatch.setattr(draft, "FEW", segments)
    if documents is not None:
        monkeypatch.setattr(draft, "MIN_TIER_DOCUMENTS", documents)


def small_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three segments be merged into one, and of more than five documents by a thread beside the writes of a server."""
    small_tiers(monkeypatch, 3, 1)
    for module in ("fontes.index.draft", "fontes.index.writer", "fontes.app.server.writing"):
        monkeypatch.setattr(f"{module}.SMALL", 5)


def small_chunks(monkeypatch: pytest.MonkeyPatch, postings: int) -> None:
    """Let so many postings be merged, packed, weighted, and read from a draft at a time."""
    for module in ("index.inversion", "index.packing", "index.embeddings.weights", "lexical.weighting"):
        monkeypatch.setattr(f"fontes.{module}.CHUNK_POSTINGS", postings)


def blocks_of(monkeypatch: pytest.MonkeyPatch, documents: int) -> None:
    """Let an encoding store so many documents at a time."""
    monkeypatch.setattr(journal, "BLOCK_DOCUMENTS", documents)


def frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a training report, and store where it is, after each step."""
    monkeypatch.setattr("fontes.train.runner.fitting.CHECKPOINT_INTERVAL", 0.0)
    frequent_reports(monkeypatch)


def frequent_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a training report after each step."""
    monkeypatch.setattr("fontes.train.runner.fitting.REPORT_INTERVAL", 0.0)
