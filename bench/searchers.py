"""The engines of lexical.py, each in a process of its own that builds an index or answers orders.

    python searchers.py build ENGINE FOLDER
    python searchers.py serve ENGINE FOLDER

FOLDER has corpus.terms.jsonl and queries.terms.jsonl: terms with blanks between, which no engine stems or stops again. "build"
makes the index FOLDER/ENGINE and prints what that took; "serve" opens it and answers orders, a line of JSON each, after "=".

An engine is what `SEARCHERS` makes from the folder: `queries` in the form that it takes, prepared before the clock starts;
`search(queries, k, threads)`, timed up to whatever the engine hands over; and `hits(queries, k)`, not timed: for each query its
documents and scores. To measure another engine, add a function.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
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
    """Ids and texts."""
    with path.open(encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]
    return [doc["_id"] for doc in docs], [doc["text"] for doc in docs]


def fontes(folder: Path) -> Searcher:
    """Takes terms with blanks between; gives a Ranking, or a Run."""
    from fontes import Index, Topic, Topics

    path = folder / "fontes"
    if not path.exists():
        Index.build(folder / "corpus.terms.jsonl", path, analyzer="whitespace", threads=1)
    index = Index.open(path)
    index.bm25()(["two", "topics"])  # a process that asks many questions has loaded its compiled loops
    stages: dict[tuple[int, int], Any] = {}

    def search(queries: list[str], k: int, threads: int) -> Any:
        if (k, threads) not in stages:
            stages[k, threads] = index.bm25(k1=K1, b=B, k=k, threads=threads)
        stage = stages[k, threads]
        if len(queries) == 1:
            return stage.search(queries[0], k)
        return stage(Topics(Topic(str(i), text) for i, text in enumerate(queries)))

    def hits(queries: list[str], k: int) -> Hits:
        return (list(ranking.items()) for ranking in search(queries, k, 2).to_dict().values())

    return Searcher(read(folder / "queries.terms.jsonl")[1], search, hits)


def bm25s_model(path: Path, texts: Iterable[str]) -> Any:
    """The model in the folder `path`, made where it is not there from texts of terms with blanks between.

    Built from numbers of terms, as its own tokenizer makes them: lists of strings take four times the memory.
    """
    import bm25s as library

    if not path.exists():
        vocabulary: dict[str, int] = {}
        docs = [[vocabulary.setdefault(term, len(vocabulary)) for term in text.split(" ")] for text in texts]
        made = library.BM25(k1=K1, b=B, backend="numba")
        made.index(library.tokenization.Tokenized(ids=docs, vocab=vocabulary), show_progress=False)
        made.save(path)
        del docs, made
    model = library.BM25.load(path)
    model.backend = "numba"
    model.activate_numba_scorer()
    return model


def bm25s(folder: Path) -> Searcher:
    """Takes lists of terms; gives arrays of document numbers and scores."""
    import numpy as np

    with (folder / "corpus.terms.jsonl").open(encoding="utf-8") as file:
        model = bm25s_model(folder / "bm25s", (json.loads(line)["text"] for line in file))
    queries = [text.split(" ") for text in read(folder / "queries.terms.jsonl")[1]]

    def search(queries: list[list[str]], k: int, threads: int) -> Any:
        return model.retrieve(queries, k=k, n_threads=threads, show_progress=False)

    def hits(queries: list[list[str]], k: int) -> Hits:
        ids = read(folder / "corpus.terms.jsonl")[0]
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
        with (folder / "corpus.terms.jsonl").open(encoding="utf-8") as file:
            for doc in map(json.loads, file):
                writer.add_document(library.Document(id=doc["_id"], text=doc["text"]))
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
    """Takes bags of terms; gives arrays, without the tables that PyTerrier makes of them."""
    import numpy as np
    from pyterrier_pisa import PisaIndex, _pisathon

    # In one batch: where it merges several (pyterrier-pisa 0.4.9), some terms get postings of other documents.
    index = PisaIndex(str(folder / "pisa"), text_field="terms", stemmer="none", stops="none", batch_size=1 << 30)
    if not (folder / "pisa").exists():
        with (folder / "corpus.terms.jsonl").open(encoding="utf-8") as file:
            docs = ({"docno": doc["_id"], "terms": dict(Counter(doc["text"].split(" ")))} for doc in map(json.loads, file))
            index.toks_indexer("terms", scale=1.0).index(docs)
    context = index.bm25(k1=K1, b=B, query_algorithm="maxscore", query_weighted=True, toks_scale=1.0)._ctxt
    texts = read(folder / "queries.terms.jsonl")[1]

    def search(queries: list[dict[str, float]], k: int, threads: int) -> Any:
        types = (np.int32, object, np.int32, np.float32)
        names = ("result_qidxs", "result_docnos", "result_ranks", "result_scores")
        found = {name: np.empty(len(queries) * k, dtype=kind) for name, kind in zip(names, types, strict=True)}
        given = list(enumerate(queries))
        _pisathon.retrieve(context, "maxscore", given, k=k, threads=threads, query_weighted=1, pretokenised=True, **found)
        return found

    def hits(queries: list[dict[str, float]], k: int) -> Hits:
        import pandas as pd

        model = index.bm25(
            k1=K1, b=B, num_results=k, threads=1, query_algorithm="maxscore", query_weighted=True, toks_scale=1.0
        )
        found: list[list[tuple[str, float]]] = [[] for _ in queries]
        rows = model.transform(pd.DataFrame({"qid": range(len(queries)), "query_toks": queries}))
        for qid, docno, score in rows[["qid", "docno", "score"]].itertuples(index=False):
            found[qid].append((docno, score))
        return found

    return Searcher([{term: float(n) for term, n in Counter(text.split(" ")).items()} for text in texts], search, hits)


def pyserini(folder: Path) -> Searcher:
    """Takes terms with blanks between; gives Java's hits, whose ids are not read yet."""
    from pyserini.analysis import JWhiteSpaceAnalyzer
    from pyserini.search.lucene import LuceneSearcher

    path = folder / "pyserini"
    if not path.exists():
        import subprocess

        (folder / "pyserini.input").mkdir(exist_ok=True)
        with (
            (folder / "corpus.terms.jsonl").open(encoding="utf-8") as file,
            (folder / "pyserini.input" / "corpus.jsonl").open("w", encoding="utf-8") as out,
        ):
            for doc in map(json.loads, file):
                out.write(json.dumps({"id": doc["_id"], "contents": doc["text"]}) + "\n")
        options = ["--collection", "JsonCollection", "--generator", "DefaultLuceneDocumentGenerator", "--threads", "1"]
        options += ["--input", str(folder / "pyserini.input"), "--index", str(path), "--pretokenized"]
        subprocess.run([sys.executable, "-m", "pyserini.index.lucene", *options], check=True, capture_output=True)
        shutil.rmtree(folder / "pyserini.input")
    searcher = LuceneSearcher(str(path))
    searcher.set_analyzer(JWhiteSpaceAnalyzer())
    searcher.set_bm25(K1, B)

    def search(queries: list[str], k: int, threads: int) -> Any:
        if len(queries) == 1:
            return [searcher.search(queries[0], k)]
        return searcher.batch_search(queries, [str(i) for i in range(len(queries))], k, threads)

    def hits(queries: list[str], k: int) -> Hits:
        return ([(hit.docid, hit.score) for hit in searcher.search(query, k)] for query in queries)

    return Searcher(read(folder / "queries.terms.jsonl")[1], search, hits)


SEARCHERS = {function.__name__: function for function in (fontes, pisa, bm25s, tantivy, pyserini)}


def build(name: str, folder: Path) -> None:
    """Builds an index on one core, up to the first result; everything is compiled and imported before."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as small:
        for file in ("corpus.terms.jsonl", "queries.terms.jsonl"):
            with (folder / file).open(encoding="utf-8") as source:
                (Path(small) / file).write_text("".join(islice(source, 3000)), encoding="utf-8")
        searcher = SEARCHERS[name](Path(small))
        searcher.search(searcher.queries[:1], 10, 1)
        del searcher
    shutil.rmtree(folder / name, ignore_errors=True)
    start, worked = time.perf_counter(), time.process_time()
    searcher = SEARCHERS[name](folder)
    searcher.search(searcher.queries[:1], 10, 1)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(file.stat().st_size for file in (folder / name).rglob("*") if file.is_file())
    say({"seconds": seconds, "processor": worked, "peak": peak, "size": size / 1e6})


def serve(name: str, folder: Path) -> None:
    """Opens an index and answers orders, a line of JSON each."""
    start = time.perf_counter()
    searcher = SEARCHERS[name](folder)
    say({"open": time.perf_counter() - start})
    for line in sys.stdin:
        order = json.loads(line)
        if order["way"] == "memory":
            say(memory())
            continue
        k, queries = order["k"], searcher.queries[order["first"] : order["last"]]
        if order["way"] == "hits":
            say([list(found) for found in searcher.hits(queries, k)])
        elif order["way"] == "one":
            seconds = []
            for query in queries:
                start = time.perf_counter()
                searcher.search([query], k, 1)
                seconds.append(time.perf_counter() - start)
            say(seconds)
        else:
            start = time.perf_counter()
            searcher.search(queries, k, order["threads"])
            say(time.perf_counter() - start)


def memory() -> dict[str, float]:
    """MiB that this process holds: anonymous, and of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(status[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile")}


def say(value: Any) -> None:
    sys.stdout.write("\n=" + json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"build": build, "serve": serve}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
