"""Texts cut into passages of a maximum number of model tokens, between words if possible."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from ..text.sentences import Spans
from .documents import WORD

if TYPE_CHECKING:
    from ..neural.models.tokenizer import Tokenizer


class TokenCutter:
    """Cuts one text into passages.

    A passage may have different tokens alone than inside the text. So each is tokenized alone and loses words at its end until
    it fits. A word with too many tokens is cut between characters; a single character is never cut.

    Args:
        text: The text.
        most: Most tokens per passage, without special tokens.
        tokenizer: The model's tokenizer.
    """

    def __init__(self, text: str, most: int, tokenizer: Tokenizer) -> None:
        self._text, self._most, self._tokenizer = text, most, tokenizer
        self.units: Spans = []
        """The pieces of the text that are not cut: words, and the characters of words with too many tokens."""
        counts: list[int] = []
        for (start, end), tokens in self._words():
            if 2 * len(tokens) > most and self._tokens(start, end) > most:
                ends = [at for at, _ in tokens]
                self.units += [(at, at + 1) for at in range(start, end)]
                counts += [bisect_left(ends, at + 1) - bisect_left(ends, at) for at in range(start, end)]
            else:
                self.units.append((start, end))
                counts.append(len(tokens))
        self._before = [0, *accumulate(counts)]

    def windows(self, stride: int) -> Spans:
        """Return passages of up to `most` tokens, every `stride` tokens, until one reaches the end."""
        spans, start, last = [], 0, 0
        while last < len(self.units):
            end = self._fitting(start, len(self.units))
            if end > last:
                spans.append(self._span(start, end))
                start, last = min(end, max(start + 1, self._reach(start, stride))), end
            else:  # it would lie inside the previous passage
                start += 1
        return spans or [(0, 0)]

    def packed(self, sentences: Spans) -> Spans:
        """Return passages of as many whole sentences as fit; longer sentences are cut."""
        starts = [start for start, _ in self.units]
        # White space between sentences belongs to none; a unit belongs to the sentence in which it starts.
        edges = sorted({*(bisect_left(starts, start) for start, _ in sentences), len(starts)})
        spans, start = [], 0
        while start < len(self.units):
            end = self._fitting(start, len(self.units))
            edge = edges[bisect_right(edges, end) - 1] if edges[0] <= end else start
            end = self._fitting(start, edge) if edge > start else end
            spans.append(self._span(start, end))
            start = end
        return spans or [(0, 0)]

    def _words(self) -> Iterator[tuple[tuple[int, int], list[tuple[int, int]]]]:
        """Yield each word with the tokens that begin in it or in the white space before it."""
        words = [match.span() for match in WORD.finditer(self._text)]
        tokens, at = self._tokenizer.spans(self._text), 0
        for number, (start, end) in enumerate(words):
            first = at
            while at < len(tokens) and (tokens[at][0] < end or number == len(words) - 1):
                at += 1
            yield (start, end), tokens[first:at]

    def _reach(self, start: int, tokens: int) -> int:
        """Last unit with at most `tokens` tokens beginning before it, counted from the unit `start`."""
        return bisect_right(self._before, self._before[start] + tokens) - 1

    def _fitting(self, start: int, last: int) -> int:
        """End of the longest passage from the unit `start`, no later than `last`."""
        end = max(start + 1, min(last, self._reach(start, self._most)))
        while end > start + 1 and self._tokens(*self._span(start, end)) > self._most:
            end -= 1
        return end

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return self.units[start][0], self.units[end - 1][1]

    def _tokens(self, start: int, end: int) -> int:
        """Number of tokens of a part of the text, tokenized alone."""
        return self._tokenizer.counts([self._text[start:end]])[0]
