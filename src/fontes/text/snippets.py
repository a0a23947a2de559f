"""The part of a text that shows best what it has to do with a query."""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape

from .analyzer import Analyzer

PIECE = 1 << 20  # characters of a text that are analysed at a time
MOST = 1 << 18  # terms of a text that are kept, since most pieces share theirs
SPACE = re.compile(r"\s")
Match = tuple[int, int, tuple[str, ...]]


@dataclass(frozen=True)
class Snippet:
    """A piece of a text, and where it matches.

    Args:
        text: The piece.
        matches: The places of matching words in it as (first character, end), in order and without overlap.
    """

    text: str
    matches: tuple[tuple[int, int], ...]

    def marked(self, before: str = "**", after: str = "**") -> str:
        """The piece with a sign before and after each match."""
        return self._joined(before, after, str)

    def html(self, before: str = "<mark>", after: str = "</mark>") -> str:
        """The piece as HTML, escaped, with a tag before and after each match."""
        return self._joined(before, after, escape)

    def _joined(self, before: str, after: str, written: Callable[[str], str]) -> str:
        pieces, at = [], 0
        for start, end in self.matches:
            pieces += [written(self.text[at:start]), before, written(self.text[start:end]), after]
            at = end
        return "".join([*pieces, written(self.text[at:])])


def snippet(analyzer: Analyzer, text: str, terms: Collection[str], length: int = 240) -> Snippet:
    """The piece of a text with the most different terms, white space folded.

    Args:
        analyzer: What makes terms of the text.
        text: The text.
        terms: The terms to show, as the analyzer writes them.
        length: About how many characters the piece has.
    """
    text = _folded(text)
    pieces = _pieces(text)
    matches = _matches(analyzer, text, pieces, terms)
    every = list(matches) if len(pieces) == 1 else None
    # A token has one term, unless terms are cut into n-grams: there are no more than those that are shown.
    most = math.inf if analyzer.chars else len(frozenset(terms))
    start = _best_start(matches if every is None else every, length, most)
    start = 0 if len(text) <= length else min(max(0, start - length // 6), len(text) - length)
    if start:
        start = text.find(" ", start) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    head, tail = "… " if start else "", " …" if end < len(text) else ""
    near = _matches(analyzer, text, [(a, b) for a, b in pieces if a < end and b > start], terms) if every is None else every
    inside = tuple((a - start + len(head), b - start + len(head)) for a, b, _ in near if start <= a and b <= end)
    return Snippet(head + text[start:end] + tail, inside)


def _folded(text: str) -> str:
    """The text with single spaces, piece by piece: all words of a long text would take many times its memory."""
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
    """Where the pieces of a text begin and end, which are analysed one by one; they end at white space where there is some."""
    pieces, start = [], 0
    while len(text) - start > 2 * PIECE:
        space = SPACE.search(text, start + PIECE, start + 2 * PIECE)
        end = space.start() if space else start + PIECE
        pieces.append((start, end))
        start = end
    return [*pieces, (start, len(text))]


def _matches(analyzer: Analyzer, text: str, pieces: Iterable[tuple[int, int]], terms: Collection[str]) -> Iterator[Match]:
    """The matches in the pieces of a text, by their places in the text."""
    vocabulary = replace(analyzer, words=(1, 1)).vocabulary()
    for start, stop in pieces:
        if len(vocabulary.terms) > MOST:
            vocabulary = replace(analyzer, words=(1, 1)).vocabulary()
        for a, b, own in vocabulary.spans(text[start:stop], terms):
            yield start + a, start + b, own


def _best_start(matches: Iterable[Match], length: int, most: float) -> int:
    """The first match of the window with the most different terms, the earliest of equals; no window can have over `most`."""
    best, count = 0, 0
    window: deque[Match] = deque()
    inside: Counter[str] = Counter()
    for match in matches:
        window.append(match)
        inside.update(match[2])
        while window and match[1] > window[0][0] + length * 5 // 6:
            inside -= Counter(window.popleft()[2])
        if len(inside) > count:
            best, count = window[0][0], len(inside)
            if count >= most:
                break
    return best
