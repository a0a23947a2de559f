"""A chain of causes: an event, the tree of its causes, and the sources of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a cause.

    Args:
        doc_id: The document.
        title: Its title.
        date: Its metadata `date`; empty where it has none.
        sentence: The sentence, or of a lead the one that is nearest to the event.
        cue: The name of the cue in `fontes.causal.CUES`; empty for a lead.
        score: How well what the sentence says of effects matches the event, 0 to 1.
    """

    doc_id: str
    title: str
    date: str
    sentence: str
    cue: str
    score: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, where it is said, and its own causes.

    Args:
        text: What the cause is, in the words of its best source.
        score: 1 less the product of 1 - score of its sources: above 0, at most 1.
        sources: Where it is said, the best first.
        causes: Its own causes, the best first.
        lead: Whether no sentence says that it is a cause: it is only an earlier document, retrieved for the event.
    """

    text: str
    score: float
    sources: tuple[Source, ...]
    causes: tuple[Cause, ...] = ()
    lead: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The cause with what is below it as plain dicts, for JSON."""
        return {
            "cause": self.text,
            "score": self.score,
            "lead": self.lead,
            "sources": [asdict(source) for source in self.sources],
            "causes": [cause.to_dict() for cause in self.causes],
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """An event and the tree of its causes; false where it has none.

    Args:
        event: The event.
        causes: Its causes, the best first, each with its own.
    """

    event: str
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        """Number of causes in the tree."""
        return sum(1 for _ in self.all())

    def all(self) -> Iterator[Cause]:
        """Every cause of the tree, each before those below it."""
        waiting = list(reversed(self.causes))
        while waiting:
            cause = waiting.pop()
            yield cause
            waiting.extend(reversed(cause.causes))

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts, for JSON."""
        return {"event": self.event, "causes": [cause.to_dict() for cause in self.causes]}

    def _repr_html_(self) -> str:
        """The tree, which folds, for notebooks: each cause with its score and, unfolded, its sources and its own causes."""
        if not self.causes:
            return f"<div><b>{escape(self.event)}</b>: no causes</div>"
        causes = "".join(_html(cause, open_=True) for cause in self.causes)
        return f"<details open><summary><b>{escape(self.event)}</b></summary>{causes}</details>"


def _html(cause: Cause, *, open_: bool = False) -> str:
    sources = "".join(f"<li>{_html_of_source(source)}</li>" for source in cause.sources)
    below = "".join(_html(each) for each in cause.causes)
    lead = " (a lead: nobody says so)" if cause.lead else ""
    return (
        f'<details style="margin-left:1em"{" open" if open_ else ""}>'
        f"<summary><b>{cause.score:.3f}</b> {escape(cause.text)}{lead}</summary><ul>{sources}</ul>{below}</details>"
    )


def _html_of_source(source: Source) -> str:
    named = " ".join(escape(part) for part in (source.title, source.date and f"({source.date})") if part)
    cue = f" [{escape(source.cue)}]" if source.cue else ""
    return f"<code>{escape(source.doc_id)}</code> {named}: <i>{escape(source.sentence)}</i>{cue}"
