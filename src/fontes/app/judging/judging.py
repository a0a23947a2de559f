"""Pools of documents to judge, views of the judgments (progress, next document, agreement, files), and a model as a judge."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from ...comparison.statistics import kappa
from ...core.errors import InputError, ParameterError
from ...core.run import Run
from ...core.values import Qrels, Topic
from ...core.work import Progress, reporter, silent
from ...formats.folder import QRELS, QUERIES
from ...formats.format import format_named
from ...index import Index
from ...llm.judging import LlmJudge
from ...storage.files import write
from ..server.answers import RefusedError
from ..server.searching import matches_in, rankings_of
from ..server.served import ServedState
from .store import AGREED, GRADES, RESERVED, SETTLED, Judgment, JudgmentStore

ALL_JUDGMENTS = "judgments.jsonl"
BATCH = 32  # topics that are searched, and whose pools are stored, together
MACHINE = "llm "  # prefix of the names of judges that are models
ALLOWED = re.compile(r"[^\w .@-]")
MAX_NAME = 40  # characters of a judge's name


def by_document(judgments: Iterable[Judgment]) -> dict[tuple[str, str], dict[str, int]]:
    """Grades by judge, for each topic and document."""
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for judgment in judgments:
        grades.setdefault((judgment.topic, judgment.document), {})[judgment.judge] = judgment.grade
    return grades


def agreement(store: JudgmentStore) -> list[dict[str, object]]:
    """Agreement of each pair of judges on the documents that both graded, as JSON values.

    Rows of `table` are grades of the first judge, columns are grades of the second. `kappa` is Cohen's, over four grades;
    `linear` and `quadratic` are weighted kappas; `relevant` is the kappa of grade 0 against grades 1 to 3. Undefined kappas
    are NaN. `topics` has the numbers of documents and of equal grades, by topic.
    """
    grades = by_document(store.judgments())
    pairs = []
    for first, second in combinations(store.judges(), 2):
        table = [[0 for _ in GRADES] for _ in GRADES]
        topics: dict[str, list[int]] = {}
        for (topic, _), by_judge in grades.items():
            if first in by_judge and second in by_judge:
                table[by_judge[first]][by_judge[second]] += 1
                counts = topics.setdefault(topic, [0, 0])
                counts[0] += 1
                counts[1] += by_judge[first] == by_judge[second]
        documents, same = sum(map(sum, table)), sum(table[grade][grade] for grade in GRADES)
        if documents:
            neither, only_first, only_second = table[0][0], sum(row[0] for row in table[1:]), sum(table[0][1:])
            relevant = [[neither, only_second], [only_first, documents - neither - only_first - only_second]]
            weighted = {name: kappa(table, name) for name in ("linear", "quadratic")}
            values = {"judges": [first, second], "documents": documents, "same": same, "kappa": kappa(table, ""), **weighted}
            pairs.append({**values, "relevant": kappa(relevant), "table": table, "topics": topics})
    return pairs


def disagreements(store: JudgmentStore, topics: Iterable[str]) -> list[dict[str, Any]]:
    """Documents of these topics with different grades, as JSON values, unsettled ones first."""
    settled, notes = store.settled(), store.notes()
    differing: list[dict[str, object]] = []
    for topic in topics:
        for (_, document), grades in by_document(store.judgments(topic=topic)).items():
            if len(set(grades.values())) > 1:
                grade, settler = settled.get((topic, document), (None, None))
                rows = [
                    {"judge": name, "grade": judge_grade, "note": notes.get((name, topic, document), "")}
                    for name, judge_grade in sorted(grades.items())
                ]
                differing.append({"topic": topic, "document": document, "grades": rows, "settled": grade, "by": settler})
    return sorted(differing, key=lambda difference: difference["settled"] is not None)


def different_evidence(store: JudgmentStore, topics: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """Groups of evidence on which the judges of a topic differ, as JSON values, groups that all judges name first.

    Args:
        store: The judgments.
        topics: Judges to compare, by topic id.
    """
    differing = []
    for topic, judges in topics.items():
        relevant: dict[str, dict[str, int]] = {}
        for judgment in store.judgments(topic=topic):
            relevant.setdefault(judgment.judge, {})[judgment.document] = judgment.grade
        groups = {judge: _evidence_groups(store, [judge], topic, relevant.get(judge, {})) for judge in sorted(judges)}
        all_groups = {group for judge_groups in groups.values() for group in judge_groups}
        shared_groups = {group for group in all_groups if all(group in judge_groups for judge_groups in groups.values())}
        if all_groups != shared_groups:
            naming = {group: [judge for judge, judge_groups in groups.items() if group in judge_groups] for group in all_groups}
            order = sorted(all_groups, key=lambda group: (group not in shared_groups, sorted(group)))
            rows = [
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
            differing.append({"topic": topic, "alike": len(shared_groups), "groups": len(all_groups), "judges": rows})
    return differing


def judgments_of(store: JudgmentStore, rule: str, without: str | None = None) -> Qrels:
    """Return judgments by a rule.

    Args:
        store: The judgments.
        rule: The name of a judge: that judge's grades and evidence. "agreed": documents that at least two judges graded, all
            alike. "settled": the settled grade, or else the grade on which all judges of the document agree, even if there is
            only one; open disagreements are left out. The last two include the evidence of all judges, for documents with a
            grade above 0.
        without: Name of a judge who does not count.
    """
    is_judge = rule not in RESERVED
    settled = store.settled() if rule == SETTLED else {}
    grades: dict[str, dict[str, int]] = {topic: {} for topic in store.topics()}
    judges = [rule] if is_judge else [name for name in store.judges() if name != without]
    judgments = (judgment for judgment in store.judgments(rule if is_judge else None) if judgment.judge != without)
    for (topic, document), by_judge in by_document(judgments).items():
        if (topic, document) in settled:
            grades[topic][document] = settled[topic, document][0]
        elif len(set(by_judge.values())) == 1 and len(by_judge) >= 1 + (rule == AGREED):
            grades[topic][document] = next(iter(by_judge.values()))
    rows: list[tuple[str, str, str, int]] = []
    for topic, topic_grades in grades.items():
        groups = _evidence_groups(store, judges, topic, topic_grades)
        rows += [(topic, *row) for row in _group_rows(topic_grades, groups)]
    return Qrels(rows)


def judged_by_people(path: Path, machine: str) -> tuple[Qrels, Qrels]:
    """Return the judgments of people, and the labels of a machine.

    Args:
        path: File of judgments of `fontes judge`, for the settled grades of topics whose whole pools people judged; or a file
            of judgments in any format.
        machine: Name of a judge in the file of `fontes judge`, or a file of judgments.

    Raises:
        InputError: A file cannot be read.
    """
    if not path.is_file() or not path.read_bytes()[:16].startswith(b"SQLite format 3"):
        return Qrels.of(str(path)), Qrels.of(machine)
    with JudgmentStore(path, reading=True) as store:
        machine_judge = machine if machine in store.judges() else None
        judged = {(judgment.topic, judgment.document) for judgment in store.judgments() if judgment.judge != machine_judge}
        finished_topics = {
            topic for topic in store.topics() if all((topic, document) in judged for document in store.pool(topic))
        }
        people = judgments_of(store, SETTLED, machine_judge).only(finished_topics)
        return people, Qrels.of(machine) if machine_judge is None else judgments_of(store, machine_judge)


def file_names(store: JudgmentStore) -> list[str]:
    """Names of the export files: topics, judgments by each rule in TREC's and BEIR's formats, and all judgments."""
    rules = (SETTLED, AGREED, *store.judges())
    return [QUERIES, *(f"{rule}{ending}" for rule in rules for ending in (".qrels", ".tsv")), ALL_JUDGMENTS]


def file_content(store: JudgmentStore, name: str) -> Iterable[bytes]:
    """Content of an export file, in pieces; ParameterError for another name, InputError for ids that the format cannot have."""
    if name not in file_names(store):
        raise ParameterError(f"there is no '{name[:100]}' to export; there are {', '.join(file_names(store))}")
    if name == QUERIES:
        return format_named("jsonl", "write", "topics").write_topics(store.topics())
    if name == ALL_JUDGMENTS:
        return _all_judgments(store)
    rule, _, ending = name.rpartition(".")
    return format_named("trec" if ending == "qrels" else "beir", "write", "qrels").write_qrels(judgments_of(store, rule))


def export(store: JudgmentStore, folder: Path) -> list[str]:
    """Write all files into a folder, in BEIR's layout without documents; return sentences about files left out."""
    left_out = []
    try:
        (folder / QRELS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made ({error.strerror or error})") from None
    for name in file_names(store):
        path = folder / QRELS / name if name.endswith(".tsv") else folder / name
        try:
            pieces = list(file_content(store, name))
        except InputError as error:
            left_out.append(f"{path} is left out: {error}")
            continue
        if len(pieces) <= name.endswith(".tsv"):  # only the header
            left_out.append(f"{path} is left out: there is nothing to write into it")
            path.unlink(missing_ok=True)
            continue
        write(path, pieces)
    return left_out


def _evidence_groups(store: JudgmentStore, judges: Iterable[str], topic: str, grades: dict[str, int]) -> list[frozenset[str]]:
    """The distinct groups of evidence of some judges for a topic, all of whose documents have a grade above 0."""
    groups = dict.fromkeys(frozenset(group) for judge in judges for group in store.evidence(judge, topic))
    return [group for group in groups if all(grades.get(document, 0) > 0 for document in group)]


def _group_rows(grades: dict[str, int], groups: list[frozenset[str]]) -> Iterable[tuple[str, str, int]]:
    """(group, document, grade) rows of a topic; group "0" for documents in no group."""
    for document, grade in grades.items():
        names = [f"g{number}" for number, group in enumerate(groups, 1) if document in group]
        for name in names or ["0"]:
            yield name, document, grade


def _all_judgments(store: JudgmentStore) -> Iterator[bytes]:
    """Yield all judgments as JSON lines, with notes and settled grades."""
    notes, settled = store.notes(), store.settled()
    for judgment in store.judgments():
        key = judgment.judge, judgment.topic, judgment.document
        values = {**judgment._asdict(), "note": notes.get(key, ""), "settled": settled.get(key[1:], (None,))[0]}
        yield (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def fill_pools(store: JudgmentStore, state: ServedState, depth: int) -> None:
    """Add the `depth` best documents of each pipeline to the pool of each topic."""
    report, fingerprint = reporter(), state.index.fingerprint
    for name, pipeline in state.pipelines.items():
        unpooled = list(store.unpooled(fingerprint, repr(pipeline), depth).values())
        stage, started = pipeline % depth, time.perf_counter()
        for start in range(0, len(unpooled), BATCH):
            topics = unpooled[start : start + BATCH]
            rankings = rankings_of(stage, topics, depth, silent)
            ids = {topic.id: list(islice(ranking.ids, depth)) for topic, ranking in zip(topics, rankings, strict=True)}
            store.add_pools(ids, fingerprint, repr(pipeline), depth)
            pooled = start + len(topics)
            report(Progress(f"pooling with {name}", pooled, len(unpooled), time.perf_counter() - started, "topics"))


def pool_run(store: JudgmentStore, run: Run, name: str, depth: int) -> None:
    """Add the `depth` best documents of a run to the pool of each topic; raise InputError if the run has none of the topics."""
    ids = {topic: list(islice(run[topic].ids, depth)) for topic in store.topics() if topic in run}
    if not ids:
        expected, other = next(iter(store.topics()), "none"), next(iter(run), "none")
        raise InputError(
            f"{name}: the run has none of the topics to judge; these are such as '{expected}', the run's '{other}'"
        )
    store.add_pools(ids, "", f"run {name}", depth)


def shuffled(judge: str, topic: str, documents: Iterable[str]) -> list[str]:
    """Order documents by a hash with judge and topic: documents added later do not change the order of the others."""

    def key(document: str) -> bytes:
        return hashlib.sha256("\0".join((judge, topic, document)).encode("utf-8", "surrogatepass")).digest()

    return sorted(documents, key=key)


class Judging:
    """Judgments of a server; pools have the `depth` best documents of each pipeline."""

    def __init__(self, store: JudgmentStore, depth: int) -> None:
        self.store = store
        self.depth = depth

    def exports(self, judge: str) -> list[str]:
        """Names of the files that a judge may export: all except other judges' grades."""
        other_judges = {*self.store.judges()} - {judge}
        return [
            name for name in file_names(self.store) if name != ALL_JUDGMENTS and name.rpartition(".")[0] not in other_judges
        ]

    def overview(self, judge: str, index: Index) -> list[dict[str, Any]]:
        """Progress of all judges with each topic, as JSON values."""
        by_topic: dict[str, list[Judgment]] = {}
        for judgment in self.store.judgments():
            by_topic.setdefault(judgment.topic, []).append(judgment)
        return [self._progress(topic, by_topic.get(topic.id, []), judge, index) for topic in self.store.topics().values()]

    def progress(self, judge: str, topic: str, index: Index) -> dict[str, object]:
        """Progress of a judge with a topic; raises RefusedError for an unknown topic."""
        topics = self.store.topics()
        if topic not in topics:
            raise RefusedError(404, f"there is no topic '{topic[:200]}'")
        return self._progress(topics[topic], self.store.judgments(topic=topic), judge, index)

    def _progress(self, topic: Topic, judgments: list[Judgment], judge: str, index: Index) -> dict[str, object]:
        """Progress of a judge with a topic, as JSON values, from all judgments for the topic."""
        pool = self.store.pool(topic.id)
        judged = {judgment.document: judgment for judgment in judgments if judgment.judge == judge}
        others = Counter(judgment.judge for judgment in judgments if judgment.judge != judge)
        missing = [document for document in pool if document not in index]
        return {
            "id": topic.id,
            "text": topic.text,
            "description": topic.description,
            "narrative": topic.narrative,
            "pool": len(pool),
            "judged": len(judged),
            "left": len({*pool} - {*missing} - {*judged}),
            "missing": len(missing),
            "relevant": sum(entry.grade > 0 for entry in judged.values()),
            "seconds": sum(entry.seconds for entry in judged.values()),
            "others": dict(others),
        }

    def following(self, judge: str, topic: str, index: Index, after: str | None = None) -> dict[str, object]:
        """Progress with a topic, and the next document to judge after `after`, in the judge's order; None if there is none."""
        progress = self.progress(judge, topic, index)
        judged = {judgment.document for judgment in self.store.judgments(judge, topic)}
        order = shuffled(judge, topic, self.store.pool(topic))
        start = order.index(after) + 1 if after in order else 0
        unjudged = (doc for doc in order[start:] + order[:start] if doc not in judged and doc in index)
        document = next(unjudged, None)
        return {"topic": progress, "document": None if document is None else self.shown(judge, topic, document, index)}

    def shown(self, judge: str, topic: str, document: str, index: Index) -> dict[str, object]:
        """A document of a pool as a judge sees it, without pipeline, rank and score."""
        if document not in self.store.pool(topic):
            raise RefusedError(404, f"document '{document[:200]}' is not in the pool of topic '{topic[:200]}'")
        if document not in index:
            raise RefusedError(404, f"document '{document[:200]}' is not in the index that is served now")
        doc, query = index.doc(document), self.store.topics()[topic].text
        grades = {judgment.document: judgment.grade for judgment in self.store.judgments(judge, topic)}
        return {
            "id": doc.id,
            "title": doc.title,
            "text": doc.text,
            "metadata": dict(doc.metadata),
            "matches": matches_in(index, doc.text, query),
            "title_matches": matches_in(index, doc.title, query),
            "grade": grades.get(document),
            "note": self.store.notes(topic).get((judge, topic, document), ""),
        }

    def judged(self, judge: str, topic: str, index: Index) -> dict[str, object]:
        """Judgments of a judge for a topic, latest first, and groups of evidence."""
        notes = self.store.notes(topic)
        documents = [
            {
                "id": judgment.document,
                "title": _title(judgment.document, index),
                "grade": judgment.grade,
                "note": notes.get((judge, topic, judgment.document), ""),
                "missing": judgment.document not in index,
            }
            for judgment in reversed(self.store.judgments(judge, topic))
        ]
        progress = self.progress(judge, topic, index)
        return {"topic": progress, "documents": documents, "groups": self.store.evidence(judge, topic)}

    def _finished_topics(self, judge: str, index: Index) -> list[str]:
        """Ids of the topics whose pools a judge has judged completely."""
        return [entry["id"] for entry in self.overview(judge, index) if entry["judged"] and not entry["left"]]

    def compared(self, judge: str, index: Index) -> dict[str, Any]:
        """Agreement of all judges, and their differences in the topics that this judge has finished."""
        finished = {name: self._finished_topics(name, index) for name in self.store.judges()}
        topics = finished[judge]
        judges = {topic: [name for name, judge_topics in finished.items() if topic in judge_topics] for topic in topics}
        differing, evidence = disagreements(self.store, topics), different_evidence(self.store, judges)
        queries = self.store.topics()
        for entry in differing + evidence:
            entry["query"] = queries[entry["topic"]].text
        for entry in differing:
            entry["title"] = _title(entry["document"], index)
        documents = {
            document
            for entry in evidence
            for judge_groups in entry["judges"]
            for group in judge_groups["groups"]
            for document in group["documents"]
        }
        titles = {document: _title(document, index) for document in sorted(documents)}
        return {
            "agreement": agreement(self.store),
            "disagreements": differing,
            "evidence": evidence,
            "titles": titles,
            "finished": topics,
        }


def _title(document: str, index: Index) -> str:
    return index.doc(document).title if document in index else ""


def judge_name(judge: LlmJudge) -> str:
    """Return the name of a model as a judge: "llm gpt-4o-mini"."""
    name = judge.llm.name_or_path.rpartition("/")[2] if judge.llm.is_local else judge.llm.name_or_path
    return f"{MACHINE}{ALLOWED.sub('-', name)}"[:MAX_NAME].rstrip(". ")


def judge_pool(store: JudgmentStore, index: Index, judge: LlmJudge) -> tuple[int, int]:
    """Let a model judge the documents of all pools that it has not judged; each grade has its reason as a note.

    Documents that the index lacks are left out.

    Args:
        store: The judgments.
        index: The index with the documents.
        judge: The model.

    Returns:
        Number of new judgments, and of answers without a grade, whose documents stay without one.
    """
    name = judge_name(judge)
    if name not in store.judges():
        store.add_judge(name)  # nobody gets its token
    judged = {(judgment.topic, judgment.document) for judgment in store.judgments(name)}
    topics = store.topics()
    pooled = ((topic, doc_id) for topic in topics for doc_id in store.pool(topic))
    ids = [(topic, doc_id) for topic, doc_id in pooled if (topic, doc_id) not in judged and doc_id in index]
    docs = index.docs([doc_id for _, doc_id in ids])
    labels = judge.labels([(topics[topic], doc) for (topic, _), doc in zip(ids, docs, strict=True)])
    for (topic, doc_id), label in zip(ids, labels, strict=True):
        if label.grade is not None:
            store.judge(name, topic, doc_id, label.grade)
            store.note(name, topic, doc_id, label.reason)
    graded = sum(label.grade is not None for label in labels)
    return graded, len(labels) - graded


def judged_with_machines(path: Path) -> tuple[Qrels, Qrels]:
    """Return the settled judgments of a file of `fontes judge`, and those of them that models alone gave."""
    with JudgmentStore(path, reading=True) as store:
        people = {(entry.topic, entry.document) for entry in store.judgments() if not entry.judge.startswith(MACHINE)}
        qrels = judgments_of(store, SETTLED)
        by_people = people.union(store.settled())
    return qrels, Qrels(row for row in qrels.rows() if (row[0], row[2]) not in by_people)
