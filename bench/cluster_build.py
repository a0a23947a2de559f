"""Times a build by tasks of Ray against one by threads: the overhead of parts, of merges and of Ray.

    python bench/cluster_build.py CORPUS.jsonl [--work DIR] [--runs 3] [--parts 2,4,8]

Both have as many processors as the machine. Builds take turns; the quickest of each counts, and the files must be equal. Ray is
started before, and the time that it takes is told apart, as is that of the first tasks, in which its processes load Fontes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from harness import machine, table

from fontes import Index
from fontes.cluster import joined
from fontes.core.progress import Progress
from fontes.index.spread import driver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes go for the time being")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", default="", help="numbers of parts, separated by commas (default: as a user gets it)")
    given = parser.parse_args()
    print(machine(), flush=True)
    total = given.corpus.stat().st_size
    numbers = [int(number) for number in given.parts.split(",") if number] or [0]
    usual = driver.PART
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        work = Path(folder)
        one = min(timed(given.corpus, work / "one")[0] for _ in range(2))  # the first compiles
        start = time.perf_counter()
        with joined(True) as cluster:
            print(f"Ray: {time.perf_counter() - start:.1f} s to start, {cluster.cpus} processors", flush=True)
            best: dict[int, tuple[float, float]] = {}
            for turn in range(given.runs + 1):  # the first loads Fontes in Ray's processes
                if turn:
                    one = min(one, timed(given.corpus, work / "one")[0])
                for number in numbers:
                    driver.PART = -(-total // number) if number else usual
                    seconds = timed(given.corpus, work / "many", ray=True)
                    if turn:
                        best[number] = min(best.get(number, seconds), seconds)
                    assert digests(work / "one") == digests(work / "many")
        rows = [("threads", f"{one:.1f}", "", "1.00")]
        for number, (seconds, merges) in best.items():
            ratio = f"{seconds / one:.2f}"
            rows.append((f"Ray, {number or 'the usual'} parts", f"{seconds:.1f}", f"{merges:.1f}", ratio))
        print(f"{given.corpus.name}, {total:,} bytes: the files of all builds are equal")
        table("Build", ("", "s", "of which merges", "ratio"), rows)


def timed(corpus: Path, path: Path, ray: bool | None = None) -> tuple[float, float]:
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


if __name__ == "__main__":
    main()
