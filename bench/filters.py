"""Times search under filters beside search without one, over all titles of wikipedia_passages as queries, in one thread.

    FONTES_DATA=DIR python bench/filters.py [--runs 5] [--queries 1803]

Every passage has made-up metadata: `part`, one of 1,000 numbers at random, and `place`, from 0 to 99 in the collection's order.
"warm": the filter has been searched with these queries before. "cold": each time the index is opened anew, so that the filter
and its lists are worked out. "One query a call": each query under a filter of its own, or all under one, in a warm index. The
measurements take turns; the tables have microseconds of processor time a query, the least of all runs, and how many times as
fast as without a filter that is.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from build import COLLECTION, unpacked
from harness import data_option, machine, table

from fontes import Index, Topics, read_corpus, read_topics
from fontes.core import Doc

DEPTHS = (10, 100, 1000)
FILTERS = {
    "without": None,
    "half, at random": "part < 500",
    "half, the first": "place < 50",
    "1 in 10": "part < 100",
    "1 in 100": "part < 10",
    "1 in 1,000": "part == 7",
}


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=1803, help="how many queries (default: %(default)s)")
    given = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as work:
        corpus = unpacked(given.data / COLLECTION, Path(work))
        index = Index.build(list(passages(corpus)), Path(work) / "index")
        every = list(read_topics(given.data / COLLECTION / "queries.jsonl").values())
        topics = Topics(every[: given.queries])
        for warm in (True, False):
            rows = [[name, *row] for name, row in zip(FILTERS, measured(index, topics, given.runs, warm), strict=True)]
            heads = [head for k in DEPTHS for head in (f"k={k}", "times")]
            table("Warm" if warm else "Cold", ["filter", *heads], rows)
        texts = [topic.text for topic in topics.values()]
        heads = ["documents that pass", "a filter of its own", "one filter"]
        table("One query a call, k = 10", heads, one_by_one(index, texts, given.runs))


def passages(corpus: Path) -> Iterator[Doc]:
    """The passages with their metadata."""
    draw, docs = random.Random(7), list(read_corpus(corpus))
    for number, doc in enumerate(docs):
        metadata = {"part": draw.randrange(1000), "place": 100 * number // len(docs)}
        yield Doc(doc.id, doc.text, doc.title, metadata)


def measured(index: Index, topics: Topics, runs: int, warm: bool) -> list[list[str]]:
    """For each filter the microseconds a query for each k, and how many times as fast as without a filter."""
    best = {(where, k): float("inf") for where in FILTERS.values() for k in DEPTHS}
    for _ in range(runs):
        for k in DEPTHS:
            for where in FILTERS.values():
                opened = index if warm else Index.open(index.path)
                opened.bm25()(Topics())
                opened.bm25().search("a passage")  # impacts of the collection are there
                stage = opened.bm25(k=k, threads=1, where=where)
                if warm:
                    stage(topics)
                start = time.process_time()
                stage(topics)
                best[where, k] = min(best[where, k], time.process_time() - start)
    rows = []
    for where in FILTERS.values():
        row = []
        for k in DEPTHS:
            row += [f"{best[where, k] / len(topics) * 1e6:.0f}", f"{best[None, k] / best[where, k]:.2f}"]
        rows.append(row)
    return rows


def one_by_one(index: Index, texts: list[str], runs: int) -> list[list[str]]:
    """For each share of documents microseconds a query, under a filter that was never used before, and under one for all."""
    for text in 2 * texts:
        index.bm25().search(text)  # what does not depend on filters is there
    rows = []
    for width in (500, 100, 10, 1):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for run in range(runs):
            for is_new, results in seconds.items():
                shift = (run + 1) / (runs + 1) if is_new else 0.0  # makes filters of this run differ from those of others
                total = 0.0
                for number, text in enumerate(texts):
                    first = number % (1000 - width) if is_new else 0
                    digits = number / 1e6 + shift if is_new else shift
                    stage = index.bm25(where=f"part > {first - 1 + digits} and part < {first + width}")
                    start = time.thread_time()
                    stage.search(text)
                    total += time.thread_time() - start
                results.append(total / len(texts) * 1e6)
        rows.append([f"{width / 10:g} %", *(f"{min(some):.0f}" for some in seconds.values())])
    return rows


if __name__ == "__main__":
    main()
