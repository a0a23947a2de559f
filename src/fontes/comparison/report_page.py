"""HTML page of a report: tables are rendered here, the rest by the script of the page from embedded data."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Doc, Documents, InputError
from ..core.arrays import Numbers
from ..core.checks import check_whole
from ..formats.json_text import json_text
from ..measures.formulas import RR, Complete, IPrec, P, R, SetF, Success, nDCG
from ..measures.measure import Measure
from ..measures.ranks import NOT_RETRIEVED, Ranks
from ..plots.tables import ResultCell, ResultTable
from .measure_curves import LOGARITHMIC_KS, values_at
from .report_text import first_evaluation, means_table, notes, tests_table

if TYPE_CHECKING:
    from .report import Report


def html(report: Report, depth: int = 10, snippet: int = 200, reasons: Mapping[str, list[str]] | None = None) -> str:
    """Return the page with `depth` documents of each ranking and `snippet` characters of each; see `Report.to_html`.

    Args:
        reasons: Sentences shown above the rankings, by topic; the page opens the first of these topics.
    """
    data = PageData.of(report, depth, snippet)
    if reasons:
        positions = {topic_id: position for position, topic_id in enumerate(report.topics)}
        data.values["reasons"] = {positions[topic_id]: lines for topic_id, lines in reasons.items()}
        data.values["opened"] = positions[next(iter(reasons))]
    style, script = _read_part("page.css"), _read_part("page.js")
    links = {"means": "Means", "tests": "Tests", "curves": "Curves", "topics": "Topic by topic", "rankings": "Rankings"}
    if not report.comparisons:
        del links["tests"]
    names = " and ".join(report.systems)
    names_fit = len(report.systems) < 3 and len(names) < 60
    page = Template(_read_part("page.html")).substitute(
        title=escape(names if names_fit else f"Comparison of {len(report.systems)} systems"),
        lead=escape(_lead(report)),
        links="".join(f'<a href="#{section}">{name}</a>' for section, name in links.items()),
        means=_means_html(report),
        notes="".join(
            f"<li>{escape(note)}</li>" for note in [f"small figures: {_intervals_name(report)} of the means", *notes(report)]
        ),
        systems=_systems_html(report),
        tests=_tests_html(report),
        left_out="".join(f'<p class="notes">{escape(note)}</p>' for note in data.left_out),
        version=escape(version("fontes")),
        data=_json(data.values),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    # A lone surrogate, which JSON can bring into texts, cannot be written to a file.
    return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_part(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Script hash for the page's content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(values: object) -> str:
    """JSON for a script element, with "<" escaped so that it cannot end the element."""
    return json_text(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _lead(report: Report) -> str:
    parts = [f"{len(report.topics):,} topic{'s' * (len(report.topics) != 1)}", ", ".join(map(str, report.measures))]
    if report.baseline is not None:
        parts.append(f"tested against {report.baseline}")
    if report.comparisons:
        parts.append(str(report.testing))
    return " · ".join(parts)


def _means_html(report: Report) -> str:
    table = means_table(report)
    by_name = {str(measure): measure for measure in report.measures}
    intervals: dict[tuple[int, int], str] = {}
    for column, header in enumerate(table.header):
        measure = None if column in table.secondary else by_name.get(header)
        if measure is None or measure.summed:  # counts are summed, and intervals are of means
            continue
        for row, name in enumerate(report.systems):
            low, high = report.intervals[measure][name]
            if math.isfinite(low) and math.isfinite(high):
                intervals[row, column] = f"{low:.4f}–{high:.4f}"
    return _table_html(table, "means-table", intervals)


def _intervals_name(report: Report) -> str:
    is_bootstrap = first_evaluation(report).machine is None
    return f"{100 * (1 - report.testing.alpha):g}% {'bootstrap ' if is_bootstrap else ''}intervals"


def _tests_html(report: Report) -> str:
    if not report.comparisons:
        return ""
    table = tests_table(report, letters=False)
    names = list(dict.fromkeys(str(c.measure) for c in report.comparisons))
    choice = '<option value="">all</option>' + "".join(f"<option>{escape(name)}</option>" for name in names)
    note = (
        f"Differences are means of system minus against, with {_intervals_name(report)}. "
        "d_z and g are effect sizes; W/T/L counts topics won, tied and lost."
    )
    return (
        '<section id="tests">\n<h2>Tests</h2>\n'
        f'<p class="interaction"><label>Measure <select id="tested">{choice}</select></label></p>\n'
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Table of tests">'
        f'{_table_html(table, "tests-table", {})}</div>\n<p class="notes">{note}</p>\n</section>'
    )


def _systems_html(report: Report) -> str:
    lines = []
    for name, system in report.systems.items():
        facts = [system.description] if system.description and system.description != name else []
        facts.append(f"{system.run.rows:,} documents for {len(system.run):,} topics")
        if system.candidates is not None:
            facts.append(f"reranks {system.candidates.depth:,} candidates a topic, of recall {system.candidates.recall:.4f}")
        if system.seconds is not None:
            facts.append(f"{system.seconds:.2g} s a topic{', measured earlier' if system.cached else ''}")
        lines.append(f"<dt>{escape(name)}</dt><dd>{escape('; '.join(facts))}</dd>")
    return f"<dl>{''.join(lines)}</dl>"


def _table_html(table: ResultTable, element_id: str, intervals: dict[tuple[int, int], str]) -> str:
    """Return a sortable table; `intervals` are shown below the text of the cell in a row and column."""
    headers = []
    for column, header in enumerate(table.header):
        name = escape(header) or '<span aria-label="letter">#</span>'
        css_class = ' class="text"' if column < table.names else ""
        headers.append(f'<th scope="col" aria-sort="none"{css_class}><button type="button">{name}</button></th>')
    rows = []
    for row, cells in enumerate(table.rows):
        row_html = [_cell_html(cell, column, table, intervals.get((row, column), "")) for column, cell in enumerate(cells)]
        rows.append(f"<tr>{''.join(row_html)}</tr>")
    head, body = f"<thead><tr>{''.join(headers)}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    return f'<table id="{element_id}" class="sortable">{head}{body}</table>'


def _cell_html(cell: ResultCell, column: int, table: ResultTable, interval: str) -> str:
    classes = ["text" if column < table.names else "", "name" if 0 < column < table.names else ""]
    classes += ["beside" if column in table.secondary else "", "best" if cell.best else ""]
    text = escape(cell.text if column < table.names else cell.text.replace("-", "−"))
    text = f"<b>{text}</b>" if cell.best else text
    if "name" in classes:
        text = f"<span>{text}</span>"
    css_class = " ".join(filter(None, classes))
    attribute = f' class="{css_class}"' if css_class else ""
    small = f"<small>{escape(interval)}</small>" if interval else ""
    return f"<td{attribute}>{text}{cell.superscript}{small}</td>"


MAX_RANKED = 300_000  # documents in the rankings of all topics and systems of a page; about 2 MB
MAX_CHARACTERS = 3_000_000  # of the texts of documents, of topics, or of picked sentences in a page
MAX_TOPIC_CHARACTERS = 2_000  # of each topic
MAX_RELEVANT = 20  # relevant documents listed per topic
RECALLS = [i / 20 for i in range(21)]
MEASURES_AT_K: dict[str, Measure] = {"Recall": R, "Precision": P, "F1": SetF, "RR": RR, "nDCG": nDCG, "Success": Success}


@dataclass(frozen=True)
class PageData:
    """Contents of a page besides its tables.

    Args:
        values: The page's JSON:

            systems    [letter, name] of each system
            measures   [name, decimals] of each measure
            pair       the two systems shown first
            topics     [id, text] of each topic
            values     by measure, system and topic, to 6 decimals
            curves     recalls, precision by system; ks, at ([measure name, values by system] for each)
            depth      the number of documents of each ranking
            docs       document ids; all other entries refer to documents by their position here
            texts      [title, text] of each document, or 0; empty if all are unknown
            rankings   for each topic: lists (documents by system), grades ([document, grade] of the listed documents), relevant
                       ([document, grade, rank by system, 0 if not retrieved]) and count (the number of relevant documents);
                       where sentences were picked, picked (by system and document, [number, text] of each sentence)

        left_out: Sentences that say what the page omits.
    """

    values: dict[str, object]
    left_out: list[str]

    @classmethod
    def of(cls, report: Report, depth: int, snippet: int) -> PageData:
        """Return the data for a page with `depth` documents and `snippet` characters of each."""
        depth = check_whole("the depth of a page", depth)
        snippet = check_whole("the snippet of a page", snippet, 0)
        names = list(report.systems)
        ranks = {name: Ranks.of(system.run, report.qrels) for name, system in report.systems.items()}
        ranked = min(len(report.topics), MAX_RANKED // (depth * len(names)))
        docs: dict[str, int] = {}
        rankings = _rankings(report, ranks, depth, ranked, docs)
        pickers = [getattr(system.run.documents, "rationales", None) for system in report.systems.values()]
        picked = _add_picked(rankings, list(report.topics), list(docs), pickers)
        length = min(snippet, MAX_CHARACTERS // max(len(docs), 1))
        texts = _texts(report, list(docs), length)
        topic_length = min(MAX_TOPIC_CHARACTERS, MAX_CHARACTERS // len(report.topics))
        topics = [[topic.id, _cut(topic.text, topic_length)] for topic in report.topics.values()]
        left_out = []
        if ranked < len(report.topics):
            left_out.append(
                f"Only the first {ranked:,} of {len(report.topics):,} topics have their rankings in this page; with fewer "
                f"systems or a depth below {depth} there is room for more."
            )
        if texts and length < snippet:
            left_out.append(f"Documents' texts are cut after {length} characters, to keep the page small.")
        if picked < ranked:
            left_out.append(f"Only the first {picked:,} topics have the sentences that were picked of their documents.")
        if any(len(topic.text) > topic_length for topic in report.topics.values()):
            left_out.append(f"Topics' texts are cut after {topic_length:,} characters.")
        values = {
            "systems": [[row[0].text, name] for row, name in zip(means_table(report).rows, names, strict=True)],
            "measures": [[str(m), 0 if m.summed else 4] for m in report.measures],
            "pair": _pair(report, names),
            "topics": topics,
            "values": [_rounded(report.values[m].T) for m in report.measures],
            "curves": _curves(report, ranks),
            "depth": depth,
            "docs": list(docs),
            "texts": texts,
            "rankings": rankings,
        }
        return cls(values, left_out)


def _pair(report: Report, names: list[str]) -> list[int]:
    """Return the best system by the first measure and the baseline, or without a baseline the two best systems."""
    measure = report.measures[0]
    best = sorted(range(len(names)), key=lambda i: -report.mean(names[i], measure))
    if report.baseline is not None:
        against = names.index(report.baseline)
        return [next((i for i in best if i != against), against), against]
    return [best[0], best[min(1, len(best) - 1)]]


def _curves(report: Report, ranks: dict[str, Ranks]) -> dict[str, object]:
    deepest = max(int(np.diff(system.run.bounds).max(initial=1)) for system in report.systems.values())
    ks = [*(k for k in LOGARITHMIC_KS if k < deepest), deepest]
    return {
        "recalls": RECALLS,
        "precision": [_rounded(np.array([(IPrec @ x).values(r).mean() for x in RECALLS])) for r in ranks.values()],
        "ks": ks,
        "at": [
            [name, [_rounded(values_at(r, measure, ks).mean(axis=0)) for r in ranks.values()]]
            for name, measure in _at_k(report).items()
        ],
    }


def _at_k(report: Report) -> dict[str, Measure]:
    has_sets = any(len(members) > 1 for topic_id in report.qrels for members in report.qrels.groups(topic_id))
    return {**MEASURES_AT_K, "Complete": Complete} if has_sets else MEASURES_AT_K


def _rankings(
    report: Report, ranks: dict[str, Ranks], depth: int, topics: int, docs: dict[str, int]
) -> list[dict[str, object]]:
    """Return the rankings of the first topics, and add their documents to `docs`, which has the position of each id."""
    tops = [_top_ids(report, name, depth) for name in report.systems]
    by_qrels = np.stack([r.by_qrels for r in ranks.values()], axis=1)
    ranks_by_qrels = np.where(by_qrels == NOT_RETRIEVED, 0, by_qrels + 1)  # from 1; 0 if not retrieved
    rankings, start = [], 0
    for topic_id in list(report.topics)[:topics]:
        grades = report.qrels[topic_id]
        id_lists = [top.get(topic_id, []) for top in tops]
        judged = dict.fromkeys(doc_id for ids in id_lists for doc_id in ids if doc_id in grades)
        relevant = [(row, doc_id) for row, doc_id in enumerate(grades, start) if grades[doc_id] > 0]
        relevant.sort(key=lambda pair: (-grades[pair[1]], pair[1]))
        start += len(grades)
        rankings.append(
            {
                "lists": [[docs.setdefault(doc_id, len(docs)) for doc_id in ids] for ids in id_lists],
                "grades": [[docs[doc_id], grades[doc_id]] for doc_id in judged],
                "relevant": [
                    [docs.setdefault(doc_id, len(docs)), grades[doc_id], *ranks_by_qrels[row].tolist()]
                    for row, doc_id in relevant[:MAX_RELEVANT]
                ],
                "count": len(relevant),
            }
        )
    return rankings


def _add_picked(
    rankings: list[dict[str, Any]],
    topics: list[str],
    docs: list[str],
    pickers: list[Any],
) -> int:
    """Add picked sentences to the rankings; return the number of topics that fit."""
    if not any(pickers):
        return len(rankings)
    characters = 0
    for position, ranking in enumerate(rankings):
        by_system = []
        for picker, listed in zip(pickers, ranking["lists"], strict=True):
            by_document = {doc: picker(topics[position], docs[doc]) for doc in listed} if picker else {}
            by_system.append(
                {
                    doc: [[sentence.number, sentence.text] for sentence in sentences]
                    for doc, sentences in by_document.items()
                    if sentences
                }
            )
        characters += sum(len(text) for by_document in by_system for sentences in by_document.values() for _, text in sentences)
        if characters > MAX_CHARACTERS:
            return position
        ranking["picked"] = by_system
    return len(rankings)


def _top_ids(report: Report, name: str, depth: int) -> dict[str, list[str]]:
    """Return the ids of the first documents of each topic."""
    top = report.systems[name].run.top(depth)
    ids, bounds = top.ids.take(top.codes), top.bounds.tolist()
    return {topic_id: ids[a:b] for topic_id, a, b in zip(top, bounds, bounds[1:], strict=False)}


def _texts(report: Report, ids: list[str], length: int) -> list[object]:
    """Return [title, text] of each document, cut to `length` characters, or 0 for unknown ones; empty if all are unknown."""
    docs: dict[str, Doc] = {}
    sources: list[Documents] = []
    for system in report.systems.values():
        source = system.run.documents
        if source is None or length == 0 or any(source is other for other in sources):
            continue
        sources.append(source)
        docs.update((doc.id, doc) for doc in _read_docs(source, [doc_id for doc_id in ids if doc_id not in docs]))
    return [_title_and_text(docs[doc_id], length) if doc_id in docs else 0 for doc_id in ids] if docs else []


def _read_docs(source: Documents, ids: list[str]) -> Iterable[Doc]:
    """Return the documents that a source has; unknown ids are skipped."""
    try:
        return source.docs(ids)
    except InputError:
        docs: list[Doc] = []
        for doc_id in ids:
            with suppress(InputError):
                docs += source.docs([doc_id])
        return docs


def _title_and_text(doc: Doc, length: int) -> list[str]:
    title = _cut(doc.title, length)
    text = doc.text.removeprefix(doc.title) if doc.title else doc.text
    return [title, _cut(text, length - len(title)) if len(title) < length else ""]


def _cut(text: str, length: int) -> str:
    """Cut a text to `length` characters with an ellipsis, and fold its white space."""
    start = " ".join(text[: 4 * length].split())
    if len(start) <= length and 4 * length >= len(text):
        return start
    start = start[: max(length - 1, 0)]
    word = start.rfind(" ", len(start) - 20)
    return (start[:word] if word > 0 else start).rstrip() + "…"


def _rounded(values: Numbers) -> list[object]:
    """Round to 6 decimals, and write whole numbers without a point to save space."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [int(v) if v == int(v) else v for v in np.round(np.nan_to_num(values), 6).tolist()]
