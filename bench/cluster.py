"""Times what a cluster does against the same on one machine.

    FONTES_DATA=DIR python bench/cluster.py search [--work DIR] [--shards 4] [--runs 5]
    FONTES_DATA=DIR python bench/cluster.py encoding [--model FOLDER] [--documents 1024] [--runs 3]
    FONTES_DATA=DIR python bench/cluster.py build [--corpus FILE] [--parts 2,4,8] [--runs 3]

Ray is started on this machine with all its processors, before the clock.

`search`: wikipedia_passages (207,168 passages) as one index and as one of several shards, with the file of its queries: the
processor's time of a build and of a cut; milliseconds of a batch of queries by one thread over one index, by one thread over
the shards, by all threads over the shards, and by actors of Ray. The runs are compared. Indexes that are in `--work` are used
again.

`encoding`: documents of SciFact, all-MiniLM-L6-v2 in float32, all processors for both. "Encoding" begins with the first block
that is done and ends with the last one, so that it is without the start of the actors and without loading the model there.

`build`: a build by tasks against one by threads: the overhead of parts, of merges and of Ray. Builds take turns; the quickest
of each counts, and the files must be equal. The first build by Ray, in which its processes load Fontes, does not count.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from build import COLLECTION, unpacked
from harness import data_option, machine, middle, table

from fontes import Index, SentenceEncoder, read_corpus, read_topics
from fontes.cluster import building, joined
from fontes.core import Topics
from fontes.core.work import Progress
from fontes.index.embeddings import journal

BATCHES = 1, 10, 100
BLOCK = 128  # documents; smaller than in use, so that there are blocks enough to measure


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("part", choices=sorted(PARTS), help="what is measured")
    parser.add_argument("--work", type=Path, help="where indexes go; those of `search` stay (default: nowhere)")
    parser.add_argument("--runs", type=int, default=3, help="how often everything is measured (default: %(default)s)")
    parser.add_argument("--shards", type=int, default=4, help="search: of the sharded index (default: %(default)s)")
    parser.add_argument(
        "--model", default="all-MiniLM-L6-v2", help="encoding: a folder, or a name on the hub (default: %(default)s)"
    )
    parser.add_argument("--documents", type=int, default=1024, help="encoding: how many (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, help="build: JSON lines (default: wikipedia_passages)")
    parser.add_argument("--parts", default="", help="build: numbers of parts, separated by commas (default: as a user gets it)")
    given = parser.parse_args()
    print(machine(), flush=True)
    if given.work:
        given.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.work) as temporary:
        PARTS[given.part](given, Path(temporary))


def search(given: Any, work: Path) -> None:
    """A batch of queries, by one index and by shards."""
    work = given.work or work
    paths, rows = {}, []
    for shards in (1, given.shards):
        paths[shards] = path = work / f"{shards}.index"
        if not (path / "manifest.json").exists():
            corpus = unpacked(given.data / COLLECTION, work)
            start, used = time.perf_counter(), time.process_time()
            Index.build(corpus, path, shards=shards, overwrite=True)
            rows.append((f"{shards} shards", f"{time.process_time() - used:.1f}", f"{time.perf_counter() - start:.1f}"))
    if rows:
        table("Builds", ("", "processor, s", "s"), rows)
    topics = list(read_topics(given.data / COLLECTION / "queries.jsonl").values())
    start = time.perf_counter()
    by_actors = Index.open(paths[given.shards], ray=True)
    opened = time.perf_counter() - start
    one, shards = Index.open(paths[1]), Index.open(paths[given.shards])
    ways = {
        "one index, 1 thread": one.bm25(k=100, threads=1),
        f"{given.shards} shards, 1 thread": shards.bm25(k=100, threads=1),
        f"{given.shards} shards, all threads": shards.bm25(k=100),
        f"{given.shards} shards, actors of Ray": by_actors.bm25(k=100),
    }
    whole = Topics(topics)
    runs = {name: stage(whole) for name, stage in ways.items()}  # warm
    same = all(run == runs["one index, 1 thread"] for run in runs.values())
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(given.runs):  # in turn, so that a load of the machine is the same for all
        for size in BATCHES:
            batch = Topics(topics[:size])
            for name, stage in ways.items():
                start = time.perf_counter()
                stage(batch)
                times.setdefault((name, size), []).append(1000 * (time.perf_counter() - start))
    table(
        f"Milliseconds a batch of queries, best 100 (the actors took {opened:.1f} s to open; runs equal: {same})",
        ("", *(f"{size} queries" for size in BATCHES)),
        [(name, *(f"{middle(times[name, size]):.1f}" for size in BATCHES)) for name in ways],
    )
    first, second = (min(times[name, BATCHES[-1]]) for name in list(ways)[:2])
    print(f"\n{given.shards} shards over one index, 1 thread, best of {given.runs}: {second / first:.2f}", flush=True)


def encoding(given: Any, work: Path) -> None:
    """Documents encoded here and by actors, in turns."""
    journal.BLOCK_DOCUMENTS = BLOCK
    here = Path(__file__).resolve().parent.parent / "src"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    encoder = SentenceEncoder(given.model, precision="float32")
    Index.build(list(islice(read_corpus(given.data / "scifact"), given.documents)), work / "plain")
    start = time.perf_counter()
    with joined(True, "the benchmark"):
        started = time.perf_counter() - start
        whole: dict[str, list[float]] = {"threads": [], "actors of Ray": []}
        inside: dict[str, list[float]] = {"threads": [], "actors of Ray": []}
        vectors = {}
        encoder.encode_queries(["warm"])
        for run in range(given.runs):
            for name, ray in (("threads", None), ("actors of Ray", True)):
                path = Path(shutil.copytree(work / "plain", work / f"{run}-{name[0]}"))
                seconds, between = encoded(Index.open(path), encoder, ray)
                whole[name].append(seconds)
                inside[name].append(between)
                vectors[name] = Index.open(path).embeddings(encoder).decoded(slice(None))
    difference = float(np.abs(vectors["threads"] - vectors["actors of Ray"]).max())
    table(
        f"{given.documents} documents; a Ray started in {started:.1f} s; vectors differ by {difference:.1e} at most",
        ("", "all, s", "encoding, s"),
        [(name, f"{middle(whole[name]):.1f}", f"{middle(inside[name]):.1f}") for name in whole],
    )
    ratio = min(inside["actors of Ray"]) / min(inside["threads"])
    print(f"\nactors over threads, encoding, best of {given.runs}: {ratio:.2f}", flush=True)


def encoded(index: Index, encoder: SentenceEncoder, ray: bool | None) -> tuple[float, float]:
    """Seconds of all, and from the first block to the last."""
    blocks: list[float] = []
    counts: set[int] = set()

    def report(progress: Progress) -> None:
        if progress.done and progress.done % BLOCK == 0 and progress.done not in counts:
            counts.add(progress.done)
            blocks.append(time.perf_counter())

    start = time.perf_counter()
    index.encode(encoder, ray=ray, progress=report)
    return time.perf_counter() - start, blocks[-1] - blocks[0] if blocks else float("nan")


def build(given: Any, work: Path) -> None:
    """An index of one file, by threads and by tasks."""
    corpus = given.corpus or unpacked(given.data / COLLECTION, work)
    total, usual = corpus.stat().st_size, building.PART
    numbers = [int(number) for number in given.parts.split(",") if number] or [0]
    one = min(built(corpus, work / "by-threads")[0] for _ in range(2))  # the first compiles
    start = time.perf_counter()
    with joined(True) as cluster:
        print(f"Ray: {time.perf_counter() - start:.1f} s to start, {cluster.cpus} processors", flush=True)
        best: dict[int, tuple[float, float]] = {}
        for turn in range(given.runs + 1):  # the first loads Fontes in Ray's processes
            if turn:
                one = min(one, built(corpus, work / "by-threads")[0])
            for number in numbers:
                building.PART = -(-total // number) if number else usual
                seconds = built(corpus, work / "by-tasks", ray=True)
                if turn:
                    best[number] = min(best.get(number, seconds), seconds)
                assert digests(work / "by-threads") == digests(work / "by-tasks")
    rows = [("threads", f"{one:.1f}", "", "1.00")]
    for number, (seconds, merges) in best.items():
        ratio = f"{seconds / one:.2f}"
        rows.append((f"Ray, {number or 'the usual'} parts", f"{seconds:.1f}", f"{merges:.1f}", ratio))
    print(f"{corpus.name}, {total:,} bytes: the files of all builds are equal")
    table("Build", ("", "s", "of which merges", "ratio"), rows)


def built(corpus: Path, path: Path, ray: bool | None = None) -> tuple[float, float]:
    """The seconds of a build, and of its merges."""
    shutil.rmtree(path, ignore_errors=True)
    merging = [0.0]

    def report(progress: Progress) -> None:
        if progress.task == "merging" and ray:
            merging[0] = progress.seconds

    os.sync()
    start = time.perf_counter()
    Index.build(corpus, path, ray=ray, progress=report)
    return time.perf_counter() - start, merging[0]


def digests(path: Path) -> dict[str, str]:
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


PARTS: dict[str, Callable[[Any, Path], None]] = {"build": build, "encoding": encoding, "search": search}

if __name__ == "__main__":
    sys.exit(main())
