"""Measures Fontes' own search: the first query, a setting of k1 and b, what surrounds the kernel, what each part of it gives.

    python bench/kernel.py FONTES.json --work DIR

DIR is a folder that lexical.py has made for a collection: DIR/fontes, DIR/queries.terms.jsonl. Variants of the kernel are made
by replacing a line of its source; all must find the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, spread, table
from searchers import K1, B, read

from fontes import Index, Topic, Topics
from fontes.lexical import impacts, kernel
from fontes.lexical.keys import SORTED
from fontes.lexical.parts import NO_WORDS as ALL

DEPTHS = (10, 100, 1000)
RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--tuned", type=Path, help="the same of a smaller collection, for settings of k1 and b")
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    os.environ["FONTES_CACHE"] = str(given.work / "cache")
    index = Index.open(given.work / "fontes")
    texts = read(given.work / "queries.terms.jsonl")[1]
    titles = len(texts) - given.sentences
    parts = {"titles": texts[: min(200, titles)], "sentences": texts[titles : titles + 50]}
    results: dict[str, Any] = {"machine": machine(), "first": starts(given.work)}
    results["tuning"] = tuning(given.tuned or given.work)
    results["overhead"] = {name: overhead(index, some, given.runs) for name, some in parts.items()}
    results["parts"] = ablations(index, parts, given.runs)
    given.results.write_text(json.dumps(results))
    report(results)


def report(results: dict[str, Any]) -> None:
    rows = [
        [way, *(spread([1000 * one[x] for one in some], 1) for x in ("open", "first", "second"))]
        for way, some in results["first"].items()
    ]
    table("A process's first query", ["", "open, ms", "first query, ms", "second, ms"], rows)
    columns = zip(*results["tuning"], strict=True)
    table("A setting of k1 and b", ["impacts, s", "300 topics, s"], [[spread(column) for column in columns]])
    rows = [
        [part, k, *(f"{value:.3f}" for value in three)] for part, of in results["overhead"].items() for k, three in of.items()
    ]
    table("One call, ms", ["topics", "k", "search()", "kernel", "difference"], rows)
    cases = list(results["parts"])
    rows = [[name, *(f"{results['parts'][case][name]:.3f}" for case in cases)] for name in results["parts"][cases[0]]]
    table("Variants of the kernel, ms a query", ["", *cases], rows)


FIRST = """
import json, sys, time
from fontes import Index
start = time.perf_counter()
stage = Index.open(sys.argv[1]).bm25(threads=1)
opened = time.perf_counter()
stage.search("histori railwai", 10)
first = time.perf_counter()
stage.search("battl second world war", 10)
second = time.perf_counter()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
anonymous = int(status["RssAnon"].split()[0]) / 1024
print(json.dumps({"open": opened - start, "first": first - opened, "second": second - first, "anonymous": anonymous}))
"""


def starts(folder: Path) -> dict[str, list[Any]]:
    """The first query of a process."""
    found: list[Any] = []
    for _ in range(6):
        command = [sys.executable, "-c", FIRST, str(folder / "fontes")]
        found.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
    return {"warm": found[1:]}


def tuning(folder: Path) -> list[list[float]]:
    """For settings of k1 and b the seconds for impacts alone, and for 300 topics after that."""
    index = Index.open(folder / "fontes")
    topics = Topics(Topic(str(i), text) for i, text in enumerate(read(folder / "queries.terms.jsonl")[1][:300]))
    index.bm25()(topics)
    seconds = []
    for k1 in (0.6, 0.8, 1.0, 1.2, 1.4, 1.6):
        stage, start = index.bm25(k1=k1, b=0.3 + k1 / 4), time.perf_counter()
        impacts.impacts_of(index.state.parts[0], stage.weighting)
        worked_out = time.perf_counter()
        stage(topics)
        seconds.append([worked_out - start, time.perf_counter() - worked_out])
    return seconds


def ids_of(index: Any) -> tuple[Any, Any]:
    """Places of the ids, and the documents by place."""
    return index.state.ids.rank, index.state.ids.order


def prepared(index: Any, texts: Sequence[str]) -> tuple[Any, Any, Any]:
    """Topics as the kernel takes them."""
    bags = [sorted((index.term_number(term), n) for term, n in Counter(text.split()).items()) for text in texts]
    bags = [[(place, n) for place, n in bag if place >= 0] for bag in bags]
    bounds = np.zeros(len(bags) + 1, dtype=np.int64)
    np.cumsum([len(bag) for bag in bags], out=bounds[1:])
    terms = np.array([place for bag in bags for place, _ in bag], dtype=np.int32)
    return bounds, terms, np.array([n for bag in bags for _, n in bag], dtype=np.float64)


def search(loop: Any, first: int, last: int, topics: Any, made: Any, ids: Any, k: int, depth: int, out: Any) -> None:
    """Search some topics by a kernel's loop."""
    (bounds, terms, weights), (lists, bounds_of, idfs) = topics, made
    for topic in range(first, last):
        rows = slice(bounds[topic], bounds[topic + 1])
        bag = terms[rows], weights[rows], idfs[rows], lists, bounds_of, lists[1][terms[rows]]
        row = slice(topic - first, topic - first + 1)
        loop(bag, None, ALL, ids, k, depth, np.float32(0), tuple(array[row] for array in out))


def overhead(index: Any, texts: Sequence[str], runs: int) -> dict[str, list[float]]:
    """Milliseconds of search(text, k), of the kernel alone, and the difference: the least of the runs, medians over topics."""
    stage = index.bm25(threads=1)
    topics, of_model = prepared(index, texts), impacts.impacts_of(index.state.parts[0], stage.weighting)
    made = of_model.postings, of_model.limits, of_model.idfs(topics[1])
    found = {}
    for depth, k in enumerate(DEPTHS):
        rows, out = [], buffers(1, k)
        for i, text in enumerate(texts):
            calls, searches = [], []
            for turn in range(2 * runs):
                start = time.perf_counter()
                if turn % 2:
                    stage.search(text, k)
                else:
                    search(kernel.search_bag, i, i + 1, topics, made, ids_of(index), k, depth, out)
                (calls if turn % 2 else searches).append(time.perf_counter() - start)
            both = min(calls[1:]), min(searches[1:])
            rows.append((*both, both[0] - both[1]))
        found[str(k)] = [1000 * statistics.median(column) for column in zip(*rows, strict=True)]
    return found


THRESHOLD = {"        if depth >= 0:\n            least =": "        if depth >= 0 and False:\n            least ="}
BOUNDS = {"        size = _pruned(bag": "        block_bounds[:] = np.inf\n        size = _pruned(bag"}
VARIANTS: dict[str, dict[str, str]] = {  # what is replaced in the kernel
    "as it is": {},
    "no first threshold": THRESHOLD,
    "no bounds of blocks": BOUNDS,
    "neither": THRESHOLD | BOUNDS,
}


def buffers(count: int, k: int) -> tuple[Any, Any, Any, Any]:
    """Results of so many topics, as the kernel takes them."""
    few, many = (k, 0) if k <= SORTED else (0, k)
    keys = np.zeros((count, many), dtype=np.uint64)
    return np.zeros(count, dtype=np.int64), np.zeros((count, few), np.int32), np.zeros((count, few), np.float32), keys


def ablations(index: Any, parts: dict[str, list[str]], runs: int) -> dict[str, Any]:
    """Milliseconds a query of variants of the kernel, one thread, in turns, the least of the runs; all find the same."""
    source = Path(kernel.__file__).read_text(encoding="utf-8")
    weighting, variants = index.bm25(k1=K1, b=B).weighting, {}
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for number, (name, changes) in enumerate(VARIANTS.items()):
            text = source
            for old, new in changes.items():
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            (Path(folder) / f"kernel{number}.py").write_text(
                text.replace("from ..", "from fontes.").replace("from .keys", "from fontes.lexical.keys"), encoding="utf-8"
            )
            module = __import__(f"kernel{number}")
            made = impacts.impacts_of(index.state.parts[0], weighting)
            variants[name] = module.search_bag, made.postings, made.limits
        loop, lists, limits = variants["as it is"]
        variants["every document, one after the other"] = loop, lists, (*limits[:2], np.zeros_like(limits[2]), *limits[3:])
        found: dict[str, Any] = {}
        for part, texts in parts.items():
            topics = prepared(index, texts)
            idfs = made.idfs(topics[1])
            for depth, k in enumerate(DEPTHS):
                seconds: dict[str, list[float]] = {name: [] for name in variants}
                results = {}
                for _ in range(runs + 1):
                    for name, (loop, lists, bounds_of) in variants.items():
                        out = buffers(len(texts), k)
                        start = time.perf_counter()
                        search(loop, 0, len(texts), topics, (lists, bounds_of, idfs), ids_of(index), k, depth, out)
                        seconds[name].append((time.perf_counter() - start) / len(texts))
                        results[name] = np.sort(out[3], axis=1) if k > SORTED else out[1]
                assert all(np.array_equal(results["as it is"], one) for one in results.values())
                found[f"{part} {k}"] = {name: 1000 * min(some[1:]) for name, some in seconds.items()}
            print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
