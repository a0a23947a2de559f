"""Where sentences begin and end, for causes, effects and narratives: by rules, nupunkt or spaCy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.errors import ParameterError

Span = tuple[int, int]

GAP = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])|\n\s*\n")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|vs|cf|No|Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Inc|Ltd|Co|approx))\.$")


def sentence_spans(text: str, how: str = "rules") -> list[Span]:
    """Where the sentences of a text are, as (first character, end), in order.

    Args:
        text: The text.
        how: How they are found: "rules" (a full stop, and a capital after it), "nupunkt" or "spacy:MODEL".

    Raises:
        ParameterError: `how` is none of these.
        MissingExtraError: Its library is missing.
    """
    if how == "rules":
        return list(_by_rules(text))
    from ..text.sentences import sentences

    check_way(how)
    [spans] = sentences(how)([text])
    return spans


def check_way(how: str) -> None:
    """Raises ParameterError for an unknown way to find sentences."""
    if how not in ("rules", "nupunkt") and not how.startswith("spacy:"):
        raise ParameterError(f"no way to find sentences is called '{how}'; there are rules, nupunkt and spacy:MODEL")


def check_library(how: str) -> None:
    """Raises MissingExtraError or ParameterError where the library or the model that finds sentences is not here."""
    if how != "rules":
        from ..text.sentences import sentences

        check_way(how)
        sentences(how)


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
