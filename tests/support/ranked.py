"""A collection to learn from: of the documents that hold a topic's words, those with the word in the title are relevant."""

from typing import Any

import numpy as np

from fontes.core import Qrels, Run, Topics
from fontes.index import Index

WORDS = "spring water well karst oasis geyser pump basin river lake delta source".split()
FEATURES = 'bm25(), bm25(fields={"title": 1}), ql(), column("date"), length(), coverage()'


def documents(count: int = 90) -> list[dict[str, Any]]:
    """Documents with a title, a text, and a date, number, truth value and keyword, of which some are missing."""
    draw, docs = np.random.default_rng(3), []
    for n in range(count):
        words = draw.choice(WORDS, 2 + n % 9).tolist()
        facts: dict[str, Any] = {"kind": f"k{n % 3}"}
        if n % 4:
            facts |= {"date": f"20{10 + n % 9}-0{1 + n % 8}-11", "price": (n % 7) / 3, "open": n % 2 == 0}
        docs.append({"_id": f"d{n}", "title": str(draw.choice(WORDS)), "text": " ".join(words), "metadata": facts})
    return docs


def topics(count: int = 24) -> Topics:
    """Topics of two words, each with a number that makes its text unlike the others'."""
    texts = {
        f"q{n}": f"{WORDS[n % 12]} {WORDS[(5 * n + n // 12 + 1) % 12]} {'abcdefghijklmnopqrstuvwxyz'[n] * 9}"
        for n in range(count)
    }
    return Topics.of(texts)


def judgments(asked: Topics) -> Qrels:
    """Grade 2 for a title that is the first word of a topic and 1 for one that is the second, if the text holds the other."""
    rows, docs = [], documents()
    for topic in asked.values():
        first, second, _ = topic.text.split()
        for doc in docs:
            held = doc["text"].split()
            grade = 2 if doc["title"] == first and second in held else 1 if doc["title"] == second and first in held else 0
            rows.append((topic.id, "0", doc["_id"], grade))
    return Qrels(row for row in rows if row[3] or int(row[2][1:]) % 5 == 0)


def candidates(index: Index) -> Run:
    """The 40 best documents of each topic."""
    return (index.bm25() % 40)(topics())
