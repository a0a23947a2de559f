"""BEIR's judgments in three columns."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import InputError, Qrels
from .columns import BEIR_QRELS, qrels_width, read_qrels_columns
from .format import File, Format


class Beir(Format, name="beir"):
    """Judgments with the columns query-id, corpus-id, score, with or without this header."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if qrels_width(file) == BEIR_QRELS else 0.0

    def read_qrels(self, file: File) -> Qrels:
        return read_qrels_columns(file, BEIR_QRELS)

    def write_qrels(self, qrels: Qrels) -> Iterator[bytes]:
        yield b"query-id\tcorpus-id\tscore\n"
        for topic_id, grades in qrels.items():
            for doc_id, grade in grades.items():
                for what, name in (("topic", topic_id), ("document", doc_id)):
                    if len(name.splitlines()) != 1 or "\t" in name or name != name.strip():
                        raise InputError(f"{what} id '{name}': a tab, an end of a line, or space at an end is lost in columns")
                yield f"{topic_id}\t{doc_id}\t{grade}\n".encode()
