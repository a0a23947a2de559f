"""Suggestions while typing: completions of the last word, and corrections of words that are rare in the index."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.strings import Strings
from ..storage.caches import Attached, Cached, weakly
from .edits import near, prefixed
from .surface_forms import is_gram, surface_forms, unstemmed, whole_words
from .tables import arrays_of

if TYPE_CHECKING:
    from .state import State

MIN_UNKNOWN = 3  # characters of an unknown word to correct
MIN_KNOWN = 5  # characters of a word of the index to correct
MIN_TWO_EDITS = 6  # characters of a word to correct by two edits
MIN_FUZZY = 4  # characters of a prefix that is completed despite an edit
MIN_RATIO = (0, 500, 5000)  # by distance: ratio of the frequencies of a correction and of the word, if the index has it
EDIT_PENALTY, INITIAL_PENALTY = 4.0, 2.0  # log frequency that a second edit and another first letter cost
MAX_WORD = 64  # characters of a word to correct or complete
MAX_WORDS = 64  # words of a query that are corrected, from its end
CACHE_SIZE = 4096  # corrections


@dataclass(frozen=True)
class Suggestions:
    """Suggestions for a query.

    Args:
        completions: The query with its last word completed, the most frequent first.
        correction: The query with its misspelt words corrected; None if there is nothing to correct.
    """

    completions: tuple[str, ...]
    correction: str | None


@dataclass(frozen=True)
class _Word:
    start: int  # in characters of the query
    end: int
    form: str
    df: int
    is_searched: bool  # whether it has an index term


class Suggester:
    """Completions and corrections by the surface forms of a state's terms."""

    def __init__(self, state: State) -> None:
        self._state = weakly(state)
        forms = surface_forms(state)
        self._table = Strings(*arrays_of(forms.words), forms.words.order)
        self._counts, self._terms = forms.counts, forms.terms
        self._max_count = int(self._counts.max(initial=0))
        self._corrections: Cached[str, str | None] = Cached(CACHE_SIZE)

    def suggest(self, query: str, k: int) -> Suggestions:
        """Return suggestions for a query, `k` completions at most."""
        check_whole("k", k)
        words = self._words(query)
        last = words[-1] if words and words[-1].end == len(query) else None
        forms = [] if last is None else self._completions(last.form, k)
        is_begun = last is not None and len(last.form) < MIN_KNOWN and any(form.startswith(last.form) for form in forms)
        corrections = [
            (word, form)
            for word in words[-MAX_WORDS:]
            if not (word is last and is_begun) and (form := self._correction(word)) is not None
        ]
        completions = tuple(_replaced(query, [(words[-1], form)]) for form in forms)
        return Suggestions(completions, _replaced(query, corrections) if corrections else None)

    def _words(self, query: str) -> list[_Word]:
        analyzer = self._state.analyzer
        terms = {start: span_terms for start, _, span_terms in whole_words(analyzer).spans(query)}
        return [
            _Word(start, end, span_terms[0], self._df(span_terms[0], terms[start]), bool(terms[start]))
            for start, end, span_terms in unstemmed(analyzer).spans(query)
            if len(span_terms) == 1 and start in terms
        ]

    def _df(self, form: str, terms: tuple[str, ...]) -> int:
        """Number of documents with a word; number of its occurrences if terms are n-grams."""
        if is_gram(self._state.analyzer):
            i = self._table.find(form)
            return 0 if i < 0 else int(self._counts[i])
        numbers = [self._state.term_number(term) for term in terms]
        return max((int(self._state.df[number]) for number in numbers if number >= 0), default=0)

    def _completions(self, form: str, k: int) -> list[str]:
        """Return the most frequent forms with this prefix, one per term, without the prefix itself."""
        if not 0 < len(form) <= MAX_WORD:
            return []
        first, last = prefixed(self._table, form)
        indices = np.arange(first, last)
        if not len(indices) and len(form) >= MIN_FUZZY:
            indices = near(self._table, form, 1, prefix=1, complete=True)[0].astype(np.int64)
        by_term: dict[int, str] = {}
        limit = 4 * (k + 1)
        while len(indices):
            frequent = self._frequent(indices, limit)
            by_term = {}
            for i in frequent.tolist():
                term = int(self._terms[i])
                by_term.setdefault(-1 - i if term < 0 else term, self._table[i])
            if len(by_term) > k or len(frequent) == len(indices):
                break
            limit *= 8
        return [completion for completion in by_term.values() if completion != form][:k]

    def _frequent(self, indices: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """Return about `limit` indices of the most frequent forms, most frequent first, ties in the order of the forms."""
        counts = self._counts[indices]
        if limit < len(indices):
            is_frequent = counts >= np.partition(counts, -limit)[-limit]
            indices, counts = indices[is_frequent], counts[is_frequent]
        return indices[np.argsort(-counts, kind="stable")]

    def _correction(self, word: _Word) -> str | None:
        shortest = MIN_KNOWN if word.df else MIN_UNKNOWN
        if not word.is_searched or not shortest <= len(word.form) <= MAX_WORD or any(map(str.isdigit, word.form)):
            return None
        if word.df * MIN_RATIO[1] > self._max_count:
            return None
        return self._corrections.get(word.form, functools.partial(self._correct, word))

    def _correct(self, word: _Word) -> str | None:
        """Return the similar form with the best frequency for its distance; None if none is frequent enough."""
        form = word.form
        indices, distances = near(self._table, form, 1)
        if len(form) >= MIN_TWO_EDITS:
            further = near(self._table, form, 2, prefix=1)
            indices, distances = np.concatenate([indices, further[0]]), np.concatenate([distances, further[1]])
        counts = self._counts[indices]
        is_candidate = (distances > 0) & (counts >= np.array(MIN_RATIO)[distances] * word.df)
        if not is_candidate.any():
            return None
        indices, distances, counts = indices[is_candidate], distances[is_candidate], counts[is_candidate]
        initials = np.array([self._table[i][:1] != form[:1] for i in indices.tolist()])
        scores = np.log(counts) - EDIT_PENALTY * (distances - 1.0) - INITIAL_PENALTY * initials
        return self._table[int(indices[np.argmax(scores)])]


def _replaced(query: str, replacements: Iterable[tuple[_Word, str]]) -> str:
    """Replace words of a query, in ascending order, by better forms in their case."""
    pieces, end = [], 0
    for word, form in replacements:
        typed = query[word.start : word.end]
        cased = (
            form.upper() if len(typed) > 1 and typed.isupper() else form[:1].upper() + form[1:] if typed[:1].isupper() else form
        )
        pieces += [query[end : word.start], cased]
        end = word.end
    return "".join([*pieces, query[end:]])


SUGGESTER: Attached[State, Suggester] = Attached("suggester", Suggester)
