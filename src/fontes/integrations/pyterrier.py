"""PyTerrier: a stage as a transformer; and `pyterrier_stage`, a transformer as a stage. Needs `fontes[pyterrier]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import Doc, InputError, MissingExtraError, PipelineError, Run, Stage, Topic, Topics
from ..core.checks import check_key, string_of
from ..core.stage import Ranker
from ..core.values import Documents
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
        documents: The index from which a reranker reads texts that the input lacks: without a column "text", or in rows where
            it is missing, as in those that PyTerrier's `+` and `^` add from their right side.
    """

    def __init__(self, stage: Ranker | Index | State, columns: Iterable[str] = (), documents: Documents | None = None) -> None:
        self.stage: Ranker = BM25(stage) if isinstance(stage, Index | State) else stage
        if not isinstance(self.stage, Stage) or self.stage.gives is not Run:
            raise PipelineError(f"a transformer is made from a stage that gives a Run, or an index, not from {stage!r}")
        self.columns, self.documents = tuple(columns), documents

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the results: qid, query, docno, score, rank, the other columns of the input, and `columns`.

        Raises:
            InputError: A row has no id, no row of a topic has a query, or a reranker needs a text that neither the input nor
                `documents` have; the message names the row, from 1.
        """
        reranks = self.stage.takes is Run
        validate = pt.validate.result_frame if reranks else pt.validate.query_frame
        validate(inp, extra_columns=["query"], context=self)
        keys = ["qid", "docno"] if reranks else ["qid"]
        inp = inp.assign(**{key: _ids(inp, key) for key in keys})
        topics = _topics(inp)
        inp = inp.assign(query=[topics[topic_id].text for topic_id in inp["qid"]])
        value = _run(inp, topics, self.documents) if reranks else topics
        run = self.stage(value) if len(value) else Run.of([])
        results = frame_of(run)
        if self.columns:
            docs = [doc for ranking in run.values() for doc in ranking.docs()]
            names = ("text", "title", *getattr(run.documents, "columns", ()))
            for name in self.columns:
                check_key("columns: no document of the results", name, [doc.metadata for doc in docs], names)
            results = results.assign(**{name: [_value(doc, name) for doc in docs] for name in self.columns})
        replaced = [name for name in results if name not in keys] + ([] if reranks else ["docno", "docid"])
        rows = inp.drop(columns=replaced, errors="ignore").drop_duplicates(keys)
        return rows.merge(results, on=keys, how="right")

    def fuse_rank_cutoff(self, k: int) -> FontesTransformer:
        """Return this transformer with its stage cut to k documents per topic; PyTerrier compiles `transformer % k` to it."""
        return FontesTransformer(self.stage % k, self.columns, self.documents)


class _Texts:
    """The texts of a DataFrame as a source of documents; those that it lacks are read from `documents`."""

    def __init__(self, frame: pd.DataFrame, documents: Any) -> None:
        rows = frame[frame["text"].notna()]
        self._texts = dict(zip(rows["docno"], rows["text"], strict=True))
        self._ids, self._documents = list(frame["docno"]), documents

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        ids = list(ids)
        missing = [doc_id for doc_id in ids if doc_id not in self._texts]
        if missing and self._documents is None:
            row, doc_id = min((self._ids.index(doc_id) + 1, doc_id) for doc_id in missing)
            raise InputError(
                f"row {row} of the DataFrame: the text of document '{doc_id}' is missing; "
                "FontesTransformer(…, documents=index) reads it from an index"
            )
        texts = self._texts | ({doc.id: doc.text for doc in self._documents.docs(missing)} if missing else {})
        return [Doc(doc_id, string_of(texts[doc_id], "text", f"document '{doc_id}'")) for doc_id in ids]


def _ids(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column of ids as strings; raise InputError for a value that is no id."""
    ids = [string_of(value, name, f"row {number} of the DataFrame") for number, value in enumerate(frame[name], 1)]
    return pd.Series(ids, dtype=object, index=frame.index)


def _topics(frame: pd.DataFrame) -> Topics:
    """Return the topics of a frame, each with the query of its first row that has one."""
    rows = frame[frame["query"].notna()].drop_duplicates("qid")
    queries = dict(zip(rows["qid"], rows["query"], strict=True))
    for number, topic_id in enumerate(frame["qid"], 1):
        if topic_id not in queries:
            raise InputError(
                f"row {number} of the DataFrame: the query of topic '{topic_id}' is missing (PyTerrier's + loses it if its "
                "left side finds nothing); pt.apply.query(lambda row: queries[row.qid]) adds queries"
            )
    return Topics(
        Topic(topic_id, string_of(queries[topic_id], "query", f"topic '{topic_id}'"))
        for topic_id in dict.fromkeys(frame["qid"])
    )


def _run(frame: pd.DataFrame, topics: Topics, documents: Documents | None) -> Run:
    """Return the candidates of a frame, with score 0 without a column "score", and its texts or else `documents`."""
    scores = frame["score"] if "score" in frame else [0.0] * len(frame)
    run = Run.of(zip(frame["qid"], frame["docno"], scores, strict=True), topics)
    return run.with_(documents=_Texts(frame, documents) if "text" in frame else documents)


def _value(doc: Doc, name: str) -> Any:
    """Return the text, the title or a value of metadata; None if it is missing."""
    return {"text": doc.text, "title": doc.title}.get(name, doc.metadata.get(name))
