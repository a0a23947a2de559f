"""Documents of examples cut into windows, of which each query learns from the one that fits it best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..core.progress import Report, silent
from ..core.values import Doc
from ..neural.encoders import ChunkedEncoder
from .examples import Examples, Passage


def windowed(examples: Examples, encoder: ChunkedEncoder, progress: Report = silent) -> Examples:
    """The examples with the best window of each document in place of its text.

    Args:
        examples: With whole documents.
        encoder: Cuts the documents, and says with its encoder as it is which window has the greatest score for the query.
        progress: Is called with the documents that are done.
    """
    texts = list(dict.fromkeys(passage.text for example in examples for passage in (example.positive, *example.negatives)))
    queries = list(dict.fromkeys(example.query for example in examples))
    vectors, bounds = encoder.with_(pooling="max").encode_documents_parts([Doc("", text) for text in texts], progress)
    of_queries = dict(zip(queries, encoder.encode_queries(queries), strict=True))
    parts = {text: (encoder.windows(text), slice(*bounds[at : at + 2])) for at, text in enumerate(texts)}

    def best(query: str, passage: Passage) -> Passage:
        windows, rows = parts[passage.text]
        return replace(passage, text=windows[int(np.argmax(vectors[rows] @ of_queries[query]))])

    def all_of(query: str, passages: Iterable[Passage]) -> tuple[Passage, ...]:
        return tuple(best(query, passage) for passage in passages)

    return Examples(
        replace(one, positive=best(one.query, one.positive), negatives=all_of(one.query, one.negatives)) for one in examples
    )
