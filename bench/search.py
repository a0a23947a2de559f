"""Times how long Fontes and its peers take to search wikipedia_passages (207,168 passages) for its 1,803 titles.

    FONTES_DATA=DIR python bench/search.py [--only fontes,pisa] [--runs 3]

First checks that each engine finds what Fontes finds with its formula and parameters. All have the same terms: those that take
terms get them from Fontes' analyzer, Pyserini analyses text itself, as Fontes does, within the time measured.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from build import COLLECTION, unpacked
from harness import Process, engine, machine, middle, options, table

from fontes import Index, Run, Topic, Topics

NAMES = {"fontes": "Fontes", "bm25s": "bm25s", "tantivy": "tantivy", "pisa": "PISA", "pyserini": "Pyserini"}
FORMULAS: dict[str, dict[str, Any]] = {
    "fontes": {},
    "bm25s": {},
    "tantivy": {"k1": 1.2, "b": 0.75, "lengths": "lucene"},
    "pisa": {"variant": "robertson"},
    "pyserini": {"lengths": "lucene"},
}
DEPTHS = (10, 1000)
WAYS = {"one": "one at a time", "batch 1": "batch, 1 thread", "batch 2": "batch, 2 threads"}


def main() -> None:
    parser = options(__doc__, runs=3)
    parser.add_argument("--only", default=",".join(NAMES), help="engines, separated by commas")
    given = parser.parse_args()
    wanted = [name for name in NAMES if name in given.only.split(",")]
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        index = prepare(given.data / COLLECTION, folder)
        for name in wanted:  # makes the index
            run(name, given.peers, folder, 0)
        check(index, folder, wanted)
        times = {name: run(name, given.peers, folder, given.runs) for name in wanted}
        report({name: process.report for name, process in times.items()})


def run(name: str, peers: Path, folder: Path, runs: int) -> Process:
    depths = ",".join(map(str, DEPTHS if runs else DEPTHS[:1]))
    return engine(name, peers, "searchers.py", name, folder, "--runs", runs, "--k", depths)


def prepare(source: Path, folder: Path) -> Index:
    """Writes the corpus and the queries as text and as terms, and makes Fontes' index."""
    corpus = unpacked(source, folder)
    (folder / "queries.jsonl").write_bytes((source / "queries.jsonl").read_bytes())
    index = Index.build(corpus, folder / "fontes")
    for name in ("corpus", "queries"):
        docs = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        terms = index.analyzer.many([" ".join(filter(None, (doc.get("title"), doc["text"]))) for doc in docs])
        lines = (json.dumps({"_id": doc["_id"], "text": " ".join(some)}) for doc, some in zip(docs, terms, strict=True))
        (folder / f"{name}.terms.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return index


def check(index: Index, folder: Path, wanted: Iterable[str]) -> None:
    """Prints how much of each engine's top 10 Fontes ranks as high with the same formula."""
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    topics = Topics(Topic(str(i), query["text"]) for i, query in enumerate(queries))
    rows = []
    for name in wanted:
        retriever = index.bm25(**{"k1": 0.9, "b": 0.4, **FORMULAS[name]}, k=1000)
        theirs = tops(folder / f"{name}.tsv")
        formula = ", ".join(f"{key}={value}" for key, value in FORMULAS[name].items()) or "lucene, k1=0.9, b=0.4"
        rows.append([NAMES[name], formula, *agreement(retriever(topics), theirs)])
    table(
        "Agreement with Fontes",
        ["", "Fontes with", "in the top 10 of both, or tied there", "topics without results here only"],
        rows,
    )


def agreement(ours: Run, theirs: dict[str, list[str]]) -> list[str]:
    """Which share of their first 10 documents have a score of ours that is at least our tenth (or all but a rounding)."""
    same = total = lost = 0
    for topic, ranking in ours.items():
        found = theirs.get(topic, [])[:10]
        least = float(ranking.scores[min(9, len(ranking) - 1)]) * (1 - 1e-4) if len(ranking) else 0.0
        ranked = {doc for doc, score in zip(ranking.ids, ranking.scores, strict=True) if score >= least}
        same += sum(doc in ranked for doc in found)
        total += min(10, len(ranking))
        lost += not ranking and bool(found)
    return [f"{same / total:.4%}", f"{lost}"]


def tops(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        topic, doc, _ = line.split("\t")
        found.setdefault(topic, []).append(doc)
    return found


def report(found: dict[str, dict[str, Any]]) -> None:
    for k in DEPTHS:
        rows = []
        best = {way: min(middle(one["seconds"][str(k)][way]) for one in found.values()) for way in WAYS}
        for name, one in found.items():
            cells = []
            for way in WAYS:
                seconds = middle(one["seconds"][str(k)][way])
                cells.append(f"{1000 * seconds / one['queries']:.3f} ({seconds / best[way]:.1f}×)")
            rows.append([NAMES[name], *cells])
        table(f"k = {k}: milliseconds a query (times the fastest)", ["", *WAYS.values()], rows)


if __name__ == "__main__":
    main()
