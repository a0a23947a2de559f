"""Times how long Fontes and its peers take to build an index of wikipedia_passages (207,168 passages).

    FONTES_DATA=DIR python bench/build.py [--runs 5] [--only fontes,bm25s] [--threads 1,2] [--corpus FILE.jsonl] [--stored]

With --corpus it is that of another file, such as generate.py makes. Each build is a process of its own. "build" begins when the
program is imported and its input is ready (ids and texts in memory; for Fontes from the file and for Pyserini a file) and ends
when the index is complete; "process" is all of it.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import Process, engine, machine, middle, options, size, spread, table

COLLECTION = "wikipedia_passages"
BUILDS = (  # engine, whether it stores the text, and what to call it
    ("fontes", True, "Fontes, text stored"),
    ("fontes-file", True, "Fontes, text stored, from the file"),
    ("bm25s", False, "bm25s"),
    ("tantivy", False, "tantivy"),
    ("tantivy", True, "tantivy, text stored"),
    ("pisa", False, "PISA"),
    ("pyserini", False, "Pyserini"),
    ("pyserini", True, "Pyserini, text stored"),
)
ALONE = ("bm25s",)  # those that have one thread only
Build = tuple[str, int, bool, str]  # with the threads


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", default="", help="engines, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers, separated by commas (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, help="a file of JSON lines in place of the collection's")
    parser.add_argument("--stored", action="store_true", help="only builds that store the text")
    parser.add_argument("--work", type=Path, help="where the indexes go for the time being")
    given = parser.parse_args()
    chosen = [b for b in BUILDS if not given.only or b[0].partition("-")[0] in given.only.split(",")]
    numbers = [int(number) for number in given.threads.split(",")]
    wanted: list[Build] = [
        (name, threads, text, title)
        for name, text, title in chosen
        for threads in numbers
        if (threads == 1 or name not in ALONE) and (text or not given.stored)
    ]
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        corpus = unpacked(given.data / COLLECTION, Path(work)) if given.corpus is None else Path(work) / "corpus.jsonl"
        if given.corpus is not None:
            corpus.symlink_to(given.corpus.absolute())
        for name, threads, text, _ in wanted:  # compiles kernels and fills the disk cache
            if name.startswith("fontes") or (threads == 1 and not text):
                build(name, given.peers, corpus, threads, text)
        done: dict[Build, list[Process]] = {b: [] for b in wanted}
        sizes = {}
        for _ in range(given.runs):
            for b in wanted:
                done[b].append(build(b[0], given.peers, corpus, b[1], b[2]))
                sizes[b] = on_disk(b[0], corpus.parent / "index")
                print(f"{b[3]}, {b[1]} threads: {done[b][-1]}", file=sys.stderr)
        report(done)
        report_sizes({b[3]: sizes[b] for b in wanted if b[1] == numbers[0]}, corpus)
        if given.corpus is None and any(b[0] == "fontes" for b in wanted):
            cold = [build("fontes", given.peers, corpus, 2, True, Path(work) / f"cache{i}") for i in range(given.runs)]
            print(f"\nFontes, 2 threads, kernels compiled first: process {spread([p.wall for p in cold])} s")


def build(name: str, peers: Path, corpus: Path, threads: int, text: bool, cache: Path | None = None, **tries: Any) -> Process:
    """Runs one build; `cache` is where Numba keeps compiled kernels; `tries` as for `harness.process`."""
    arguments = [corpus, corpus.parent / "index", "--threads", threads, *(["--text"] if text else [])]
    variables = {"NUMBA_CACHE_DIR": str(cache)} if cache else None
    return engine(name, peers, "engines.py", "build", name, *arguments, variables=variables, **tries)


def unpacked(folder: Path, work: Path) -> Path:
    """The corpus as a plain file in `work`."""
    corpus = work / "corpus.jsonl"
    packed = folder / "corpus.jsonl.gz"
    if not packed.exists():
        return Path(shutil.copy(folder / "corpus.jsonl", corpus))
    with gzip.open(packed, "rb") as source, corpus.open("wb") as to:
        shutil.copyfileobj(source, to)
    return corpus


def on_disk(name: str, index: Path) -> tuple[int, int]:
    """Bytes of an index, and how many of them are the text of Fontes' documents."""
    text = sum(f.stat().st_size for f in index.glob("segment-*/text.*")) if name.startswith("fontes") else 0
    return size(index), text


def report(done: dict[Build, list[Process]]) -> None:
    for threads in sorted({b[1] for b in done}):
        some = {b[3]: runs for b, runs in done.items() if b[1] == threads}
        if not some:
            continue
        builds = {name: [p.report["seconds"]["build"] for p in runs] for name, runs in some.items()}
        best = min(middle(seconds) for seconds in builds.values())
        rows = [
            [
                name,
                spread(builds[name]),
                f"{middle(builds[name]) / best:.2f}",
                spread([p.wall for p in runs]),
                f"{middle(p.cpu for p in runs):.1f}",
                f"{middle(p.memory for p in runs):,.0f}",
                f"{max(p.others for p in runs):.2f}",
            ]
            for name, runs in some.items()
        ]
        header = ["", "build, s", "× fastest", "process, s", "processor, s", "peak memory, MiB", "cores busy elsewhere, most"]
        table(f"{threads} thread{'s' * (threads > 1)}, median (least–greatest)", header, rows)


def report_sizes(sizes: dict[str, tuple[int, int]], corpus: Path) -> None:
    rows = [[name, megabytes(total), megabytes(total - text) if text else ""] for name, (total, text) in sizes.items()]
    rows.append(["(the corpus as jsonl)", megabytes(corpus.stat().st_size), ""])
    table("On disk", ["", "MB", "without its text"], rows)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f}"


if __name__ == "__main__":
    main()
