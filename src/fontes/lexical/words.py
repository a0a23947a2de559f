"""From a topic's text to the numbers of its terms: of a text of plain words, each is analysed once for all topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..storage.caches import Attached, weakly
from ..text.analyzer import WORDS

if TYPE_CHECKING:
    from ..index.state import State

Numbers = dict[str, list[int]]


class Words:
    """The words that topics brought, with the numbers of their terms. Threads may share it.

    Args:
        index: The index that has the terms.
    """

    def __init__(self, index: State) -> None:
        self._index, self._analyzer, self._plain = index, index.analyzer, index.analyzer.plain_words
        self._known: Numbers = {}

    def counts(self, texts: Sequence[str]) -> list[dict[int, float]]:
        """For each text its terms, by number, and how often they occur; terms that there are not are left out."""
        known, plain = self._known, [self._plain(text) for text in texts]
        try:
            if None not in plain:
                return [_sum([known[word] for word in words or ()]) for words in plain]
        except KeyError:
            pass  # a word is new
        return self._analysed(texts, plain)

    def _analysed(self, texts: Sequence[str], plain: Sequence[list[str] | None]) -> list[dict[int, float]]:
        known = self._known if len(self._known) <= WORDS else {}
        new = list({word: None for words in plain for word in words or () if word not in known})
        others = [text for text, words in zip(texts, plain, strict=True) if words is None]
        numbers = ([n for n in map(self._index.term_number, terms) if n >= 0] for terms in self._analyzer.many([*new, *others]))
        self._known = known
        known.update((word, next(numbers)) for word in new)
        return [_sum([next(numbers)] if words is None else [known[word] for word in words]) for words in plain]


KNOWN: Attached[State, Words] = Attached("words", lambda index: Words(weakly(index)))


def _sum(words: list[list[int]]) -> dict[int, float]:
    bag: dict[int, float] = {}
    for numbers in words:
        for number in numbers:
            bag[number] = bag.get(number, 0.0) + 1.0
    return bag
