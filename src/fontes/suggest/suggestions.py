"""Suggestions while typing: completions of the last word in context, and neighbours of words that are rare in the index."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..core.arrays import Bools, Bytes, Float64s, Int32s, Int64s
from ..core.checks import check_whole
from ..core.strings import Strings
from ..index.columns import Filter, filter_of
from ..index.tables import arrays_of, find_positions
from ..storage.caches import Cached, LazyAttribute, weak_proxy
from .edits import near, prefixed
from .surface_forms import is_gram, surface_forms, unstemmed, whole_words

if TYPE_CHECKING:
    from ..index.parts import Part
    from ..index.state import State
    from ..text import Analyzer

MIN_UNKNOWN = 3  # characters of an unknown word to correct
MIN_KNOWN = 5  # characters of a word of the index to correct
MIN_TWO_EDITS = 6  # characters of a word to correct by two edits
MIN_FUZZY = 4  # characters of a prefix that is completed despite an edit
MIN_RATIO = (0, 500, 5000)  # by distance: ratio of the frequencies of a correction and of the word, if the index has it
EDIT_PENALTY, INITIAL_PENALTY = 4.0, 2.0  # log frequency that a second edit and another first letter cost
MAX_WORD = 64  # characters of a word to correct or complete
MAX_WORDS = 64  # words of a query that are corrected, from its end
CACHE_SIZE = 4096  # corrections
CANDIDATES = 2048  # most frequent completions that are looked up in context
MAX_POSTINGS = 1 << 19  # postings of completions that are read
SPLIT_AT_MARKS = ("standard", "letters")  # tokenizers for which the characters of MARKS are no part of words
MARKS = str.maketrans(dict.fromkeys("–—“”„«»…×•", " "))
SPARSE = 16  # documents for one whose context is looked up, below which all have a context
LEVELS = (8, 64, 512, 4096)  # frequencies from which on forms have a table of their own


@dataclass(frozen=True)
class Suggestions:
    """Suggestions for a query.

    Args:
        completions: The query with its last word completed and the words before it corrected, the most frequent first.
        correction: The query with its misspelt words corrected; None if there is nothing to correct.
    """

    completions: tuple[str, ...]
    correction: str | None


@dataclass(frozen=True)
class Word:
    """A word of a query.

    Args:
        start: Its first character.
        end: The character after it.
        form: The word as the analyzer writes it, before stemming.
        terms: Its index terms; () for a stop word.
        df: Number of documents with it; if terms are n-grams, number of its occurrences.
    """

    start: int
    end: int
    form: str
    terms: tuple[str, ...]
    df: int


class Form(NamedTuple):
    """A word of the documents.

    Args:
        form: The word, before stemming.
        term: Number of its index term; -1 for none.
        frequency: Number of its occurrences, or of documents in context.
        edits: Distance from the typed word; 0 for a completion.
        score: Log likelihood, up to a constant, that it was meant.
    """

    form: str
    term: int
    frequency: int
    edits: int = 0
    score: float = 0.0


class Suggester:
    """Completions and corrections by the surface forms of a state's terms."""

    def __init__(self, state: State) -> None:
        self._state = weak_proxy(state)
        forms = surface_forms(state)
        self._table = Strings(*arrays_of(forms.words), forms.words.order)
        self._counts, self._terms = forms.counts, forms.terms
        self.size = len(self._table)
        self.max_count = int(self._counts.max(initial=0))
        self._corrections: Cached[str, str | None] = Cached(CACHE_SIZE)

    def suggest(self, query: str, k: int, where: Filter | None = None) -> Suggestions:
        """Return suggestions for a query, `k` completions at most, which find documents that pass the filter."""
        check_whole("k", k)
        words = self.words(query)
        last = words[-1] if words and words[-1].end == len(query) else None
        corrections = [(word, form) for word in words[-MAX_WORDS:] if word is not last and (form := self._correction(word))]
        forms = [] if last is None else self.completions(last.form, k, self.terms_of(words[:-1], dict(corrections)), where)
        completions = tuple(_replaced(query, [*corrections, (words[-1], form.form)]) for form in forms)
        is_begun = last is not None and len(last.form) < MIN_KNOWN and any(form.form.startswith(last.form) for form in forms)
        if last is not None and not is_begun and (form := self._correction(last)):
            corrections.append((last, form))
        return Suggestions(completions, _replaced(query, corrections) if corrections else None)

    def words(self, query: str) -> list[Word]:
        """Return the words of a query that are one token before and after stemming."""
        terms = {start: span_terms for start, _, span_terms in self._spans(query, self._analyzers[1])}
        return [
            Word(start, end, span_terms[0], terms[start], self._df(span_terms[0], terms[start]))
            for start, end, span_terms in self._spans(query, self._analyzers[0])
            if len(span_terms) == 1 and start in terms
        ]

    @cached_property
    def _analyzers(self) -> tuple[Analyzer, Analyzer]:
        """The analyzers whose terms are surface forms, and index terms of single words."""
        analyzer = self._state.analyzer
        words = whole_words(analyzer)
        return unstemmed(analyzer), analyzer if words == analyzer else words  # whose words are cached

    def plain_words(self, query: str, analyzer: Analyzer | None = None) -> list[str] | None:
        """Return the words of a query as `Analyzer.plain_words` does, also beside dashes and quotation marks."""
        analyzer = analyzer or self._state.analyzer
        words = analyzer.plain_words(query)
        if words is None and analyzer.tokenizer in SPLIT_AT_MARKS:
            words = analyzer.plain_words(query.translate(MARKS))
        return words

    def _spans(self, query: str, analyzer: Analyzer) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return each token of a query as (first character, end, its terms)."""
        if (words := self.plain_words(query, analyzer)) is None:
            return analyzer.spans(query)
        analyzer(" ".join(words))  # new words at once, which takes less time than one by one
        spans, end = [], 0
        for word in words:
            start = query.index(word, end)
            end = start + len(word)
            spans.append((start, end, tuple(analyzer(word))))
        return spans

    def _df(self, form: str, terms: tuple[str, ...]) -> int:
        if is_gram(self._state.analyzer):
            return self.count(form)
        return max(map(self._state.df_of, terms), default=0)

    def count(self, form: str) -> int:
        """Return the number of occurrences of a word."""
        i = self._table.find(form)
        return 0 if i < 0 else int(self._counts[i])

    def forms(self) -> tuple[list[str], Int64s, Int64s]:
        """Return all words of the documents, ascending, with the df of their terms and their numbers of occurrences."""
        return self._table.tolist(), self._dfs(np.arange(len(self._table))), self._counts

    def differ_by_marks(self) -> Bools:
        """Return whether there is another form with the same letters apart from marks, for all words of the documents."""
        alike = [[*forms, i] if (i := self._table.find(plain)) >= 0 else forms for plain, forms in self._unmarked.items()]
        differ = np.zeros(len(self._table), dtype=np.bool_)
        differ[[i for forms in alike if len(forms) > 1 for i in forms]] = True
        return differ

    def terms_of(self, words: Sequence[Word], corrections: dict[Word, str]) -> list[int]:
        """Return the numbers of the terms of the last words, corrected; [] if terms are n-grams."""
        if is_gram(self._state.analyzer):
            return []
        numbers: dict[int, None] = {}
        for word in words[-MAX_WORDS:]:
            if word in corrections:
                numbers[int(self._terms[self._table.find(corrections[word])])] = None
            else:
                numbers |= dict.fromkeys(map(self._state.term_number, word.terms))
        return [number for number in numbers if number >= 0]

    def has_completions(self, form: str, least: int) -> bool:
        """Whether a word of the documents whose term has at least so many documents begins with a word, or nearly so."""
        indices, edits = self._begun(form)
        return edits > 0 or bool(np.any(self._dfs(indices) >= max(least, 1)))

    def _begun(self, form: str) -> tuple[Int64s, int]:
        """Return the forms that begin with a word, or else with the word after an edit; and the number of edits."""
        first, last = prefixed(self._table, form)
        if first < last or len(form) < MIN_FUZZY:
            return np.arange(first, last), 0
        indices = near(self._table, form, 1, prefix=1, complete=True)[0].astype(np.int64)
        return indices, int(len(indices) > 0)

    def _dfs(self, indices: Int64s) -> Int64s:
        """Return the number of documents of the terms of some forms; 0 for a form without a term."""
        terms, df = self._terms[indices], np.zeros(len(indices), dtype=np.int64)
        df[terms >= 0] = self._state.df[terms[terms >= 0]]
        return df

    def completions(
        self,
        form: str,
        k: int,
        others: Sequence[int] = (),
        where: Filter | None = None,
        least: int = 0,
        itself: bool = False,
    ) -> list[Form]:
        """Return the completions of a word that are most frequent in documents with other words, one for each term.

        Args:
            form: The beginning of a word.
            k: Greatest number of completions.
            others: Numbers of the terms of the other words.
            where: The documents that completions must find; None: all.
            least: Number of documents that the term of a completion must have.
            itself: Whether a word that was typed whole is one of its completions.
        """
        if not 0 < len(form) <= MAX_WORD:
            return []
        indices, edits = self._begun(form)
        if least:
            indices = indices[(self._dfs(indices) >= least) | (indices == self._table.find(form))]
        if is_gram(self._state.analyzer):
            frequent = self._most_frequent(indices, CANDIDATES if where is not None else 8 * (k + 1), edits)
            forms = list(islice((each for each in frequent if self._is_found(each.form, where)), k + 1))
        elif others or where is not None:
            forms = self._ranked_in_context(indices, k + 1, edits, others, where)
        else:
            forms = self._most_frequent(indices, k + 1, edits)
        return [completion for completion in forms if itself or completion.form != form][:k]

    def _is_found(self, form: str, where: Filter | None) -> bool:
        """Whether documents have all n-grams of a word, and one that passes the filter has the rarest of them."""
        numbers = [self._state.term_number(term) for term in self._state.analyzer(form)]
        if where is None or not numbers or min(numbers) < 0:
            return min(numbers, default=0) >= 0
        rarest = min(numbers, key=lambda number: int(self._state.df[number]))
        return bool(CONTEXT.of(self._state).counts(np.array([rarest]), (), where)[0])

    def _most_frequent(self, indices: Int64s, k: int, edits: int) -> list[Form]:
        """Return the most frequent of some forms, one for each term."""
        by_term: dict[int, int] = {}
        limit = 4 * k
        while len(indices):
            frequent = self._frequent(indices, limit)
            by_term = {}
            for i, term in zip(frequent.tolist(), self._terms[frequent].tolist(), strict=True):
                by_term.setdefault(-1 - i if term < 0 else term, i)
            if len(by_term) >= k or len(frequent) == len(indices):
                break
            limit *= 8
        return [Form(self._table[i], max(term, -1), int(self._counts[i]), edits) for term, i in [*by_term.items()][:k]]

    def _ranked_in_context(
        self, indices: Int64s, k: int, edits: int, others: Sequence[int], where: Filter | None
    ) -> list[Form]:
        """Return those of some forms that are most frequent in context, one for each term."""
        indices = self._frequent(indices[self._terms[indices] >= 0], CANDIDATES)
        indices = indices[np.sort(np.unique(self._terms[indices], return_index=True)[1])]
        read = max(1, int(np.searchsorted(np.cumsum(self._dfs(indices)), MAX_POSTINGS, side="right")))
        indices = indices[:read]
        terms, counts = self._terms[indices].astype(np.int64), np.empty(len(indices), dtype=np.int64)
        order = np.argsort(terms)
        counts[order] = CONTEXT.of(self._state).counts(terms[order], others, where)
        best = np.argsort(-counts, kind="stable")[:k]
        return [Form(self._table[indices[i]], int(terms[i]), int(counts[i]), edits) for i in best.tolist() if counts[i]]

    def _frequent(self, indices: Int64s, limit: int) -> Int64s:
        """Return about `limit` indices of the most frequent forms, most frequent first, ties in the order of the forms."""
        counts = self._counts[indices]
        if limit < len(indices):
            is_frequent = counts >= np.partition(counts, -limit)[-limit]
            indices, counts = indices[is_frequent], counts[is_frequent]
        return indices[np.argsort(-counts, kind="stable")]

    def _correction(self, word: Word) -> str | None:
        shortest = MIN_KNOWN if word.df else MIN_UNKNOWN
        if not word.terms or not shortest <= len(word.form) <= MAX_WORD or any(map(str.isdigit, word.form)):
            return None
        if word.df * MIN_RATIO[1] > self.max_count:
            return None
        return self._corrections.get(word.form, functools.partial(self._correct, word))

    def _correct(self, word: Word) -> str | None:
        """Return the similar form with the best frequency for its distance; None if none is frequent enough."""
        edits = 2 if len(word.form) >= MIN_TWO_EDITS else 1
        neighbours = self.neighbours(word.form, edits, tuple(ratio * word.df for ratio in MIN_RATIO))
        are_grams = is_gram(self._state.analyzer)
        return next((each.form for each in neighbours if not are_grams or self._is_found(each.form, None)), None)

    def neighbours(self, form: str, edits: int, least: Sequence[int]) -> list[Form]:
        """Return the words of the documents near a word, the likeliest first.

        Args:
            form: The word.
            edits: Greatest number of edits; the second one leaves the first letter. All marks of letters are one edit.
            least: By distance: number of occurrences that a neighbour must have.
        """
        plain = without_marks(form)
        marked = np.array([i for i in (*self._unmarked.get(plain, ()), self._table.find(plain)) if i >= 0], dtype=np.int64)
        steps = [(marked, np.ones(len(marked), dtype=np.uint8))]
        # Most neighbours have the same first letter; the others are looked for among frequent words, which takes less time.
        steps += [self._near(form, 1, least[1], 1), self._near(form, 1, max(least[1], LEVELS[0]), 0)]
        forms = self._forms(form, steps, least) or self._forms(form, [self._near(form, 1, least[1], 0)], least)
        if not forms and edits > 1:
            forms = self._forms(form, [self._near(form, 2, least[2], 1)], least)
        return sorted(forms.values(), key=lambda neighbour: -neighbour.score)

    def _near(self, form: str, edits: int, least: int, prefix: int) -> tuple[Int64s, Bytes]:
        """Return the indices and distances of forms of at least so many occurrences, as `near`; perhaps of others as well."""
        table, numbers = self._level(least)
        positions, distances = near(table, form, edits, prefix=prefix)
        return numbers[positions], distances

    def _forms(self, form: str, steps: Sequence[tuple[Int64s, Bytes]], least: Sequence[int]) -> dict[str, Form]:
        """Return those of some neighbours that have enough occurrences, by word."""
        indices, distances = (np.concatenate(columns) for columns in zip(*steps, strict=True))
        counts, forms = self._counts[indices], dict[str, Form]()
        is_candidate = (indices != self._table.find(form)) & (counts >= np.maximum(np.array(least), 1)[distances])
        columns = (column[is_candidate].tolist() for column in (indices, distances, counts))
        for i, distance, count in zip(*columns, strict=True):
            neighbour, term = self._table[i], int(self._terms[i])
            other_initial = without_marks(neighbour[:1]) != without_marks(form[:1])
            penalty = EDIT_PENALTY * (distance - 1.0) + INITIAL_PENALTY * other_initial
            forms.setdefault(neighbour, Form(neighbour, term, count, distance, float(np.log(count)) - penalty))
        return forms

    @cached_property
    def _unmarked(self) -> dict[str, list[int]]:
        """The forms that have letters with marks, by their letters without these."""
        blob, offsets = arrays_of(self._table)
        indices = np.unique(np.searchsorted(offsets, np.flatnonzero(blob >= 128), side="right") - 1)
        forms: dict[str, list[int]] = {}
        for i, form in zip(indices.tolist(), self._table.take(indices), strict=True):
            if (plain := without_marks(form)) != form:
                forms.setdefault(plain, []).append(i)
        return forms

    def _level(self, least: int) -> tuple[Strings, Int64s]:
        """Return a table that has all forms of at least so many occurrences, and the index of each; small for great numbers."""
        return self._levels[sum(level <= least for level in LEVELS)]

    @cached_property
    def _levels(self) -> list[tuple[Strings, Int64s]]:
        tables = [(self._table, np.arange(len(self._table)))]
        for level in LEVELS:
            indices = np.flatnonzero(self._counts >= level)
            tables.append((self._table.reordered(indices).ascending(), indices))
        return tables


def without_marks(form: str) -> str:
    """Return a word with its letters without marks, such as accents."""
    if form.isascii():
        return form
    return "".join(letter for letter in unicodedata.normalize("NFD", form) if not unicodedata.combining(letter))


class TermContext:
    """Counts terms in the documents of a state that have other terms too.

    Args:
        state: The state.
    """

    def __init__(self, state: State) -> None:
        self._state = weak_proxy(state)

    @cached_property
    def _numbers(self) -> list[Int64s]:
        """The number in each part of each term of the state; -1 where the part lacks it."""
        return [find_positions(self._state.terms, part.terms) for part in self._state.parts]

    def counts(self, terms: Int64s, others: Sequence[int], where: Filter | None = None) -> Int64s:
        """Return for each term the number of living documents with it in the best context.

        The context of a document is the sum of the idf of the other terms that it has. Documents count if no document with any
        of the terms has a greater one: those with all other terms if there are such, else those with the rarest of them.

        Args:
            terms: Numbers of terms, ascending.
            others: Numbers of the other terms.
            where: The documents that count; None: all.
        """
        parts, values = self._state.parts, list[tuple[Int64s, Float64s, Int64s]]()
        idfs = [math.log1p(len(self._state) / max(int(self._state.df[other]), 1)) for other in others]
        best = -1.0
        for part, numbers in zip(parts, self._numbers, strict=True):
            of_part = numbers[terms]
            rows = np.flatnonzero(of_part >= 0)
            rows = rows[np.argsort(of_part[rows], kind="stable")]
            if not len(rows):
                continue
            docs, _ = part.postings(of_part[rows])
            contexts, df = (
                self._contexts(part, docs, numbers[np.array(others, dtype=np.int64)], idfs, where),
                part.df[of_part[rows]],
            )
            best = max(best, float(contexts.max(initial=-1.0)))
            values.append((rows, contexts, df.astype(np.int64)))
        result = np.zeros(len(terms), dtype=np.int64)
        if best < 0:  # no living document with any of the terms passes the filter
            return result
        for rows, contexts, df in values:
            result[rows] += np.add.reduceat(contexts == best, np.cumsum(df) - df, dtype=np.int64)
        return result

    def _contexts(self, part: Part, docs: Int32s, others: Int64s, idfs: Sequence[float], where: Filter | None) -> Float64s:
        """Return the context of some documents of a part; -1 for one that is deleted or does not pass the filter."""
        is_dense = len(docs) * SPARSE > len(part)
        contexts = np.zeros(len(part) if is_dense else len(docs))
        for number, idf in zip(others.tolist(), idfs, strict=True):
            if number < 0:
                continue
            with_other = part.postings(np.array([number]))[0]
            if is_dense:
                contexts[with_other] += idf
            else:
                at = np.minimum(np.searchsorted(with_other, docs), len(with_other) - 1)
                contexts += idf * (with_other[at] == docs)
        if is_dense:
            contexts = contexts[docs]
        leaf = part.leaf
        if where is not None:
            passed = np.zeros(len(part), dtype=np.bool_)
            passed[slice(None) if leaf.dead is None else leaf.live] = where.mask[leaf.first : leaf.first + leaf.documents]
            contexts[~passed[docs]] = -1.0
        elif leaf.dead is not None:
            contexts[leaf.dead[docs]] = -1.0
        return contexts


CONTEXT: LazyAttribute[State, TermContext] = LazyAttribute("term_context", TermContext)


def _replaced(query: str, replacements: Iterable[tuple[Word, str]]) -> str:
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


SUGGESTER: LazyAttribute[State, Suggester] = LazyAttribute("suggester", Suggester)


class HasState(Protocol):
    """An index, which has a state."""

    @property
    def state(self) -> State:
        """The state of the index."""
        ...


def suggest(index: HasState, query: str, k: int = 8, where: str | None = None) -> Suggestions:
    """Return suggestions for a query: see `Index.suggest`."""
    return SUGGESTER.of(index.state).suggest(query, k, filter_of(index.state, where))


class Suggesting:
    """Suggestions as a method of an index."""

    def suggest(self: HasState, query: str, k: int = 8, where: str | None = None) -> Suggestions:
        """Suggest completions of the last word of a query, and corrections of misspelt words.

        Words are those of the documents before stemming; the first call counts them in the stored texts (an index without texts
        has its terms). A word is completed by what stands in most documents with the other words.

        Args:
            query: The query, as far as it was typed.
            k: Maximum number of completions.
            where: Filter on document metadata; each completion occurs in a document that passes it.
        """
        return suggest(self, query, k, where)
