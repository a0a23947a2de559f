"""SciFact and FEVER: the documents with evidence for or against a claim."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from ..core import Doc, InputError, Run, Topics
from ..core.checks import as_number
from ..formats import read_qrels, read_topics
from ..formats.records import json_rows
from ..storage.files import reading
from .base import Task, TaskData, TaskSide, write_documents
from .release import ReleasedFiles
from .submission import check_rows, file_name, line_rows, write_lines

LINES = r"\.jsonl(\.gz)?$"


class SciFact(Task, name="scifact"):
    """SciFact (Wadden et al. 2020): scientific claims and abstracts."""

    title = "SciFact (abstract retrieval)"
    organisers = "corpus.jsonl and claims_{train,dev,test}.jsonl, or a folder in BEIR's form"
    submits = "abstract_retrieval.jsonl: claim_id and three doc_ids for each claim, the input of the next step"
    measures = ("nDCG@10", "AP", "R@3", "R@100")
    counts: ClassVar[Mapping[str, int]] = {"documents": 5183, "train": 809, "dev": 300, "test": 300}
    depth = 3

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        sides = _sides(release, {split: rf"claims_{split}{LINES}" for split in ("train", "dev", "test")})
        if not sides:
            raise release.missing_error("claims (claims_train.jsonl, …)", self.name)
        corpora = list(release.matching(rf"(^|/)corpus{LINES}").values())
        return TaskData(sides, write_documents(_abstracts(corpora[0]), folder) if corpora else None)

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        paths = [folder / file_name("abstract_retrieval.jsonl", side, runs) for side in runs]
        for path, run in zip(paths, runs.values(), strict=True):
            ids = {topic: [as_number(doc) for doc in run[topic].ids[: self.depth]] for topic in run}
            write_lines(({"claim_id": as_number(topic), "doc_ids": doc_ids} for topic, doc_ids in ids.items()), path)
        return paths

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        side = _topics_of(path, topics)
        return check_rows(path, line_rows(path, "claim_id", "doc_ids"), side, documents, self.depth, all_topics=True)


class Fever(Task, name="fever"):
    """FEVER (Thorne et al. 2018): claims and pages of Wikipedia."""

    title = "FEVER (document retrieval)"
    organisers = "wiki-pages/*.jsonl, train.jsonl, shared_task_dev.jsonl and shared_task_test.jsonl, or a folder in BEIR's form"
    submits = "predicted_pages.jsonl: five pages for each claim, the input of the next step; labels and sentences are not made"
    measures = ("nDCG@10", "R@5", "R@100")
    measure = "R@5"
    counts: ClassVar[Mapping[str, int]] = {"train": 145449, "dev": 19998, "test": 19998}
    depth = 5

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        names = {"train": rf"(^|/)train{LINES}", "dev": rf"dev{LINES}", "test": rf"test{LINES}"}
        sides = _sides(release, names)
        if not sides:
            raise release.missing_error("claims (train.jsonl, shared_task_dev.jsonl, …)", self.name)
        pages = list(release.matching(rf"wiki[^/]*{LINES}|wiki-pages/.*{LINES}").values())
        return TaskData(sides, write_documents(_pages(pages), folder) if pages else None)

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        paths = [folder / file_name("predicted_pages.jsonl", side, runs) for side in runs]
        for path, run in zip(paths, runs.values(), strict=True):
            rows = (
                {
                    "id": as_number(topic),
                    "claim": run[topic].topic.text,
                    "predicted_pages": [[hit.id, float(hit.score)] for hit in run[topic][: self.depth]],
                }
                for topic in run
            )
            write_lines(rows, path)
        return paths

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        rows = line_rows(path, "id", "predicted_pages")
        return check_rows(path, rows, _topics_of(path, topics), documents, self.depth, all_topics=True)


def _sides(release: ReleasedFiles, patterns: Mapping[str, str]) -> tuple[TaskSide, ...]:
    sides = []
    for split, pattern in patterns.items():
        for path in list(release.matching(pattern, "corpus").values())[:1]:
            with reading(path) as source:
                judged = any(row.get("evidence") or row.get("cited_doc_ids") for _, row in json_rows(source))
            sides.append(TaskSide(split, read_topics(path), read_qrels(path) if judged else None))
    return tuple(sides)


def _abstracts(path: Path) -> Iterator[Doc]:
    with reading(path) as source:
        for number, row in json_rows(source):
            abstract = row.get("abstract", "")
            if "doc_id" not in row or not isinstance(abstract, (str, list)):
                raise InputError.at(
                    path, number, 'no \'doc_id\' and \'abstract\'; a line is {"doc_id": …, "title": …, "abstract": […]}'
                )
            text = abstract if isinstance(abstract, str) else " ".join(map(str, abstract))
            yield Doc(str(row["doc_id"]), text, str(row.get("title") or ""))


def _pages(paths: list[Path]) -> Iterator[Doc]:
    for path in sorted(paths):
        with reading(path) as source:
            for _, row in json_rows(source):
                page = str(row.get("id") or "")
                if page:  # the first line of each file is empty
                    yield Doc(page, str(row.get("text") or ""), page.replace("_", " "))


def _topics_of(path: Path, topics: Mapping[str, Topics]) -> Topics:
    return next(
        (side_topics for name, side_topics in topics.items() if path.stem.endswith(f"_{name}")), next(iter(topics.values()))
    )
