"""Judgments of sentences: the evidence that claims name, as qrels whose documents are sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import InputError, Qrels, Topics
from .documents import SENTENCE, check_separator


def sentence_qrels(topics: object, separator: str = SENTENCE) -> Qrels:
    """The sentences of the claims' evidence: grade 1, one group for each evidence set.

    A run of sentences is measured against them: `evaluate(run, sentence_qrels("claims_dev.jsonl"), ["SetP", "SetR", "SetF"])`.
    The numbers are those of the file, which count the sentences of the document's own list from 0; sentences that are found
    by rules or a model may be others.

    Args:
        topics: What `Topics.read` accepts, such as the path of SciFact's or FEVER's claims: those whose `metadata` have
            "evidence", lists of sets of [document, sentence]; others have none.
        separator: What stands between the document's id and the sentence's number.

    Raises:
        InputError: No claim names sentences.
    """
    check_separator(separator)
    qrels = Qrels(_rows(Topics.read(topics), separator))
    if not qrels:
        raise InputError("none of the topics names sentences; claims of SciFact and FEVER do, under 'evidence'")
    return qrels


def _rows(topics: Topics, separator: str) -> Iterator[tuple[str, str, str, int]]:
    for topic in topics.values():
        for number, pieces in enumerate(topic.metadata.get("evidence", ()), 1):
            for document, sentence in pieces:
                yield topic.id, str(number), f"{document}{separator}{sentence}", 1
