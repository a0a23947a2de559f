"""The part of a text that shows best what it has to do with a query."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from html import escape

from .analyzer import Analyzer


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

    def html(self) -> str:
        """The piece as HTML, escaped, with each match in a <mark> element."""
        return self._joined("<mark>", "</mark>", escape)

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
    text = " ".join(text.split())
    shown = frozenset(terms)
    matches = [match for match in analyzer.spans(text) if not shown.isdisjoint(match[2])]
    start = _best_start(matches, length)
    start = 0 if len(text) <= length else min(max(0, start - length // 6), len(text) - length)
    if start:
        start = text.find(" ", start) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    head, tail = "… " if start else "", " …" if end < len(text) else ""
    inside = tuple((a - start + len(head), b - start + len(head)) for a, b, _ in matches if start <= a and b <= end)
    return Snippet(head + text[start:end] + tail, inside)


def _best_start(matches: list[tuple[int, int, tuple[str, ...]]], length: int) -> int:
    """The first match of the window with the most different terms, the earliest of equals."""
    best, most = 0, 0
    for i, (start, _, _) in enumerate(matches):
        seen: set[str] = set()
        for _, end, terms in matches[i:]:
            if end > start + length * 5 // 6:
                break
            seen.update(terms)
        if len(seen) > most:
            best, most = start, len(seen)
    return best
