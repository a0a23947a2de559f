"""Queries to begin with, drawn from the documents of an index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from ...core.values import Doc
from ...index import Index
from ...text.sentences import sentence_spans

EXAMPLES = 3
DOCS_READ = 20  # documents read for an example
CHARACTERS_READ = 1000  # of a text without a title
GOOD_TERMS = range(3, 11)  # number of terms of a good example
MAX_LENGTH = 80  # characters
UNSPACED_LENGTH = 30  # characters of a text without spaces
STOPS = " .,;:–-"
END = re.compile(r"(?<=[。！？؟۔।])|[\r\n]+")


def example_queries(index: Index) -> list[str]:
    """Return up to three queries, each of which finds something; the same for the same documents.

    They are titles or first sentences of documents spread over the index; if the index has no texts, frequent terms.
    """
    queries: list[str] = []
    for docs in np.array_split(np.arange(len(index)), EXAMPLES) if index.has_texts else ():
        step = max(1, len(docs) // DOCS_READ)
        ids = [index.ids[int(ordinal)] for ordinal in docs[step // 2 :: step][:DOCS_READ]]
        candidates = [(text, is_complete, len(index.analyzer(text))) for text, is_complete in map(_beginning, index.docs(ids))]
        candidates.sort(key=lambda candidate: (not candidate[1], candidate[2] not in GOOD_TERMS))
        queries += [text for text, _, terms in candidates if terms and text not in queries][:1]
    return queries or list(_frequent_terms(index))


def _beginning(doc: Doc) -> tuple[str, bool]:
    """The title of a document, or else its first sentence, on one line; False if it was too long and is cut."""
    text = doc.title.strip() or doc.text[:CHARACTERS_READ].strip()
    start, end = next(iter(sentence_spans(text)), (0, 0)) if not doc.title.strip() else (0, len(text))
    text = " ".join(END.split(text[start:end].strip(), maxsplit=1)[0].split()).rstrip(STOPS)
    if len(text) <= MAX_LENGTH:
        return text, True
    cut = text.rfind(" ", 0, MAX_LENGTH + 1)
    return text[: cut if cut > 0 else UNSPACED_LENGTH].rstrip(STOPS), False


def _frequent_terms(index: Index) -> Iterator[str]:
    """The most frequent terms that a query finds; terms in at most half of the documents come first."""
    terms = (index.terms[int(n)] for n in np.lexsort((-index.df, index.df * 2 > len(index))))
    yield from islice((term for term in terms if term.isalpha() and list(index.analyzer(term)) == [term]), EXAMPLES)
