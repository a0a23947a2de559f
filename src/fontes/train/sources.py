"""Training data of any kind: the topics and relevant documents that a model may have seen."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..core import FontesError, InputError, Qrels, Topics
from ..datasets import dataset, named
from .duplicates import plain_text, plain_topic
from .examples import Examples
from .splits import Side


class TrainingData:
    """Topics and relevant documents of training data.

    Args:
        sources: Paths of examples, judgments or topics, folders and named collections, or values: `Examples`, `Topics`,
            `Qrels`, or pairs of topics and judgments.

    Attributes:
        topics: Ids and plain texts of the topics.
        documents: Ids of relevant documents, with the plain text if known, else "".
    """

    def __init__(self, sources: Iterable[object]) -> None:
        self.topics: list[tuple[str, str]] = []
        self.documents: dict[str, str] = {}
        for source in sources:
            if isinstance(source, (str, os.PathLike)):
                source = _read(os.fspath(source))
            if isinstance(source, Examples):
                self.documents |= {example.positive.id: plain_text(example.positive.text) for example in source}
            side = source.judged() if isinstance(source, Examples) else Side.of(source)
            self.topics += [(topic.id, plain_topic(topic)) for topic in side.topics.values()]
            for grades in side.qrels.values():
                for doc_id in (doc_id for doc_id, grade in grades.items() if grade > 0):
                    self.documents.setdefault(doc_id, "")


def _read(path: str) -> object:
    """Return what a path holds: examples, or topics and judgments, of a collection or of a file that has one or both."""
    if named(path) or Path(path).is_dir():
        split = "train" if "train" in (named(path) or dataset(path)).splits else None
        qrels = Qrels.of(path, split)
        return Topics.read(path, split).judged(qrels), qrels
    try:
        return Examples.read(path)
    except InputError:
        pass
    topics, qrels, problem = Topics(), Qrels(), ""
    try:
        topics = Topics.read(path)
    except FontesError as error:
        problem = str(error)
    with suppress(FontesError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a reader that takes topics for judgments
        qrels = Qrels.of(path)
    if not topics and not qrels:
        raise InputError(f"{path}: neither examples of fontes mine, nor topics, nor judgments ({problem})")
    return (topics if not qrels or set(topics) == set(qrels) else Topics()), qrels  # lines of judgments may read as topics
