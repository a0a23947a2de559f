"""From a topic's text to the numbers of its terms: of a text of plain words, each is analysed once for all topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..storage.caches import Attached

if TYPE_CHECKING:
    from ..index.reader import Reader

MOST = 1_000_000  # words that are remembered
Numbers = dict[str, list[int]]


class Words:
    """The words that topics brought, with the numbers of their terms. Threads may share it.

    Args:
        index: The index that has the terms.
    """

    def __init__(self, index: Reader) -> None:
        self._analyzer, self._number, self._plain = index.analyzer, index.term_number, index.analyzer.plain_words
        self._known: Numbers = {}

    def counts(self, texts: Sequence[str]) -> list[dict[int, float]]:
        """For each text its terms, by number, and how often they occur; terms that there are not are left out."""
        known = self._known
        bags = [_bag(known, self._plain(text)) for text in texts]
        return self._analysed(texts) if None in bags else bags  # type: ignore[return-value]

    def _analysed(self, texts: Sequence[str]) -> list[dict[int, float]]:
        """The same, where words are new or a text is not of plain words."""
        known = self._known if len(self._known) <= MOST else {}
        plain = [self._plain(text) for text in texts]
        new = list({word: None for words in plain for word in words or () if word not in known})
        others = [text for text, words in zip(texts, plain, strict=True) if words is None]
        numbers = ([n for n in map(self._number, terms) if n >= 0] for terms in self._analyzer.many([*new, *others]))
        self._known = known
        known.update((word, next(numbers)) for word in new)
        return [_sum([next(numbers)] if words is None else map(known.__getitem__, words)) for words in plain]


WORDS = Attached("words", Words)


def _bag(known: Numbers, words: list[str] | None) -> dict[int, float] | None:
    """The sums of what is known of the words; None where that is not all."""
    if words is None:
        return None
    try:
        return _sum(map(known.__getitem__, words))
    except KeyError:
        return None


def _sum(words: Iterable[list[int]]) -> dict[int, float]:
    bag: dict[int, float] = {}
    for numbers in words:
        for number in numbers:
            bag[number] = bag.get(number, 0.0) + 1.0
    return bag
