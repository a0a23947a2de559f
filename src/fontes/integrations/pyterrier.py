"""PyTerrier: a stage as a transformer; and `pyterrier_stage`, a transformer as a stage. Needs `fontes[pyterrier]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import Doc, MissingExtraError, PipelineError, Run, Stage, Topic, Topics
from ..core.checks import string_of
from ..index import Index, State
from ..lexical import BM25

try:
    import pyterrier as pt  # isort: skip
    import pandas as pd
except ImportError:
    raise MissingExtraError.of("python-terrier", "pyterrier", "conversion to PyTerrier") from None
from .pyterrier_stage import frame_of, pyterrier_stage

__all__ = ["FontesTransformer", "pyterrier_stage"]


class FontesTransformer(pt.Transformer):
    """A transformer of PyTerrier over a stage or an index: `FontesTransformer(index.bm25(), columns=["text", "year"])`.

    A stage from topics retrieves; a stage from a run reranks. Rows are in Fontes' ranking order (score, then document id, both
    descending), ranks start at 0, and equal scores stay equal. `transformer % k` cuts the stage. Other columns of the input
    are kept.

    Args:
        stage: A stage that gives a run; an index stands for its BM25.
        columns: Columns to add: "text", "title", and names of metadata.
        documents: The index from which a reranker reads texts if the input has no column "text".
    """

    def __init__(self, stage: Any, columns: Iterable[str] = (), documents: Any = None) -> None:
        self.stage: Stage[Any, Run] = BM25(stage) if isinstance(stage, Index | State) else stage
        if not isinstance(self.stage, Stage) or self.stage.gives is not Run:
            raise PipelineError(f"a transformer is made from a stage that gives a Run, or an index, not from {stage!r}")
        self.columns, self.documents = tuple(columns), documents

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the results: qid, query, docno, score, rank, the other columns of the input, and `columns`."""
        reranks = self.stage.takes is Run
        validate = pt.validate.result_frame if reranks else pt.validate.query_frame
        validate(inp, extra_columns=["query"], context=self)
        keys = ["qid", "docno"] if reranks else ["qid"]
        inp = inp.assign(**{key: _ids(inp, key) for key in keys})
        value = _run(inp, self.documents) if reranks else _topics(inp)
        run = self.stage(value) if len(value) else Run.of([])
        results = frame_of(run)
        if self.columns:
            docs = [doc for ranking in run.values() for doc in ranking.docs()]
            results = results.assign(**{name: [_value(doc, name) for doc in docs] for name in self.columns})
        replaced = [name for name in results if name not in keys] + ([] if reranks else ["docno", "docid"])
        rows = inp.drop(columns=replaced, errors="ignore").drop_duplicates(keys)
        return rows.merge(results, on=keys, how="right")

    def fuse_rank_cutoff(self, k: int) -> FontesTransformer:
        """Return this transformer with its stage cut to k documents per topic; PyTerrier compiles `transformer % k` to it."""
        return FontesTransformer(self.stage % k, self.columns, self.documents)


class _Texts:
    """The texts of a DataFrame as a source of documents."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._texts = dict(zip(frame["docno"], frame["text"], strict=True))

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        return [Doc(doc_id, self._texts[doc_id]) for doc_id in ids]


def _ids(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column of ids as strings; raise InputError for a value that is no id."""
    ids = [string_of(value, name, f"row {number} of the DataFrame") for number, value in enumerate(frame[name], 1)]
    return pd.Series(ids, dtype=object, index=frame.index)


def _topics(frame: pd.DataFrame) -> Topics:
    """Return the topics of a frame, from the first row of each."""
    rows = frame.drop_duplicates("qid")
    return Topics(
        Topic(topic_id, string_of(text, "query", f"topic '{topic_id}'"))
        for topic_id, text in zip(rows["qid"], rows["query"], strict=True)
    )


def _run(frame: pd.DataFrame, documents: Any) -> Run:
    """Return the candidates of a frame, with score 0 without a column "score", and its texts or else `documents`."""
    scores = frame["score"] if "score" in frame else [0.0] * len(frame)
    run = Run.of(zip(frame["qid"], frame["docno"], scores, strict=True), _topics(frame))
    return run.with_(documents=_Texts(frame) if "text" in frame else documents)


def _value(doc: Doc, name: str) -> Any:
    """Return the text, the title or a value of metadata; None if it is missing."""
    return {"text": doc.text, "title": doc.title}.get(name, doc.metadata.get(name))
