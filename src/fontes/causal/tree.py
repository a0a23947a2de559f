"""Chains of causes: an event, the tree of its causes, and their sources."""

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
        date: Its metadata `date`, or empty.
        sentence: The sentence; of a lead, the one nearest to the event.
        cue: Name of the cue in `fontes.causal.CUES`; empty for a lead.
        score: Match of the stated effect with the event, 0 to 1.
    """

    doc_id: str
    title: str
    date: str
    sentence: str
    cue: str
    score: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, its sources and its own causes.

    Args:
        text: The cause, in the words of its best source.
        score: 1 less the product of 1 - score of its sources: above 0, at most 1.
        sources: Its sources, best first.
        causes: Its own causes, best first.
        lead: Whether it is only an earlier document retrieved for the event, and not a stated cause.
    """

    text: str
    score: float
    sources: tuple[Source, ...]
    causes: tuple[Cause, ...] = ()
    lead: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The cause and its causes as plain dicts, for JSON."""
        return {
            "cause": self.text,
            "score": self.score,
            "lead": self.lead,
            "sources": [asdict(source) for source in self.sources],
            "causes": [cause.to_dict() for cause in self.causes],
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """An event and the tree of its causes; false if it has none.

    Args:
        event: The event.
        causes: Its causes, best first.
    """

    event: str
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        """Number of causes in the tree."""
        return sum(1 for _ in self.all())

    def all(self) -> Iterator[Cause]:
        """Yield all causes, parents first."""
        waiting = list(reversed(self.causes))
        while waiting:
            cause = waiting.pop()
            yield cause
            waiting.extend(reversed(cause.causes))

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts, for JSON."""
        return {"event": self.event, "causes": [cause.to_dict() for cause in self.causes]}

    def _repr_html_(self) -> str:
        """The tree for notebooks, which folds: causes with scores, sources and their own causes."""
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
