"""MS MARCO's runs in three columns."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import Run, Topics
from .columns import MS_MARCO_RUN, read_run_columns, run_rankings, run_width
from .format import File, Format


class MsMarco(Format, name="msmarco"):
    """Runs with the columns topic, document, rank. Scores read are 1/rank, to keep the order."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if run_width(file) == MS_MARCO_RUN else 0.0

    def read_run(self, file: File, topics: Topics) -> Run:
        return read_run_columns(file, MS_MARCO_RUN, topics)

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        for topic_id, ranking in run_rankings(run):
            yield "".join(f"{topic_id}\t{doc_id}\t{rank}\n" for rank, doc_id in enumerate(ranking.ids, 1)).encode()
