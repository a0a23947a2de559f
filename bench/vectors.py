"""Times searches in vectors beside their own engines: exact, HNSW, late interaction, learned sparse; side by side and in turns.

    python bench/peers.py --peers DIR --vectors
    FONTES_DATA=… python bench/vectors.py --peers DIR --work DIR --splade FOLDER [--parts dense,hnsw,late,sparse] [--quick]

Prints Markdown tables. vector_data.py says which vectors these are. All engines read the same arrays, and each is a process of
its own, which builds its index in --work once, with one thread, and waits while the others have their turn. Fontes is called as
users call it, by `stage.search(text, k)` and `stage(topics)`; texts are numbers of vectors that are there already. Recall is
that against all products of the float32 vectors (late: of the float16 ones), by numpy or scipy. --quick times a fourth of the
queries. Each time is noted on stderr when it is there.

"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import peers
import vector_data
from harness import Worker, data_option, machine, table

HERE = Path(__file__).parent
HNSW = 50_000  # of the dense vectors
CODES = ("rabitq4", "rabitq2", "rabitq1")
EFFORTS: dict[str, list[Any]] = {  # of the systems whose recall depends on it
    "dense faiss binary": [100, 1000],  # candidates that float32 rescores
    "hnsw": [16, 32, 64, 128, 256],
    "late fontes centroids": [None, {"candidates": 1024}, {"candidates": 4096}],
    "late plaid": [None, {"n_ivf_probe": 4, "n_full_scores": 1024}],
    "late tachiom": [
        {"k_centroids": 20, "ef_search": 30, "k_docs_to_score": 50, "alpha": 0.45},
        {"k_centroids": 20, "ef_search": 30, "k_docs_to_score": 100, "alpha": 0.45},
        {"k_centroids": 20, "ef_search": 30, "k_docs_to_score": 250, "alpha": 0.45},  # its own for MS MARCO
        {"k_centroids": 40, "ef_search": 60, "k_docs_to_score": 500, "alpha": 0.35},
        {"k_centroids": 80, "ef_search": 120, "k_docs_to_score": 1000, "alpha": None},
    ],
    "sparse seismic": [(3, 0.9), (8, 0.9), (10, 0.7), (20, 0.5)],  # terms of the query that are looked at; heap factor
}
SYSTEMS = {
    "dense": [f"{engine} {dtype}" for dtype in ("float32", "float16", "int8", *CODES) for engine in ("fontes", "faiss")]
    + ["faiss binary", "usearch float32", "usearch float16", "numpy float32"],
    "hnsw": ["fontes", "faiss", "hnswlib", "usearch"],
    "late": ["fontes centroids", "tachiom", "plaid", "fontes exhaustive", "numpy"],
    "sparse": ["fontes", "scipy", "pisa maxscore", "pisa block_max_wand", "seismic"],
}
TRUTH = {"dense": "numpy float32", "hnsw": "numpy", "late": "numpy", "sparse": "scipy"}
ASKED = {  # one by one, in a batch (FAISS multiplies matrices from 334 queries of 384 dimensions up), and for recall
    "dense": (40, 512, 100),
    "hnsw": (1000, 1000, 1000),
    "late": (40, 80, 80),
    "sparse": (500, 500, 500),
}
SLOW = 5  # of so many queries those below are timed with one
FEWER = {f"late {name}" for name in ("plaid", "fontes exhaustive", "numpy")} | {f"dense usearch float{n}" for n in (16, 32)}
COLUMNS = [("one", 1), ("one", 2), ("batch", 1), ("batch", 2)]
DEPTHS = (10, 100)


class Engine(Worker):
    """A process with one engine."""

    def __init__(self, part: str, name: str, folder: Path, options: argparse.Namespace) -> None:
        ours = name.startswith("fontes")
        python = sys.executable if ours else peers.python(options.peers / (name if name in ("plaid", "tachiom") else "vectors"))
        variables = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "FONTES_CACHE": str(options.work / "cache")}
        super().__init__([python, HERE / "vector_engines.py", part, name, folder], variables)
        self.built = self.answer()


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT)
    parser.add_argument("--splade", help="the folder of a SPLADE model")
    parser.add_argument("--parts", default="dense,hnsw,late,sparse", help="(default: %(default)s)")
    parser.add_argument("--vectors", type=int, default=150_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=25_000)
    parser.add_argument(
        "--sparse-size", type=int, help="documents of the part sparse, mixed from --passages; --work of its own"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processor", action="store_true", help="seconds of processor, not of the clock, for a busy machine")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print(machine())
    for part in options.parts.split(","):
        folder = vector_data.prepare("dense", options) if part == "hnsw" else vector_data.prepare(part, options)
        compare(part, _subset(options.work / "hnsw", folder) if part == "hnsw" else folder, options)


def _subset(folder: Path, whole: Path) -> Path:
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        np.save(folder / "base.npy", np.load(whole / "base.npy", mmap_mode="r")[:HNSW])
        shutil.copy(whole / "queries.npy", folder)
        (folder / "done").touch()
    return folder


def compare(part: str, folder: Path, options: argparse.Namespace) -> None:
    """Times the systems of a part in turns, one query at a time and in a batch, with one thread and two."""
    engines = {name: Engine(part, name, folder, options) for name in SYSTEMS[part]}
    one, batch, recalled = (count // 4 if options.quick else count for count in ASKED[part])
    truth = _truth(part, folder, options, recalled)
    settings = [(n, effort) for n in engines for effort in EFFORTS.get(f"{part} {n}", EFFORTS.get(part, [None]))]
    for k in DEPTHS:
        times: dict[Any, list[float]] = {}
        recalls = [1.0 if name == TRUTH[part] else _recall(engines[name], effort, k, truth) for name, effort in settings]
        for turn in range(options.runs + 1):  # the first one warms up
            for number, (name, effort) in enumerate(settings):
                order = {"k": k, "effort": effort, "first": 0, "processor": options.processor}
                for way, threads in COLUMNS:
                    again = turn > 1 and way == "batch" and part in ("dense", "late")
                    if again or (not turn and way == "batch"):
                        continue
                    count = 2 if not turn else _asked(part, name, one if way == "one" else batch)
                    took = engines[name].answer(way=way, last=count, threads=threads, **order)
                    if turn:
                        times.setdefault((number, way, threads), []).append(took)
                        note(f"{part}, k = {k}, {name} {effort or ''}: {way}, {threads} threads: {took:.3f} ms")
        rows = []
        for number, (name, effort) in enumerate(settings):
            middle = [f"{statistics.median(times[number, *column]):.3f}" for column in COLUMNS]
            shown = "" if effort is None else str(effort)
            rows.append([name, shown, _seconds(name, engines[name].built), f"{recalls[number]:.4f}", *middle])
        header = ["", "effort", "built in s", f"recall@{k}", "one, 1 thread", "one, 2", f"{batch} together, 1 thread", "2"]
        table(f"{part}, k = {k}, ms a query; medians of {options.runs}", header, rows)
    for engine in engines.values():
        engine.end()


def _asked(part: str, name: str, count: int) -> int:
    """How many queries a system is timed with: a slow one with fewer."""
    return max(2, count // SLOW) if f"{part} {name}" in FEWER else count


def _recall(engine: Engine, effort: Any, k: int, truth: list[list[int]]) -> float:
    ids = engine.answer(way="hits", first=0, last=len(truth), k=k, effort=effort, threads=2)
    return statistics.mean(len(set(a[:k]) & set(b[:k])) / k for a, b in zip(ids, truth, strict=True))


def _seconds(name: str, built: dict[str, float]) -> str:
    """How long the build took, of a system that has one."""
    noted = max((key for key in built if name.replace(" ", "-").startswith(key)), key=len, default=None)
    return "" if noted is None else f"{built[noted]:.0f}"


def note(line: str) -> None:
    """What has been measured just now, for who waits for the tables."""
    sys.stderr.write(line + "\n")


def _truth(part: str, folder: Path, options: argparse.Namespace, count: int) -> list[list[int]]:
    """The best 100 of each query."""
    kept = folder / f"truth-{count}.json"
    if not kept.exists():
        engine = Engine("dense" if part == "hnsw" else part, TRUTH[part], folder, options)
        kept.write_text(json.dumps(engine.answer(way="hits", k=max(DEPTHS), effort=None, first=0, last=count, threads=2)))
        engine.end()
    best: list[list[int]] = json.loads(kept.read_text())
    return best


if __name__ == "__main__":
    main()
