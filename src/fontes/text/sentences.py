"""Sentence boundaries by rules, nupunkt or spaCy's trained pipelines, loaded on use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from ..core.errors import MissingExtraError, ParameterError
from ..core.strings import encodable
from .external import spacy_pipeline

Span = tuple[int, int]
Spans = list[Span]

MAX_TEXT_LENGTH = 100_000  # characters analysed at once by spaCy; longer texts are cut at white space, or at twice as many
SPACE = re.compile(r"\s")
CAPITALS = "".join(filter(str.isupper, map(chr, range(0x530))))  # Latin, Greek and Cyrillic capitals
GAP = re.compile(rf"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[„]*[{CAPITALS}0-9])|\n\s*\n")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|vs|cf|No|Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Inc|Ltd|Co|approx))\.$")


@cache
def sentences(name: str = "rules") -> Callable[[Sequence[str]], Iterator[Spans]]:
    """Return a function from texts to sentence spans (first character, end), ordered and disjoint.

    Args:
        name: "rules" (a full stop followed by a capital or a digit); "nupunkt"; or "spacy:MODEL", which runs only the
            SentenceRecognizer, or the parser if the model has none.

    Raises:
        ParameterError: The name is unknown, or the model is missing or finds no sentences.
        MissingExtraError: The library is not installed.
    """
    check_sentence_finder(name)
    if name == "rules":
        return lambda texts: (list(_by_rules(text)) for text in texts)
    return _nupunkt() if name == "nupunkt" else _spacy(name.removeprefix("spacy:"))


def sentence_spans(text: str, how: str = "rules") -> Spans:
    """Return the sentence spans of one text; see `sentences`."""
    [spans] = sentences(how)([text])
    return spans


def check_sentence_finder(how: str) -> None:
    """Raise ParameterError for an unknown sentence finder."""
    if how not in ("rules", "nupunkt") and not (how.startswith("spacy:") and how != "spacy:"):
        raise ParameterError(f"no way to find sentences is called '{how}'; there are rules, nupunkt and spacy:MODEL")


def _by_rules(text: str) -> Iterator[Span]:
    """Yield spans that end at a gap after a full stop, except after an abbreviation."""
    start = 0
    for gap in GAP.finditer(text):
        if "\n" not in gap[0].strip(" ") and ABBREVIATION.search(text, max(start, gap.start() - 12), gap.start()):
            continue
        if gap.start() > start:
            yield start, gap.start()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def _nupunkt() -> Callable[[Sequence[str]], Iterator[Spans]]:
    try:
        import nupunkt
    except ImportError as e:
        raise MissingExtraError.of("nupunkt", "sentences", "finding sentences with 'nupunkt'") from e
    return lambda texts: (list(nupunkt.sent_spans(text)) for text in texts)


def _spacy(model: str) -> Callable[[Sequence[str]], Iterator[Spans]]:
    pipeline = _pipeline(model)

    def spans_of(texts: Sequence[str]) -> Iterator[Spans]:
        pieces = ((encodable(text[a:b]), (n, a)) for n, text in enumerate(texts) for a, b in pairwise(_edges(text)))
        spans: list[Spans] = [[] for _ in texts]
        for doc, (n, start) in pipeline.pipe(pieces, as_tuples=True, batch_size=64):
            spans[n] += [(start + s.start_char, start + s.end_char) for s in doc.sents]
        return iter(spans)

    return spans_of


def _pipeline(model: str) -> Any:
    """Load a spaCy model with the components that find sentences alone."""
    pipeline = spacy_pipeline(model, f"finding sentences with 'spacy:{model}'")
    for parts in (("senter",), ("sentencizer",), ("tok2vec", "transformer", "parser")):
        if parts[-1] in pipeline.component_names:
            present = [part for part in parts if part in pipeline.component_names]
            pipeline.select_pipes(enable=[part for part in present if part in pipeline.pipe_names])
            for part in present:
                if part not in pipeline.pipe_names:
                    pipeline.enable_pipe(part)
            return pipeline
    raise ParameterError(f"spaCy's model '{model}' finds no sentences; take one with a senter, a sentencizer or a parser")


def _edges(text: str) -> list[int]:
    """Return where to cut a text, with its start and its end."""
    edges = [0]
    while len(text) - edges[-1] > MAX_TEXT_LENGTH:
        gap = SPACE.search(text, edges[-1] + MAX_TEXT_LENGTH, edges[-1] + 2 * MAX_TEXT_LENGTH)
        edges.append(gap.end() if gap else min(edges[-1] + 2 * MAX_TEXT_LENGTH, len(text)))
    return [*edges, len(text)]
