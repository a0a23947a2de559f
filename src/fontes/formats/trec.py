"""TREC formats: documents and topics in SGML, qrels in four columns and runs in six."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import Doc, Qrels, Run, Topic, Topics
from .columns import (
    TREC_QRELS,
    TREC_RUN,
    one_word,
    qrels_width,
    read_qrels_columns,
    read_run_columns,
    run_rankings,
    run_width,
)
from .format import File, Format
from .records import Fields
from .trec_sgml import sgml_docs, sgml_topics


class Trec(Format, name="trec"):
    """Formats that NIST distributes for TREC.

    Documents are SGML with <DOC> and <DOCNO>, many a file; topics SGML with <top>, <num>, <title>, <desc>, <narr>. Qrels have
    the columns topic, group, document, grade; runs topic, Q0, document, rank, score, tag. A run's rank and line order are
    ignored.
    """

    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        opening = file.start.lower()
        match kind:
            case "corpus":
                return 0.4 if (opening.startswith("<doc>") if file.folder else "<doc>" in opening) else 0.0
            case "topics":
                return 0.4 if "<top>" in opening and "<topics" not in opening and not opening.startswith("<?xml") else 0.0
            case "qrels":  # the reader reports unknown columns
                return 0.5 if qrels_width(file) == TREC_QRELS else 0.01
            case _:
                return 0.5 if run_width(file) == TREC_RUN else 0.01

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return sgml_docs(file, fields)

    def read_topics(self, file: File) -> Iterator[Topic]:
        return sgml_topics(file.text(), file.name)

    def read_qrels(self, file: File) -> Qrels:
        return read_qrels_columns(file, TREC_QRELS)

    def read_run(self, file: File, topics: Topics) -> Run:
        return read_run_columns(file, TREC_RUN, topics)

    def write_qrels(self, qrels: Qrels) -> Iterator[bytes]:
        for topic_id, group, doc_id, grade in qrels.rows():
            topic, doc = one_word(topic_id, "topic"), one_word(doc_id, "document")
            yield f"{topic} {one_word(group, 'group')} {doc} {grade}\n".encode()

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        for topic_id, ranking in run_rankings(run):
            scores = ranking.scores.astype(str).tolist()
            rows = enumerate(zip(ranking.ids, scores, strict=True), 1)
            yield "".join(f"{topic_id} Q0 {doc_id} {rank} {score} {tag}\n" for rank, (doc_id, score) in rows).encode()
