"""What the recipe of CAsT 2021 has of its own: its passages, and a bound on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core import ParameterError, Run, Stage
from ..core.checks import check_whole
from ..core.progress import Report
from ..passages import Passages
from ..passages.aggregate import parents_of
from ..passages.documents import check_separator
from ..text.sentences import Spans, sentences

FILLED = 0.67  # of the greatest length, with which a passage ends
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class CastPassages(Passages, name="cast_passages"):
    """Passages as the tools of CAsT 2021 make them: whole sentences, up to the one with which there are 0.67 * 250 words.

    Words are runs of letters and digits.

    Args:
        words: Not used.
        stride: Not used.
        sentences: "spacy:MODEL", of which the SentenceRecognizer is run, or "nupunkt".
        max_words: The 250; a passage ends with the sentence that brings it to two thirds of it. A longer sentence is not cut.
        title: Whether a passage keeps the document's title.
        separator: "MARCO_D59865-7" is the passage 7, counted from 0, of the document "MARCO_D59865".
        tokens: Not used.
        tokenizer: Not used.
    """

    sentences: str | None = "spacy:en_core_web_sm"
    max_words: int | None = 250
    title: bool = False
    separator: str = "-"

    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        """A function from texts to their passages as (first character, end)."""
        check_separator(self.separator)
        if any(one is not None for one in (self.words, self.stride, self.tokens, self.tokenizer)) or self.sentences is None:
            raise ParameterError("the passages of CAsT take sentences and max_words, no words, stride and tokens")
        most = check_whole("passages: max_words", self.max_words)
        find = sentences(self.sentences)
        return lambda texts: [_filled(text, spans, FILLED * most) for text, spans in zip(texts, find(texts), strict=True)]


@dataclass(frozen=True)
class FirstPassages(Stage[Run, Run], name="first_passages"):
    """Keeps `k` passages of each topic: those of its best documents, and of a document the first ones.

    For a run whose passages have their documents' scores. Among these `% k` would choose by the passages' ids.

    Args:
        k: How many passages of each topic stay.
    """

    k: int

    def check(self) -> None:
        check_whole("first_passages: k", self.k)

    def apply(self, run: Run, progress: Report, /) -> Run:
        self.check()
        k = int(self.k)
        names, parents, numbers = parents_of(run)
        sizes = np.diff(run.bounds)
        topics = np.repeat(np.arange(len(sizes)), sizes)
        _, first, document = np.unique(topics * len(names) + parents[run.codes], return_index=True, return_inverse=True)
        order = np.lexsort((numbers[run.codes], first[document], topics))
        rows = order[np.arange(run.rows) - np.repeat(run.bounds[:-1], sizes) < k]
        return Run.from_columns(
            run.topics,
            run.ids,
            topics[rows],
            run.codes[rows],
            run.scores[rows],
            documents=run.documents,
            provenance=run.provenance,
        )


def _filled(text: str, spans: Spans, enough: float) -> Spans:
    """Whole sentences up to the one with which there are `enough` words, again and again; white space around them left out."""
    passages: Spans = []
    start, before, words = 0, 0, 0
    for _, end in spans:
        words += sum(1 for _ in WORD.finditer(text, before, end))
        before = end
        if words >= enough:
            passages.append((start, end))
            start, words = end, 0
    if text[start:].strip() or not passages:
        passages.append((start, len(text)))
    return [_stripped(text, a, b) for a, b in passages]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return start, start + len(text[start:end].rstrip())
