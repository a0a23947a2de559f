"""Times what a cluster does against the same on one machine.

    FONTES_DATA=DIR python bench/cluster.py search [--work DIR] [--shards 4] [--runs 5]

`search`: wikipedia_passages (207,168 passages) as one index and as one of several shards, with the file of its queries: the
processor's time of a build and of a cut; milliseconds of a batch of queries by one thread over one index, by one thread over
the shards, by all threads over the shards, and by actors of Ray. The runs are compared. Indexes that are in `--work` are used
again.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build import COLLECTION, unpacked
from harness import data_option, machine, middle, table

from fontes import Index, read_topics
from fontes.core import Topics

BATCHES = 1, 10, 100


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("part", choices=sorted(PARTS), help="what is measured")
    parser.add_argument("--work", type=Path, help="where indexes are kept (default: nowhere)")
    parser.add_argument("--shards", type=int, default=4, help="of the sharded index (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: %(default)s)")
    given = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        PARTS[given.part](given, work)


def search(given: Any, work: Path) -> None:
    """A batch of queries, by one index and by shards."""
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


PARTS: dict[str, Callable[[Any, Path], None]] = {"search": search}

if __name__ == "__main__":
    sys.exit(main())
