"""HTML of values for notebooks. All text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .part import Part
    from .run import Ranking, Run
    from .values import Explanation

TOPICS = 20  # shown topics of a run
HITS = 10  # shown hits of a ranking
BOX = (
    "display:inline-block;border:1px solid #0b7a75;border-radius:6px;padding:4px 8px;margin:2px;"
    "vertical-align:middle;font-family:monospace"
)
NUMBER = re.compile(r"(&lt;|<)? ?[+−-]?(\d[\d.,e/+-]*|nan|–)( to [+−-]?[\d.,]+)?( ?(%|s|MB|kB))?( @\d+)?")
LEFT = ' style="text-align:left"'
MARKS = re.compile(r"</?b>|<sup>.*?</sup>")  # around and behind a number
ARROW = '<span style="margin:0 4px">→</span>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, safe: bool = False) -> str:
    """Return a table; text columns are aligned left, numbers right.

    Args:
        header: The column names.
        rows: The cells.
        safe: Whether the cells are HTML already and are not escaped.
    """
    cells = [[str(value) for value in row] for row in rows]
    columns = list(zip(*cells, strict=True)) or [()] * len(header)
    styles = ["" if all(NUMBER.fullmatch(MARKS.sub("", cell)) for cell in column) else LEFT for column in columns]
    head = "".join(f"<th{style}>{escape(name)}</th>" for name, style in zip(header, styles, strict=True))
    body = ""
    for row in cells:
        texts = row if safe else map(escape, row)
        body += f"<tr>{''.join(f'<td{style}>{text}</td>' for text, style in zip(texts, styles, strict=True))}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def of_run(run: Run) -> str:
    """Return the topics of a run with their first hits, and titles where the documents are known."""
    blocks: list[str] = []
    for topic_id in list(run)[:TOPICS]:
        ranking = run[topic_id]
        text = escape(ranking.topic.text[:200])
        blocks.append(
            f"<details{' open' if not blocks else ''}><summary><b>{escape(topic_id)}</b> {text} ({len(ranking)})</summary>"
            f"{of_ranking(ranking, 3)}</details>"
        )
    more = f"<p>{len(run) - TOPICS:,} more topics</p>" if len(run) > TOPICS else ""
    system = escape(str(run.provenance.get("system", "")))
    return f"<div><p>{len(run):,} topics, {run.rows:,} documents: <code>{system}</code></p>{''.join(blocks)}{more}</div>"


def of_ranking(ranking: Ranking, hits: int = HITS) -> str:
    """Return the first hits of a ranking, with titles and snippets where the documents are known."""
    shown = ranking[:hits]
    documents = ranking.documents
    if documents is None or not ranking.has_texts:
        return table(["rank", "score", "document"], [(hit.rank, f"{hit.score:.4f}", hit.id) for hit in shown])
    marked = getattr(documents, "marked", None) or (lambda query, doc: escape(f"{doc.title} {doc.text}".strip()[:200]))
    docs = documents.docs([hit.id for hit in shown])
    rows = [
        (hit.rank, f"{hit.score:.4f}", escape(hit.id), marked(ranking.topic.text, doc))
        for hit, doc in zip(shown, docs, strict=True)
    ]
    return table(["rank", "score", "document", "text"], rows, safe=True)


def of_explanation(explanation: Explanation, open_: bool = True) -> str:
    """Return a collapsible tree."""
    line = f"<b>{explanation.value:.6g}</b> {escape(explanation.label)}"
    if not explanation.parts:
        return f'<div style="margin-left:1em">{line}</div>'
    inside = "".join(of_explanation(part, False) for part in explanation.parts)
    return f'<details style="margin-left:1em"{" open" if open_ else ""}><summary>{line}</summary>{inside}</details>'


def boxes(stage: Part) -> str:
    """Return a pipeline as nested boxes, one per step."""
    return f"<div>{ARROW.join(_box(step) for step in _steps(stage))}</div>"


def _box(stage: Any) -> str:
    inner = [part for part in stage.parts() if hasattr(part, "takes")]
    if not inner:
        return f'<span style="{BOX}">{escape(repr(stage))}</span>'
    label = stage.name or type(stage).__name__.lower()
    weight = f" {stage.weight:g} ·" if hasattr(stage, "weight") else ""
    return f'<span style="{BOX}">{escape(label)}{weight}<br>{"<br>".join(boxes(part) for part in inner)}</span>'


def _steps(stage: Any) -> Sequence[Part]:
    return stage.stages if type(stage).__name__ == "Pipeline" else (stage,)
