"""Overview of a collection for a first screen: queries to begin with, the newest documents, and the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from ...core.dates import date_text
from ...core.values import Doc
from ...index import Index
from ...index.columns import FacetColumns, column_values, facets_of
from ...index.columns.facets import ORDERED
from ...text.sentences import sentence_spans

EXAMPLES = 3
DOCS_READ = 50  # documents read for an example
CHARACTERS_READ = 1000  # of a text without a title
GOOD_TERMS = range(3, 11)  # number of terms of a good example
MAX_LENGTH = 80  # characters
UNSPACED_LENGTH = 30  # characters of a text without spaces
NEWEST = 3  # documents
SHOWN_COLUMNS, SHOWN_VALUES = 8, 4
SAMPLE = 10_000  # documents that describe a column
YEAR = re.compile(r"year|\w+_year", re.IGNORECASE)
QUESTION_MARKS = ("?", "？", "؟")
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
        read = index.docs(ids)
        texts = [*((text, True) for text in map(_question, read) if text), *map(_beginning, read)]
        candidates = [(text, is_complete, len(index.analyzer(text))) for text, is_complete in texts]
        candidates.sort(key=lambda candidate: (not candidate[1], candidate[2] not in GOOD_TERMS))
        queries += [text for text, _, terms in candidates if terms and text not in queries][:1]
    return queries or list(_frequent_terms(index))


def overview_of(index: Index, columns: FacetColumns) -> dict[str, object]:
    """Return what an index holds, as JSON values: "newest" documents, and "columns".

    The newest are the three documents with the greatest value of the first column of dates or years; without one the list is
    empty. A column has its name, its type, and its first and last value, or the most frequent values, of a sample of documents.
    """
    state, newest = index.state, []
    docs = np.arange(len(index))
    sample = np.unique(np.linspace(0, len(index) - 1, min(SAMPLE, len(index)), dtype=np.int64))
    described: list[dict[str, object]] = []
    for name in columns.facets[:SHOWN_COLUMNS]:
        kind = index.columns[name]
        if kind in ORDERED:
            stored = column_values(state, name, sample)
            values = stored.values[stored.present]
            described.append({"name": name, "type": kind, "from": _shown(values.min(), kind), "to": _shown(values.max(), kind)})
        else:
            counts = facets_of(state, sample, (name,))[name]
            described.append({"name": name, "type": kind, "values": list(islice(counts, SHOWN_VALUES))})
    times = [name for name in columns.facets if index.columns[name] == "date" or YEAR.fullmatch(name)]
    if times and index.has_texts:
        stored = column_values(state, times[0], docs)
        order = np.lexsort((docs, np.where(stored.present, stored.values, stored.values.min())))[::-1][:NEWEST]
        ids = [index.ids[int(docs[ordinal])] for ordinal in order if stored.present[ordinal]]
        for doc, ordinal in zip(index.docs(ids), order, strict=False):
            value = _shown(stored.values[ordinal], index.columns[times[0]])
            newest.append({"id": doc.id, "title": _beginning(doc)[0] or doc.id, "column": times[0], "value": value})
    return {"newest": newest, "columns": described}


def _shown(value: np.generic, kind: str) -> object:
    """A value of a column as a JSON value."""
    return date_text(int(value.item())) if kind == "date" else value.item()


def _question(doc: Doc) -> str:
    """The first question in the title or at the beginning of the text of a document; "" if there is none."""
    text = f"{doc.title.strip()}\n\n{doc.text[:CHARACTERS_READ]}"
    sentences = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return next((each for each in sentences if each.endswith(QUESTION_MARKS) and len(each) <= MAX_LENGTH), "")


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
