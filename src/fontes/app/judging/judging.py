"""Pools of documents, and their presentation to judges: progress, next document, other judges' grades."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from ...core.progress import Progress, Report, silent
from ...core.values import Topic
from ...index import Index
from ..server.answers import RefusedError
from ..server.searching import matches_in, rankings_of
from ..server.served import ServedState
from .agreement import ALL_JUDGMENTS, agreement, different_evidence, disagreements, file_names
from .store import Judgment, JudgmentStore

BATCH = 32  # topics that are searched together, and whose pools are stored together


def fill_pools(store: JudgmentStore, state: ServedState, depth: int, report: Report = silent) -> None:
    """Add the `depth` best documents of each pipeline to the pool of each topic."""
    fingerprint = state.index.fingerprint
    for name, pipeline in state.pipelines.items():
        lacking = list(store.unpooled(fingerprint, repr(pipeline), depth).values())
        stage, start = pipeline % depth, time.perf_counter()
        for first in range(0, len(lacking), BATCH):
            topics = lacking[first : first + BATCH]
            rankings = rankings_of(stage, topics, depth)
            ids = {topic.id: list(islice(ranking.ids, depth)) for topic, ranking in zip(topics, rankings, strict=True)}
            store.add_pools(ids, fingerprint, repr(pipeline), depth)
            done = first + len(topics)
            report(Progress(f"pooling with {name}", done, len(lacking), time.perf_counter() - start, "topics"))


def shuffled(judge: str, topic: str, documents: Iterable[str]) -> list[str]:
    """Order documents by judge and topic alone; documents added later leave the order of the others."""

    def key(document: str) -> bytes:
        return hashlib.sha256("\0".join((judge, topic, document)).encode("utf-8", "surrogatepass")).digest()

    return sorted(documents, key=key)


class Judging:
    """Judgments of a server; pools have the `depth` best documents of each pipeline."""

    def __init__(self, store: JudgmentStore, depth: int) -> None:
        self.store = store
        self.depth = depth

    def exports(self, judge: str) -> list[str]:
        """Names of the files that a judge may export: not other judges' grades."""
        others = {*self.store.judges()} - {judge}
        return [name for name in file_names(self.store) if name != ALL_JUDGMENTS and name.rpartition(".")[0] not in others]

    def overview(self, judge: str, index: Index) -> list[dict[str, Any]]:
        """Progress of all judges with each topic, as JSON values."""
        of_topic: dict[str, list[Judgment]] = {}
        for one in self.store.judgments():
            of_topic.setdefault(one.topic, []).append(one)
        return [self._progress(topic, of_topic.get(topic.id, []), judge, index) for topic in self.store.topics().values()]

    def progress(self, judge: str, topic: str, index: Index) -> dict[str, Any]:
        """Progress of a judge with a topic; raises RefusedError for an unknown topic."""
        topics = self.store.topics()
        if topic not in topics:
            raise RefusedError(404, f"there is no topic '{topic[:200]}'")
        return self._progress(topics[topic], self.store.judgments(topic=topic), judge, index)

    def _progress(self, topic: Topic, judgments: list[Judgment], judge: str, index: Index) -> dict[str, Any]:
        pool = self.store.pool(topic.id)
        own = {one.document: one for one in judgments if one.judge == judge}
        others: dict[str, int] = {}
        for one in judgments:
            if one.judge != judge:
                others[one.judge] = others.get(one.judge, 0) + 1
        missing = [document for document in pool if document not in index]
        return {
            "id": topic.id,
            "text": topic.text,
            "description": topic.description,
            "narrative": topic.narrative,
            "pool": len(pool),
            "judged": len(own),
            "left": len({*pool} - {*missing} - {*own}),
            "missing": len(missing),
            "relevant": sum(one.grade > 0 for one in own.values()),
            "seconds": sum(one.seconds for one in own.values()),
            "others": others,
        }

    def following(self, judge: str, topic: str, index: Index, after: str | None = None) -> dict[str, Any]:
        """Progress with a topic, and the next document to judge, if any: the one after `after`, if given."""
        progress = self.progress(judge, topic, index)
        judged = {one.document for one in self.store.judgments(judge, topic)}
        order = shuffled(judge, topic, self.store.pool(topic))
        start = order.index(after) + 1 if after in order else 0
        waiting = (doc for doc in order[start:] + order[:start] if doc not in judged and doc in index)
        document = next(waiting, None)
        return {"topic": progress, "document": None if document is None else self.shown(judge, topic, document, index)}

    def shown(self, judge: str, topic: str, document: str, index: Index) -> dict[str, Any]:
        """A document of a pool for its judge, without the pipeline, rank and score that brought it in."""
        if document not in self.store.pool(topic):
            raise RefusedError(404, f"document '{document[:200]}' is not in the pool of topic '{topic[:200]}'")
        if document not in index:
            raise RefusedError(404, f"document '{document[:200]}' is not in the index that is served now")
        doc, query = index.doc(document), self.store.topics()[topic].text
        grades = {one.document: one.grade for one in self.store.judgments(judge, topic)}
        return {
            "id": doc.id,
            "title": doc.title,
            "text": doc.text,
            "metadata": dict(doc.metadata),
            "matches": matches_in(index, doc.text, query),
            "title_matches": matches_in(index, doc.title, query),
            "grade": grades.get(document),
            "note": self.store.notes(topic).get((judge, topic, document), ""),
        }

    def judged(self, judge: str, topic: str, index: Index) -> dict[str, Any]:
        """Judgments of a judge for a topic, latest first, and groups of evidence."""
        notes = self.store.notes(topic)
        documents = [
            {
                "id": one.document,
                "title": _title(one.document, index),
                "grade": one.grade,
                "note": notes.get((judge, topic, one.document), ""),
                "missing": one.document not in index,
            }
            for one in reversed(self.store.judgments(judge, topic))
        ]
        progress = self.progress(judge, topic, index)
        return {"topic": progress, "documents": documents, "groups": self.store.evidence(judge, topic)}

    def _finished(self, judge: str, index: Index) -> list[str]:
        return [one["id"] for one in self.overview(judge, index) if one["judged"] and not one["left"]]

    def compared(self, judge: str, index: Index) -> dict[str, Any]:
        """Agreement of all judges, and their differences in the topics that this judge has finished."""
        finished = {name: self._finished(name, index) for name in self.store.judges()}
        topics = finished[judge]
        judges = {topic: [name for name, own in finished.items() if topic in own] for topic in topics}
        differing, evidence = disagreements(self.store, topics), different_evidence(self.store, judges)
        queries = self.store.topics()
        for one in differing + evidence:
            one["query"] = queries[one["topic"]].text
        for one in differing:
            one["title"] = _title(one["document"], index)
        groups = [group["documents"] for one in evidence for of_judge in one["judges"] for group in of_judge["groups"]]
        titles = {document: _title(document, index) for document in sorted({*chain.from_iterable(groups)})}
        return {
            "agreement": agreement(self.store),
            "disagreements": differing,
            "evidence": evidence,
            "titles": titles,
            "finished": topics,
        }


def _title(document: str, index: Index) -> str:
    return index.doc(document).title if document in index else ""
