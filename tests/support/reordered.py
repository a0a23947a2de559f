"""A small shop whose documents have dates, numbers and groups, and a run over it."""

from fontes.core import Run
from fontes.index import Index

DOCS = [
    {"_id": "a", "text": "tea green tea", "metadata": {"date": "2024-01-21", "sold": 1, "lang": "en", "maker": "x"}},
    {"_id": "b", "text": "tea black tea", "metadata": {"date": "2024-01-31", "sold": 0, "lang": "cs", "maker": "x"}},
    {"_id": "c", "text": "tea green", "metadata": {"date": "2024-01-11", "sold": 3, "lang": "cs", "maker": "y"}},
    {"_id": "d", "text": "tea and coffee beans of several kinds", "metadata": {"lang": "en"}},
    {"_id": "e", "text": "coffee", "metadata": {"date": "2023-05-01", "lang": "en", "balance": 0.5}},
]
DOCS[0]["metadata"]["balance"] = -1.5  # type: ignore[index]


def candidates(index: Index) -> Run:
    """Return the scores 5, 4, 3, 2 of a, b, d, c."""
    return Run.of({"q": {"a": 5.0, "b": 4.0, "d": 3.0, "c": 2.0}}).with_(documents=index)
