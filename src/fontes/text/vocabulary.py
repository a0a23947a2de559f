"""Mapping from texts to term numbers; each distinct token is analysed once."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Bools, Bytes, Int32s, Int64s, Ints
from ..core.errors import ParameterError
from ..core.strings import Strings, concatenated, offsets_of, utf8
from ..storage.arrays import fixed
from ..storage.compiled import kernel
from . import external, folding, tokenizers
from .composition import composed_edges, composed_table
from .interning import Interner

if TYPE_CHECKING:
    from .analyzer import Analyzer


class Vocabulary:
    """Terms seen by an analyzer, numbered from 0 in order of first occurrence; thread-safe."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._stopwords = Strings.of(analyzer.stopwords)
        self._tokens = Interner()
        self._table = Interner()
        self._terms: list[str] = []  # terms decoded from the table so far
        self._numbers: dict[str, int] = {}  # their numbers
        self._term_bounds = np.zeros(1, dtype=np.int64)  # token i has the terms _term_numbers[bounds[i]:bounds[i+1]]
        self._term_numbers = np.zeros(0, dtype=np.int32)
        self._lock = threading.RLock()

    @property
    def terms(self) -> list[str]:
        """Terms in the order of their numbers."""
        with self._lock:
            if len(self._terms) < len(self._table):
                self._terms += self._table.table(len(self._terms)).tolist()
            return self._terms

    @property
    def nbytes(self) -> int:
        """Memory of the tables in bytes."""
        return self._tokens.nbytes + self._table.nbytes + self._term_bounds.nbytes + self._term_numbers.nbytes

    def __len__(self) -> int:
        return len(self._table)

    def table(self) -> Strings:
        """Return the terms in the order of their numbers, as a table."""
        return self._table.table()

    def encode(self, texts: Sequence[str]) -> tuple[Int32s, Int64s]:
        """Return the term numbers of all texts, int32, and their bounds: text i has numbers[bounds[i]:bounds[i+1]]."""
        return self.encode_bytes([utf8(text) for text in texts])

    def encode_bytes(self, texts: Sequence[bytes]) -> tuple[Int32s, Int64s]:
        """Like `encode`, for texts in UTF-8."""
        return self.encode_table(*concatenated(texts))

    def encode_table(self, text: Bytes, text_bounds: Ints) -> tuple[Int32s, Int64s]:
        """Like `encode`, for concatenated UTF-8: text i is text[text_bounds[i]:text_bounds[i+1]]."""
        with self._lock:
            text, starts, ends, bounds = self._tokenize(text, text_bounds)
            tokens = self._tokens.intern(text, starts, ends)
            self._analyze_new()
            numbers, bounds = _expand(tokens, bounds, self._term_bounds, self._term_numbers)
            if self._analyzer.words != (1, 1):
                return self._add_ngrams(numbers, bounds)
            return numbers, bounds

    def encode_positions(self, text: Bytes, text_bounds: Int64s) -> tuple[Int32s, Int64s, Int32s, Int64s]:
        """Like `encode_table`, with the position of each term; the analyzer must have no n-grams.

        Returns:
            The output of `encode_table`; int32, the position of each term in its text, counted in tokens, dropped ones
            included; and the number of tokens of each text.
        """
        with self._lock:
            text, starts, ends, bounds = self._tokenize(text, text_bounds)
            tokens = self._tokens.intern(text, starts, ends)
            self._analyze_new()
            numbers, term_bounds, positions = _expand_positions(tokens, bounds, self._term_bounds, self._term_numbers)
            return numbers, term_bounds, positions, np.diff(bounds)

    def numbers(self, terms: list[str]) -> Int32s:
        """Return the numbers of terms, without analysing them."""
        with self._lock:
            return self._number(Strings.of(terms))

    def spans(self, text: str, terms: Collection[str] | None = None) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return tokens as (first character, end, its terms), optionally only those with one of `terms`."""
        composed = self._analyzer.composed(text)
        if composed != text:
            firsts, stops = (edges.tolist() for edges in composed_edges(text))
            composed_spans = self.spans(composed, terms)
            return [(firsts[a], stops[b - 1] if b > a else firsts[a], span_terms) for a, b, span_terms in composed_spans]
        encoded = utf8(text)
        with self._lock:
            buffer, starts, ends, _ = self._tokenize(*concatenated([encoded]))
            tokens = self._tokens.intern(buffer, starts, ends)
            self._analyze_new()
            matching = np.arange(len(tokens)) if terms is None else np.flatnonzero(self._tokens_with(terms)[tokens])
        if self._compiled:
            offsets = offsets_of((np.frombuffer(encoded, dtype=np.uint8) & 0xC0) != 0x80)  # characters before each byte
            spans = list(zip(offsets[starts[matching]].tolist(), offsets[ends[matching]].tolist(), strict=True))
        else:
            all_spans = _locate(text, [buffer[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)])
            spans = [all_spans[i] for i in matching.tolist()]
        return [(a, b, self._terms_of(token)) for (a, b), token in zip(spans, tokens[matching].tolist(), strict=True)]

    def tokens(self, text: Bytes, text_bounds: Int64s, terms: Iterable[str]) -> tuple[Int32s, Int32s, Int32s, Int64s]:
        """Return the tokens that may have one of some terms, of texts given as in `encode_table`; there must be no n-grams.

        Texts must have the form of `Analyzer.composed`.

        Returns:
            Term number (-1 if dropped), first byte and end of each token; and the index of the first token of each text, with
            one more entry for the end.
        """
        text, starts, ends, bounds = self._tokenize(text, text_bounds)
        if self._keeps_first_letters:
            letters = np.zeros(256, dtype=np.bool_)
            letters[128:] = True
            for term in filter(None, terms):
                letters[list(utf8(term[0].lower() + term[0].upper()))] = True
            may_match = letters[text[starts]]
            starts, ends, bounds = starts[may_match], ends[may_match], offsets_of(may_match)[bounds]
        with self._lock:
            tokens = self._tokens.intern(text, starts, ends)
            self._analyze_new()
            firsts = self._term_bounds[tokens]
            if not len(self._term_numbers):
                return np.full(len(tokens), -1, dtype=np.int32), starts, ends, bounds
            numbers = self._term_numbers[np.minimum(firsts, len(self._term_numbers) - 1)]
            return np.where(self._term_bounds[tokens + 1] > firsts, numbers, np.int32(-1)), starts, ends, bounds

    def known(self, terms: Collection[str]) -> set[int]:
        """Return the numbers of the terms that are in the vocabulary."""
        with self._lock:
            new = range(len(self._numbers), len(self.terms))
            self._numbers.update((self._terms[number], number) for number in new)
            return {self._numbers[term] for term in terms if term in self._numbers}

    @property
    def _keeps_first_letters(self) -> bool:
        """Whether the first letter of a token, if it is an ASCII one, is that of its term."""
        return self._analyzer.stemmer in folding.STEMMERS and not (self._analyzer.language or self._analyzer.normalize)

    @property
    def _compiled(self) -> bool:
        return isinstance(self._analyzer.tokenizer, str) and self._analyzer.tokenizer in tokenizers.TOKENIZERS

    def _tokenize(self, text: Bytes, text_bounds: Ints) -> tuple[Bytes, Int32s, Int32s, Int64s]:
        """Return a buffer, the starts and ends of tokens in it, and the first token of each text."""
        if self._analyzer.composes:
            text, text_bounds = composed_table(text, text_bounds)
        tokenizer = self._analyzer.tokenizer
        if self._compiled:
            text = fixed(text)
            return text, *tokenizers.tokenize(str(tokenizer), text, text_bounds)
        decoded = Strings(text, text_bounds).tolist()
        lists = external.tokenizer(tokenizer)(decoded) if isinstance(tokenizer, str) else map(tokenizer, decoded)
        tokens: list[bytes] = []
        bounds = np.zeros(len(decoded) + 1, dtype=np.int64)
        for i, text_tokens in enumerate(lists, 1):
            try:
                tokens += [utf8(token) for token in text_tokens]
            except (TypeError, AttributeError) as e:
                raise ParameterError(f"the tokenizer {tokenizer!r} must return a list of strings, not {text_tokens!r}") from e
            bounds[i] = len(tokens)
        buffer, edges = concatenated(tokens)
        return buffer, edges[:-1].astype(np.int32), edges[1:].astype(np.int32), bounds

    def _analyze_new(self) -> None:
        """Add the terms of tokens that are not analysed yet."""
        analyzed = len(self._term_bounds) - 1
        if analyzed == len(self._tokens):
            return
        tokens = self._tokens.table(analyzed)
        if self._analyzer.chars is not None:
            grams = [_character_ngrams(term, *self._analyzer.chars) for term in self._analyzer.terms(tokens.tolist())]
            sizes = np.array([len(g) for g in grams], dtype=np.int64)
            numbers = self._number(Strings.of(gram for g in grams for gram in g))
        else:
            text, starts, ends = self._terms_for(tokens)
            filled = ends > starts
            sizes = filled.astype(np.int64)
            numbers = self._table.intern(text, starts[filled], ends[filled])
        self._term_bounds = np.concatenate([self._term_bounds, self._term_bounds[-1] + np.cumsum(sizes)])
        self._term_numbers = np.concatenate([self._term_numbers, numbers])

    def _terms_for(self, tokens: Strings) -> tuple[Bytes, Int32s, Int32s]:
        """Return the term of each token, "" if dropped, as spans of a text."""
        analyzer = self._analyzer
        if analyzer.stemmer not in folding.STEMMERS or analyzer.language:
            terms = Strings.of(analyzer.terms(tokens.tolist()))
            return terms.blob, *_spans(terms)
        ascii_terms, skipped = folding.fold(tokens, analyzer.possessive, analyzer.lowercase, self._stopwords, analyzer.stemmer)
        starts, ends = _spans(ascii_terms)
        if not skipped.any():
            return ascii_terms.blob, starts, ends
        skipped_terms = Strings.of(analyzer.terms(tokens.take(np.flatnonzero(skipped))))
        starts[skipped], ends[skipped] = (edge + np.int32(len(ascii_terms.blob)) for edge in _spans(skipped_terms))
        return np.concatenate([ascii_terms.blob, skipped_terms.blob]), starts, ends

    def _number(self, terms: Strings) -> Int32s:
        """Return the numbers of terms, adding new ones."""
        return self._table.intern(terms.blob, *_spans(terms))

    def _tokens_with(self, terms: Collection[str]) -> Bools:
        """Return whether each distinct token has one of the terms."""
        numbers = self._number(Strings.of(terms))
        matches_before = offsets_of(np.isin(self._term_numbers, numbers))
        matching: Bools = matches_before[self._term_bounds[1:]] > matches_before[self._term_bounds[:-1]]
        return matching

    def _terms_of(self, token: int) -> tuple[str, ...]:
        numbers = self._term_numbers[self._term_bounds[token] : self._term_bounds[token + 1]]
        return tuple(self.terms[n] for n in numbers.tolist())

    def _add_ngrams(self, numbers: Int32s, bounds: Int64s) -> tuple[Int32s, Int64s]:
        """Add word n-grams: an n-gram of size n is one of size n - 1 and the next word."""
        min_size, max_size = self._analyzer.words
        text_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        shorter = numbers  # the n-gram one word shorter that starts at each word
        parts = [(numbers, text_of)] if min_size == 1 else []
        for size in range(2, max_size + 1):
            starts = np.flatnonzero(text_of[: max(0, len(text_of) - size + 1)] == text_of[size - 1 :])
            pairs = shorter[starts].astype(np.int64) << 32 | numbers[starts + size - 1]
            distinct, inverse = np.unique(pairs, return_inverse=True)
            terms = self.terms
            ngram_numbers = self._number(Strings.of(f"{terms[p >> 32]} {terms[p & 0xFFFFFFFF]}" for p in distinct.tolist()))
            shorter = np.full(len(numbers), -1, dtype=np.int32)
            shorter[starts] = ngram_numbers[inverse]
            if size >= min_size:
                parts.append((shorter[starts], text_of[starts]))
        text_of_ngrams = np.concatenate([texts for _, texts in parts])
        order = np.argsort(text_of_ngrams, kind="stable")
        new_bounds = offsets_of(np.bincount(text_of_ngrams, minlength=len(bounds) - 1))
        return np.concatenate([grams for grams, _ in parts])[order], new_bounds


def _spans(table: Strings) -> tuple[Int32s, Int32s]:
    return table.offsets[:-1].astype(np.int32), table.offsets[1:].astype(np.int32)


def _character_ngrams(term: str, min_size: int, max_size: int) -> list[str]:
    if not term:
        return []
    if len(term) < min_size:
        return [term]
    return [term[start : start + size] for size in range(min_size, max_size + 1) for start in range(len(term) - size + 1)]


def _locate(text: str, tokens: list[str]) -> list[tuple[int, int]]:
    """Return the spans in `text` of the tokens of an external tokenizer; empty for a token that does not occur in it."""
    spans, end = [], 0
    for token in tokens:
        start = text.find(token, end)
        spans.append((start, start + len(token)) if start >= 0 else (end, end))
        end = spans[-1][1]
    return spans


@kernel(steps=lambda tokens, *rest: len(tokens))
def _expand(tokens: Int32s, bounds: Int64s, term_bounds: Int64s, term_numbers: Int32s) -> tuple[Int32s, Int64s]:
    """Map token numbers to the numbers of their terms."""
    count = 0
    for token in tokens:
        count += term_bounds[token + 1] - term_bounds[token]
    numbers = np.empty(count, dtype=np.int32)
    new_bounds = np.zeros(len(bounds), dtype=np.int64)
    count = 0
    for i in range(len(bounds) - 1):
        for token in tokens[bounds[i] : bounds[i + 1]]:
            for j in range(term_bounds[token], term_bounds[token + 1]):
                numbers[count] = term_numbers[j]
                count += 1
        new_bounds[i + 1] = count
    return numbers, new_bounds


@kernel(steps=lambda tokens, *rest: len(tokens))
def _expand_positions(
    tokens: Int32s, bounds: Int64s, term_bounds: Int64s, term_numbers: Int32s
) -> tuple[Int32s, Int64s, Int32s]:
    """Map token numbers to the numbers of their terms, and to the positions of the tokens in their texts."""
    numbers, positions = np.empty(len(tokens), dtype=np.int32), np.empty(len(tokens), dtype=np.int32)
    new_bounds = np.zeros(len(bounds), dtype=np.int64)
    count = 0
    for i in range(len(bounds) - 1):
        for j in range(bounds[i], bounds[i + 1]):
            first = term_bounds[tokens[j]]
            if term_bounds[tokens[j] + 1] > first:
                numbers[count], positions[count] = term_numbers[first], j - bounds[i]
                count += 1
        new_bounds[i + 1] = count
    return numbers[:count], new_bounds, positions[:count]
