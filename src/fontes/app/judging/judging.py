"""What a judge sees: topics with how far they are, the next document, and what other judges have said, in its time."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ...core.values import Topic
from ...index import Index
from ..server.answers import RefusedError
from ..server.searching import matches_in
from .agreement import agreement, different_evidence, disagreements
from .export import ALL, names
from .pool import shuffled
from .store import Judgment, Store


class Judging:
    """The judgments of a server and the index that they are of.

    Args:
        store: The judgments.
        depth: How many documents of each pipeline make a pool.
    """

    def __init__(self, store: Store, depth: int) -> None:
        self.store = store
        self.depth = depth

    def exports(self, judge: str) -> list[str]:
        """The files that a judge may have: nobody's grades but the judge's own, and what all have come to."""
        others = {*self.store.judges()} - {judge}
        return [name for name in names(self.store) if name != ALL and name.rpartition(".")[0] not in others]

    def overview(self, judge: str, index: Index) -> list[dict[str, Any]]:
        """The topics with how far the judges are, as JSON values."""
        of_topic: dict[str, list[Judgment]] = {}
        for one in self.store.judgments():
            of_topic.setdefault(one.topic, []).append(one)
        return [self._of(topic, of_topic.get(topic.id, []), judge, index) for topic in self.store.topics().values()]

    def progress(self, judge: str, topic: str, index: Index) -> dict[str, Any]:
        """How far a judge is with a topic; raises RefusedError where there is none."""
        topics = self.store.topics()
        if topic not in topics:
            raise RefusedError(404, f"there is no topic '{topic[:200]}'")
        return self._of(topics[topic], self.store.judgments(topic=topic), judge, index)

    def _of(self, topic: Topic, judgments: list[Judgment], judge: str, index: Index) -> dict[str, Any]:
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
        """How far a judge is with a topic, and the document to judge next: null where there is none.

        Args:
            judge: The judge.
            topic: The topic's id.
            index: Where the documents are.
            after: The document in whose place the next one is shown, though it is not judged.
        """
        progress = self.progress(judge, topic, index)
        judged = {one.document for one in self.store.judgments(judge, topic)}
        order = shuffled(judge, topic, self.store.pool(topic))
        start = order.index(after) + 1 if after in order else 0
        waiting = (doc for doc in order[start:] + order[:start] if doc not in judged and doc in index)
        document = next(waiting, None)
        return {"topic": progress, "document": None if document is None else self.shown(judge, topic, document, index)}

    def shown(self, judge: str, topic: str, document: str, index: Index) -> dict[str, Any]:
        """A document of a pool as its judge sees it: never whence it came."""
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
        """What a judge has judged for a topic, the latest first, and the evidence."""
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
        """The topics of which a judge has judged all documents."""
        return [one["id"] for one in self.overview(judge, index) if one["judged"] and not one["left"]]

    def compared(self, judge: str, index: Index) -> dict[str, Any]:
        """The agreement, and the differences in the topics that this judge has finished."""
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
