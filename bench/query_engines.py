"""Fontes, tantivy and bm25s for queries.py and quick.py, each in a process of its own: it builds an index or answers orders.

    python query_engines.py build ENGINE FOLDER
    python query_engines.py serve ENGINE FOLDER

FOLDER has terms.txt (a document a line, terms with blanks between) and queries.jsonl ("kind" and "terms" of each query). Each
document has its number modulo 10 as metadata. Queries are made before the clock starts, and the clock is the processor time of
the process; "commit" gives seconds of a commit of one document, and of the first query after it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from searchers import bm25s_model

K = 10
PARTS, PART = 10, 3  # values of the metadata; the one that passes
FORMULAS: dict[str, dict[str, Any]] = {  # of Fontes, for scores as the peers'
    "lucene": {"k1": 0.9, "b": 0.4, "lengths": "lucene"},
    "tantivy": {"k1": 1.2, "b": 0.75, "lengths": "lucene"},
    "bm25s": {"k1": 0.9, "b": 0.4},
}
TANTIVY = 1.2 + 1  # its scores have Robertson's factor k1 + 1
Search = Callable[..., Any]  # of a query


def lines(folder: Path) -> Iterator[str]:
    with (folder / "terms.txt").open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def given(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]


def build_fontes(folder: Path) -> None:
    from fontes import Doc, Index

    docs = (Doc(str(number), text, "", {"part": number % PARTS}) for number, text in enumerate(lines(folder)))
    Index.build(docs, folder / "fontes", analyzer="whitespace", positions=True, threads=1)


def fontes(folder: Path) -> tuple[list[Any], dict[str, Search]]:
    from fontes import Doc, Index, Topic
    from fontes.core.query import Group, Phrase, Term
    from fontes.storage.compiled import load

    def topic(kind: str, terms: list[str]) -> Topic:
        if kind.startswith("phrase"):
            clauses: tuple[Any, ...] = (Phrase(tuple(terms), tuple(range(len(terms)))),)
        else:
            clauses = tuple(map(Term, terms))
        required = len(clauses) if kind.startswith("and") else kind.count("must")
        return Topic("1", " ".join(terms), query=Group(must=clauses[:required], should=clauses[required:]))

    def stage(where: str, **formula: Any) -> Any:
        searched = Index.open(folder / "texts") if where == "texts" else index
        bm25 = searched.bm25(**formula, threads=1, where=where if "=" in where else None)
        bm25(["two", "topics"])  # weighs all terms
        return bm25

    load()  # as in a process that asks many questions
    index = Index.open(folder / "fontes")
    queries: list[tuple[str, str | Topic]] = []  # where each is searched, and what
    for query in given(folder):
        if "text" in query:
            queries.append(("texts", query["text"]))
        elif query["kind"] == "filter":
            queries.append((f"part == {PART}", " ".join(query["terms"])))
        else:
            queries.append(("terms", topic(query["kind"], query["terms"])))
    stages = {where: stage(where, **FORMULAS["lucene"]) for where in dict.fromkeys(where for where, _ in queries)}

    def hits(query: tuple[str, str | Topic], formula: str) -> Any:
        found = stage(query[0], **FORMULAS[formula]).search(query[1], K)
        return found.total, [(int(hit.id), hit.score) for hit in found]

    def commit(query: tuple[str, str | Topic]) -> Iterator[None]:
        index.add([Doc(f"new-{time.time_ns()}", "one more document", "", {"part": 0})])
        yield
        index.bm25(**FORMULAS["lucene"]).search(query[1], K)

    return queries, {
        "top": lambda query: len(stages[query[0]].search(query[1], K)),
        "top1000": lambda query: len(stages[query[0]].search(query[1], 1000)),
        "count": lambda query: stages[query[0]].count(query[1]),
        "both": lambda query: stages[query[0]].search(query[1], K).total,
        "hits": hits,
        "commit": commit,
    }


def tantivy_index(folder: Path) -> Any:
    import tantivy

    schema = tantivy.SchemaBuilder().add_unsigned_field("number", stored=True).add_integer_field("part", indexed=True)
    schema = schema.add_text_field("text", tokenizer_name="terms", index_option="position").build()
    path = folder / "tantivy"
    path.mkdir(exist_ok=True)
    index = tantivy.Index(schema, path=str(path))
    index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    return index


def build_tantivy(folder: Path) -> None:
    import tantivy

    index = tantivy_index(folder)
    writer = index.writer(heap_size=1_500_000_000, num_threads=1)
    for number, text in enumerate(lines(folder)):
        writer.add_document(tantivy.Document(number=number, part=number % PARTS, text=text))
    writer.commit()
    writer.wait_merging_threads()


def tantivy(folder: Path) -> tuple[list[Any], dict[str, Search]]:
    from tantivy import Document, Occur, Query

    index = tantivy_index(folder)
    index.reload()
    searcher, schema = index.searcher(), index.schema

    def query_of(kind: str, terms: list[str]) -> Any:
        if kind.startswith("phrase"):
            return Query.phrase_query(schema, "text", terms)
        required = len(terms) if kind.startswith("and") else kind.count("must")
        clauses = [
            (Occur.Must if number < required else Occur.Should, Query.term_query(schema, "text", term))
            for number, term in enumerate(terms)
        ]
        if kind == "filter":
            passes = Query.const_score_query(Query.term_query(schema, "part", PART), 0.0)
            return Query.boolean_query([(Occur.Must, Query.boolean_query(clauses)), (Occur.Must, passes)])
        return Query.boolean_query(clauses)

    def hits(query: Any, formula: str) -> Any:
        found = searcher.search(query, limit=K, count=True)
        return found.count, [(searcher.doc(address)["number"][0], score / TANTIVY) for score, address in found.hits]

    @cache
    def writer() -> Any:
        return index.writer(heap_size=50_000_000, num_threads=1)

    def commit(query: Any) -> Iterator[None]:
        writer().add_document(Document(number=0, part=0, text="one more document"))
        writer().commit()
        yield
        index.reload()
        index.searcher().search(query, limit=K, count=False)

    return [query_of(query["kind"], query["terms"]) for query in given(folder) if "terms" in query], {
        "top": lambda query: len(searcher.search(query, limit=K, count=False).hits),
        "top1000": lambda query: len(searcher.search(query, limit=1000, count=False).hits),
        "count": lambda query: searcher.search(query, limit=1, count=True).count,  # 0 is refused
        "both": lambda query: searcher.search(query, limit=K, count=True).count,
        "hits": hits,
        "commit": commit,
    }


def build_bm25s(folder: Path) -> None:
    bm25s_model(folder / "bm25s", lines(folder))


def bm25s(folder: Path) -> tuple[list[Any], dict[str, Search]]:
    """For unions alone."""
    model = bm25s_model(folder / "bm25s", ())

    def top(terms: list[str], k: int) -> Any:
        return model.retrieve([terms], k=k, n_threads=1, show_progress=False)

    def hits(terms: list[str], formula: str) -> Any:
        documents, scores = top(terms, K)
        found = zip(documents[0].tolist(), scores[0].tolist(), strict=True)
        return int((model.get_scores(terms) > 0).sum()), [(number, score) for number, score in found if score > 0]

    return [query["terms"] for query in given(folder) if "terms" in query], {
        "top": lambda terms: len(top(terms, K)[0]),
        "top1000": lambda terms: len(top(terms, 1000)[0]),
        "hits": hits,
    }


def serve(name: str, folder: Path) -> None:
    queries, ways = {"fontes": fontes, "tantivy": tantivy, "bm25s": bm25s}[name](folder)
    say({"queries": len(queries)})
    for line in sys.stdin:
        order = json.loads(line)
        some, way = queries[order["first"] : order["last"]], ways[order["way"]]
        if order["way"] == "hits":
            say([way(query, order["formula"]) for query in some])
        elif order["way"] == "commit":
            say([timed(way(query)) for query in some])
        else:
            start, total = time.process_time(), 0
            for query in some:
                total += way(query)
            say({"seconds": time.process_time() - start, "sum": total})


def timed(steps: Iterator[None]) -> list[float]:
    """Seconds of each step."""
    times = [time.perf_counter()]
    for _ in steps:
        times.append(time.perf_counter())
    return [end - start for start, end in pairwise([*times, time.perf_counter()])]


def say(value: Any) -> None:
    sys.stdout.write(f"={json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        {"fontes": build_fontes, "tantivy": build_tantivy, "bm25s": build_bm25s}[sys.argv[2]](Path(sys.argv[3]))
        say({})
