"""Splitting of documents into passages, for runs and for corpora to be indexed."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Doc, ParameterError, Run, Stage, Strings
from ..core.checks import check_whole
from ..core.progress import ProgressCallback
from ..core.registry import provided
from ..core.values import Documents
from ..formats import read_corpus
from ..text.external import version_of
from ..text.sentences import Spans, check_way, sentences
from .aggregate import SENTENCE, SEPARATOR, WORD, PassageDocuments, check_separator

if TYPE_CHECKING:
    from ..neural.models.tokens import Tokenizer


WORDS = 150
MAX_WORDS = 250
BATCH = 256  # documents split together


class Splitter(Stage[Run, Run]):
    """Base class of stages that split each document of a run into passages, which inherit its score.

    The run's `documents` gives the passages' text, split on demand. Passages keep the document's metadata.

    Attributes:
        title: Whether a passage keeps the document's title.
        separator: Separator of the document's id and the passage's number, from 0: "D7%p0", "D7%p1", …
    """

    title: bool
    separator: str

    @abstractmethod
    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        """Return a function from texts to their passages' spans (first character, end).

        Raises ParameterError for invalid parameters, MissingExtraError without the library that finds sentences.
        """

    @property
    @abstractmethod
    def sentence_finder(self) -> str | None:
        """Sentence finder; None for passages that ignore sentences."""

    def check_needs(self) -> None:
        if self.sentence_finder is not None:
            sentences(self.sentence_finder)
        super().check_needs()

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        passages = self.over(run.documents_for(type(self).__name__))
        used = np.unique(run.codes)
        counts = np.zeros(len(run.ids), dtype=np.int64)
        ids: list[str] = []
        names = run.ids.take(used)
        for at in range(0, len(used), BATCH):
            batch = names[at : at + BATCH]
            numbers = passages.counts(batch)
            counts[used[at : at + BATCH]] = numbers
            ids += [f"{name}{self.separator}{i}" for name, count in zip(batch, numbers, strict=True) for i in range(count)]
        first = np.cumsum(counts) - counts
        copies = counts[run.codes]
        within = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
        return Run.from_columns(
            run.topics,
            Strings.of(ids),
            np.repeat(run.topic_numbers, copies),
            (np.repeat(first[run.codes], copies) + within).astype(np.int32),
            np.repeat(run.scores, copies),
            documents=passages,
            provenance=run.provenance,
        )

    def key(self) -> str | None:
        """Cache key of the class, parameters and version of the sentence model: see `Stage.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentence_finder)}"

    def of(self, doc: Doc) -> list[Doc]:
        """Return the passages of one document."""
        return list(self.docs([doc]))

    def docs(self, corpus: str | Path | Iterable[Any]) -> Iterator[Doc]:
        """Yield the passages of a corpus, for indexing: `Index.build(passages.docs(corpus), path)`."""
        documents = iter(read_corpus(corpus))
        split = self.splitter()
        while batch := list(islice(documents, BATCH)):
            for doc, spans in zip(batch, split([doc.text for doc in batch]), strict=True):
                yield from (self.passage(doc, number, spans) for number in range(len(spans)))

    def over(self, documents: Documents) -> PassageDocuments:
        """Return the passages' text by id, from `documents`, for a run of passages read from a file."""
        self.splitter()
        return PassageDocuments(documents, self)

    def passage(self, doc: Doc, number: int, spans: Spans) -> Doc:
        """Return the passage with this number, given the spans of the document's passages."""
        start, end = spans[number]
        return Doc(f"{doc.id}{self.separator}{number}", doc.text[start:end], doc.title if self.title else "", doc.metadata)


@dataclass(frozen=True)
class Passages(Splitter, name="passages"):
    """Splits each document of a run into passages, which inherit the document's score.

    Words are separated by white space; each Han, Hiragana and Katakana character is one. A passage is the unchanged text from
    its first word to the end of its last. A document without words has one empty passage. The run's `documents` gives the
    passages' text, split on demand. Passages keep the document's metadata.

    With `tokens`, length is counted by a model's tokenizer, without special tokens. Texts are cut between words: passages may
    be a few tokens shorter; a word with too many tokens is cut between characters.

    Args:
        words: Most words per passage; by default 150.
        stride: Words or tokens from one passage's start to the next's; by default half of the length.
        sentences: Split between sentences, not after a number of words: "rules", "nupunkt" or "spacy:MODEL".
        max_words: With `sentences`, most words per passage of whole sentences (default 250). Longer sentences are cut by words.
        title: Whether a passage keeps the document's title.
        separator: Separator of the document's id and the passage's number, from 0: "D7%p0", "D7%p1", …
        tokens: Most tokens per passage, in place of `words` and, with `sentences`, of `max_words`.
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

            def cut(texts: Sequence[str]) -> list[Spans]:
                cutters = [TokenCutter(text, length, tokenizer) for text in texts]
                if find is None:
                    return [cutter.windows(stride) for cutter in cutters]
                return [cutter.packed(spans) for cutter, spans in zip(cutters, find(texts), strict=True)]

            return cut
        if find is None:
            return lambda texts: [_windows(text, length, stride) for text in texts]
        most = self.max_words or MAX_WORDS
        return lambda texts: [_packed(text, spans, most) for text, spans in zip(texts, find(texts), strict=True)]

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
        tokenizer: Tokenizer = provided("fontes.tokenizers", "model")(self.tokenizer)
        return tokenizer

    @property
    def _window(self) -> tuple[int, int]:
        """Return the words or tokens per passage, and the stride."""
        length = self.tokens or self.words or WORDS
        return length, self.stride or -(-length // 2)


@dataclass(frozen=True)
class Sentences(Splitter, name="sentences"):
    """Splits each document of a run into its sentences, which inherit the document's score: `bm25 % 10 >> Sentences() >> …`.

    Titles are not sentences. A document without text has none.

    Args:
        how: Sentence finder: "rules" (a full stop followed by a capital or a digit), "nupunkt" or "spacy:MODEL".
        title: Whether a sentence keeps the document's title, for rerankers.
        separator: Separator of the document's id and the sentence's number, from 0: "D7#0", "D7#1", …

    Raises:
        InputError: When called, if the run has no documents.
        ParameterError: When called, for invalid parameters.
    """

    how: str = "rules"
    title: bool = False
    separator: str = SENTENCE

    def check(self) -> None:
        check_separator(self.separator)
        check_way(self.how)

    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        self.check()
        find = sentences(self.how)
        return lambda texts: [_trimmed(text, spans) for text, spans in zip(texts, find(texts), strict=True)]

    @property
    def sentence_finder(self) -> str | None:
        return self.how


def _windows(text: str, words: int, stride: int) -> Spans:
    """Windows of `words` words, every `stride` words, until one reaches the end."""
    spans = [match.span() for match in WORD.finditer(text)]
    last = max(0, -(-(len(spans) - words) // stride)) * stride
    return [_span(spans, start, start + words) for start in range(0, last + 1, stride)]


def _packed(text: str, sentence_spans: Spans, most: int) -> Spans:
    """Pack whole sentences up to `most` words; cut longer ones into pieces of `most` words."""
    spans = [match.span() for match in WORD.finditer(text)]
    starts = [start for start, _ in spans]
    # White space between sentences belongs to none; a word belongs to the sentence in which it starts.
    edges = sorted({0, *(bisect_left(starts, start) for start, _ in sentence_spans), len(spans)})
    cuts = [0]
    for start, end in pairwise(edges):
        if end - cuts[-1] > most and start > cuts[-1]:
            cuts.append(start)
        while end - cuts[-1] > most:
            cuts.append(cuts[-1] + most)
    return [_span(spans, a, b) for a, b in pairwise([*cuts, len(spans)])] if spans else [(0, 0)]


def _span(spans: Spans, start: int, end: int) -> tuple[int, int]:
    inside = spans[start:end]
    return (inside[0][0], inside[-1][1]) if inside else (0, 0)


def _trimmed(text: str, spans: Spans) -> Spans:
    """Strip white space from the spans, and drop blank ones."""
    starts = (end - len(text[start:end].lstrip()) for start, end in spans)
    ends = (start + len(text[start:end].rstrip()) for start, end in spans)
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


class TokenCutter:
    """Cuts a text into passages of at most `most` tokens, without special tokens.

    A passage may have other tokens alone than inside the text. So each is tokenized alone and loses words at its end until it
    fits. A word with too many tokens is cut between characters; a single character is never cut.
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
