"""Tolerance: misspelt and unfinished words of topics are searched with their neighbours among the words of the documents."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.part import walk
from ..core.query import Clause, Group, Term
from ..core.stage import Stage
from ..core.values import MODES, TOLERANCE, Tolerated, Topic, Topics, check_tolerance
from ..index.confusable import may_be_confused, most_frequent_completion
from ..storage.caches import Cached, LazyAttribute, weak_proxy
from ..suggest.suggestions import MAX_WORD, SUGGESTER, Form, Suggester, Word
from ..suggest.surface_forms import is_gram
from .language import QueryLanguage
from .retriever import Lexical
from .synonyms import Synonyms

if TYPE_CHECKING:
    from ..index import Index
    from ..index.state import State

MIN_UNKNOWN, MIN_KNOWN = 4, 5  # characters of a word with neighbours that the index lacks, or has
MIN_TWO_EDITS = 8  # characters of a word with neighbours by two edits
MIN_PREFIX = 3  # characters of a last word that is completed unless it is frequent
MIN_TYPED = 2  # characters of a last word that is completed while it is typed
KNOWN_RATIO = (0, 300, 3000)  # by distance: ratio of the frequencies of a neighbour and of a word that the index has
STEM_RATIO = (0, 10, 100)  # the same for a word of which the index has only the stem
PREFIX_RATIO = 10  # ratio of the frequencies of completions and of a last word that the index has
MAX_NEIGHBOURS, MAX_COMPLETIONS = 3, 6
MAX_CAPITALS = 5  # characters of a word in capitals that is an abbreviation
MIN_OWN = 0.25  # least factor of the score of a last word that is far more seldom than its completions
MIN_SHARE = 0.05  # least likelihood of a neighbour, by that of the best
MAX_WORDS = 32  # words of a topic that are looked at, from its end
MAX_CACHED, MAX_SURE = 1 << 16, 1 << 20  # words
MAX_TEXTS = 1024  # texts whose weights are cached
MANY_TOPICS = 64  # after which all words of the documents are looked up at once
QUOTED = re.compile(r'"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»')
IDENTIFIER = re.compile(r"\S*[\d_@#\\]\S*|\S*\w[./:=]\w\S*")  # numbers, ids, addresses, file names


class Neighbour(NamedTuple):
    """A word that is searched beside a typed one.

    Args:
        word: The word, as documents have it.
        term: Its index term.
        edits: Its distance from the typed word; 0 for a completion.
        weight: Factor of its score.
    """

    word: str
    term: str
    edits: int
    weight: float


class Mended(NamedTuple):
    """A word of a topic with its neighbours.

    Args:
        word: The word.
        neighbours: Its neighbours, the likeliest first.
        weight: Factor of the score of the word itself; below 1 if its completions are far more frequent.
    """

    word: Word
    neighbours: tuple[Neighbour, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Tolerance(Stage[Topics, Topics], name="tolerance"):
    """Searches misspelt and unfinished words with their neighbours: `tolerance("auto") >> bm25()`.

    A word that the index lacks, or has far less often than a neighbour, is searched with its neighbours, words of documents
    that differ by one edit (a letter inserted, deleted or replaced, or two swapped), from eight letters on by two. Their
    scores are multiplied by weights below 1. The likeliest neighbour is that of greatest frequency for its edits (the noisy
    channel of Kernighan, Church and Gale, COLING 1990); at most three are searched. A last word that is rare or unknown is
    also completed, by what stands in documents with the other words, and then weighs less itself.

    Words that are frequent stay alone, and so do stop words, quoted words, words with digits, abbreviations in capitals, ids
    of documents, addresses, unknown words of less than four letters, and all but the last 32 words. A topic without
    neighbours, or with weights, is returned unchanged, as is every topic if the terms of the index are n-grams. In a
    structured query, words are looked up as they were typed: `query() >> tolerance() >> bm25()`.

    The topic's `weights`, or `query`, have the neighbours; its `text`, which models read, stays; its `metadata` say under
    "tolerance" which words were searched with what.

    Args:
        index: The index that is searched.
        mode: "auto", or "typing" for a query that is being typed: then the last word is always completed, too.
        weight: Factor of the score of a neighbour by one edit and of a completion; the square of it for two edits.

    Raises:
        ParameterError: There is no such mode, or the weight is out of range.
    """

    index: Index = field(repr=False)
    mode: str = field(default="auto", metadata={"leading": True})
    weight: float = tuned(0.8, (0.1, 1.0, 0.1), (0.0, 1.0))

    def check(self) -> None:
        check_tolerance("tolerance", self.mode, MODES)
        if isinstance(self.weight, bool) or not isinstance(self.weight, int | float) or not 0 <= self.weight <= 1:
            raise ParameterError(f"tolerance: weight is a number from 0 to 1, not {self.weight!r}")

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return Topics(map(self.one, topics.values()))

    def one(self, topic: Topic, k: int = 0, /) -> Topic:
        corrector = self._corrector
        if topic.weights is not None or corrector.is_sure(topic, self.mode):
            return topic
        if topic.query is None:
            weights, values = corrector.weights.get((topic.text, self.mode, self.weight), lambda: self._weights(topic.text))
            return self._rewritten(topic, values, weights=weights) if values else topic
        if topic.origin is None:  # its terms are those of the index
            return topic
        mended = corrector.mended(topic.origin.text, self.mode, self.weight)
        by_term = {term: word for word in mended for term in word.word.terms}
        query = _with_neighbours(topic.query, by_term)
        return topic if query == topic.query else self._rewritten(topic, _values(mended), query=query)

    @cached_property
    def _corrector(self) -> Corrector:
        return CORRECTOR.of(self.index.state)

    def _weights(self, text: str) -> tuple[dict[str, float], Tolerated]:
        """Return the weights of the terms of a text, with those of neighbours, and what to say about these."""
        mended = self._corrector.mended(text, self.mode, self.weight)
        weights: dict[str, float] = dict(Counter(self.index.state.analyzer(text))) if mended else {}
        for word in mended:
            weights |= {term: weights[term] * word.weight for term in word.word.terms if term in weights}
            for neighbour in word.neighbours:
                weights[neighbour.term] = max(weights.get(neighbour.term, 0.0), neighbour.weight)
        return weights, _values(mended)

    def _rewritten(self, topic: Topic, values: Tolerated, **changes: Any) -> Topic:
        return replace(topic, origin=topic, metadata={**topic.metadata, TOLERANCE: values}, **changes)


def _values(mended: Sequence[Mended]) -> Tolerated:
    """Return what a topic says about its words that are searched with neighbours."""
    return Tolerated(
        {
            "word": word.form,
            "start": word.start,
            "end": word.end,
            "kind": "edit" if neighbours[0].edits else "prefix",
            "weight": weight,
            "terms": list(word.terms),
            "also": [neighbour._asdict() for neighbour in neighbours],
        }
        for word, neighbours, weight in mended
    )


def tolerant(stage: Stage[Topics, Any], index: Index, mode: str) -> Stage[Topics, Topics] | None:
    """Return what reads topics for a stage with a tolerance, in the query language if the stage does so.

    None if the stage has a tolerance already, if it makes other topics of them, or if it searches no words.

    Args:
        stage: A stage from topics to a run.
        index: The index that is searched.
        mode: "off", or as in `Tolerance`.

    Raises:
        ParameterError: There is no such mode.
    """
    check_tolerance("tolerance", mode)
    parts = [part for part in walk(stage) if isinstance(part, Stage)]
    rewriters = {type(part): part for part in parts if (part.takes, part.gives) == (Topics, Topics)}
    searches_words = any(isinstance(part, Lexical) and part.reads_queries for part in parts)
    if mode == "off" or not searches_words or not rewriters.keys() <= {QueryLanguage, Synonyms}:
        return None
    return Tolerance(index, mode) if (query := rewriters.get(QueryLanguage)) is None else query >> Tolerance(index, mode)


def _with_neighbours(group: Group, by_term: Mapping[str, Mended]) -> Group:
    """Return a query with neighbours beside its terms; what must not match stays."""

    def alternatives(term: Term) -> tuple[Term, ...]:
        if (mended := by_term.get(term.term)) is None:
            return (term,)
        weights = {term.term: mended.weight, **{near.term: near.weight for near in mended.neighbours}}
        return tuple(replace(term, term=name, weight=term.weight * weight) for name, weight in weights.items())

    def inner(clauses: Sequence[Clause], must: bool) -> Iterator[Clause]:
        for clause in clauses:
            if isinstance(clause, Group):
                yield _with_neighbours(clause, by_term)
            elif not isinstance(clause, Term):
                yield clause
            elif must and clause.term in by_term:
                yield Group(should=alternatives(clause))
            else:
                yield from alternatives(clause)

    return replace(group, must=tuple(inner(group.must, True)), should=tuple(inner(group.should, False)))


class Corrector:
    """Finds the neighbours of the words of topics in one state of an index.

    Args:
        state: The state.
    """

    def __init__(self, state: State) -> None:
        self._state, self._is_gram, self._lowers = weak_proxy(state), is_gram(state.analyzer), state.analyzer.lowercase
        self._topics = 0  # that were looked up word by word
        self._sure: set[str] = set(state.analyzer.stopwords)  # words, as typed but in lower case, without neighbours
        self._sure_last = set(self._sure)  # those of them that are not completed at the end of a text
        self.weights: Cached[tuple[str, str, float], tuple[dict[str, float], Tolerated]] = Cached(MAX_TEXTS)
        self._neighbours: Cached[str, tuple[Form, ...]] = Cached(MAX_CACHED)

    def is_sure(self, topic: Topic, mode: str) -> bool:
        """Whether it is known, from earlier topics, that no word of a topic has neighbours."""
        if self._is_gram:
            return True
        text = topic.text.lower() if self._lowers else topic.text
        words: list[str] | None = text.split() if topic.query is None else None
        if words and not self._sure.issuperset(words):
            words = self._suggester.plain_words(text)
        if not words or not self._sure.issuperset(words):
            return words == []
        return not text.endswith(words[-1]) or (mode == "auto" and words[-1] in self._sure_last)

    def _learn(self) -> None:
        """Look up all words of the documents at once, after the first topics have been looked up word by word."""
        with suppress(ReferenceError):  # the state is freed meanwhile
            if self._suggester.size > MAX_SURE:
                return
            words, df, counts = self._suggester.forms()
            is_confusable = may_be_confused(words, df, counts, KNOWN_RATIO[1:], (MIN_KNOWN, MIN_TWO_EDITS))
            may_be_completed = most_frequent_completion(words, df) >= np.maximum(PREFIX_RATIO * df, 1)
            is_sure = (df > 0) & ~is_confusable & ~self._suggester.differ_by_marks()
            sure = [words[i] for i in np.flatnonzero(is_sure).tolist()]
            last = [words[i] for i in np.flatnonzero(is_sure & ~may_be_completed).tolist()]
            self._sure, self._sure_last = self._sure.union(sure), self._sure_last.union(last)

    @cached_property
    def _suggester(self) -> Suggester:
        return SUGGESTER.of(self._state)

    def mended(self, text: str, mode: str, weight: float) -> list[Mended]:
        """Return the words of a text that have neighbours, in order.

        Args:
            text: The text.
            mode: As in `Tolerance`.
            weight: As in `Tolerance`.
        """
        self._topics += 1
        if self._topics == MANY_TOPICS and not self._state.analyzer.language:
            threading.Thread(target=self._learn, name="tolerance", daemon=True).start()
        words = self._suggester.words(text)
        protected = [match.span() for pattern in (QUOTED, IDENTIFIER) for match in pattern.finditer(text)]
        mended: dict[str, Mended] = {}
        for word in words[-MAX_WORDS:]:
            typed, is_last = text[word.start : word.end], word.end == len(text)
            is_abbreviation = len(typed) <= MAX_CAPITALS and typed.isupper() and not text.isupper()
            if is_abbreviation or any(start < word.end and word.start < end for start, end in protected):
                continue
            edited, completed, typed_weight = self._edited(word), list[Form](), 1.0
            may_complete = is_last and self._may_complete(word, mode)
            if may_complete:
                completed, typed_weight = self._completed(word, words, [*mended.values()], mode)
            elif not edited:
                self._remember(typed, is_last and mode == "auto")
            if completed and completed[0].edits and edited:  # beginnings with an edit
                completed = []
            elif completed and mode == "typing":  # the word may be unfinished rather than misspelt
                edited = tuple(form for form in edited if form.frequency >= PREFIX_RATIO * completed[0].frequency)
            neighbours: dict[str, Neighbour] = {}
            for form, share in (*_weighted(edited[:MAX_NEIGHBOURS], weight), *_weighted(completed, weight)):
                if form.term >= 0 and (term := self._state.terms[form.term]) not in word.terms:
                    neighbours.setdefault(term, Neighbour(form.form, term, form.edits, share))
            if neighbours and not (typed in self._state or text.strip() in self._state):
                mended[word.form] = Mended(word, tuple(neighbours.values()), typed_weight)
        return list(mended.values())

    def _remember(self, typed: str, is_last: bool) -> None:
        if len(self._sure) < MAX_SURE:
            self._sure.add(typed.lower() if self._lowers else typed)
            if is_last:
                self._sure_last.add(typed.lower() if self._lowers else typed)

    def _edited(self, word: Word) -> tuple[Form, ...]:
        """Return the neighbours of a word by edits, the likeliest first; none for a word that is frequent, short or no word."""
        if not word.terms or not MIN_UNKNOWN <= len(word.form) <= MAX_WORD or any(map(str.isdigit, word.form)):
            return ()
        if word.df and (len(word.form) < MIN_KNOWN or word.df * STEM_RATIO[1] > self._suggester.max_count):
            return ()
        return self._neighbours.get(word.form, lambda: self._near(word))

    def _near(self, word: Word) -> tuple[Form, ...]:
        form, suggester = word.form, self._suggester
        is_known = suggester.count(form) > 0
        if is_known and word.df * KNOWN_RATIO[1] > suggester.max_count:
            return ()
        if not word.df and any(_is_one_edit(form, stop) for stop in self._state.analyzer.stopwords):
            return ()
        ratios = KNOWN_RATIO if is_known else STEM_RATIO
        least = tuple(ratio * word.df for ratio in ratios)
        near = suggester.neighbours(form, 2 if len(form) >= MIN_TWO_EDITS else 1, least)
        terms = [self._state.term_number(term) for term in word.terms]
        if not is_known and word.df and any(other.term in terms for other in suggester.neighbours(form, 1, (0, 1, 1))):
            return ()  # an inflection of a word of the index
        return tuple(near[: 2 * MAX_NEIGHBOURS])

    def _may_complete(self, word: Word, mode: str) -> bool:
        """Whether a last word is completed if any words begin with it."""
        if not word.terms or any(map(str.isdigit, word.form)):
            return False
        if mode == "typing":
            return len(word.form) >= MIN_TYPED
        return len(word.form) >= MIN_PREFIX and self._suggester.has_completions(word.form, self._least(word))

    def _least(self, word: Word) -> int:
        """Number of documents that a completion of a finished word must have."""
        return PREFIX_RATIO * word.df

    def _completed(self, word: Word, words: Sequence[Word], mended: Sequence[Mended], mode: str) -> tuple[list[Form], float]:
        """Return the likeliest completions of the last word, and the factor of its own score."""
        corrections = {near.word: near.neighbours[0].word for near in mended if not near.word.df}
        others = self._suggester.terms_of(words[:-1], corrections)
        least = 0 if mode == "typing" else self._least(word)
        completions = self._suggester.completions(word.form, MAX_COMPLETIONS, others, least=least, itself=True)
        frequency = next((form.frequency for form in completions if form.form == word.form), 0)
        forms = [form._replace(score=math.log(max(form.frequency, 1))) for form in completions if form.form != word.form]
        if not word.df or not forms or forms[0].term < 0 or int(self._state.df[forms[0].term]) < self._least(word):
            return forms, 1.0
        return forms, min(1.0, max(MIN_OWN, math.sqrt(frequency / max(forms[0].frequency, 1))))


def _weighted(forms: Sequence[Form], weight: float) -> Iterator[tuple[Form, float]]:
    """Yield forms with the factors of their scores."""
    best = max((form.score for form in forms), default=0.0)
    for form in forms:
        share = math.exp(form.score - best)
        if share >= MIN_SHARE:
            yield form, weight ** max(form.edits, 1) * math.sqrt(share)


def _is_one_edit(first: str, second: str) -> bool:
    """Whether two words differ by one edit."""
    if first == second or abs(len(first) - len(second)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    a, b = first[start:], second[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
    return a[1:] == b if len(a) > len(b) else a == b[1:]


CORRECTOR: LazyAttribute[State, Corrector] = LazyAttribute("corrector", Corrector)
