"""`NotItself`: rankings without the document that the topic itself is, as in BEIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core import Qrels
from ..core.arrays import Int64s
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Explanation


@dataclass(frozen=True)
class NotItself(Stage[Run, Run], name="not_itself"):
    """Leaves out the document whose id is the topic's own: `bm25() % 1001 >> not_itself()`.

    In some collections, such as ArguAna and Quora, the topics are documents; BEIR leaves each out of its own ranking. Put `% k`
    with one document more before this stage, since it may remove one.
    """

    returns_subset: ClassVar[bool] = True
    starts_from_scores: ClassVar[bool] = True

    def apply(self, run: Run, /) -> Run:
        return run.keep(run.codes != own_codes(run)[run.topic_numbers])

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        if doc_id == topic_id:
            return Explanation(0.0, "left out: the topic's own document")
        score = run.to_dict()[topic_id].get(doc_id)
        if score is None:
            return Explanation(0.0, f"'{doc_id}' is not among the {len(run[topic_id])} documents that {self.name} gets")
        return Explanation(score, "kept: not the topic's own document", (Explanation(score, "score before"),))


def own_codes(run: Run) -> Int64s:
    """Return the document of each topic that has the topic's id, as a position in `run.ids`; -1 for none."""
    return np.array([run.ids.find(topic_id) for topic_id in run.topics], dtype=np.int64)


def own_documents_first(run: Run, qrels: Qrels) -> list[str]:
    """Return the judged topics whose own document, which is not relevant, is first in their ranking."""
    codes = own_codes(run)
    heads = ((number, topic_id) for number, topic_id in enumerate(run.topics) if topic_id in qrels and len(run[topic_id]))
    return [
        topic_id
        for number, topic_id in heads
        if run.codes[run.bounds[number]] == codes[number] and qrels[topic_id].get(topic_id, 0) < 1
    ]
