"""Splitting documents into passages, in runs and in corpora to be indexed."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core import Doc, ParameterError, Run, Stage, Strings
from ..core.checks import check_whole
from ..core.registry import provided
from ..core.values import Documents
from ..formats import read_corpus
from ..text.external import version_of
from ..text.sentences import Span, Spans, check_sentence_finder, sentences
from .aggregate import SENTENCE_SEPARATOR, SEPARATOR, PassageDocuments, check_separator

if TYPE_CHECKING:
    from ..neural.models.tokens import Tokenizer


# Han, Hiragana, Katakana: written without spaces, so each character is a word.
IDEOGRAPHS = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(f"[{IDEOGRAPHS}]|[^\\s{IDEOGRAPHS}]+")
WORDS = 150  # default length of a passage
MAX_WORDS = 250  # default maximum length of a passage of whole sentences
BATCH_SIZE = 256  # documents split together


class Splitter(Stage[Run, Run]):
    """Base class of stages that split each document of a run into passages, which inherit its score.

    The `documents` of the resulting run provide the passages' text, split on demand. Passages keep the document's metadata.

    Attributes:
        title: Whether a passage keeps the document's title.
        separator: Separator between the document's id and the passage's number, from 0: "D7%p0", "D7%p1", …
    """

    title: bool
    separator: str

    @abstractmethod
    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        """Return a function from texts to the spans (first character, end) of their passages.

        Raises:
            ParameterError: A parameter is invalid.
            MissingExtraError: The library that finds sentences is not installed.
        """

    @property
    @abstractmethod
    def sentence_finder(self) -> str | None:
        """Name of the sentence finder; None if passages ignore sentences."""

    def check_needs(self) -> None:
        if self.sentence_finder is not None:
            sentences(self.sentence_finder)
        super().check_needs()

    def apply(self, run: Run, /) -> Run:
        passages = self.over(run.documents_for(type(self).__name__))
        used = np.unique(run.codes)
        doc_ids = run.ids.take(used)
        counts = np.zeros(len(run.ids), dtype=np.int64)  # passages per document
        passage_ids: list[str] = []
        for start in range(0, len(used), BATCH_SIZE):
            batch = doc_ids[start : start + BATCH_SIZE]
            batch_counts = passages.counts(batch)
            counts[used[start : start + BATCH_SIZE]] = batch_counts
            for doc_id, count in zip(batch, batch_counts, strict=True):
                passage_ids += [f"{doc_id}{self.separator}{number}" for number in range(count)]
        first_passages = np.cumsum(counts) - counts
        # Each row becomes as many rows as its document has passages.
        row_counts = counts[run.codes]
        numbers = np.arange(row_counts.sum()) - np.repeat(np.cumsum(row_counts) - row_counts, row_counts)
        return Run.from_columns(
            run.topics,
            Strings.of(passage_ids),
            np.repeat(run.topic_numbers, row_counts),
            (np.repeat(first_passages[run.codes], row_counts) + numbers).astype(np.int32),
            np.repeat(run.scores, row_counts),
            documents=passages,
            provenance=run.provenance,
        )

    def key(self) -> str | None:
        """Return the cache key of the class, parameters and version of the sentence model: see `Stage.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentence_finder)}"

    def of(self, doc: Doc) -> list[Doc]:
        """Return the passages of one document."""
        return list(self.docs([doc]))

    def docs(self, corpus: str | Path | Iterable[object]) -> Iterator[Doc]:
        """Yield the passages of a corpus, for indexing: `Index.build(passages.docs(corpus), path)`."""
        documents = iter(read_corpus(corpus))
        split = self.splitter()
        while batch := list(islice(documents, BATCH_SIZE)):
            for doc, spans in zip(batch, split([doc.text for doc in batch]), strict=True):
                yield from (self.passage(doc, number, spans) for number in range(len(spans)))

    def over(self, documents: Documents) -> PassageDocuments:
        """Return the passages of `documents` by id, for a run of passages read from a file."""
        self.splitter()  # raises for invalid parameters
        return PassageDocuments(documents, self)

    def passage(self, doc: Doc, number: int, spans: Spans) -> Doc:
        """Return the passage with this number; `spans` are the spans of all passages of the document."""
        start, end = spans[number]
        return Doc(f"{doc.id}{self.separator}{number}", doc.text[start:end], doc.title if self.title else "", doc.metadata)


@dataclass(frozen=True)
class Passages(Splitter, name="passages"):
    """Splits each document of a run into passages, which inherit the document's score.

    Words are separated by white space; each Han, Hiragana and Katakana character is a word. A passage is the unchanged text
    from the start of its first word to the end of its last. A document without words has one empty passage. The `documents` of
    the resulting run provide the passages' text, split on demand. Passages keep the document's metadata.

    With `tokens`, a model's tokenizer counts the length, without special tokens. Texts are cut between words, which may make
    passages a few tokens shorter; a word with too many tokens is cut between characters.

    Args:
        words: Maximum words per passage; by default 150.
        stride: Words or tokens from the start of one passage to the start of the next; by default half of the length.
        sentences: Split between sentences, not after a number of words: "rules", "nupunkt" or "spacy:MODEL".
        max_words: With `sentences`, maximum words per passage (default 250). Longer sentences are cut between words.
        title: Whether a passage keeps the document's title.
        separator: Separator between the document's id and the passage's number, from 0: "D7%p0", "D7%p1", …
        tokens: Maximum tokens per passage, in place of `words` and, with `sentences`, of `max_words`.
        tokenizer: With `tokens`, a folder of a model or tokenizer, or a name on the Hugging Face hub.

    Raises:
        InputError: When called, if the run has no documents, or the tokenizer is missing.
        ParameterError: When called, for invalid parameters.
    """

    words: int | None = None
    stride: int | None = None
    sentences: str | None = None
    max_words: int | None = None
    title: bool = True
    separator: str = SEPARATOR
    tokens: int | None = None
    tokenizer: str | Path | None = None

    def check(self) -> None:
        check_separator(self.separator)
        for name in ("words", "stride", "max_words", "tokens"):
            value = getattr(self, name)
            if value is not None:
                check_whole(f"passages: {name}", value)
        if (self.tokens is None) != (self.tokenizer is None):
            raise ParameterError('passages: tokens and tokenizer go together: passages(tokens=230, tokenizer="MODEL")')
        if self.tokens is not None and (self.words is not None or self.max_words is not None):
            raise ParameterError("passages: a length is given in words or in tokens; leave out words and max_words, or tokens")
        if self.sentences is None:
            if self.max_words is not None:
                raise ParameterError("passages: max_words goes with sentences; the length without them is words")
            length, stride = self._window
            if stride > length:
                raise ParameterError(f"passages: a stride of {stride} leaves out words between passages of {length}")
        elif self.words is not None or self.stride is not None:
            raise ParameterError("passages: words and stride do not go with sentences; the length then is max_words or tokens")

    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        self.check()
        find = None if self.sentences is None else sentences(self.sentences)
        length, stride = self._window
        if (tokenizer := self._tokenizer) is not None:

            def split_by_tokens(texts: Sequence[str]) -> list[Spans]:
                cutters = [TokenCutter(text, length, tokenizer) for text in texts]
                if find is None:
                    return [cutter.windows(stride) for cutter in cutters]
                return [cutter.pack_sentences(spans) for cutter, spans in zip(cutters, find(texts), strict=True)]

            return split_by_tokens
        if find is None:
            return lambda texts: [_windows(text, length, stride) for text in texts]
        max_words = self.max_words or MAX_WORDS
        return lambda texts: [_pack_sentences(text, spans, max_words) for text, spans in zip(texts, find(texts), strict=True)]

    @property
    def sentence_finder(self) -> str | None:
        return self.sentences

    def check_needs(self) -> None:
        self._tokenizer  # noqa: B018  # raises for a missing tokenizer
        super().check_needs()

    def key(self) -> str | None:
        key, tokenizer = super().key(), self._tokenizer
        return key if key is None or tokenizer is None else f"{key} {tokenizer.fingerprint}"

    @property
    def _tokenizer(self) -> Tokenizer | None:
        if self.tokenizer is None:
            return None
        tokenizer: Tokenizer = provided("tokenizer_of")(self.tokenizer)
        return tokenizer

    @property
    def _window(self) -> tuple[int, int]:
        """Length of a passage and stride, in words or tokens."""
        length = self.tokens or self.words or WORDS
        return length, self.stride or -(-length // 2)


@dataclass(frozen=True)
class Sentences(Splitter, name="sentences"):
    """Splits each document of a run into its sentences, which inherit the document's score: `bm25() % 10 >> sentences()`.

    Titles are not sentences. A document without text has no sentences.

    Args:
        how: Sentence finder: "rules" (a full stop followed by a capital or a digit), "nupunkt" or "spacy:MODEL".
        title: Whether a sentence keeps the document's title, for rerankers.
        separator: Separator between the document's id and the sentence's number, from 0: "D7#0", "D7#1", …

    Raises:
        InputError: When called, if the run has no documents.
        ParameterError: When called, for invalid parameters.
    """

    how: str = "rules"
    title: bool = False
    separator: str = SENTENCE_SEPARATOR

    def check(self) -> None:
        check_separator(self.separator)
        check_sentence_finder(self.how)

    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        self.check()
        find = sentences(self.how)
        return lambda texts: [_trim(text, spans) for text, spans in zip(texts, find(texts), strict=True)]

    @property
    def sentence_finder(self) -> str | None:
        return self.how


def _windows(text: str, words: int, stride: int) -> Spans:
    """Return windows of `words` words, every `stride` words, until one reaches the end."""
    word_spans = _word_spans(text)
    last = max(0, -(-(len(word_spans) - words) // stride)) * stride
    return [_join(word_spans[start : start + words]) for start in range(0, last + 1, stride)]


def _pack_sentences(text: str, sentence_spans: Spans, max_words: int) -> Spans:
    """Pack whole sentences into passages of up to `max_words` words; cut longer sentences into pieces of `max_words` words."""
    word_spans = _word_spans(text)
    starts = [start for start, _ in word_spans]
    # White space between sentences belongs to none; a word belongs to the sentence in which it starts.
    edges = sorted({0, *(bisect_left(starts, start) for start, _ in sentence_spans), len(word_spans)})
    cuts = [0]
    for start, end in pairwise(edges):
        if end - cuts[-1] > max_words and start > cuts[-1]:
            cuts.append(start)
        while end - cuts[-1] > max_words:
            cuts.append(cuts[-1] + max_words)
    return [_join(word_spans[start:end]) for start, end in pairwise([*cuts, len(word_spans)])]


def _word_spans(text: str) -> Spans:
    return [match.span() for match in WORD.finditer(text)]


def _join(spans: Spans) -> Span:
    """Return the span from the start of the first span to the end of the last; (0, 0) for no spans."""
    return (spans[0][0], spans[-1][1]) if spans else (0, 0)


def _trim(text: str, spans: Spans) -> Spans:
    """Strip white space from the spans, and drop blank spans."""
    starts = (end - len(text[start:end].lstrip()) for start, end in spans)
    ends = (start + len(text[start:end].rstrip()) for start, end in spans)
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


class TokenCutter:
    """Cuts a text into passages of at most `max_tokens` tokens, without special tokens.

    A passage alone may have other tokens than inside the text. Each passage is therefore tokenized alone and loses words
    at its end until it fits. A word with too many tokens is cut between characters; a single character is never cut.
    """

    def __init__(self, text: str, max_tokens: int, tokenizer: Tokenizer) -> None:
        self._text, self._max_tokens, self._tokenizer = text, max_tokens, tokenizer
        # Units are the pieces of the text that are never cut: words, and the characters of words with too many tokens.
        self._units: Spans = []
        counts: list[int] = []
        for (start, end), tokens in self._words():
            if 2 * len(tokens) > max_tokens and self._count_tokens(start, end) > max_tokens:
                token_starts = [token_start for token_start, _ in tokens]
                for i in range(start, end):
                    self._units.append((i, i + 1))
                    counts.append(bisect_left(token_starts, i + 1) - bisect_left(token_starts, i))
            else:
                self._units.append((start, end))
                counts.append(len(tokens))
        self._offsets = [0, *accumulate(counts)]  # number of tokens that begin before each unit

    def windows(self, stride: int) -> Spans:
        """Return passages of up to `max_tokens` tokens, every `stride` tokens, until one reaches the end."""
        spans, start, previous_end = [], 0, 0
        while previous_end < len(self._units):
            end = self._fit(start, len(self._units))
            if end > previous_end:
                spans.append(self._span(start, end))
                start, previous_end = min(end, max(start + 1, self._advance(start, stride))), end
            else:  # the passage would lie inside the previous one
                start += 1
        return spans or [(0, 0)]

    def pack_sentences(self, sentence_spans: Spans) -> Spans:
        """Return passages of as many whole sentences as fit; longer sentences are cut."""
        starts = [start for start, _ in self._units]
        # White space between sentences belongs to none; a unit belongs to the sentence in which it starts.
        edges = sorted({*(bisect_left(starts, start) for start, _ in sentence_spans), len(starts)})
        spans, start = [], 0
        while start < len(self._units):
            end = self._fit(start, len(self._units))
            edge = edges[bisect_right(edges, end) - 1] if edges[0] <= end else start
            end = self._fit(start, edge) if edge > start else end
            spans.append(self._span(start, end))
            start = end
        return spans or [(0, 0)]

    def _words(self) -> Iterator[tuple[Span, Spans]]:
        """Yield the span of each word, and the spans of the tokens that begin in it or in the white space before it.

        Tokens after the last word belong to the last word.
        """
        word_spans = _word_spans(self._text)
        tokens, next_token = self._tokenizer.spans(self._text), 0
        for number, (start, end) in enumerate(word_spans):
            first_token = next_token
            while next_token < len(tokens) and (tokens[next_token][0] < end or number == len(word_spans) - 1):
                next_token += 1
            yield (start, end), tokens[first_token:next_token]

    def _advance(self, start: int, tokens: int) -> int:
        """Return the last unit that begins at most `tokens` tokens after the unit `start`."""
        return bisect_right(self._offsets, self._offsets[start] + tokens) - 1

    def _fit(self, start: int, limit: int) -> int:
        """Return the end of the longest passage that begins with the unit `start`, fits, and ends by the unit `limit`."""
        end = max(start + 1, min(limit, self._advance(start, self._max_tokens)))
        while end > start + 1 and self._count_tokens(*self._span(start, end)) > self._max_tokens:
            end -= 1
        return end

    def _span(self, start: int, end: int) -> Span:
        """Return the span of the text from the unit `start` to the unit before `end`."""
        return self._units[start][0], self._units[end - 1][1]

    def _count_tokens(self, start: int, end: int) -> int:
        """Return the number of tokens of a part of the text, tokenized alone."""
        return self._tokenizer.counts([self._text[start:end]])[0]
