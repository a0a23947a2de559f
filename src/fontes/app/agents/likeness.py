"""Near-duplicate hits, and the words of a query that a hit has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...index import Index

WORD = re.compile(r"\w+")
SHINGLE = 3  # words
COMPARED = 2_000  # characters of a text that are compared
NEAR = 0.7  # Jaccard similarity of near-duplicates
WORDS = 12  # words of a reason


def groups_of(texts: Sequence[str]) -> list[int]:
    """Return for each text the place of the first text of which it is a near-duplicate, or its own.

    Texts are near-duplicates if the Jaccard similarity of their sets of three-word shingles is at least 0.7 (Broder 1997).
    """
    shingles = [_shingles(text[:COMPARED]) for text in texts]
    leaders: list[int] = []
    for place, shingle_set in enumerate(shingles):
        leader = place
        for earlier in range(place):
            other = shingles[earlier]
            if leaders[earlier] != earlier or min(len(shingle_set), len(other)) < NEAR * max(len(shingle_set), len(other)):
                continue
            shared = len(shingle_set & other)
            if shingle_set and shared >= NEAR * (len(shingle_set) + len(other) - shared):
                leader = earlier
                break
        leaders.append(leader)
    return leaders


@lru_cache(512)
def _shingles(text: str) -> frozenset[int]:
    words = WORD.findall(text.casefold())
    places = range(max(1, len(words) - SHINGLE + 1)) if words else ()
    return frozenset(hash(tuple(words[at : at + SHINGLE])) for at in places)


def reason(index: Index, query: str, hit: Mapping[str, Any]) -> str:
    """Return the words of a query that a hit (with title and text) has and lacks, without stop words."""
    words = list(dict.fromkeys(word.casefold() for word in WORD.findall(query)))[: 4 * WORDS]
    of_word = {word: set(terms) for word, terms in zip(words, index.analyzer.many(words), strict=True) if terms}
    if "text" not in hit:
        return f"score {hit['score']:.4g}"
    terms = set(index.analyzer(f"{hit.get('title', '')} {hit['text']}"))
    has = [word for word, word_terms in of_word.items() if word_terms & terms]
    lacks = [word for word, word_terms in of_word.items() if not word_terms & terms]
    if not has:
        return "no word of the query: ranked by its model"
    return f"has {', '.join(has[:WORDS])}" + (f"; lacks {', '.join(lacks[:WORDS])}" if lacks else "")
