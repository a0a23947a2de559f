"""Where sentences begin and end, for causes, effects and narratives: by rules, nupunkt or spaCy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.errors import ParameterError

Span = tuple[int, int]

GAP = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])|\n\s*\n")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|vs|cf|No|Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Inc|Ltd|Co|approx))\.$")


def sentence_spans(text: str, how: str = "rules") -> list[Span]:
    """Where the sentences of a text are, as (first character, end), in order; see `causal_pairs`.

    Raises ParameterError for an unknown way, MissingExtraError where its library is missing.
    """
    if how == "rules":
        return list(_by_rules(text))
    from ..text.sentences import sentences

    if how != "nupunkt" and not how.startswith("spacy:"):
        raise ParameterError(f"no way to find sentences is called '{how}'; there are rules, nupunkt and spacy:MODEL")
    [spans] = sentences(how)([text])
    return spans


def _by_rules(text: str) -> Iterator[Span]:
    start = 0
    for gap in GAP.finditer(text):
        if "\n" not in gap[0].strip(" ") and ABBREVIATION.search(text, max(start, gap.start() - 12), gap.start()):
            continue
        if gap.start() > start:
            yield start, gap.start()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)
