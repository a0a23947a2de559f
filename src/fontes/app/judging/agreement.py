"""Where judges agree, where they differ, and the judgments that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from ...comparison.statistics import kappa
from ...core.qrels import Qrels
from .store import GRADES, RESERVED, Judgment, Store

AGREED, SETTLED = RESERVED


def by_document(judgments: Iterable[Judgment]) -> dict[tuple[str, str], dict[str, int]]:
    """The grade of each judge, by topic and document."""
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for judgment in judgments:
        grades.setdefault((judgment.topic, judgment.document), {})[judgment.judge] = judgment.grade
    return grades


def agreement(store: Store) -> list[dict[str, Any]]:
    """How far each two judges agree on what both have graded, as JSON values.

    `table` has a row for each grade of the first judge and a column for each of the second. `kappa` is Cohen's, over the four
    grades; `linear` and `quadratic` are weighted; `relevant` is of 0 against 1 to 3. NaN where that cannot be told.
    """
    grades = by_document(store.judgments()).values()
    pairs = []
    for pair in combinations(store.judges(), 2):
        first, second = pair
        table = [[0 for _ in GRADES] for _ in GRADES]
        for of_document in grades:
            if first in of_document and second in of_document:
                table[of_document[first]][of_document[second]] += 1
        documents, same = sum(map(sum, table)), sum(table[grade][grade] for grade in GRADES)
        if documents:
            none, only_first, only_second = table[0][0], sum(row[0] for row in table[1:]), sum(table[0][1:])
            relevant = [[none, only_second], [only_first, documents - none - only_first - only_second]]
            figures = {name: kappa(table, name) for name in ("", "linear", "quadratic")}
            pairs.append(
                {
                    "judges": list(pair),
                    "documents": documents,
                    "same": same,
                    "kappa": figures[""],
                    "linear": figures["linear"],
                    "quadratic": figures["quadratic"],
                    "relevant": kappa(relevant),
                    "table": table,
                }
            )
    return pairs


def disagreements(store: Store, topics: Iterable[str]) -> list[dict[str, Any]]:
    """The documents that judges grade differently, as JSON values, those that are not settled first.

    Args:
        store: The judgments.
        topics: The topics' ids.
    """
    settled, notes = store.settled(), store.notes()
    differing = []
    for topic in topics:
        for (_, document), grades in by_document(store.judgments(topic=topic)).items():
            if len(set(grades.values())) > 1:
                grade, judge = settled.get((topic, document), (None, None))
                of_judges = [
                    {"judge": name, "grade": own, "note": notes.get((name, topic, document), "")}
                    for name, own in sorted(grades.items())
                ]
                differing.append({"topic": topic, "document": document, "grades": of_judges, "settled": grade, "by": judge})
    return sorted(differing, key=lambda one: one["settled"] is not None)


def different_evidence(store: Store, topics: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """The groups of evidence of the topics for which judges name different ones, as JSON values: those that all name first.

    Args:
        store: The judgments.
        topics: The topics' ids, each with the judges to compare.
    """
    differing = []
    for topic, judges in topics.items():
        relevant: dict[str, dict[str, int]] = {}
        for judgment in store.judgments(topic=topic):
            relevant.setdefault(judgment.judge, {})[judgment.document] = judgment.grade
        groups = {judge: _groups(store, [judge], topic, relevant.get(judge, {})) for judge in sorted(judges)}
        every = {group for own in groups.values() for group in own}
        alike = {group for group in every if all(group in own for own in groups.values())}
        if every != alike:
            naming = {group: [judge for judge, own in groups.items() if group in own] for group in every}
            order = sorted(every, key=lambda group: (group not in alike, sorted(group)))
            of_judges = [
                {
                    "judge": judge,
                    "groups": [
                        {"documents": sorted(group), "others": [name for name in naming[group] if name != judge]}
                        for group in order
                        if judge in naming[group]
                    ],
                }
                for judge in groups
            ]
            differing.append({"topic": topic, "alike": len(alike), "groups": len(every), "judges": of_judges})
    return differing


def judgments_of(store: Store, rule: str) -> Qrels:
    """Judgments by a rule.

    Args:
        store: The judgments.
        rule: A judge's name, for that judge's grades and evidence. "agreed": the documents that two judges or more have graded,
            all of them alike. "settled": the grade that was settled; where none was, that of all who graded the document,
            be it one, if they gave the same; documents whose difference is not settled are left out. Evidence of these two
            are the groups that any judge named, of documents that are in them with a grade above 0.
    """
    own = rule not in RESERVED
    settled = store.settled() if rule == SETTLED else {}
    grades: dict[str, dict[str, int]] = {topic: {} for topic in store.topics()}
    for (topic, document), of_judges in by_document(store.judgments(rule if own else None)).items():
        if (topic, document) in settled:
            grades[topic][document] = settled[topic, document][0]
        elif len(set(of_judges.values())) == 1 and len(of_judges) >= 1 + (rule == AGREED):
            grades[topic][document] = next(iter(of_judges.values()))
    return Qrels(
        (topic, group, document, grade)
        for topic, of_topic in grades.items()
        for group, document, grade in _rows(of_topic, _groups(store, [rule] if own else store.judges(), topic, of_topic))
    )


def _groups(store: Store, judges: Iterable[str], topic: str, grades: dict[str, int]) -> list[frozenset[str]]:
    """The groups of a topic that judges named, each once, of documents whose grades are above 0."""
    named = dict.fromkeys(frozenset(group) for judge in judges for group in store.evidence(judge, topic))
    return [group for group in named if all(grades.get(document, 0) > 0 for document in group)]


def _rows(grades: dict[str, int], groups: list[frozenset[str]]) -> Iterable[tuple[str, str, int]]:
    """(group, document, grade) of a topic."""
    for document, grade in grades.items():
        names = [f"g{number}" for number, group in enumerate(groups, 1) if document in group]
        for name in names or ["0"]:
            yield name, document, grade
