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
CAPITALS = "".join(filter(str.isupper, map(chr, range(0x2000))))  # with two marks, such as Ở, too
STOP = "[.!?…]"
CLOSING = "[\"'”’“‘»«›‹)\\]}]"  # languages differ in which quotation marks close: here those right after a full stop
OPENING = "(?:[\"'“”‘’„‚»›(\\[{¿¡]|[«‹]\\s?)"
NOTE = r"\[[^][\n]{1,24}\]"  # [1], [2, 3], [citation needed]
CLOSED = rf"(?:{CLOSING}{{0,3}}|\s[»›”]|(?:{NOTE}){{1,6}})"
GAP = re.compile(rf"{STOP}{CLOSED}(\s+)(?={OPENING}*[{CAPITALS}0-9])|(\r?\n\s*\n)")
ABBREVIATION = re.compile(  # also initials, but not the units Å and Ω
    r"\b(?:[A-ZÀ-ÄÆ-ÖØ-ÞĀ-ŽЀ-Я]|[Ee]\.g|[Ii]\.e|vs?|[Cc]f|viz|ca|approx|resp|et\.?\sal|Figs?|FIGS?|Eqs?|pp|Inc|Ltd|Co|St|Mt"
    r"|Mr|Mrs|Ms|Messrs|Mme|Mlle|Dr|[Pp]rof|Rev|Hon|Gen|Col|Maj|Capt|Lt|Sgt|Sen|Rep|Gov)\.[)\]]?$"
)
NUMBERED = re.compile(  # before a number only: "No. 5", "Jan. 5"
    r"\b(?:figs?|eqs?|nos?|nrs?|vols?|ch|chap|refs?|eds?|secs?|sect|tabs?|arts?|abb|p|c"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
MAX_ABBREVIATION = 12  # characters of the longest, with those before it that its patterns look at


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


def is_abbreviated(before: str, after: str) -> bool:
    """Whether a text ends with the full stop of an abbreviation rather than of a sentence, given the text after it."""
    return ABBREVIATION.search(before) is not None or (after[:1].isdigit() and NUMBERED.search(before) is not None)


def gaps(text: str) -> Iterator[Span]:
    """Yield the white space, as (first character, end), after all that may end a sentence, also an abbreviation."""
    return (gap.span(gap.lastindex or 0) for gap in GAP.finditer(text))


def _by_rules(text: str) -> Iterator[Span]:
    """Yield spans that end at a gap after a full stop, with the signs that close it, except after an abbreviation."""
    start = 0
    for end, following in gaps(text):
        before = text[max(start, end - MAX_ABBREVIATION) : end]
        if text.count("\n", end, following) < 2 and is_abbreviated(before, text[following : following + 1]):
            continue
        if end > start:
            yield start, end
        start = following
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
