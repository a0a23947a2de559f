"""Times an index that lives: additions and deletions, the searches after them, segments beside one, merges beside builds.

    FONTES_DATA=DIR python bench/living.py [--runs 5]

The collection is wikipedia_passages (207,168 passages); what is added are its passages again, with other ids. Each measurement
is a process of its own, with an empty folder for what can be worked out again (FONTES_CACHE), so that no search finds what an
earlier one has left. "whole process" is all of it, from the start of Python; the other times begin when the index is open and,
where it says "warm", has been searched once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from build import COLLECTION, unpacked
from harness import Process, amount, data_option, machine, process, spread, table

from fontes import Index, read_corpus, read_topics
from fontes.core import Doc
from fontes.index import draft

NEW, SEGMENTS, QUERY = amount(1000, 20), 10, "the history of the railway"
CHANGES = {
    "add": f"{NEW:,} documents added, warm",
    "add then search": "the first search after it",
    "searchable": "both: until they are searchable",
    "refreshed": "another index that is open: refresh and the first search",
    "delete": f"{NEW:,} ids deleted, warm",
    "delete then search": "the first search after it",
}
AFTER = ["1 document added", "another one added", f"{NEW - 2:,} documents added", f"{2 * NEW:,} deleted"]
COLD = {
    "add_cold": f"{NEW:,} documents added and searched, whole process",
    "search_cold": "the index opened and searched afterwards, whole process",
    "delete_cold": f"{NEW:,} ids deleted, whole process",
}


def main() -> None:
    if sys.argv[1:2] == ["part"]:
        PARTS[sys.argv[2]](*map(Path, sys.argv[3:]))
        return
    parser = data_option(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: %(default)s)")
    given = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(given.data / COLLECTION, Path(work), given.runs)
        bench.changes()
        bench.searches()
        bench.segments()
        bench.merges()


class Bench:
    """The measurements, with the indexes that they are made on: of all passages in one segment, and in ten.

    Args:
        source: The collection's folder.
        work: A folder that is empty.
        runs: How often everything is measured.
    """

    def __init__(self, source: Path, work: Path, runs: int) -> None:
        self.corpus, self.queries = unpacked(source, work), source / "queries.jsonl"
        self.work, self.runs = work, runs
        self.one, self.ten = work / "one", work / "ten"
        self.part("build", self.corpus, self.one)
        self.part("split", self.corpus, self.ten)

    def part(self, name: str, *places: Path) -> Process:
        """One measurement, in a process of its own."""
        with tempfile.TemporaryDirectory(dir=self.work) as cache:
            variables = {**os.environ, "FONTES_CACHE": cache}
            return process(
                [sys.executable, __file__, "part", name, *places], variables, most=1
            )  # a change cannot be made twice

    def copy(self, index: Path) -> Path:
        """A copy of an index that may be changed."""
        copy = self.work / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(index, copy))

    def changes(self) -> None:
        self.part("change", self.copy(self.one), self.corpus)  # compiles kernels
        reports = [self.part("change", self.copy(self.one), self.corpus).report for _ in range(self.runs)]
        rows = [[title, spread([report[name] for report in reports])] for name, title in CHANGES.items()]
        cold: dict[str, list[float]] = {name: [] for name in COLD}
        for _ in range(self.runs):
            index = self.copy(self.one)
            for name, walls in cold.items():
                walls.append(self.part(name, index, self.new()).wall)
        rows += [[title, spread(cold[name])] for name, title in COLD.items()]
        table("207,168 passages, median (least–greatest)", ["", "seconds"], rows)

    def searches(self) -> None:
        reports = [self.part("after", self.copy(self.one), self.corpus, self.queries).report for _ in range(self.runs)]
        rows = []
        for change in AFTER:
            columns = zip(*(report[change] for report in reports), strict=True)
            rows.append([change, *(spread(list(column)) for column in columns)])
        headings = ["", "first search, ms", "slowest other, ms", "100 searches / before", "again / before"]
        table("Searches of 100 titles at k = 10 after a change, CPU time of one thread", headings, rows)

    def new(self) -> Path:
        """The documents to add, in a file."""
        path = self.work / "new.jsonl"
        if not path.exists():
            path.write_text("".join(json.dumps({"_id": d.id, "text": d.text}) + "\n" for d in fresh(self.corpus, "cold")))
        return path

    def segments(self) -> None:
        rows = []
        runs = [[self.part("search", path, self.queries).report for path in (self.one, self.ten)] for _ in range(self.runs)]
        for title, name in (
            ("all topics at k = 1,000, for the first time", "first"),
            ("again", "again"),
            ("one topic after the other at k = 10", "single"),
        ):
            one, ten = ([run[i][name] for run in runs] for i in (0, 1))
            ratio = [b / a for a, b in zip(one, ten, strict=True)]
            rows.append([title, spread(one), spread(ten), spread(ratio)])
        table("Search, 1,803 topics, seconds", ["", "1 segment", f"{SEGMENTS} segments", "ratio"], rows)

    def merges(self) -> None:
        rows = []
        for threads in (1, 2):
            number = self.work / str(threads)
            number.write_text(str(threads))
            build = [self.part("build", self.corpus, self.work / "built", number).report["build"] for _ in range(self.runs)]
            merge = [self.part("merge", self.copy(self.ten), number).report["merge"] for _ in range(self.runs)]
            ratio = [b / a for a, b in zip(build, merge, strict=True)]
            rows.append([f"{threads}", spread(build), spread(merge), spread(ratio)])
        merged, built = (
            {file.name: file.read_bytes() for file in path.glob("segment-*/*.npy")} for path in (self.work / "copy", self.one)
        )
        assert merged == built, "a merge writes other files than a build"
        table(f"A build, and a merge of {SEGMENTS} segments, seconds", ["threads", "build", "merge", "ratio"], rows)


def fresh(corpus: Path, name: str) -> list[Doc]:
    """Passages from all over the collection, with other ids."""
    docs = list(read_corpus(corpus))
    return [Doc(f"{name}-{doc.id}", doc.text, doc.title, doc.metadata) for doc in docs[:: len(docs) // NEW][:NEW]]


def part_build(corpus: Path, path: Path, threads: Path | None = None) -> None:
    docs = list(read_corpus(corpus))
    shutil.rmtree(path, ignore_errors=True)
    report: dict[str, float] = {}
    with timed(report, "build"):
        Index.build(docs, path, threads=int(threads.read_text()) if threads else None)
    print(json.dumps(report))


def part_split(corpus: Path, path: Path) -> None:
    draft.FACTOR = SEGMENTS + 1  # or they would be merged at once
    docs = list(read_corpus(corpus))
    edges = [len(docs) * i // SEGMENTS for i in range(SEGMENTS + 1)]
    index = Index.build(docs[: edges[1]], path)
    for first, last in pairwise(edges[1:]):
        index.add(docs[first:last])


def part_change(path: Path, corpus: Path) -> None:
    docs = fresh(corpus, "warm")
    index, other = Index.open(path), Index.open(path)
    gone = random.Random(5).sample(index.ids.tolist(), NEW)
    index.bm25().search(QUERY)
    other.bm25().search(QUERY)
    report: dict[str, float] = {}
    with timed(report, "searchable"):
        with timed(report, "add"):
            index.add(docs)
        with timed(report, "add then search"):
            index.bm25().search(QUERY)
    with timed(report, "refreshed"):
        other.refresh()
        other.bm25().search(QUERY)
    with timed(report, "delete"):
        index.delete(gone)
    with timed(report, "delete then search"):
        index.bm25().search(QUERY)
    print(json.dumps(report))


def part_after(path: Path, corpus: Path, queries: Path) -> None:
    index, docs = Index.open(path), fresh(corpus, "after")
    draw = random.Random(5)
    texts = draw.sample([topic.text for topic in read_topics(queries).values()], 100)
    gone = draw.sample(index.ids.tolist(), 2 * NEW)

    def times() -> list[float]:
        bm25, seconds = index.bm25(), []
        for text in texts:
            start = time.thread_time()
            bm25.search(text, k=10).ids  # noqa: B018  # read from the segments
            seconds.append(time.thread_time() - start)
        return seconds

    before: list[float] = []
    for _ in range(20):
        before = min(before, times(), key=sum) if before else times()
    changes: dict[str, Callable[[], object]] = {
        "1 document added": lambda: index.add(docs[:1]),
        "another one added": lambda: index.add(docs[1:2]),
        f"{NEW - 2:,} documents added": lambda: index.add(docs[2:]),
        f"{2 * NEW:,} deleted": lambda: index.delete(gone),
    }
    report = {}
    for name, change in changes.items():
        change()
        first, again = times(), min((times() for _ in range(5)), key=sum)
        report[name] = [1000 * first[0], 1000 * max(first[1:]), sum(first) / sum(before), sum(again) / sum(before)]
    print(json.dumps(report))


def part_add_cold(path: Path, new: Path) -> None:
    index = Index.open(path)
    index.add(new)
    index.bm25().search(QUERY)


def part_search_cold(path: Path, new: Path) -> None:
    Index.open(path).bm25().search(QUERY)


def part_delete_cold(path: Path, new: Path) -> None:
    Index.open(path).delete([json.loads(line)["_id"] for line in new.read_text().splitlines()])


def part_search(path: Path, queries: Path) -> None:
    topics, index = read_topics(queries), Index.open(path)
    bm25 = index.bm25(k=1000)
    report: dict[str, float] = {}
    for name in ("first", "again"):
        with timed(report, name):
            bm25(topics)
    with timed(report, "single"):
        for topic in topics.values():
            bm25.search(topic, 10)
    print(json.dumps(report))


def part_merge(path: Path, threads: Path) -> None:
    index = Index.open(path)
    report: dict[str, float] = {}
    with timed(report, "merge"):
        index.merge(threads=int(threads.read_text()))
    print(json.dumps(report))


@contextmanager
def timed(report: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report[name] = time.perf_counter() - start


PARTS: dict[str, Callable[..., Any]] = {name[5:]: value for name, value in list(globals().items()) if name.startswith("part_")}

if __name__ == "__main__":
    main()
