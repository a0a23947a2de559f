"""Judgments of BEIR's three columns."""

from __future__ import annotations

from ..core import Qrels
from .columns import BEIR_QRELS, qrels_width, read_qrels_columns
from .format import File, Format


class Beir(Format, name="beir"):
    """Judgments of the columns query-id, corpus-id, score, with or without this header."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if qrels_width(file) == BEIR_QRELS else 0.0

    def read_qrels(self, file: File) -> Qrels:
        return read_qrels_columns(file, BEIR_QRELS)
