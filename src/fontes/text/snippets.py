"""Snippets: the part of a text that best matches a query."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

import numpy as np

from ..core.query import AnyOf, Leaf, Phrase, Window, terms_of
from ..core.strings import concatenated, utf8
from ..storage.caches import LazyAttribute
from .analyzer import Analyzer
from .proximity import spans_among
from .tokenizers import TOKENIZERS

CHUNK_CHARACTERS = 1 << 20  # characters analysed at a time
MAX_CACHED_TERMS = 1 << 18  # terms of a vocabulary, which most pieces share
SPACE = re.compile(r"\s")
Match = tuple[int, int, tuple[Hashable, ...]]


@dataclass(frozen=True)
class Snippet:
    """A piece of a text and the matches in it.

    Args:
        text: The piece.
        matches: Spans of matching words in it as (first character, end), ordered and disjoint.
    """

    text: str
    matches: tuple[tuple[int, int], ...]

    def marked(self, before: str = "**", after: str = "**") -> str:
        """Return the piece with marks around each match."""
        return self._marked(before, after, str)

    def html(self, before: str = "<mark>", after: str = "</mark>") -> str:
        """Return the piece as escaped HTML with tags around each match."""
        return self._marked(before, after, escape)

    def _marked(self, before: str, after: str, render: Callable[[str], str]) -> str:
        pieces, last_end = [], 0
        for start, end in self.matches:
            pieces += [render(self.text[last_end:start]), before, render(self.text[start:end]), after]
            last_end = end
        return "".join([*pieces, render(self.text[last_end:])])


def snippet(analyzer: Analyzer, text: str, terms: Collection[str], length: int = 240) -> Snippet:
    """Return the piece of a text with the most distinct terms, white space collapsed and letters composed.

    Args:
        analyzer: Analyzer for the text.
        text: The text.
        terms: Terms to show, as produced by the analyzer.
        length: Approximate length in characters.
    """
    return snippets(analyzer, [(text, terms)], length)[0]


def snippets(analyzer: Analyzer, texts: Sequence[tuple[str, Collection[str]]], length: int = 240) -> list[Snippet]:
    """Return the snippet of each (text, terms), as `snippet` does, but much faster for many texts."""
    folded = [_folded(analyzer.composed(text)) for text, _ in texts]
    if analyzer.chars is not None or analyzer.tokenizer not in TOKENIZERS:
        return [_by_pieces(analyzer, text, terms, length) for text, (_, terms) in zip(folded, texts, strict=True)]
    cache = _TOKEN_CACHES.of(analyzer)
    pieces: list[Snippet] = []
    batch: list[tuple[str, Collection[str]]] = []
    characters = 0
    for text, (_, terms) in zip(folded, texts, strict=True):
        characters += len(text)
        if characters > CHUNK_CHARACTERS:
            pieces += cache.snippets(batch, length)
            batch, characters = [], len(text)
        if len(text) > CHUNK_CHARACTERS:
            pieces.append(_by_pieces(analyzer, text, terms, length))
        else:
            batch.append((text, terms))
    return pieces + cache.snippets(batch, length)


def clause_snippet(analyzer: Analyzer, text: str, clauses: Collection[Leaf], length: int = 240) -> Snippet:
    """Return the piece of a text with the most distinct clauses of a query, white space collapsed.

    Words of a phrase or window are marked only in its matches, unless they are clauses by themselves.

    Args:
        analyzer: Analyzer for the text.
        text: The text.
        clauses: The clauses.
        length: Approximate length in characters.
    """
    clauses = [leaf for clause in clauses for leaf in (clause.clauses if isinstance(clause, AnyOf) else (clause,))]
    near = [clause for clause in clauses if isinstance(clause, (Phrase, Window))]
    terms = {term for clause in clauses if clause not in near for term in terms_of(clause)}
    if not near or len(text) > CHUNK_CHARACTERS:  # the tokens of a longer text would take too much memory
        return snippet(analyzer, text, terms.union(*map(terms_of, near)), length)
    text = _folded(analyzer.composed(text))
    tokens = analyzer.spans(text)
    keys: list[set[Hashable]] = [{*terms.intersection(token_terms)} for _, _, token_terms in tokens]
    positions: dict[str, list[int]] = {}
    for position, (_, _, token_terms) in enumerate(tokens):
        for term in token_terms:
            positions.setdefault(term, []).append(position)
    for clause in near:
        words = sorted(set(clause.terms))
        slots = [words.index(term) for term in clause.terms]
        term_positions = [np.array(positions.get(word, ()), dtype=np.int32) for word in words]
        for first, last in spans_among(clause, term_positions, slots).tolist():
            for position in range(first, last + 1):
                keys[position] |= {(clause, word) for word in words if word in tokens[position][2]}
    matches = [
        (start, end, tuple(token_terms)) for (start, end, _), token_terms in zip(tokens, keys, strict=True) if token_terms
    ]
    return _cut_around(text, _best_start(matches, length, math.inf), length, matches)


class _TokenCache:
    """Snippets by an analyzer without character n-grams whose tokenizer gives positions; analysed tokens are cached."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = replace(analyzer, words=(1, 1))
        self._vocabulary = self._analyzer.vocabulary()

    def snippets(self, texts: Sequence[tuple[str, Collection[str]]], length: int) -> list[Snippet]:
        if not texts:
            return []
        vocabulary = self._vocabulary
        if len(vocabulary.terms) > MAX_CACHED_TERMS:
            vocabulary = self._vocabulary = self._analyzer.vocabulary()
        text, text_bounds = concatenated([utf8(text) for text, _ in texts])
        distinct = [frozenset(terms) for _, terms in texts]
        numbers, starts, ends, bounds = vocabulary.tokens(text, text_bounds, frozenset[str]().union(*distinct))
        numbers_of = {terms: sorted(vocabulary.known(terms)) for terms in set(distinct)}
        terms_of_texts = [numbers_of[terms] for terms in distinct]
        term_keys = np.array(
            [number << 32 | term for number, text_terms in enumerate(terms_of_texts) for term in text_terms], dtype=np.int64
        )
        text_of_tokens = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(bounds))
        token_keys = text_of_tokens << 32 | numbers.astype(np.int64) & 0xFFFFFFFF
        nearest = np.searchsorted(term_keys, token_keys)
        matching = np.flatnonzero(np.append(term_keys, -1)[nearest] == token_keys)
        characters = np.append(0, np.cumsum((text & 0xC0) != 0x80))  # before each byte
        before = characters[text_bounds[text_of_tokens[matching]]]
        spans = characters[starts[matching]] - before, characters[ends[matching]] - before
        matches = list(zip(spans[0].tolist(), spans[1].tolist(), zip(numbers[matching].tolist()), strict=True))
        pieces = []
        for (one, _), text_terms, (first, last) in zip(
            texts, terms_of_texts, pairwise(np.searchsorted(matching, bounds).tolist()), strict=True
        ):
            start = _best_start(matches[first:last], length, len(text_terms))
            pieces.append(_cut_around(one, start, length, matches[first:last]))
        return pieces


def _by_pieces(analyzer: Analyzer, text: str, terms: Collection[str], length: int) -> Snippet:
    """Return the snippet of a long text, or of a text whose tokens only the analyzer can find."""
    pieces = _pieces(text)
    matches = _matches(analyzer, text, pieces, terms)
    all_matches = list(matches) if len(pieces) == 1 else None
    # Without character n-grams a token has at most one term, so a window has at most len(terms) distinct terms.
    max_terms = math.inf if analyzer.chars else len(frozenset(terms))
    start = _best_start(matches if all_matches is None else all_matches, length, max_terms)
    if all_matches is None:
        near = [(a, b) for a, b in pieces if a < start + 2 * length and b > start - length]
        all_matches = list(_matches(analyzer, text, near, terms))
    return _cut_around(text, start, length, all_matches)


def _cut_around(text: str, start: int, length: int, matches: Iterable[Match]) -> Snippet:
    """Return the snippet of about `length` characters that begins shortly before `start`, between words if possible."""
    start = 0 if len(text) <= length else min(max(0, start - length // 6), len(text) - length)
    if start:
        start = text.find(" ", start) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    left, right = ("… " if start else ""), (" …" if end < len(text) else "")
    shift = start - len(left)
    spans = [(a - shift, b - shift) for a, b, _ in matches if start <= a and b <= end]
    return Snippet(f"{left}{text[start:end]}{right}", tuple(spans))


_TOKEN_CACHES: LazyAttribute[Analyzer, _TokenCache] = LazyAttribute("snippets", _TokenCache)


def _folded(text: str) -> str:
    """Collapse white space, piece by piece: a list of all words would take many times the memory of the text."""
    if len(text) <= 2 * CHUNK_CHARACTERS:
        return " ".join(text.split())
    folded: list[str] = []
    gap = False
    for start, end in _pieces(text):
        words = text[start:end].split()
        if words:
            if folded and (gap or text[start].isspace()):
                folded.append(" ")
            folded.append(" ".join(words))
        gap = text[end - 1 : end].isspace()
    return "".join(folded)


def _pieces(text: str) -> list[tuple[int, int]]:
    """Return the spans of the pieces to analyse separately; they end at white space if possible."""
    pieces, start = [], 0
    while len(text) - start > 2 * CHUNK_CHARACTERS:
        space = SPACE.search(text, start + CHUNK_CHARACTERS, start + 2 * CHUNK_CHARACTERS)
        end = space.start() if space else start + CHUNK_CHARACTERS
        pieces.append((start, end))
        start = end
    return [*pieces, (start, len(text))]


def _matches(analyzer: Analyzer, text: str, pieces: Iterable[tuple[int, int]], terms: Collection[str]) -> Iterator[Match]:
    """Yield the tokens in some pieces of a text that have one of the terms."""
    vocabulary = replace(analyzer, words=(1, 1)).vocabulary()
    for start, stop in pieces:
        if len(vocabulary.terms) > MAX_CACHED_TERMS:
            vocabulary = replace(analyzer, words=(1, 1)).vocabulary()
        for a, b, span_terms in vocabulary.spans(text[start:stop], terms):
            yield start + a, start + b, span_terms


def _best_start(matches: Iterable[Match], length: int, max_terms: float) -> int:
    """Return the start of the window with the most distinct terms, at most `max_terms`, and the earliest among equals."""
    best, count = 0, 0
    window: deque[Match] = deque()
    term_counts: dict[Hashable, int] = {}
    for match in matches:
        window.append(match)
        for term in match[2]:
            term_counts[term] = term_counts.get(term, 0) + 1
        while window and match[1] > window[0][0] + length * 5 // 6:
            for term in window.popleft()[2]:
                term_counts[term] -= 1
                if not term_counts[term]:
                    del term_counts[term]
        if len(term_counts) > count:
            best, count = window[0][0], len(term_counts)
            if count >= max_terms:
                break
    return best
