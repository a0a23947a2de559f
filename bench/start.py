"""Times what comes before the first result: import, the command line, opening an index, the first query, reading a run.

    FONTES_DATA=DIR python bench/start.py [--runs 7]

Each measurement is a process of its own. Large runs are made up: 1,000 of 8,841,823 passages for each topic, as for MS MARCO.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from build import COLLECTION, unpacked
from harness import amount, machine, options, process, spread, table

from fontes import Index

PASSAGES, DEPTH = 8_841_823, 1000

FIRST_QUERY = """
import json, sys, time
a = time.perf_counter()
from fontes import Index
b = time.perf_counter()
index = Index.open(sys.argv[1])
c = time.perf_counter()
bm25 = index.bm25()
bm25.search("the history of the railway", 10)
d = time.perf_counter()
bm25.search("a battle of the second world war", 10)
e = time.perf_counter()
without = "numba" not in sys.modules
bm25(["railway", "second world war"])
f = time.perf_counter()
assert without
print(json.dumps({"import": b - a, "open": c - b, "first": d - c, "second": e - d, "run": f - e}))
"""

READ = """
import gc, json, os, sys, time
from fontes import evaluate, read_qrels, read_run
def memory():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before, start = memory(), time.perf_counter()
run = read_run(sys.argv[1])
read, held = time.perf_counter() - start, memory() - before
qrels = read_qrels(sys.argv[2])
start = time.perf_counter()
evaluate(run, qrels, ["nDCG@10", "AP", "RR@10", "R@1000", "P@5"])
cold = time.perf_counter() - start
start = time.perf_counter()
evaluate(run, qrels, ["nDCG@10", "AP", "RR@10", "R@1000", "P@5"])
warm = time.perf_counter() - start
print(json.dumps({"rows": run.rows, "read": read, "held": held, "evaluate": cold, "again": warm}))
"""


def main() -> None:
    given = options(__doc__, runs=7).parse_args()
    print(machine(), flush=True)
    starting(given.runs)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        searching(given.data / COLLECTION, folder, given.runs)
        for topics in (amount(7000, 20), amount(6980, 10)):
            reading(folder, topics, amount(max(3, given.runs // 2), 1))


def starting(runs: int) -> None:
    commands = {
        "python, nothing": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import fontes": ["-c", "import fontes"],
        "import fontes, all public names": ["-c", "from fontes import *"],
        "fontes --help": ["-m", "fontes", "--help"],
    }
    found: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, arguments in commands.items():
            seconds = process([sys.executable, *arguments]).wall
            if turn:
                found[name].append(1000 * seconds)
    table("Starting", ["whole process", "ms"], [[name, spread(values, 0)] for name, values in found.items()])
    beyond = [ours - theirs for ours, theirs in zip(found["import fontes"], found["import numpy"], strict=True)]
    print(f"\n`import fontes` beyond `import numpy`: {spread(beyond, 0)} ms")


def searching(source: Path, folder: Path, runs: int) -> None:
    Index.build(unpacked(source, folder), folder / "index")
    rows = []
    for kernels in ("compiled and cached", "compiled anew")[: amount(2, 1)]:
        reports = []
        for turn in range(runs):
            cache = {} if kernels == "compiled and cached" else {"NUMBA_CACHE_DIR": str(folder / f"cache{turn}")}
            reports.append(process([sys.executable, "-c", FIRST_QUERY, folder / "index"], {**os.environ, **cache}))
        names = ("import", "open", "first", "second", "run")
        cells = [spread([1000 * one.report[name] for one in reports], 1) for name in names]
        rows.append([kernels, *cells, spread([1000 * one.wall for one in reports], 0)])
    header = ["kernels", "import Index, ms", "Index.open, ms", "first query, ms", "second query, ms"]
    header += ["first run, which loads Numba, ms", "whole process, ms"]
    table("First query on 207,168 passages", header, rows)
    command = [sys.executable, "-m", "fontes", "search", folder / "index", "the history of the railway"]
    walls = [1000 * process(command).wall for _ in range(runs)]
    table("fontes search on 207,168 passages", ["whole process, ms"], [[spread(walls, 0)]])


def reading(folder: Path, topics: int, runs: int) -> None:
    made_up(folder, topics)
    arguments = [sys.executable, "-c", READ, folder / "made.run", folder / "made.qrels"]
    reports = [process(arguments) for _ in range(runs)]

    def column(name: str, scale: float = 1.0, digits: int = 2) -> str:
        return spread([one.report[name] * scale for one in reports], digits)

    cells = [column("read"), column("held", 2**-20, 0), column("evaluate"), column("again")]
    size = (folder / "made.run").stat().st_size
    header = ["rows", "file, MB", "read_run, s", "memory it holds, MiB", "first evaluate of 5 measures, s", "again, s"]
    table(f"A run of {topics:,} topics", header, [[f"{reports[0].report['rows']:,}", f"{size / 1e6:.0f}", *cells]])


def made_up(folder: Path, topics: int) -> None:
    """Writes made.run, and made.qrels with one relevant document for each topic."""
    draw = np.random.default_rng(1)
    with (folder / "made.run").open("w") as run, (folder / "made.qrels").open("w") as qrels:
        for topic in range(topics):
            docs = draw.choice(PASSAGES, DEPTH, replace=False).tolist()
            scores = np.sort(draw.gamma(9, 1, DEPTH))[::-1].tolist()
            rows = enumerate(zip(docs, scores, strict=True), 1)
            run.writelines(f"{topic} Q0 {doc} {rank} {score:.6f} made\n" for rank, (doc, score) in rows)
            qrels.write(f"{topic} 0 {docs[draw.integers(DEPTH)]} 1\n")


if __name__ == "__main__":
    main()
