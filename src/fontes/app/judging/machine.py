"""A language model as an additional judge of a pool."""

from __future__ import annotations

import re
from pathlib import Path

from ...core import Qrels
from ...index import Index
from ...llm.judging import LlmJudge
from .judging import judgments_of
from .store import SETTLED, JudgmentStore

MACHINE = "llm "  # prefix of the names of judges that are models
ALLOWED = re.compile(r"[^\w .@-]")
MAX_NAME = 40  # characters of a judge's name


def judge_name(judge: LlmJudge) -> str:
    """Return the name of a model as a judge: "llm gpt-4o-mini"."""
    name = judge.llm.name_or_path.rpartition("/")[2] if judge.llm.is_local else judge.llm.name_or_path
    return f"{MACHINE}{ALLOWED.sub('-', name)}"[:MAX_NAME].rstrip(". ")


def judge_pool(store: JudgmentStore, index: Index, judge: LlmJudge) -> tuple[int, int]:
    """Let a model judge the documents of all pools that it has not judged; each grade has its reason as a note.

    Documents that the index lacks are left out.

    Args:
        store: The judgments.
        index: The index with the documents.
        judge: The model.

    Returns:
        Number of new judgments, and of answers without a grade, whose documents stay without one.
    """
    name = judge_name(judge)
    if name not in store.judges():
        store.add_judge(name)  # nobody gets its token
    judged = {(judgment.topic, judgment.document) for judgment in store.judgments(name)}
    topics = store.topics()
    pooled = ((topic, doc_id) for topic in topics for doc_id in store.pool(topic))
    ids = [(topic, doc_id) for topic, doc_id in pooled if (topic, doc_id) not in judged and doc_id in index]
    docs = index.docs([doc_id for _, doc_id in ids])
    labels = judge.labels([(topics[topic], doc) for (topic, _), doc in zip(ids, docs, strict=True)])
    for (topic, doc_id), label in zip(ids, labels, strict=True):
        if label.grade is not None:
            store.judge(name, topic, doc_id, label.grade)
            store.note(name, topic, doc_id, label.reason)
    graded = sum(label.grade is not None for label in labels)
    return graded, len(labels) - graded


def judged_with_machines(path: Path) -> tuple[Qrels, Qrels]:
    """Return the settled judgments of a file of `fontes judge`, and those of them that models alone gave."""
    with JudgmentStore(path, reading=True) as store:
        people = {(entry.topic, entry.document) for entry in store.judgments() if not entry.judge.startswith(MACHINE)}
        qrels = judgments_of(store, SETTLED)
        by_people = people.union(store.settled())
    return qrels, Qrels(row for row in qrels.rows() if (row[0], row[2]) not in by_people)
