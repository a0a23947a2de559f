"""Fontes and tantivy for queries.py, each in a process of its own that builds an index or answers orders.

    python query_engines.py build ENGINE FOLDER
    python query_engines.py serve ENGINE FOLDER

FOLDER has terms.txt (a document a line, terms with blanks between) and queries.jsonl ("kind" and "terms" of each query).
Queries are made before the clock starts, and the clock is the processor time of the process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

K = 10
Search = Callable[[Any], Any]  # of a query


def lines(folder: Path) -> Iterator[str]:
    with (folder / "terms.txt").open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def given(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]


def build_fontes(folder: Path) -> None:
    from fontes import Doc, Index

    docs = (Doc(str(number), text) for number, text in enumerate(lines(folder)))
    Index.build(docs, folder / "fontes", analyzer="whitespace", positions=True, threads=1)


def fontes(folder: Path) -> tuple[list[Any], dict[str, Search]]:
    from fontes import Index, Topic
    from fontes.core.query import Group, Phrase, Term
    from fontes.storage.compiled import load

    def topic(kind: str, terms: list[str]) -> Topic:
        if kind.startswith("phrase"):
            clauses: tuple[Any, ...] = (Phrase(tuple(terms), tuple(range(len(terms)))),)
        else:
            clauses = tuple(map(Term, terms))
        return Topic("1", " ".join(terms), query=Group(must=clauses) if kind.startswith("and") else Group(should=clauses))

    load()  # as in a process that asks many questions
    index = Index.open(folder / "fontes")
    bm25 = index.bm25(k1=0.9, b=0.4, lengths="lucene", threads=1)
    bm25(["two", "topics"])  # weighs all terms
    texts = Index.open(folder / "texts").bm25(k1=0.9, b=0.4, lengths="lucene", threads=1)
    texts(["two", "topics"])
    queries = [query["text"] if "text" in query else topic(query["kind"], query["terms"]) for query in given(folder)]

    def of(query: str | Topic) -> Any:
        return texts if isinstance(query, str) else bm25

    def hits(query: str | Topic) -> Any:
        found = of(query).search(query, K)
        return found.total, [(int(hit.id), hit.score) for hit in found]

    return queries, {
        "top": lambda query: len(of(query).search(query, K)),
        "count": lambda query: of(query).count(query),
        "both": lambda query: of(query).search(query, K).total,
        "hits": hits,
    }


def tantivy_index(folder: Path) -> Any:
    import tantivy

    schema = tantivy.SchemaBuilder().add_unsigned_field("number", stored=True)
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
        writer.add_document(tantivy.Document(number=number, text=text))
    writer.commit()
    writer.wait_merging_threads()


def tantivy(folder: Path) -> tuple[list[Any], dict[str, Search]]:
    from tantivy import Occur, Query

    index = tantivy_index(folder)
    index.reload()
    searcher, schema = index.searcher(), index.schema

    def query_of(kind: str, terms: list[str]) -> Any:
        if kind.startswith("phrase"):
            return Query.phrase_query(schema, "text", terms)
        occur = Occur.Must if kind.startswith("and") else Occur.Should
        return Query.boolean_query([(occur, Query.term_query(schema, "text", term)) for term in terms])

    def hits(query: Any) -> Any:
        found = searcher.search(query, limit=K, count=True)
        return found.count, [(searcher.doc(address)["number"][0], score) for score, address in found.hits]

    return [query_of(query["kind"], query["terms"]) for query in given(folder) if "terms" in query], {
        "top": lambda query: len(searcher.search(query, limit=K, count=False).hits),
        "count": lambda query: searcher.search(query, limit=1, count=True).count,  # 0 is refused
        "both": lambda query: searcher.search(query, limit=K, count=True).count,
        "hits": hits,
    }


def serve(name: str, folder: Path) -> None:
    queries, ways = {"fontes": fontes, "tantivy": tantivy}[name](folder)
    say({"queries": len(queries)})
    for line in sys.stdin:
        order = json.loads(line)
        some, way = queries[order["first"] : order["last"]], ways[order["way"]]
        if order["way"] == "hits":
            say([way(query) for query in some])
            continue
        start, total = time.process_time(), 0
        for query in some:
            total += way(query)
        say({"seconds": time.process_time() - start, "sum": total})


def say(value: Any) -> None:
    sys.stdout.write(f"={json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        {"fontes": build_fontes, "tantivy": build_tantivy}[sys.argv[2]](Path(sys.argv[3]))
        say({})
