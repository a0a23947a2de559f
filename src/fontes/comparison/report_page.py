"""HTML page of a report: tables rendered here, the rest by the page's script from embedded data."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Doc, Documents, InputError, ParameterError, Run
from ..core.checks import check_whole
from ..measures.evaluation import check_agreement, judgments_of
from ..measures.formulas import RR, Complete, IPrec, P, R, SetF, Success, nDCG
from ..measures.measure import Measure
from ..measures.names import COMMA, parse_all
from ..measures.ranks import FAR, Ranks
from ..plots.plot import Plot, drawn, look, plain_ticks
from . import statistics
from .report_text import ResultCell, ResultTable, means_table, notes, superscript, tests_table
from .statistics import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .report import Report


def html(report: Report, depth: int = 10, snippet: int = 200, reasons: Mapping[str, list[str]] | None = None) -> str:
    """Return the page with `depth` documents of each ranking and `snippet` characters of each; see `Report.to_html`.

    Args:
        reasons: Sentences shown above the rankings, by topic; the page opens the first of these topics.
    """
    from importlib.metadata import version

    data = PageData.of(report, depth, snippet)
    if reasons:
        places = {topic_id: place for place, topic_id in enumerate(report.topics)}
        data.values["reasons"] = {places[topic_id]: lines for topic_id, lines in reasons.items()}
        data.values["opened"] = places[next(iter(reasons))]
    style, script = _part("page.css"), _part("page.js")
    links = {"means": "Means", "tests": "Tests", "curves": "Curves", "topics": "Topic by topic", "rankings": "Rankings"}
    if not report.comparisons:
        del links["tests"]
    names = " and ".join(report.systems)
    short = len(report.systems) < 3 and len(names) < 60
    page = Template(_part("page.html")).substitute(
        title=escape(names if short else f"Comparison of {len(report.systems)} systems"),
        lead=escape(_lead(report)),
        links="".join(f'<a href="#{place}">{name}</a>' for place, name in links.items()),
        means=_means(report),
        notes="".join(
            f"<li>{escape(note)}</li>" for note in [f"small figures: {_covered(report)} of the means", *notes(report)]
        ),
        systems=_systems(report),
        tests=_tests(report),
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


def _part(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Script hash for the page's content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(values: object) -> str:
    """JSON for a script element, with "<" escaped so that it cannot end the element."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _lead(report: Report) -> str:
    parts = [f"{len(report.topics):,} topic{'s' * (len(report.topics) != 1)}", ", ".join(map(str, report.measures))]
    if report.baseline is not None:
        parts.append(f"tested against {report.baseline}")
    if report.comparisons:
        parts.append(str(report.testing))
    return " · ".join(parts)


def _means(report: Report) -> str:
    table = means_table(report)
    by_name = {str(measure): measure for measure in report.measures}
    below: dict[tuple[int, int], str] = {}
    for column, header in enumerate(table.header):
        measure = None if column in table.beside else by_name.get(header)
        if measure is None or measure.summed:  # counts are summed, and intervals are of means
            continue
        for row, name in enumerate(report.systems):
            low, high = report.intervals[measure][name]
            if math.isfinite(low) and math.isfinite(high):
                below[row, column] = f"{low:.4f}–{high:.4f}"
    return _table(table, "means-table", below)


def _covered(report: Report) -> str:
    bootstrap = next(iter(report.systems.values())).evaluation.machine is None
    return f"{100 * (1 - report.testing.alpha):g}% {'bootstrap ' if bootstrap else ''}intervals"


def _tests(report: Report) -> str:
    if not report.comparisons:
        return ""
    table = tests_table(report, letters=False)
    names = list(dict.fromkeys(str(c.measure) for c in report.comparisons))
    choice = '<option value="">all</option>' + "".join(f"<option>{escape(name)}</option>" for name in names)
    note = (
        f"Differences are means of system minus against, with {_covered(report)}. "
        "d_z and g are effect sizes; W/T/L counts topics won, tied and lost."
    )
    return (
        '<section id="tests">\n<h2>Tests</h2>\n'
        f'<p class="interaction"><label>Measure <select id="tested">{choice}</select></label></p>\n'
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Table of tests">'
        f'{_table(table, "tests-table", {})}</div>\n<p class="notes">{note}</p>\n</section>'
    )


def _systems(report: Report) -> str:
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


def _table(table: ResultTable, place: str, below: dict[tuple[int, int], str]) -> str:
    heads = []
    for column, header in enumerate(table.header):
        text = column < table.names
        name = escape(header) or '<span aria-label="letter">#</span>'
        kind = ' class="text"' if text else ""
        heads.append(f'<th scope="col" aria-sort="none"{kind}><button type="button">{name}</button></th>')
    rows = []
    for row, cells in enumerate(table.rows):
        inside = [_cell(cell, column, table, below.get((row, column), "")) for column, cell in enumerate(cells)]
        rows.append(f"<tr>{''.join(inside)}</tr>")
    return (
        f'<table id="{place}" class="sortable"><thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _cell(cell: ResultCell, column: int, table: ResultTable, below: str) -> str:
    marks = ["text" if column < table.names else "", "name" if 0 < column < table.names else ""]
    marks += ["beside" if column in table.beside else "", "best" if cell.best else ""]
    kind = " ".join(filter(None, marks))
    text = escape(cell.text if column < table.names else cell.text.replace("-", "−"))
    text = f"<b>{text}</b>" if cell.best else text
    if "name" in marks:
        text = f"<span>{text}</span>"
    raised = superscript(cell)
    small = f"<small>{escape(below)}</small>" if below else ""
    return f'<td class="{kind}">{text}{raised}{small}</td>' if kind else f"<td>{text}{raised}{small}</td>"


ROWS = 300_000  # ranked documents in a page over all topics and systems; about 2 MB
TEXT = 3_000_000  # characters of documents' texts in a page
RELEVANT = 20  # relevant documents listed per topic
TOPIC = 2_000  # characters per topic, and at most TEXT in all
RECALLS = [i / 20 for i in range(21)]
AT_K: dict[str, Measure] = {"Recall": R, "Precision": P, "F1": SetF, "RR": RR, "nDCG": nDCG, "Success": Success}


@dataclass(frozen=True)
class PageData:
    """Contents of a page besides its tables.

    Args:
        values: The page's JSON:

            systems    [letter, name] of each
            measures   [name, decimals] of each
            pair       the two systems shown first
            topics     [id, text] of each
            values     by measure, system and topic, to 6 decimals
            curves     recalls, precision by system; ks, at ([measure name, values by system] for each)
            depth      the number of documents of each ranking
            docs       document ids; others refer to them by position
            texts      [title, text] of each document, or 0; empty if all are unknown
            rankings   of each topic: lists (documents by system), grades ([document, grade] of those in the lists), relevant
                       ([document, grade, rank by system, 0 if not retrieved]) and count (the number of relevant documents);
                       where sentences were picked, picked (by system, by document, [number, text] of each)

        left_out: Sentences that say what the page omits.
    """

    values: dict[str, Any]
    left_out: list[str]

    @classmethod
    def of(cls, report: Report, depth: int, snippet: int) -> PageData:
        """Return the data for a page with `depth` documents and `snippet` characters of each."""
        depth = check_whole("the depth of a page", depth)
        snippet = check_whole("the snippet of a page", snippet, 0)
        names = list(report.systems)
        ranks = {name: Ranks.of(system.run, report.qrels) for name, system in report.systems.items()}
        shown = min(len(report.topics), ROWS // (depth * len(names)))
        docs: dict[str, int] = {}
        rankings = _rankings(report, ranks, depth, shown, docs)
        pickers = [getattr(system.run.documents, "rationales", None) for system in report.systems.values()]
        picked = _add_picked(rankings, list(report.topics), list(docs), pickers)
        length = min(snippet, TEXT // max(len(docs), 1))
        texts = _texts(report, list(docs), length)
        topic_length = min(TOPIC, TEXT // len(report.topics))
        topics = [[topic.id, _cut(topic.text, topic_length)] for topic in report.topics.values()]
        left_out = []
        if shown < len(report.topics):
            left_out.append(
                f"Only the first {shown:,} of {len(report.topics):,} topics have their rankings in this page; with fewer "
                f"systems or a depth below {depth} there is room for more."
            )
        if texts and length < snippet:
            left_out.append(f"Documents' texts are cut after {length} characters, to keep the page small.")
        if picked < shown:
            left_out.append(f"Only the first {picked:,} topics have the sentences that were picked of their documents.")
        if any(len(topic.text) > topic_length for topic in report.topics.values()):
            left_out.append(f"Topics' texts are cut after {topic_length:,} characters.")
        values = {
            "systems": [[row[0].text, name] for row, name in zip(means_table(report).rows, names, strict=True)],
            "measures": [[str(m), 0 if m.summed else 4] for m in report.measures],
            "pair": _pair(report, names),
            "topics": topics,
            "values": [_numbers(report.values[m].T) for m in report.measures],
            "curves": _curves(report, ranks),
            "depth": depth,
            "docs": list(docs),
            "texts": texts,
            "rankings": rankings,
        }
        return cls(values, left_out)


def _pair(report: Report, names: list[str]) -> list[int]:
    """Best system by the first measure and the baseline, or without one the two best."""
    measure = report.measures[0]
    best = sorted(range(len(names)), key=lambda i: -report.mean(names[i], measure))
    if report.baseline is not None:
        against = names.index(report.baseline)
        return [next((i for i in best if i != against), against), against]
    return [best[0], best[min(1, len(best) - 1)]]


def _curves(report: Report, ranks: dict[str, Ranks]) -> dict[str, Any]:
    deepest = max(int(np.diff(system.run.bounds).max(initial=1)) for system in report.systems.values())
    ks = [*(k for k in DEPTHS if k < deepest), deepest]
    return {
        "recalls": RECALLS,
        "precision": [_numbers(np.array([(IPrec @ x).values(r).mean() for x in RECALLS])) for r in ranks.values()],
        "ks": ks,
        "at": [
            [name, [_numbers(against_k(r, measure, ks).mean(axis=0)) for r in ranks.values()]]
            for name, measure in _at_k(report).items()
        ],
    }


def _at_k(report: Report) -> dict[str, Measure]:
    sets = any(len(members) > 1 for topic_id in report.qrels for members in report.qrels.groups(topic_id))
    return {**AT_K, "Complete": Complete} if sets else AT_K


def _rankings(report: Report, ranks: dict[str, Ranks], depth: int, shown: int, docs: dict[str, int]) -> list[dict[str, Any]]:
    lists = [_tops(report, name, depth) for name in report.systems]
    by_qrels = np.stack([r.by_qrels for r in ranks.values()], axis=1)
    places = np.where(by_qrels == FAR, 0, by_qrels + 1)
    rankings, start = [], 0
    for topic_id in list(report.topics)[:shown]:
        grades = report.qrels[topic_id]
        id_lists = [top.get(topic_id, []) for top in lists]
        judged = dict.fromkeys(doc_id for ids in id_lists for doc_id in ids if doc_id in grades)
        relevant = [(row, doc_id) for row, doc_id in enumerate(grades, start) if grades[doc_id] > 0]
        relevant.sort(key=lambda pair: (-grades[pair[1]], pair[1]))
        start += len(grades)
        rankings.append(
            {
                "lists": [[docs.setdefault(doc_id, len(docs)) for doc_id in ids] for ids in id_lists],
                "grades": [[docs[doc_id], grades[doc_id]] for doc_id in judged],
                "relevant": [
                    [docs.setdefault(doc_id, len(docs)), grades[doc_id], *places[row].tolist()]
                    for row, doc_id in relevant[:RELEVANT]
                ],
                "count": len(relevant),
            }
        )
    return rankings


def _add_picked(rankings: list[dict[str, Any]], topics: list[str], docs: list[str], pickers: list[Any]) -> int:
    """Add picked sentences to the rankings; return the number of topics that fit."""
    if not any(pickers):
        return len(rankings)
    characters = 0
    for number, ranking in enumerate(rankings):
        of_systems = []
        for picker, listed in zip(pickers, ranking["lists"], strict=True):
            of_documents = {doc: picker(topics[number], docs[doc]) for doc in listed} if picker else {}
            of_systems.append(
                {
                    doc: [[sentence.number, sentence.text] for sentence in sentences]
                    for doc, sentences in of_documents.items()
                    if sentences
                }
            )
        characters += sum(
            len(text) for of_documents in of_systems for sentences in of_documents.values() for _, text in sentences
        )
        if characters > TEXT:
            return number
        ranking["picked"] = of_systems
    return len(rankings)


def _tops(report: Report, name: str, depth: int) -> dict[str, list[str]]:
    top = report.systems[name].run.top(depth)
    ids, bounds = top.ids.take(top.codes), top.bounds.tolist()
    return {topic_id: ids[a:b] for topic_id, a, b in zip(top, bounds, bounds[1:], strict=False)}


def _texts(report: Report, ids: list[str], length: int) -> list[Any]:
    """[title, text] of each document, cut to `length` characters; 0 for unknown ones; empty if all are unknown."""
    docs: dict[str, Doc] = {}
    sources: list[Documents] = []
    for system in report.systems.values():
        source = system.run.documents
        if source is None or length == 0 or any(source is other for other in sources):
            continue
        sources.append(source)
        docs.update((doc.id, doc) for doc in _known(source, [doc_id for doc_id in ids if doc_id not in docs]))
    return [_title_and_text(docs[doc_id], length) if doc_id in docs else 0 for doc_id in ids] if docs else []


def _known(source: Documents, ids: list[str]) -> Iterable[Doc]:
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


def _numbers(values: Any) -> list[Any]:
    """Round to 6 decimals, and write whole numbers without a point to save space."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [int(v) if v == int(v) else v for v in np.round(np.nan_to_num(values), 6).tolist()]


DEFAULT = ("P", "R", "SetF", "RR")
ALL = 20  # greatest k with every value drawn
DEPTHS = sorted({k * int(power) for power in 10 ** np.arange(6) for k in (1, 2, 3, 4, 5, 6, 7, 8, 9)} | {15, 150, 1500})
RESAMPLES = 2_000
PANEL = 2.5  # height of a row of panels in inches
NAMES = {"P": "precision", "R": "recall", "SetF": "F1", "RR": "reciprocal rank", "Complete": "one evidence set is complete"}


def against_k(ranks: Ranks, measure: Measure, ks: Iterable[int]) -> Floats:
    """Return the values of a measure at each k, float64, (topics, ks)."""
    return np.stack([np.asarray((measure @ k).score(ranks), dtype=np.float64) for k in ks], axis=1)


def plot_measures(
    runs: Mapping[str, object],
    qrels: object,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    k: int = 20,
    bands: bool = True,
    seed: int = 0,
) -> Plot:
    """Plot measures of runs against k over all judged topics, one panel per measure and one line per run.

    Args:
        runs: By name of the system, anything that `Run.of` accepts.
        qrels: Anything that `Qrels.of` accepts.
        measures: As for `evaluate`, without cutoffs: P, R, SetF (F1), RR, nDCG, Complete, …
        k: The greatest k. Up to 20 each k is drawn; beyond, the axis is logarithmic.
        bands: Whether to draw 95% bootstrap intervals (BCa, 2,000 samples of the topics).
        seed: Seed of the bootstrap.

    Raises:
        InputError: A run cannot be read, or does not belong to the judgments.
        ParameterError: There is no run, a measure is unknown, has a cutoff or takes none, or k is below 2.
        MissingExtraError: matplotlib is not installed.
    """
    chosen = _without_cutoff(measures)
    if check_whole("k", k) < 2:
        raise ParameterError("a curve needs k from 1 to 2 or more, not to 1")
    if not runs:
        raise ParameterError("there is no run to plot; give runs in a mapping from name to run")
    judgments = judgments_of(qrels)
    ranks = {}
    for name, value in runs.items():
        run = Run.of(value)
        check_agreement(run, judgments, f"the run '{name}'")
        ranks[name] = Ranks.of(run, judgments)
    ks = list(range(1, k + 1)) if k <= ALL else [*(d for d in DEPTHS if d < k), k]
    values = {measure: {name: against_k(of_run, measure, ks) for name, of_run in ranks.items()} for measure in chosen}

    def draw(figure: Figure) -> str:
        rows = -(-len(chosen) // 2)
        panels = figure.subplots(rows, min(2, len(chosen)), squeeze=False).ravel()
        for panel, measure in zip(panels, chosen, strict=False):
            _draw(panel, measure, ks, values[measure], seed if bands else None)
        for panel in panels[len(chosen) :]:
            panel.set_visible(False)
        if len(ranks) > 1:
            lines, names = panels[0].get_legend_handles_labels()
            figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
        around = ", with 95% bootstrap intervals of the mean" if bands else ""
        names = ", ".join(map(str, chosen))
        return f"{names} of {', '.join(ranks)} against k from 1 to {k}, means over {len(judgments):,} judged topics{around}"

    return drawn(draw, height=PANEL * -(-len(chosen) // 2) + (0.4 if len(ranks) > 1 else 0))


def _draw(panel: Any, measure: Measure, ks: list[int], values: Mapping[str, Floats], seed: int | None) -> None:
    for number, (name, of_run) in enumerate(values.items()):
        style = look(number)
        panel.plot(ks, of_run.mean(axis=0), label=name, **style)
        if seed is not None and len(of_run) > 1:
            low, high = statistics.interval(of_run, statistics.resampled(of_run, RESAMPLES, seed))
            panel.fill_between(ks, low, high, color=style["color"], alpha=0.12, linewidth=0)
    panel.set_title(f"{measure}@k" + (f": {NAMES[str(measure)]}" if str(measure) in NAMES else ""), loc="left")
    panel.set(xlabel="k", xlim=(ks[0], ks[-1]))
    panel.set_ylim(bottom=0)
    if ks[-1] > ALL:
        panel.set_xscale("log")
        plain_ticks(panel.xaxis)
    else:
        panel.set_xticks([k for k in (1, 5, 10, 15, 20) if k <= ks[-1]] if ks[-1] > 5 else ks)


def _without_cutoff(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    each = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    texts = [name for one in each for name in (COMMA.split(one) if isinstance(one, str) else [str(one)]) if name.strip()]
    for text in texts:
        if "@" in text:
            raise ParameterError(f"the measure is drawn at every k; write {text.partition('@')[0].strip()} for {text.strip()}")
    chosen = parse_all(f"{text}@1" for text in texts)
    for measure in chosen:
        if not isinstance(measure.cutoff, int):
            raise ParameterError(f"{measure.name} is measured at a recall, not at k; its curve is in the page of a comparison")
    return [replace(measure, cutoff=None) for measure in chosen]
