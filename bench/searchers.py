"""Times searches with one engine, in a process of its own, and writes its run to be checked.

    python searchers.py ENGINE FOLDER [--k 10,1000] [--threads 1,2] [--runs 3]

FOLDER has corpus.jsonl and queries.jsonl, and the same as terms with blanks between: corpus.terms.jsonl, queries.terms.jsonl;
and Fontes' index, "fontes". Other indexes are made in FOLDER/ENGINE where they are missing. Prints JSON: seconds for all
queries, for each k: "one", each query in a call of its own, and for each number of threads "batch N", all of them in one call.
Writes FOLDER/ENGINE.tsv: topic, document, score. Runs in Fontes' or in the peers' environment.

An engine is what `SEARCHERS` makes from the folder: `queries` in the form that it takes, prepared before the clock starts;
`search(queries, k, threads)`, timed up to whatever the engine hands over; and `hits(queries, k)`, not timed: for each query its
documents and scores. To measure another engine, add a function.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

K1, B = 0.9, 0.4
Hits = Iterable[list[tuple[str, float]]]


@dataclass(frozen=True)
class Searcher:
    queries: list[Any]
    search: Callable[[list[Any], int, int], object]
    hits: Callable[[list[Any], int], Hits]


def read(path: Path) -> tuple[list[str], list[str]]:
    """Ids and texts, title first."""
    with path.open(encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]
    return [doc["_id"] for doc in docs], [" ".join(filter(None, (doc.get("title"), doc["text"]))) for doc in docs]


def fontes(folder: Path) -> Searcher:
    """Takes texts; gives a Run (ids as codes)."""
    from fontes import Index, Topic, Topics

    index = Index.open(folder / "fontes")
    texts = read(folder / "queries.jsonl")[1]

    def search(queries: list[str], k: int, threads: int) -> Any:
        if len(queries) == 1:
            return index.bm25(k1=K1, b=B, threads=threads).search(queries[0], k)
        return index.bm25(k1=K1, b=B, k=k, threads=threads)(Topics(Topic(str(i), text) for i, text in enumerate(queries)))

    def hits(queries: list[str], k: int) -> Hits:
        return (list(ranking.items()) for ranking in search(queries, k, 2).to_dict().values())

    return Searcher(texts, search, hits)


def bm25s(folder: Path) -> Searcher:
    """Takes lists of terms; gives arrays of document numbers and scores."""
    import bm25s as library
    import numpy as np

    ids, texts = read(folder / "corpus.terms.jsonl")
    path = folder / "bm25s"
    if not path.exists():
        made = library.BM25(k1=K1, b=B, backend="numba")
        made.index([text.split(" ") for text in texts], show_progress=False)
        made.save(path)
    model = library.BM25.load(path)
    model.backend = "numba"
    model.activate_numba_scorer()
    queries = [text.split(" ") for text in read(folder / "queries.terms.jsonl")[1]]

    def search(queries: list[list[str]], k: int, threads: int) -> Any:
        return model.retrieve(queries, k=k, n_threads=threads, show_progress=False)

    def hits(queries: list[list[str]], k: int) -> Hits:
        documents, scores = search(queries, k, 1)
        for row, values in zip(documents.tolist(), np.asarray(scores).tolist(), strict=True):
            yield [(ids[doc], score) for doc, score in zip(row, values, strict=True) if score > 0]

    return Searcher(queries, search, hits)


def tantivy(folder: Path) -> Searcher:
    """Takes queries of terms, made beforehand; gives addresses and scores."""
    import tantivy as library

    schema = library.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema = schema.add_text_field("text", tokenizer_name="terms", index_option="freq").build()
    path, made = folder / "tantivy", not (folder / "tantivy").exists()
    path.mkdir(exist_ok=True)
    index = library.Index(schema, path=str(path))
    index.register_tokenizer("terms", library.TextAnalyzerBuilder(library.Tokenizer.whitespace()).build())
    if made:
        writer = index.writer(heap_size=1_000_000_000, num_threads=1)
        for doc_id, text in zip(*read(folder / "corpus.terms.jsonl"), strict=True):
            writer.add_document(library.Document(id=doc_id, text=text))
        writer.commit()
        writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    queries = [
        library.Query.boolean_query(
            [(library.Occur.Should, library.Query.term_query(schema, "text", term)) for term in text.split()]
        )
        for text in read(folder / "queries.terms.jsonl")[1]
    ]

    def one(query: Any, k: int) -> Any:
        return searcher.search(query, limit=k, count=False).hits

    def search(queries: list[Any], k: int, threads: int) -> Any:
        if threads == 1:
            return [one(query, k) for query in queries]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda query: one(query, k), queries))

    def hits(queries: list[Any], k: int) -> Hits:
        return ([(searcher.doc(address)["id"][0], score) for score, address in one(query, k)] for query in queries)

    return Searcher(queries, search, hits)


def pisa(folder: Path) -> Searcher:
    """Takes a table of bags of terms; gives a table."""
    import pandas as pd
    from pyterrier_pisa import PisaIndex

    # In one batch: where it merges several (pyterrier-pisa 0.4.9), some terms get postings of other documents.
    index = PisaIndex(str(folder / "pisa"), text_field="terms", stemmer="none", stops="none", batch_size=1 << 30)
    if not (folder / "pisa").exists():
        docs = zip(*read(folder / "corpus.terms.jsonl"), strict=True)
        index.toks_indexer("terms", scale=1.0).index({"docno": i, "terms": dict(Counter(text.split()))} for i, text in docs)
    models: dict[tuple[int, int], Any] = {}
    queries = [dict(Counter(text.split())) for text in read(folder / "queries.terms.jsonl")[1]]

    def search(queries: list[dict[str, int]], k: int, threads: int) -> Any:
        if (k, threads) not in models:
            models[k, threads] = index.bm25(
                k1=K1, b=B, num_results=k, threads=threads, query_algorithm="maxscore", query_weighted=True, toks_scale=1.0
            )
        return models[k, threads].transform(pd.DataFrame({"qid": range(len(queries)), "query_toks": queries}))

    def hits(queries: list[dict[str, int]], k: int) -> Hits:
        found: list[list[tuple[str, float]]] = [[] for _ in queries]
        for qid, docno, score in search(queries, k, 1)[["qid", "docno", "score"]].itertuples(index=False):
            found[qid].append((docno, score))
        return found

    return Searcher(queries, search, hits)


def pyserini(folder: Path) -> Searcher:
    """Takes texts; gives Java's hits, whose ids are not read yet."""
    from pyserini.search.lucene import LuceneSearcher

    path = folder / "pyserini"
    if not path.exists():
        from engines import Clock, build_pyserini

        build_pyserini(Clock(), folder / "corpus.jsonl", path, 1, False)
    searcher = LuceneSearcher(str(path))
    searcher.set_bm25(K1, B)

    def search(queries: list[str], k: int, threads: int) -> Any:
        if len(queries) == 1:
            return [searcher.search(queries[0], k)]
        names = [str(i) for i in range(len(queries))]
        return searcher.batch_search(queries, names, k, threads)

    def hits(queries: list[str], k: int) -> Hits:
        return ([(hit.docid, hit.score) for hit in searcher.search(query, k)] for query in queries)

    return Searcher(read(folder / "queries.jsonl")[1], search, hits)


SEARCHERS = {function.__name__: function for function in (fontes, bm25s, tantivy, pisa, pyserini)}
CHECKED = 100  # documents of each topic that are written


def measure(searcher: Searcher, k: int, threads: Iterable[int], runs: int) -> dict[str, list[float]]:
    """Seconds for all queries, the first round thrown away."""
    ways: dict[str, Callable[[], object]] = {"one": lambda: [searcher.search([query], k, 1) for query in searcher.queries]}
    for number in threads:
        ways[f"batch {number}"] = lambda number=number: searcher.search(searcher.queries, k, number)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(runs + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=SEARCHERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--k", default="10,1000")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    searcher = SEARCHERS[given.engine](given.folder)
    written = given.folder / f"{given.engine}.tsv"
    if not written.exists():
        rows = enumerate(searcher.hits(searcher.queries, CHECKED))
        lines = (f"{topic}\t{doc}\t{score!r}\n" for topic, found in rows for doc, score in found)
        written.write_text("".join(lines), encoding="utf-8")
    threads = [int(number) for number in given.threads.split(",")]
    found = {k: measure(searcher, int(k), threads, given.runs) for k in given.k.split(",")}
    sys.stdout.write("\n" + json.dumps({"queries": len(searcher.queries), "seconds": found}) + "\n")


if __name__ == "__main__":
    main()
