"""Times `index.encode` on a cluster of this machine against the same by threads: the part `encoding` of cluster.py.

    FONTES_DATA=DIR python bench/cluster_encoding.py [--model FOLDER] [--documents 1024] [--runs 3] [--work DIR]

SciFact, all-MiniLM-L6-v2 in float32, all processors for both. "Encoding" begins with the first block that is done and
ends with the last one, so that it is without the start of the actors and without loading the model there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from harness import data_option, machine, middle, table

from fontes import Index, SentenceEncoder, read_corpus
from fontes.cluster import joined
from fontes.core.progress import Progress
from fontes.index.attached import journal

BLOCK = 128  # smaller than in use, so that there are blocks enough to measure


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="a folder, or a name on the hub (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=1024, help="how many (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="where indexes go for the time being")
    parser.add_argument("--runs", type=int, default=3, help="how often everything is measured (default: %(default)s)")
    given = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        encoding(given, Path(folder))


def encoding(given: Any, work: Path) -> None:
    """Documents encoded here and by actors, in turns."""
    journal.BLOCK = BLOCK
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
                seconds, between = timed(Index.open(path), encoder, ray)
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


def timed(index: Index, encoder: SentenceEncoder, ray: bool | None) -> tuple[float, float]:
    """Seconds of all, and from the first block to the last."""
    blocks: list[float] = []
    counts: set[int] = set()

    def report(progress: Progress) -> None:
        if progress.done and progress.done % BLOCK == 0 and progress.done not in counts:
            counts.add(progress.done)
            blocks.append(time.perf_counter())

    start = time.perf_counter()
    index.encode(encoder, ray=ray, progress=report)
    return time.perf_counter() - start, blocks[-1] - blocks[0]


if __name__ == "__main__":
    sys.exit(main())
