"""Measures the memory of builds: the anonymous memory of a process and its pages of files, at their peaks.

    python bench/memory.py CORPUS.jsonl [--memory 20M,500M] [--threads 1,2]

Each build is a process of its own, which is looked at 50 times a second. "formula" is what the guide says: 75 MB, what `memory`
says, and 15 MB for each thread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from harness import table

BUILD = (
    "import sys; from fontes import Index; Index.build(sys.argv[1], sys.argv[2], memory=sys.argv[3], threads=int(sys.argv[4]))"
)
BASE, THREAD = 75, 15  # MB of the formula


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--memory", default="20M,500M", help="sizes in M, separated by commas (default: %(default)s)")
    parser.add_argument("--threads", default="1,2", help="numbers, separated by commas (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="where the indexes go for the time being")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.work) as work, given.corpus.open("rb") as lines:
        some = Path(work) / "some.jsonl"
        some.write_bytes(b"".join(islice(lines, 5_000)))
        peaks(some, Path(work) / "index", "1M", 1)  # compiles kernels, which takes memory, too
    rows = []
    for memory in given.memory.split(","):
        for threads in map(int, given.threads.split(",")):
            with tempfile.TemporaryDirectory(dir=given.work) as work:
                seconds, anonymous, files = peaks(given.corpus, Path(work) / "index", memory, threads)
            formula = BASE + int(memory.rstrip("M")) * 1.048576 + THREAD * threads
            row = [memory, threads, f"{formula:.0f}", f"{anonymous:.0f}", f"{anonymous / formula:.2f}", f"{files:.0f}"]
            rows.append([*row, f"{seconds:.1f}"])
    header = ["memory", "threads", "formula, MB", "anonymous, MB", "ratio", "files, MB", "seconds"]
    table(f"Memory of builds of {given.corpus.name}", header, rows)


def peaks(corpus: Path, index: Path, memory: str, threads: int) -> tuple[float, float, float]:
    """Seconds of a build, and its peaks of anonymous and of file-backed memory, in MB."""
    start, anonymous, files = time.perf_counter(), 0, 0
    child = subprocess.Popen([sys.executable, "-c", BUILD, *map(str, (corpus, index, memory, threads))])
    while child.poll() is None:
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        sizes = {
            name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if name.startswith("Rss")
        }
        anonymous, files = max(anonymous, sizes.get("RssAnon", 0)), max(files, sizes.get("RssFile", 0))
        time.sleep(0.02)
    if child.returncode:
        raise SystemExit(child.returncode)
    return time.perf_counter() - start, anonymous * 1024 / 1e6, files * 1024 / 1e6


if __name__ == "__main__":
    main()
