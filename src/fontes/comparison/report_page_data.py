"""What the script of a report's page draws from: values, curves, and the beginnings of the rankings, bounded in size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Doc, Documents, InputError
from ..core.checks import check_whole
from ..measures.formulas import RR, IPrec, P, R, Success, nDCG
from ..measures.measure import Measure
from ..measures.ranks import FAR, Ranks
from ..measures.sets import Complete, SetF
from .curves import DEPTHS, against_k
from .report_text import means_table

if TYPE_CHECKING:
    from .report import Report

ROWS = 300_000  # ranked documents in a page, of all topics and systems; about 2 MB
TEXT = 3_000_000  # characters of documents' texts in a page
RELEVANT = 20  # relevant documents of a topic that are listed with their ranks
TOPIC = 2_000  # characters of a topic, and as many as TEXT in all
RECALLS = [i / 20 for i in range(21)]
AT_K: dict[str, Measure] = {"Recall": R, "Precision": P, "F1": SetF, "RR": RR, "nDCG": nDCG, "Success": Success}


@dataclass(frozen=True)
class PageData:
    """What a page holds besides its tables.

    Args:
        values: The values of the JSON in the page:

            systems    [letter, name] of each
            measures   [name, decimals] of each
            pair       the two systems that are shown first
            topics     [id, text] of each
            values     by measure, system and topic, to 6 decimals
            curves     recalls, precision by system; ks, at ([name of a measure, values by system] for each)
            depth      how many documents of a ranking are here
            docs       ids of documents; others refer to them by their place
            texts      [title, text] of each document, or 0; empty where nobody knows the documents
            rankings   of each topic: lists (documents by system), grades ([document, grade] of those in the lists), relevant
                       ([document, grade, rank by system, 0 where not retrieved]) and count (how many relevant there are);
                       where sentences were picked of documents, picked (by system, by document, [number, text] of each)

        left_out: Sentences that say what is not in the page.
    """

    values: dict[str, Any]
    left_out: list[str]

    @classmethod
    def of(cls, report: Report, depth: int, snippet: int) -> PageData:
        """The data for a page with the best `depth` documents and `snippet` characters of each."""
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
    """The best system by the first measure and the baseline; without a baseline, the best and the next."""
    measure = report.measures[0]
    best = sorted(range(len(names)), key=lambda i: -report.mean(names[i], measure))
    if report.baseline is not None:
        against = names.index(report.baseline)
        return [next((i for i in best if i != against), against), against]
    return [best[0], best[min(1, len(best) - 1)]]


def _curves(report: Report, ranks: dict[str, Ranks]) -> dict[str, Any]:
    """Precision over recall, and measures over the number of documents, of each system."""
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
    """The measures that are shown against k; whether evidence is complete only where there are sets of several documents."""
    sets = any(len(members) > 1 for topic_id in report.qrels for members in report.qrels.groups(topic_id))
    return {**AT_K, "Complete": Complete} if sets else AT_K


def _rankings(report: Report, ranks: dict[str, Ranks], depth: int, shown: int, docs: dict[str, int]) -> list[dict[str, Any]]:
    """The rankings of the first `shown` topics. Documents are added to `docs`."""
    lists = [_tops(report, name, depth) for name in report.systems]
    by_qrels = np.stack([r.by_qrels for r in ranks.values()], axis=1)
    places = np.where(by_qrels == FAR, 0, by_qrels + 1)
    rankings, start = [], 0
    for topic_id in list(report.topics)[:shown]:
        grades = report.qrels[topic_id]
        own = [top.get(topic_id, []) for top in lists]
        judged = dict.fromkeys(doc_id for ids in own for doc_id in ids if doc_id in grades)
        relevant = [(row, doc_id) for row, doc_id in enumerate(grades, start) if grades[doc_id] > 0]
        relevant.sort(key=lambda pair: (-grades[pair[1]], pair[1]))
        start += len(grades)
        rankings.append(
            {
                "lists": [[docs.setdefault(doc_id, len(docs)) for doc_id in ids] for ids in own],
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
    """Adds to the rankings the sentences that were picked of their documents; returns of how many topics there was room."""
    if not any(pickers):
        return len(rankings)
    characters = 0
    for number, ranking in enumerate(rankings):
        of_systems = []
        for picker, listed in zip(pickers, ranking["lists"], strict=True):
            of_documents = {doc: picker(topics[number], docs[doc]) for doc in listed} if picker else {}
            of_systems.append({doc: [[one.number, one.text] for one in some] for doc, some in of_documents.items() if some})
        characters += sum(len(text) for of_documents in of_systems for some in of_documents.values() for _, text in some)
        if characters > TEXT:
            return number
        ranking["picked"] = of_systems
    return len(rankings)


def _tops(report: Report, name: str, depth: int) -> dict[str, list[str]]:
    """Topic id to the ids of its best documents."""
    top = report.systems[name].run.top(depth)
    ids, bounds = top.ids.take(top.codes), top.bounds.tolist()
    return {topic_id: ids[a:b] for topic_id, a, b in zip(top, bounds, bounds[1:], strict=False)}


def _texts(report: Report, ids: list[str], length: int) -> list[Any]:
    """[title, text] of each document, cut to `length` characters together; 0 where unknown, and nothing where all are."""
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
    """The documents that the source has. Runs may name others, such as those that were deleted since."""
    try:
        return source.docs(ids)
    except InputError:
        return list(_one_by_one(source, ids))


def _one_by_one(source: Documents, ids: list[str]) -> Iterator[Doc]:
    """The documents that the source has, each looked up alone."""
    for doc_id in ids:
        try:
            yield from source.docs([doc_id])
        except InputError:
            continue


def _title_and_text(doc: Doc, length: int) -> list[str]:
    """Title and text of a document, cut to `length` characters together."""
    title = _cut(doc.title, length)
    text = doc.text.removeprefix(doc.title) if doc.title else doc.text
    return [title, _cut(text, length - len(title)) if len(title) < length else ""]


def _cut(text: str, length: int) -> str:
    """The beginning of a text, at most `length` characters, white space folded, with an ellipsis where it goes on."""
    start = " ".join(text[: 4 * length].split())
    if len(start) <= length and 4 * length >= len(text):
        return start
    start = start[: max(length - 1, 0)]
    word = start.rfind(" ", len(start) - 20)
    return (start[:word] if word > 0 else start).rstrip() + "…"


def _numbers(values: Any) -> list[Any]:
    """Numbers to 6 decimals, whole ones without a point, which makes the page smaller."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [int(v) if v == int(v) else v for v in np.round(np.nan_to_num(values), 6).tolist()]
