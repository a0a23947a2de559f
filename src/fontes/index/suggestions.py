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

SHORTEST = 3  # minimum characters of an unknown word to correct
KNOWN = 5  # minimum characters of a word of the index to correct
LONG = 6  # minimum characters of a word with two edits
FUZZY = 4  # minimum characters of a prefix that is completed despite an edit
MORE = (0, 500, 5000)  # by distance: minimum ratio of the frequencies of a correction and a word of the index
EDIT, INITIAL = 4.0, 2.0  # penalties in log frequency of a second edit and of another first letter
MAX_WORD = 64  # maximum characters of a word to correct or complete
WORDS = 64  # words of a query that are corrected, from its end
CORRECTED = 4096  # cached corrections


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
        self._most = int(self._counts.max(initial=0))
        self._corrections: Cached[str, str | None] = Cached(CORRECTED)

    def suggest(self, query: str, k: int) -> Suggestions:
        """Return suggestions for a query, `k` completions at most."""
        check_whole("k", k)
        words = self._words(query)
        last = words[-1] if words and words[-1].end == len(query) else None
        forms = [] if last is None else self._completions(last.form, k)
        is_begun = last is not None and len(last.form) < KNOWN and any(form.startswith(last.form) for form in forms)
        better = [
            (word, form)
            for word in words[-WORDS:]
            if not (word is last and is_begun) and (form := self._correction(word)) is not None
        ]
        completions = tuple(_replaced(query, [(words[-1], form)]) for form in forms)
        return Suggestions(completions, _replaced(query, better) if better else None)

    def _words(self, query: str) -> list[_Word]:
        analyzer = self._state.analyzer
        terms = {start: span_terms for start, _, span_terms in whole_words(analyzer).spans(query)}
        return [
            _Word(start, end, span_terms[0], self._df(span_terms[0], terms[start]), bool(terms[start]))
            for start, end, span_terms in unstemmed(analyzer).spans(query)
            if len(span_terms) == 1 and start in terms
        ]

    def _df(self, form: str, terms: tuple[str, ...]) -> int:
        """Number of documents with a word; of its occurrences if terms are no whole words."""
        if is_gram(self._state.analyzer):
            i = self._table.find(form)
            return 0 if i < 0 else int(self._counts[i])
        numbers = [self._state.term_number(term) for term in terms]
        return max((int(self._state.df[number]) for number in numbers if number >= 0), default=0)

    def _completions(self, form: str, k: int) -> list[str]:
        """The most frequent forms with this prefix, one per term, without the prefix itself."""
        if not 0 < len(form) <= MAX_WORD:
            return []
        first, last = prefixed(self._table, form)
        indices = np.arange(first, last)
        if not len(indices) and len(form) >= FUZZY:
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
        """About `limit` indices of the most frequent forms, most frequent first; ties by form."""
        counts = self._counts[indices]
        if limit < len(indices):
            is_frequent = counts >= np.partition(counts, -limit)[-limit]
            indices, counts = indices[is_frequent], counts[is_frequent]
        return indices[np.argsort(-counts, kind="stable")]

    def _correction(self, word: _Word) -> str | None:
        shortest = KNOWN if word.df else SHORTEST
        if not word.is_searched or not shortest <= len(word.form) <= MAX_WORD or any(map(str.isdigit, word.form)):
            return None
        if word.df * MORE[1] > self._most:
            return None
        return self._corrections.get(word.form, functools.partial(self._correct, word))

    def _correct(self, word: _Word) -> str | None:
        """The similar form with the best frequency for its distance; None if none is frequent enough."""
        form = word.form
        indices, distances = near(self._table, form, 1)
        if len(form) >= LONG:
            further = near(self._table, form, 2, prefix=1)
            indices, distances = np.concatenate([indices, further[0]]), np.concatenate([distances, further[1]])
        counts = self._counts[indices]
        is_candidate = (distances > 0) & (counts >= np.array(MORE)[distances] * word.df)
        if not is_candidate.any():
            return None
        indices, distances, counts = indices[is_candidate], distances[is_candidate], counts[is_candidate]
        initials = np.array([self._table[i][:1] != form[:1] for i in indices.tolist()])
        return self._table[int(indices[np.argmax(np.log(counts) - EDIT * (distances - 1.0) - INITIAL * initials)])]


def _replaced(query: str, better: Iterable[tuple[_Word, str]]) -> str:
    pieces, end = [], 0
    for word, form in better:
        typed = query[word.start : word.end]
        cased = (
            form.upper() if len(typed) > 1 and typed.isupper() else form[:1].upper() + form[1:] if typed[:1].isupper() else form
        )
        pieces += [query[end : word.start], cased]
        end = word.end
    return "".join([*pieces, query[end:]])


SUGGESTER: Attached[State, Suggester] = Attached("suggester", Suggester)
