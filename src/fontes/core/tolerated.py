"""Words of a topic that were searched with others, for explanations, snippets and answers."""

from __future__ import annotations

from typing import Any

from .errors import ParameterError
from .hints import nearest
from .values import Topic

TOLERANCE = "tolerance"  # the name in a topic's metadata
MODES = ("auto", "typing")


class Tolerated(list[dict[str, Any]]):
    """JSON values about the words of a topic that were searched with neighbours, which no reader of topics can make."""


def tolerated(topic: Topic) -> Tolerated:
    """Return the words of a topic that were searched with neighbours."""
    values = topic.metadata.get(TOLERANCE)
    return values if isinstance(values, Tolerated) else Tolerated()


def added_terms(topic: Topic) -> frozenset[str]:
    """Return the index terms that were added to a topic."""
    return frozenset(neighbour["term"] for word in tolerated(topic) for neighbour in word["also"])


def notes_of(topic: Topic) -> dict[str, str]:
    """Return for each term that was added to a topic a note on the word for which it stands."""
    notes: dict[str, str] = {}
    for word in tolerated(topic):
        for neighbour in word["also"]:
            edits = neighbour["edits"]
            kind = "completed" if not edits else f"{edits} edit{'s' * (edits > 1)}"
            note = f" ({neighbour['word']}) for '{word['word']}', {kind}: weight {neighbour['weight']:.3g}"
            notes.setdefault(neighbour["term"], note)
        if word["weight"] < 1:
            notes |= dict.fromkeys(word["terms"], f", far rarer than its completions: weight {word['weight']:.3g}")
    return notes


def check_tolerance(name: str, mode: object, allowed: tuple[str, ...] = ("off", *MODES)) -> None:
    """Raise ParameterError, naming the parameter, if a tolerance is none of those allowed."""
    if mode not in allowed:
        raise ParameterError(f"{name}: there is no '{mode}'; {nearest(str(mode), allowed)}")
