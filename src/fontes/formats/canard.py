"""CANARD: questions from QuAC's conversations, each with a self-contained rewrite (Elgohary et al. 2019).

A topic's id is `<QuAC_dialog_id>_<Question_no>`, its text the question. Its `turns` are the conversation up to and including
this question, oldest first, with the rewrite as `manual` and, for earlier turns, the answer if present. The titles of the
Wikipedia page and section form the `description`.

Formats: the official release (https://github.com/aagohary/canard), a list of objects whose `History` is title, section,
question, answer, question, …; JSON lines of such objects; or objects with `HistoryQuestions`, only the earlier questions.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core import InputError, Topic, Turn
from ..storage.files import InputFile
from .format import File, Format
from .records import json_parsed, json_rows

DIALOG, NUMBER, QUESTION, REWRITE = "QuAC_dialog_id", "Question_no", "Question", "Rewrite"
HISTORY, QUESTIONS = "History", "HistoryQuestions"
TITLES = 2  # entries of History before the first question: page title and section title


class Canard(Format, name="canard"):
    """Questions of CANARD with their conversations: the official JSON, or one item a line."""

    def sniff(self, kind: str, file: File) -> float:
        if isinstance(file.first, dict):
            return 0.95 if DIALOG in file.first else 0.0
        item = file.value[0] if isinstance(file.value, list) and file.value else file.value
        return 0.6 if isinstance(item, Mapping) and DIALOG in item else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        return canard_topics(file)


def canard_topics(source: InputFile) -> Iterator[Topic]:
    """Yield topics from a list of items or from JSON lines; InputError names `source` and the item."""
    text = source.text()
    if text.lstrip().startswith("["):
        items = enumerate(json_parsed(text, source.name), 1)
        rows = [(f"{source.name}, item {number}", row) for number, row in items]
    else:
        lines = json_rows(InputFile(source.name, io.BytesIO(text.encode())))
        rows = [(f"{source.name}, line {number}", row) for number, row in lines]
    return _topics(rows)


def _topics(rows: Iterable[tuple[str, Any]]) -> Iterator[Topic]:
    rows = list(rows)
    seen = set()
    for where, row in rows:
        _check(row, where)
        if (row[DIALOG], row[NUMBER]) in seen:
            raise InputError(f"{where}: question {row[NUMBER]} of the conversation {row[DIALOG]} occurs twice")
        seen.add((row[DIALOG], row[NUMBER]))
    rewrites = {(row[DIALOG], row[NUMBER], row[QUESTION].strip()): row.get(REWRITE) or "" for _, row in rows}
    for where, row in rows:
        titles, pairs = _history(row, where)
        questions = [*pairs, (row[QUESTION].strip(), "")]
        turns = tuple(
            Turn(question, manual=rewrites.get((row[DIALOG], number, question), "").strip(), answer=answer)
            for number, (question, answer) in enumerate(questions, int(row[NUMBER]) - len(pairs))
        )
        yield Topic(f"{row[DIALOG]}_{row[NUMBER]}", turns[-1].text, description=": ".join(titles), turns=turns)


def _check(row: object, where: str) -> None:
    if not isinstance(row, Mapping):
        raise InputError(f"{where}: a {type(row).__name__} where an object belongs")
    number = row.get(NUMBER)
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"{where}: no whole number under '{NUMBER}'")
    for name in (DIALOG, QUESTION):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise InputError(f"{where}: no text under '{name}'")
    if not isinstance(row.get(REWRITE, ""), str | None):
        raise InputError(f"{where}: '{REWRITE}' is a {type(row[REWRITE]).__name__}, not a text")


def _history(row: Mapping[str, object], where: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return (title and section, (question, answer) of each earlier turn)."""
    name = HISTORY if HISTORY in row else QUESTIONS
    entries = row.get(name) or []
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise InputError(f"{where}: '{name}' is not a list of texts")
    entries = [entry.strip() for entry in entries]
    if name == QUESTIONS:
        return [], [(question, "") for question in entries]
    titles, exchanges = entries[:TITLES], entries[TITLES:]
    if entries and (len(titles) < TITLES or len(exchanges) % 2):
        raise InputError(f"{where}: '{HISTORY}' has {len(entries)} entries, not title, section, question, answer, …")
    return titles, list(zip(exchanges[::2], exchanges[1::2], strict=True))
