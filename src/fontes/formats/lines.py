"""Topics in plain lines, each an id and a text with a colon, bars or a space between them, or a text alone.

TREC's Terabyte (efficiency), Million Query and Web tracks: `201:raspberry pi`; Million Query 2009, with priorities:
`20001:1:river ferry`; Genomics 2006 and 2007: `<160>What is …?`; FIRE's AILA: `AILA_Q1||text`; Terrier: `1 text`; lists:
`1. text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core import InputError, Topic
from .columns import BEIR_QRELS, MS_MARCO_RUN, TREC_QRELS, TREC_RUN
from .decoding import warn
from .format import File, Format

SAMPLE = 50  # lines read to detect the pattern
SHARE = 0.75  # of these lines that have an id of their own; the others are errors
NUMBERED = r"[\w.-]*\d[\w.-]*"  # an id has a digit
PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"<(?P<id>\d[\w.-]*)>(?P<text>.*?)(?:</(?P=id)>)?",
        r"(?P<id>[^|\s]+)\s*\|\|?(?P<text>.*)",
        r"(?P<id>\d+):[1-9]:(?P<text>.*)",
        rf"(?P<id>{NUMBERED})\s*:(?P<text>.*)",
        r"(?P<id>[\w-]*\d)[.)]\s+(?P<text>.*)",
        rf"(?P<id>{NUMBERED})\s+(?P<text>.*)",
    )
)
PLAIN = re.compile(r"(?P<text>.*)")
UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")


class Lines(Format, name="lines"):
    """Topics one a line: `201:text`, `AILA_Q1||text` or `1 text`; texts alone are numbered from 1, with a warning."""

    def sniff(self, kind: str, file: File) -> float:
        lines = _sample(file)
        pattern = _pattern(lines)
        if (
            _are_judged(lines)
            or UNREADABLE.search(file.start)
            or (pattern is not PATTERNS[0] and file.start[:1] in ("{", "[", "<"))
        ):
            return 0.0
        if pattern is PLAIN:
            return 0.02 if len(lines) > 1 else 0.0
        return 0.4 if pattern is PATTERNS[0] else 0.15

    def read_topics(self, file: File) -> Iterator[Topic]:
        lines = _sample(file)
        pattern = _pattern(lines)
        example = next((line for line in lines if pattern.fullmatch(line)), "")
        if pattern is PLAIN:
            warn(f"{file.name}: the lines have no ids, so they are numbered from 1")
        for count, (number, line) in enumerate(file.texts(), 1):
            match = pattern.fullmatch(line.strip())
            if match is None:
                raise InputError.at(file.name, number, f"no id and text as in the line {example[:40]!r}")
            yield Topic(match["id"] if "id" in pattern.groupindex else str(count), match["text"].strip())


def _sample(file: File) -> list[str]:
    return [line.strip() for line in file.start.split("\n") if line and not line.isspace()][:SAMPLE]


def _pattern(lines: list[str]) -> re.Pattern[str]:
    """Return the first pattern that gives most lines an id of their own."""
    for pattern in PATTERNS:
        matches = [match for line in lines if (match := pattern.fullmatch(line))]
        ids = {match["id"] for match in matches}
        if len(ids) >= SHARE * len(lines) and any(match["text"].strip() for match in matches):
            return pattern
    return PLAIN


def _are_judged(lines: list[str]) -> bool:
    """Whether most lines look like judgments, or like a run."""
    numeric = {BEIR_QRELS: 2, TREC_QRELS: 3, TREC_RUN: 4, MS_MARCO_RUN: 2}  # column with a number, by number of columns
    rows = [line.split() for line in lines if not line.startswith("#")]
    judged = [row for row in rows if len(row) in numeric and _is_number(row[numeric[len(row)]])]
    return 2 * len(judged) > len(rows)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
