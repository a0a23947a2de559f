"""Near-duplicate hits, and the words of a query that a hit has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...index import Index

WORD = re.compile(r"\w+")
SHINGLE = 3  # words of a shingle
MAX_CHARACTERS = 2_000  # characters of a text that are compared
MIN_SIMILARITY = 0.7  # minimum Jaccard similarity of near-duplicates
WORDS = 12  # maximum words listed in a reason


def groups_of(texts: Sequence[str]) -> list[int]:
    """Return for each text the index of the first text of which it is a near-duplicate, or its own index.

    Texts are near-duplicates if the Jaccard similarity of their sets of three-word shingles is at least 0.7 (Broder 1997).
    """
    shingles = [_shingles(text[:MAX_CHARACTERS]) for text in texts]
    leaders: list[int] = []
    for i, shingle_set in enumerate(shingles):
        leader = i
        for earlier in range(i):
            other = shingles[earlier]
            if leaders[earlier] != earlier or min(len(shingle_set), len(other)) < MIN_SIMILARITY * max(
                len(shingle_set), len(other)
            ):
                continue
            shared = len(shingle_set & other)
            if shingle_set and shared >= MIN_SIMILARITY * (len(shingle_set) + len(other) - shared):
                leader = earlier
                break
        leaders.append(leader)
    return leaders


@lru_cache(512)
def _shingles(text: str) -> frozenset[int]:
    """Hashes of the shingles of a text; one for a text shorter than a shingle."""
    words = WORD.findall(text.casefold())
    starts = range(max(1, len(words) - SHINGLE + 1)) if words else ()
    return frozenset(hash(tuple(words[start : start + SHINGLE])) for start in starts)


def reason(index: Index, query: str, hit: Mapping[str, object]) -> str:
    """Return a phrase with the words of a query that a hit has and lacks, without stop words; its score if it has no text."""
    words = list(dict.fromkeys(word.casefold() for word in WORD.findall(query)))[: 4 * WORDS]
    terms_of = {word: set(terms) for word, terms in zip(words, index.analyzer.many(words), strict=True) if terms}
    if "text" not in hit:
        return f"score {hit['score']:.4g}"
    terms = set(index.analyzer(f"{hit.get('title', '')} {hit['text']}"))
    has = [word for word, word_terms in terms_of.items() if word_terms & terms]
    lacks = [word for word, word_terms in terms_of.items() if not word_terms & terms]
    if not has:
        return "no word of the query: ranked by its model"
    return f"has {', '.join(has[:WORDS])}" + (f"; lacks {', '.join(lacks[:WORDS])}" if lacks else "")
