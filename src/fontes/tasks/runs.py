"""Tasks whose submission is a run: BEIR folders, Touché, and LongEval's runs of several snapshots."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

from ..core import Doc, FontesError, InputError, Qrels, Run, Topics
from ..core.errors import InputWarning
from ..formats import read_corpus, read_qrels, read_topics, write_run
from ..storage.files import write
from .base import Task, TaskData, TaskSide, write_documents
from .release import ReleasedFiles
from .submission import check_rows, file_name, run_rows

SNAPSHOT = re.compile(r"(?<!\d)(20\d\d-(?:0[1-9]|1[0-2])|snapshot-\d+)(?!\d)")
DOCUMENTS = r"(doc|json|trec|corpus|collection).*\.(jsonl|json|trec|txt)(\.gz)?$"
METADATA = "ir-metadata.yml"
PLACEHOLDER = "ENTER_VALUE_HERE"
MARKERS = {"lexical": "bm25", "reranker": "cross_encoder(", "sparse": "splade(", "dense": "dense("}


class RunTask(Task):
    """A task whose submission is a run in TREC's form for each side."""

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        paths = [folder / file_name("run.txt", side, runs) for side in runs]
        for path, run in zip(paths, runs.values(), strict=True):
            write_run(run.top(self.depth), path, tag=tag)
        return paths

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        side = next(
            (side_topics for name, side_topics in topics.items() if path.stem == f"run_{name}"), next(iter(topics.values()))
        )
        return check_rows(path, run_rows(path), side, documents, self.depth, all_topics=False)


class Beir(RunTask, name="beir"):
    """Any collection in BEIR's form: `beir:FOLDER`."""

    title = "a collection in BEIR's form"
    organisers = "corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv"
    submits = "run.txt: a run in TREC's form"

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        raise release.missing_error("folder in BEIR's form (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv)", "such a collection")


class Touche(RunTask, name="touche"):
    """Touché: arguments for a controversial or comparative question."""

    title = "Touché (argument retrieval)"
    organisers = (
        "topics (XML), judgments of earlier years (qrels), and the arguments or passages as JSON lines or CSV; or BEIR's form"
    )
    submits = "run.txt: qid Q0 doc rank score tag; the second column would hold a stance, which is not predicted"
    measures = ("nDCG@5", "nDCG@10", "AP", "R@100")
    measure = "nDCG@5"

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        topics = release.matching(r"(topic|quer|title)[^/]*\.(xml|txt|tsv|csv|jsonl)(\.gz)?$", "qrel|run|judg")
        if not topics:
            raise release.missing_error("topics (topics.xml)", self.name)
        judgments = release.matching(r"qrel|judg|relevance", r"quality|stance|coherence|\.(zip|md)$")
        qrels = {name: read_qrels(path) for name, path in judgments.items()}
        sides = [self._side(inside, path, qrels) for inside, path in topics.items()]
        names = [side.name for side in sides]
        if len(set(names)) < len(names):
            raise InputError(f"{', '.join(topics)}: several files of topics of one year; give one for each year")
        used = {*topics.values(), *judgments.values()}
        corpora = [path for path in release.matching(r"\.(jsonl|csv|tsv|parquet)(\.gz)?$").values() if path not in used]
        corpora.sort(key=lambda path: -path.stat().st_size)
        single_json = release.matching(r"args[^/]*\.json$")
        if single_json and not corpora:
            remedy = "ir_datasets reads it: fontes task new beir:irds:argsme/2020-04-01/touche-2021-task-1 DIR"
            raise InputError(
                f"{next(iter(single_json))}: all arguments in one JSON value, which Fontes does not read; {remedy}"
            )
        return TaskData(tuple(sorted(sides, key=lambda side: side.name)), corpora[0] if corpora else None)

    def _side(self, inside: str, path: Path, qrels: Mapping[str, Qrels]) -> TaskSide:
        topics = read_topics(path)
        years = _years(inside) or _years(path.parent.name)  # an archive may have the year in its name
        judging = [name for name, side_qrels in qrels.items() if any(topic in topics for topic in side_qrels)]
        if years:
            judging = [name for name in judging if years[-1] in _years(name)] or [name for name in judging if not _years(name)]
        if len(judging) > 1:
            raise InputError(f"{inside}: several files judge its topics: {', '.join(judging)}; give one of them")
        named = years[-1:] or [year for name in judging for year in _years(name)[:1]]
        return TaskSide(named[0] if named else "test", topics, qrels[judging[0]] if judging else None)


class LongEval(Task, name="longeval"):
    """LongEval: one system over snapshots of a collection."""

    title = "LongEval (retrieval over time)"
    organisers = (
        "for each snapshot (2025-01, snapshot-1): documents, queries and, where released, qrels; as the archives hold them"
    )
    submits = "a folder SNAPSHOT/run.txt.gz for each snapshot, and ir-metadata.yml"
    measures = ("nDCG@10", "nDCG", "R@100")
    over_time = True

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        queries = release.matching(r"quer[^/]*\.(txt|tsv|jsonl|csv)(\.gz)?$", "qrel")
        if not queries:
            raise release.missing_error("queries (queries.txt, queries_2025-01_test.txt, …)", self.name)
        judgments = release.matching(r"qrel", r"\.(zip|md|py)$")
        sides: dict[str, TaskSide] = {}
        for inside, path in queries.items():
            topics = read_topics(path)
            snapshot = _snapshot(inside)
            names = {snapshot} if snapshot else {_snapshot(name) for name in judgments if _is_beside(name, inside)}
            if snapshot is None and "test" in inside.rpartition("/")[2].lower():  # the queries of all snapshots to be searched
                files = judgments if names - {None} else release.matching(DOCUMENTS, "qrel|quer")
                names = {_snapshot(name) for name in files} - {None}
            for name in sorted(names, key=str) or [None]:
                side = self._side(name, inside, topics, judgments, release)
                if side.name in sides:
                    raise InputError(f"{inside}: the snapshot '{side.name}' has queries already; give each snapshot once")
                sides[side.name] = side
        corpora: dict[Path | str, Path | str] = {}
        for side in sides.values():
            if side.corpus is not None and side.corpus not in corpora:
                corpora[side.corpus] = _without_twins(side.corpus, folder / side.name)
        ordered = sorted(sides.values(), key=lambda side: (side.name != "train", side.name))
        return TaskData(tuple(replace(side, corpus=corpora.get(side.corpus or "")) for side in ordered))

    def _side(
        self, snapshot: str | None, inside: str, topics: Topics, judgments: Mapping[str, Path], release: ReleasedFiles
    ) -> TaskSide:
        files = {
            name: read_qrels(path)
            for name, path in judgments.items()
            if _snapshot(name) == snapshot and (snapshot or _is_beside(name, inside))
        }
        for (first, first_qrels), (second, second_qrels) in combinations(files.items(), 2):
            if any(topic in second_qrels for topic in first_qrels):
                raise InputError(f"{first} and {second} judge the same queries; give one of them")
        qrels = Qrels(row for file in files.values() for row in file.rows()) if files else None
        shared = snapshot is not None and _snapshot(inside) is None  # queries of all snapshots in one file
        judged = topics.judged(qrels) if shared and qrels is not None else topics
        return TaskSide(snapshot or "train", judged, qrels, _documents_folder(release, snapshot, inside))

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        for side, run in runs.items():
            (folder / side).mkdir(parents=True, exist_ok=True)
            write_run(run.top(self.depth), folder / side / "run.txt.gz", tag=tag)
        write(folder / METADATA, [_metadata(tag, system).encode()])
        return [*(folder / side / "run.txt.gz" for side in runs), folder / METADATA]

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        if path.name == METADATA:
            with path.open(encoding="utf-8") as file:
                lines = [number for number, line in enumerate(file, 1) if PLACEHOLDER in line]
            return [f"{path}, line {lines[0]}: {len(lines)} values are still '{PLACEHOLDER}'; fill them in"] if lines else []
        if path.parent.name not in topics:
            raise InputError(f"{path}: the folder '{path.parent.name}' is none of the snapshots {', '.join(topics)}")
        return check_rows(path, run_rows(path), topics[path.parent.name], documents, self.depth, all_topics=False)


def _snapshot(inside: str) -> str | None:
    dates = SNAPSHOT.findall(inside)
    return dates[-1] if dates else None


def _is_beside(name: str, inside: str) -> bool:
    """Whether the file `name` is below the folder of the file `inside`."""
    parent = inside.rpartition("/")[0]
    return name.startswith(f"{parent}/") if parent else True


def _documents_folder(release: ReleasedFiles, snapshot: str | None, inside: str) -> Path:
    """Return the folder of a snapshot's documents: a folder named by the snapshot, or else the one beside the queries."""
    files = release.matching(DOCUMENTS, "qrel|quer")
    of_snapshot = {name: path for name, path in files.items() if snapshot and _snapshot(name) == snapshot}
    candidates = of_snapshot or {name: path for name, path in files.items() if _is_beside(name, inside)} or files
    if snapshot is None and len({_snapshot(name) for name in candidates}) > 1:  # training is on the first snapshot
        first = min(filter(None, map(_snapshot, candidates)))
        candidates = {name: path for name, path in candidates.items() if _snapshot(name) == first}
    if not candidates:
        raise release.missing_error(f"documents of the snapshot {snapshot or 'for training'}", "longeval")
    folders = {path.parent for path in candidates.values()}
    if len(folders) > 1:
        trec = {folder for folder in folders if "trec" in str(folder).lower()}
        folders = trec if len(trec) == 1 else folders
    if len(folders) > 1:
        names = ", ".join(sorted(folder.name for folder in folders))
        raise InputError(
            f"the documents of the snapshot {snapshot or 'for training'} are in several folders: {names}; give one"
        )
    folder = folders.pop()
    return next(iter(candidates.values())) if len(candidates) == 1 else folder


def _without_twins(corpus: Path | str, folder: Path) -> Path | str:
    """Return a corpus in which ids occur once and no document is empty, written to `folder` if the release is not like that.

    The organisers' reader (ir_datasets_longeval 0.0.15) keeps the first of several documents with one id, and no document
    without title and abstract. A warning has both numbers.
    """
    count, empty, first = 0, 0, set()
    try:
        for doc in read_corpus(corpus):
            count += 1
            empty += not (doc.title or doc.text)
            first |= {doc.id} if doc.title or doc.text else set()
    except FontesError:
        return corpus  # `check_data` reports what is wrong
    if count == len(first):
        return corpus
    twins = count - empty - len(first)
    left_out = f"{twins:,} with the id of an earlier one and {empty:,} without title and text are left out"
    warnings.warn(
        InputWarning(f"{corpus}: {count:,} documents, {len(first):,} kept; {left_out}, as by the organisers' reader"),
        stacklevel=2,
    )

    def kept() -> Iterator[Doc]:
        for doc in read_corpus(corpus):
            if doc.id in first and (doc.title or doc.text):
                first.discard(doc.id)
                yield doc

    return write_documents(kept(), folder)


def _years(inside: str) -> list[str]:
    return re.findall(r"(?<!\d)20\d\d", inside)


def _metadata(tag: str, system: str) -> str:
    """Return the metadata that LongEval asks for; the team fills in the placeholders."""
    used = {name: "yes" if sign in system else "no" for name, sign in MARKERS.items()}
    single_stage = "no" if any(sign in system for sign in ("fuse(", ">>")) else "yes"
    return f"""\
tag: {tag}
actor:
  team: {PLACEHOLDER}
research goal:
  description: {PLACEHOLDER}
platform:
  software:
    libraries:
      - fontes {version("fontes")}
implementation:
  source:
    repository: {PLACEHOLDER}
data:
  training data:
    - name: {PLACEHOLDER}
method:
  automatic: true
  retrieval:
    - name: {json.dumps(system)}
      lexical: {used["lexical"]}
      deep_neural_model: {used["reranker"]}
      sparse_neural_model: {used["sparse"]}
      dense_neural_model: {used["dense"]}
      single_stage_retrieval: {single_stage}
"""
