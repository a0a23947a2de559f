"""PyTerrier: a transformer as a stage. Needs `fontes[pyterrier]`."""

from __future__ import annotations

from ..core import InputError, MissingExtraError, PipelineError, Run, Topics
from ..core.function import FunctionStage, stage as function_stage
from ..core.run import Kind

try:
    import pyterrier as pt  # isort: skip
    import pandas as pd
except ImportError:
    raise MissingExtraError.of("python-terrier", "pyterrier", "conversion to PyTerrier") from None


def pyterrier_stage(transformer: object, takes: Kind = Topics) -> FunctionStage:
    """Return a transformer of PyTerrier as a stage that gives a run, ordered by the column "score"; "rank" is ignored.

    Terrier parses queries; `pt.rewrite.tokenise() >> retriever` accepts any text.

    Args:
        transformer: A transformer that gives qid, docno and score.
        takes: Topics for a retriever; Run for a reranker, which gets the column "text" if the run has documents.

    Raises:
        PipelineError: The value is not a transformer.
    """
    if not isinstance(transformer, pt.Transformer):
        raise PipelineError(f"pyterrier_stage takes a transformer of PyTerrier, not {type(transformer).__name__}")

    def transformed(value: Topics | Run) -> Run:
        topics = value if isinstance(value, Topics) else value.topics
        frame = pd.DataFrame({"qid": list(topics), "query": [topic.text for topic in topics.values()]}, dtype=object)
        if isinstance(value, Run):
            rows = frame_of(value)
            if value.documents is not None:
                rows["text"] = [doc.text for ranking in value.values() for doc in ranking.docs()]
            frame = frame.merge(rows, on="qid")
        result = transformer(frame)
        missing = [name for name in ("qid", "docno", "score") if name not in result]
        if missing:
            raise InputError(f"{transformer!r} gives no column '{missing[0]}'; it gives {', '.join(map(str, result.columns))}")
        run = Run.of(zip(result["qid"], result["docno"], result["score"], strict=True), topics)
        return run.with_(documents=value.documents) if isinstance(value, Run) else run

    transformed.__name__ = repr(transformer)
    return function_stage(transformed, takes=takes)


def frame_of(run: Run) -> pd.DataFrame:
    """Return the rows of a run as PyTerrier's columns qid, docno, score (float64) and rank (from 0)."""
    columns = run.to_columns()
    frame = pd.DataFrame({"qid": columns["query_id"], "docno": columns["doc_id"]}, dtype=object)
    return frame.assign(score=columns["score"].astype("float64"), rank=columns["rank"] - 1)
