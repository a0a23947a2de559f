"""Field names for ids, texts, grades and scores in tables, DataFrames and JSON objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

DOC_ID = ("_id", "id", "pid", "docno", "doc_id", "docid", "cord_uid")
"""Names of ids; that of a passage (`pid`) before those of a document, which its passages share."""
DOC_TITLE = ("title",)
DOC_TEXT = ("text", "contents", "abstract", "body")
TOPIC_ID = (
    "_id",
    "qid",
    "q_id",
    "query_id",
    "topic_id",
    "question_id",
    "post_id",
    "tweet_id",
    "claim_id",
    "id",
    "number",
    "num",
    "topic",
)
TOPIC_TEXT = ("text", "query", "title", "question", "tweet_text", "tweet_content", "post_text", "claim", "contents", "raw")
JUDGED = ("pid", "docno", "doc_id", "docid", "cord_uid", "corpus_id", "document_id", "id")
"""The document id in a table that also has topic ids, to which "_id" belongs."""
GRADE = ("relevance", "grade", "label", "rel", "score")
SCORE = ("score", "sim")
RANK = ("rank",)

SHAPES = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


@lru_cache(1000, typed=True)
def normalize(name: object) -> str:
    """Normalize a name: ignore case, "_", "-" and spaces between words."""
    return str(name).strip().casefold().replace("-", "_").replace(" ", "_")


@lru_cache(1000, typed=True)
def compact(name: object) -> str:
    """Normalize a name, without "_": `queryId` as `query_id`."""
    return normalize(name).replace("_", "")


def find(present: Collection[object], sought: Sequence[str]) -> Any:
    """Return the first of `sought` among the `present` names, in its present spelling, or None."""
    for name in sought:
        if name in present:
            return name
    for spelling in (normalize, compact):
        spelled = {spelling(name): name for name in reversed(list(present))}
        for name in sought:
            if spelling(name) in spelled and not (spelling is compact and name == "_id"):
                return spelled[spelling(name)]
    return None


def shape_of(name: str) -> str:
    """Replace each run of letters by "a" and of digits by "0", so that ids of one collection have few shapes."""
    return SHAPES[1].sub("0", SHAPES[0].sub("a", name))


def join_with_or(names: Sequence[str]) -> str:
    """Join names as in "a, b or c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
