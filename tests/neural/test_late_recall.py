"""What late interaction finds of the exhaustive search's best, without being told how hard to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import fontes as ft
from fontes.index import Index
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.encode import QUERIES, _first_sentences

DOCS, TOKENS, DIM, WORDS = 2500, 12, 64, 400


@cache
def tokens() -> np.ndarray:
    """The tokens of all documents: words of a few of forty subjects, each somewhat different in each place."""
    draw = np.random.default_rng(2)
    words = draw.standard_normal((WORDS, DIM))
    subjects = draw.integers(0, WORDS, (40, 30))
    chosen = subjects[draw.integers(0, 40, (DOCS, 1)), draw.integers(0, 30, (DOCS, TOKENS))]
    made = words[chosen] + 0.2 * draw.standard_normal((DOCS, TOKENS, DIM))
    return (made / np.linalg.norm(made, axis=2, keepdims=True)).astype(np.float32)


@dataclass(frozen=True)
class Known(ColBERT):
    """A model that knows the tokens of each document, and gives half of those of a document, blurred, for a query."""

    fingerprint = "3" * 32
    width = DIM
    chosen_precision = "float32"

    def encode_documents(self, docs: Sequence[ft.Doc]) -> tuple[np.ndarray, np.ndarray]:
        rows = tokens()[[int(doc.id) for doc in docs]]
        return rows.reshape(-1, DIM), np.arange(len(docs) + 1) * TOKENS

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        made = []
        for text in texts:
            draw = np.random.default_rng(int(text))
            one = tokens()[int(text)][::2] + 0.2 * draw.standard_normal((TOKENS // 2, DIM))
            made.append((one / np.linalg.norm(one, axis=1, keepdims=True)).astype(np.float32))
        return made


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    index = ft.Index.build([(str(i), str(i)) for i in range(DOCS)], tmp_path_factory.mktemp("late") / "x")
    ft.neural.encode_late(index, Known("known"))
    return index


def shares(index: ft.Index, k: int, **changes: Any) -> float:
    """The share of the best k of plain products of the whole vectors that the search finds, by the texts of 30 documents."""
    asked = [str(i) for i in range(0, DOCS, DOCS // 30)]
    run = index.late(Known("known"), k=k, **changes)({text: text for text in asked})
    values = []
    for text, query in zip(asked, Known("known").encode_queries(asked), strict=True):
        scores = np.einsum("qd,ntd->nqt", query, tokens()).max(axis=2).sum(axis=1)
        best = np.argsort(-scores, kind="stable")[:k]
        values.append(len({str(i) for i in best} & {*run[text].ids}) / k)
    return float(np.mean(values))


@pytest.mark.parametrize("k", [10, 100])
def test_without_being_told_how_hard_to_look_it_finds_the_best(index: ft.Index, k: int) -> None:
    """With 2 bits a dimension .942 and .924 are found, and with buckets of equally many residuals .945 and .944."""
    assert shares(index, k) >= 0.955


def test_4_bits_are_stored_where_none_are_named(index: ft.Index) -> None:
    assert index.late(Known("known"))._stored().nbits == 4


def test_threads_do_not_change_what_is_found(index: ft.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.neural.late.store.CENTROIDS", 7)
    monkeypatch.setattr("fontes.neural.late.store.LOOKUP_TOKENS", 1 << 10)
    monkeypatch.setattr("fontes.neural.late.store.ESTIMATED_TOKENS", 1 << 8)
    monkeypatch.setattr("fontes.neural.late.store.SCORED_TOKENS", 1 << 8)
    runs = [index.late(Known("known"), k=10, threads=threads).search("7", 10) for threads in (1, 2, 3)]
    assert len({(tuple(run.ids), run.scores.tobytes()) for run in runs}) == 1


def test_recall_is_measured_with_first_sentences_of_a_sample(tmp_path: Path) -> None:
    texts = [f" fox {n}. A dog. The end" for n in range(QUERIES + 8)]
    docs = [(f"d{n}", text) for n, text in enumerate([*texts, "", " "])]
    sentences = _first_sentences(Index.build(docs, tmp_path / "x", threads=1).state)
    assert len(sentences) == len(set(sentences)) == QUERIES
    assert set(sentences) <= {f"fox {n}" for n in range(QUERIES + 8)}
