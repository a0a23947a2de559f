"""Search with typing errors, and completion: quality on six collections, and time on 207,168 passages.

    FONTES_DATA=DIR python bench/typed.py [--node FOLDER] [--runs 5]

Prints Markdown tables. One error is made in each query (see `typing_errors.py`), of at most 300 topics a collection,
and of 40 beside MiniSearch and Orama. FOLDER is where `npm i minisearch @orama/orama` ran; without it these are left
out. MiniSearch searches with `fuzzy: 0.2, prefix: true`, Orama with `tolerance: 1`, both on title and text, without
stemming. `query()` searches every word of at least four letters with ~. Times are of the processor, in turns; of each
engine the least of all runs counts. Completions are timed on the clock beside five searches a second.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_errors import with_error

COLLECTIONS = {
    "scifact": "english",
    "cranfield": "english",
    "med": "english",
    "checkthat20_task2": "english",
    "xquad_en": "english",
    "ctkfacts_cs": "czech",
}
TOPICS, PEER_TOPICS, QUERIES, PEER_QUERIES, SLOW_QUERIES = 300, 40, 1000, 20, 5
SEED = 7
Search = Callable[[list[str]], list[dict[str, float]]]


def main() -> None:
    from harness import amount, machine, options

    parser = options(__doc__)
    parser.add_argument("--node", type=Path, help="folder with node_modules of minisearch and @orama/orama")
    given = parser.parse_args()
    print(machine(), flush=True)
    quality(given.data, None, amount(TOPICS, 5))
    if given.node:
        quality(given.data, given.node, amount(PEER_TOPICS, 5))
    speed(given.data / "wikipedia_passages", given.node, given.runs, amount(QUERIES, 20))


def engines(index: Any, grams: Any) -> dict[str, Any]:
    """Stages of Fontes by name."""
    bm25 = index.bm25()
    return {
        "BM25": bm25,
        'tolerance("auto")': index.tolerance("auto") >> bm25,
        "`query()` with ~": index.query() >> bm25,
        "character n-grams": None if grams is None else grams.bm25(),
    }


def with_tildes(query: str) -> str:
    """The query with ~ after every word of at least four letters."""
    return " ".join(f"{word}~" if len(word) >= 4 else word for word in re.findall(r"\w+", query))


def node(kind: str, folder: Path, corpus: Path) -> Any:
    """MiniSearch or Orama with a corpus."""
    from harness import HERE, Worker

    program = folder / "typed.mjs"
    program.write_text((HERE / "typed.mjs").read_text())
    worker = Worker(
        ["node", "--max-old-space-size=8000", program, kind, corpus.absolute()], dict(os.environ) | {"FOLDER": str(folder)}
    )
    worker.answer()
    return worker


def quality(data: Path, folder: Path | None, most: int) -> None:
    """Prints nDCG@10 with and without errors."""
    from harness import table

    from fontes import Index, Run, Topic, Topics, evaluate, read_qrels, read_topics

    rows = []
    for name, analyzer in COLLECTIONS.items():
        with tempfile.TemporaryDirectory() as work:
            source = data / name
            qrels, every = read_qrels(source / "qrels" / "test.tsv"), read_topics(source / "queries.jsonl")
            topics = [every[topic] for topic in every if topic in qrels][:most]
            rng = random.Random(SEED)
            kinds = [topics, [Topic(topic.id, with_error(topic.text, rng)) for topic in topics]]
            judged = {topic.id: qrels[topic.id] for topic in topics}
            index = Index.build(source / "corpus.jsonl", f"{work}/words.index", analyzer=analyzer)
            grams = Index.build(source / "corpus.jsonl", f"{work}/grams.index", analyzer=f"{analyzer}+chars:2-4")
            figures = {}
            for engine, stage in engines(index, grams).items():
                change = with_tildes if "~" in engine else str
                runs = [stage(Topics(Topic(topic.id, change(topic.text)) for topic in kind)) for kind in kinds]
                figures[engine] = [evaluate(run, judged, ["nDCG@10"])["nDCG@10"] for run in runs]
            for peer in ("MiniSearch", "Orama") if folder else ():
                worker = node(peer.lower(), folder, source / "corpus.jsonl")
                figures[peer] = []
                for kind in kinds:
                    hits = worker.answer(queries=[topic.text for topic in kind], k=10)["hits"]
                    run = {topic.id: dict(found) for topic, found in zip(kind, hits, strict=True)}
                    figures[peer].append(evaluate(Run.of(run), judged, ["nDCG@10"])["nDCG@10"])
                worker.end()
        plain = figures["BM25"][0]
        for engine, (without, errors) in figures.items():
            rows.append([f"{name}, {engine}", f"{without:.4f}", f"{errors:.4f}", f"{errors / plain:.3f}"])
    table("nDCG@10 with an error in each query", ["collection, engine", "no error", "one error", "of BM25 without"], rows)


def speed(source: Path, folder: Path | None, runs: int, most: int) -> None:
    """Prints milliseconds of processor time for a query, and of the clock for a completion."""
    from harness import table

    from fontes import Index
    from fontes.storage.compiled import load

    load()
    with tempfile.TemporaryDirectory() as work:
        corpus = Path(work) / "corpus.jsonl"
        corpus.write_bytes(gzip.decompress((source / "corpus.jsonl.gz").read_bytes()))
        index = Index.build(corpus, f"{work}/words.index", analyzer="english")
        grams = Index.build(corpus, f"{work}/grams.index", analyzer="english+chars:2-4")
        texts = [json.loads(line)["text"] for line in (source / "queries.jsonl").open()][:most]
        rng = random.Random(SEED)
        kinds = {"no error": texts, "one error": [with_error(text, rng) for text in texts]}
        stages = engines(index, grams)
        workers = {peer: node(peer.lower(), folder, corpus) for peer in ("MiniSearch", "Orama")} if folder else {}
        best: dict[tuple[str, str], float] = {}
        first: dict[str, float] = {}
        index.suggest("a"), stages['tolerance("auto")'].search("hydrothremal vens")
        for _ in range(runs):
            for kind, queries in kinds.items():
                for engine, stage in stages.items():
                    asked = [with_tildes(query) if "~" in engine else query for query in queries]
                    asked = asked if engine in ("BM25", 'tolerance("auto")') else asked[: PEER_QUERIES * 2]
                    start = time.process_time()
                    for query in asked:
                        stage.search(query, 10)
                    seconds = (time.process_time() - start) / len(asked)
                    if "auto" in engine:
                        first.setdefault(kind, seconds)
                    best[engine, kind] = min(best.get((engine, kind), 1e9), seconds)
                for peer, worker in workers.items():
                    asked = queries[: PEER_QUERIES if peer == "MiniSearch" else SLOW_QUERIES * 4]
                    seconds = worker.answer(queries=asked, k=10)["seconds"] / len(asked)
                    best[peer, kind] = min(best.get((peer, kind), 1e9), seconds)
        names = [*stages, *workers]
        rows = [[name, *(f"{1000 * best[name, kind]:.3f}" for kind in kinds)] for name in names]
        rows.append(["tolerance, the first time", *(f"{1000 * first[kind]:.3f}" for kind in kinds)])
        table("Processor time for a query on 207,168 passages, in ms", ["engine", *kinds], rows)
        completion(index, stages["BM25"], texts)


def completion(index: Any, bm25: Any, texts: list[str]) -> None:
    """Prints the time of completions of beginnings of queries, beside five searches a second."""
    from harness import table

    rng, ended = random.Random(SEED), threading.Event()

    def search() -> None:
        while not ended.wait(0.2):
            bm25.search(rng.choice(texts), 10)

    beside = threading.Thread(target=search)
    beside.start()
    beginnings = [text[: rng.randint(1, len(text))] for text in texts if text]
    seconds = []
    for beginning in beginnings:
        start = time.perf_counter()
        index.suggest(beginning, 8)
        seconds.append(time.perf_counter() - start)
    ended.set()
    beside.join()
    seconds.sort()
    row = [f"{1000 * seconds[int(share * (len(seconds) - 1))]:.2f}" for share in (0.5, 0.95, 0.99)]
    table("Time of a completion, in ms", ["", "median", "95 %", "99 %"], [[f"{len(beginnings)} beginnings", *row]])


if __name__ == "__main__":
    main()
